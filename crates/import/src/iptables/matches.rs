//! The conditions of a rule as they are read: those that boxes can say, and beside them those that only a
//! policy can.

use crate::address::AddressFamily;
use crate::conditions::Conditions;
use policy::{PacketField, RuleCondition, Values};

/// The conditions of a rule, in the order in which the file asks them.
pub(crate) struct Matches {
    family: AddressFamily,
    /// What stands before `conditions`; nothing where rows of a table are wanted.
    before: Vec<RuleCondition>,
    /// What boxes can say.
    pub(crate) conditions: Conditions,
    /// The protocol, where the rule asks for one.
    pub(super) protocol: Option<u8>,
    /// Whether something has been asked that no later fragment fits.
    header: bool,
}

impl Matches {
    pub(super) fn new(family: AddressFamily) -> Self {
        Self {
            family,
            before: Vec::new(),
            conditions: Conditions::new(family),
            protocol: None,
            header: false,
        }
    }

    /// The rule looks into a header that later fragments have not.
    pub(super) fn header(&mut self) {
        self.header = true;
        self.conditions.header();
    }

    /// Whether it has looked into one.
    pub(super) fn asks_header(&self) -> bool {
        self.header
    }

    /// Whether a condition looks at the address or the port that a packet goes to.
    pub(super) fn asks_destination(&self) -> bool {
        asks_destination(&self.condition())
    }

    /// Adds a condition that no box can say.
    pub(super) fn also(&mut self, condition: RuleCondition) {
        let conditions = std::mem::replace(&mut self.conditions, Conditions::new(self.family));
        self.before.push(conditions.condition());
        self.before.push(condition);
    }

    /// All conditions in their order: what counts packets counts those that all before it have let through.
    pub(crate) fn condition(&self) -> RuleCondition {
        let mut all = Vec::new();
        for condition in self.before.iter().cloned().chain([self.conditions.condition()]) {
            match condition {
                RuleCondition::All(more) => all.extend(more),
                one => all.push(one),
            }
        }
        RuleCondition::All(all)
    }
}

fn asks_destination(condition: &RuleCondition) -> bool {
    match condition {
        RuleCondition::Holds(field, _) | RuleCondition::Absent(field) => {
            matches!(field, PacketField::Destination | PacketField::DestinationPort)
        }
        RuleCondition::All(parts) | RuleCondition::Any(parts) => parts.iter().any(asks_destination),
        RuleCondition::Not(part) => asks_destination(part),
        RuleCondition::Remembered(_) => false,
    }
}

/// What `-f` asks: the packet is a piece behind the first.
pub(super) fn later_fragment() -> RuleCondition {
    RuleCondition::Holds(PacketField::LaterFragment, vec![Values::exact(1)])
}

/// Makes what `-f` asks fit no packet, since Linux has put fragments together where it remembers connections.
pub(crate) fn put_together(condition: &mut RuleCondition) {
    match condition {
        RuleCondition::All(parts) => parts.iter_mut().for_each(put_together),
        RuleCondition::Not(part) => put_together(part),
        asked if *asked == later_fragment() => *asked = RuleCondition::Any(Vec::new()),
        _ => {}
    }
}
