//! What to read of a file with a policy, and what comes of it.

use crate::ImportError;
use crate::address::AddressFamily;
use policy::{PacketField, Policy, PolicyRule, RuleAction, RuleCondition, RulePlace, Values};

/// What to read of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The family of the packets, where a file is about one only: `iptables-save` or `ip6tables-save`.
    pub family: AddressFamily,
    /// The port that the name of each interface stands for. A name that is not among these is refused.
    pub interfaces: Vec<(String, u16)>,
    /// What is in tables and sets whose addresses stand outside of the file: the name, and a text with an
    /// address or a prefix a line. NPF, pf and iptables; to iptables `addrtype:LOCAL` and the like are the
    /// addresses of a kind.
    pub tables: Vec<(String, String)>,
    /// Whether a first line that is none of the format is skipped, as a title. NPF only.
    pub skip_first_line: bool,
    /// Whether the rules of a table `nat` are left aside, as somebody else translates addresses: the
    /// addresses and ports of a packet are then those that the chains behind the translation see. iptables
    /// only.
    pub skip_nat: bool,
    /// Whether rules that mark packets or connections for others are left aside. A rule that asks for a mark
    /// is refused in any case, so no mark changes what is decided. iptables only.
    pub skip_marks: bool,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedPolicy {
    /// What could be kept. Without the refused lines it may decide otherwise than the file does, so it is for
    /// counting and looking only, unless nothing was refused.
    pub policy: Policy,
    /// How many lines with a rule were kept.
    pub kept: usize,
    /// The lines that mean what no policy can say, in the order of the file.
    pub refused: Vec<ImportError>,
    /// The first line, if it was skipped as a title.
    pub skipped: Option<String>,
}

/// The rule by which a chain for one family, 4 or 6, lets packets of the other one pass: Linux does not call
/// it for these.
pub(super) fn gate(family: u128, place: RulePlace, text: String) -> PolicyRule {
    let own = RuleCondition::Holds(PacketField::Family, vec![Values::exact(family)]);
    PolicyRule {
        place,
        text: text.into(),
        condition: RuleCondition::Not(Box::new(own)),
        action: RuleAction::Pass,
        decides_at_once: false,
        log: false,
        count: false,
    }
}
