//! What decides about packets that a line describes, and whether that is what was expected.

use crate::decisions::{AnalysisFault, Decisions, PolicyDecision, decisions};
use crate::diagram::NONE;
use crate::evaluate::{PolicyVerdict, evaluate};
use crate::field::{PacketField, Values};
use crate::limits::MOST_NODES;
use crate::model::{AskedFamilies, Policy, RuleAction, RuleCondition};
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::packet_text::DescribedPackets;

/// A policy whose decisions are known, so that questions have quick answers.
pub struct DecidedPolicy<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) space: PacketSpace,
    pub(crate) decisions: Decisions,
}

/// One thing that happens to some of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyAnswer {
    /// What decides.
    pub decision: PolicyDecision,
    /// One of the packets that it decides about.
    pub witness: WitnessPacket,
    /// The texts of conditions on earlier packets that hold for it.
    pub may: Vec<String>,
    /// What the packet meets on its way, rule by rule.
    pub verdict: PolicyVerdict,
}

impl DecidedPolicy<'_> {
    /// Finds out what a policy decides.
    ///
    /// # Errors
    /// It cannot be walked, or it is too much.
    pub fn new(policy: &Policy) -> Result<DecidedPolicy<'_>, AnalysisFault> {
        DecidedPolicy::within(policy, MOST_NODES)
    }

    /// The same with diagrams of at most so many nodes.
    ///
    /// # Errors
    /// It cannot be walked, or it is too much.
    pub fn within(policy: &Policy, nodes: usize) -> Result<DecidedPolicy<'_>, AnalysisFault> {
        let mut space = PacketSpace::with_limit(nodes)?;
        let decisions = decisions(&mut space, policy)?;
        Ok(DecidedPolicy { policy, space, decisions })
    }

    /// What happens to these packets: one answer for each rule or default that decides about some of them. No
    /// answer if there are no such packets. Of a policy that is asked about IPv4 alone, the packets of IPv4
    /// among them are meant.
    ///
    /// # Errors
    /// It is too much, or all of the packets are of IPv6 and the policy is asked about IPv4 alone.
    pub fn why(&mut self, packets: &DescribedPackets) -> Result<Vec<WhyAnswer>, AnalysisFault> {
        let space = &mut self.space;
        let mut set = space.possible()?;
        for part in [space.on(packets.path)?, space.set(&packets.condition, &[])?] {
            set = space.diagrams.both(set, part)?;
        }
        if self.policy.families == AskedFamilies::Version4Alone {
            let version_4 = RuleCondition::Holds(PacketField::Family, vec![Values::exact(4)]);
            let version_4 = space.set(&version_4, &[])?;
            let asked = space.diagrams.both(set, version_4)?;
            if asked == NONE && set != NONE {
                return Err(AnalysisFault::NotAsked);
            }
            set = asked;
        }
        let narrowed = space.diagrams.choose(set, self.decisions.function, NONE)?;
        let numbers = space.diagrams.numbers(set, narrowed)?;
        let mut decided: Vec<(PolicyDecision, u32)> = numbers
            .into_iter()
            .filter_map(|number| Some((self.decisions.decision(number)?, number)))
            .collect();
        decided.sort_unstable_by_key(|(decision, _)| (decision.by, decision.action));
        let mut answers = Vec::with_capacity(decided.len());
        for (decision, number) in decided {
            let places = space.diagrams.places_of(narrowed, number)?;
            let Some(witness) = space.witness(places)? else { continue };
            let holds = |memory: usize| witness.remembered.contains(&self.decisions.memories[memory]);
            let verdict =
                evaluate(self.policy, witness.path, &witness.packet, &holds).map_err(AnalysisFault::Walk)?;
            let may = witness.remembered.iter().map(|memory| space.memory_text(*memory).to_owned()).collect();
            answers.push(WhyAnswer { decision, witness, may, verdict });
        }
        Ok(answers)
    }
}

/// What a test expects of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedVerdict {
    /// They pass.
    Pass,
    /// They do not pass, whether their sender is told or not.
    Block,
    /// They do not pass, and their sender is told.
    Reject,
}

impl ExpectedVerdict {
    /// Whether this is what happens.
    pub fn is(self, action: RuleAction) -> bool {
        match self {
            ExpectedVerdict::Pass => action.passes(),
            ExpectedVerdict::Block => !action.passes(),
            ExpectedVerdict::Reject => matches!(action, RuleAction::Reject(_)),
        }
    }
}

/// Reads `pass`, `block` or `reject`.
///
/// # Errors
/// It is none of these.
impl std::str::FromStr for ExpectedVerdict {
    type Err = String;

    fn from_str(text: &str) -> Result<ExpectedVerdict, String> {
        match text {
            "pass" => Ok(ExpectedVerdict::Pass),
            "block" => Ok(ExpectedVerdict::Block),
            "reject" => Ok(ExpectedVerdict::Reject),
            other => Err(format!("`{other}` is nothing to expect: write pass, block or reject")),
        }
    }
}
