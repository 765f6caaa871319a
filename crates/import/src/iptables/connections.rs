//! What rules ask about the connection of a packet: its state, and beside a state what the packet itself says
//! as well.
//!
//! A packet that is new or established has the protocol of its connection. A new one goes in the direction in
//! which its connection began, so it has the addresses and ports that Linux remembers of it. An error that is
//! related has neither. Where a packet does not say it, earlier packets have. A packet without a connection
//! fits none of this.

use super::matches::Matches;
use super::numbers::number;
use super::target::NO_TRANSLATION;
use super::values::{self, address_set, one_port};
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::in_states;
use crate::rates::ONE_PACKET;
use crate::region::Set;
use crate::ruleset::Part;
use crate::services;
use crate::text::shown;
use policy::{Memory, PacketField, RuleCondition, RulePlace, State};

/// Options of the match `conntrack`.
const OPTIONS: [&str; 13] = [
    "--ctstate",
    "--ctproto",
    "--ctdir",
    "--ctorigsrc",
    "--ctorigdst",
    "--ctreplsrc",
    "--ctrepldst",
    "--ctorigsrcport",
    "--ctorigdstport",
    "--ctreplsrcport",
    "--ctrepldstport",
    "--ctstatus",
    "--ctexpire",
];

/// The states of packets with a connection.
const CONNECTED: [State; 3] = [State::New, State::Established, State::Related];

/// An option, whether it is turned round, and its value.
type Asked<'a> = (Argument<'a>, bool, Argument<'a>);

/// Reads the options behind `-m conntrack`. What depends on earlier packets is added to `memories`.
pub(super) fn read(
    module: &Argument<'_>,
    no_states: bool,
    family: AddressFamily,
    arguments: &mut Arguments<'_>,
    matches: &mut Matches,
    memories: &mut Vec<Memory>,
) -> Result<(), ImportError> {
    let mut asked: Vec<Asked<'_>> = Vec::new();
    loop {
        let not = arguments.ahead().first().is_some_and(|word| word.text == "!");
        let option = arguments.ahead().get(usize::from(not));
        if !option.is_some_and(|option| OPTIONS.contains(&&*option.text)) {
            break;
        }
        if not {
            arguments.next();
        }
        let Some(option) = arguments.next() else { break };
        if asked.iter().any(|(other, _, _)| other.text == option.text) {
            return Err(option.error(format!("`{}` is there twice", option.text), "write it once"));
        }
        let value = arguments.value(&option)?;
        asked.push((option, not, value));
    }
    if no_states {
        return Err(not_known_yet(module));
    }
    let mut known = CONNECTED.to_vec();
    if let Some((_, not, value)) = asked.iter().find(|(option, _, _)| option.text == "--ctstate") {
        let wanted = states(value, *not, matches)?;
        known = if *not { Vec::new() } else { wanted };
    } else if asked.is_empty() {
        let what = "the match `conntrack` asks nothing that is known here";
        return Err(module.error(what, "ask for states by `--ctstate`"));
    }
    // Ports are those of a protocol, wherever it stands.
    asked.sort_by_key(|(option, _, _)| option.text != "--ctproto");
    let only = |states: &[State]| !known.is_empty() && known.iter().all(|state| states.contains(state));
    let mut protocol = matches.protocol;
    for (option, not, value) in asked.iter().filter(|(option, _, _)| option.text != "--ctstate") {
        if !only(&CONNECTED) {
            // Linux asks no more of a packet without a connection than its state.
            let what = format!("`{}` stands beside states of packets without a connection", option.text);
            return Err(option.error(what, "ask for it beside NEW, ESTABLISHED and RELATED alone"));
        }
        let by_itself = match &*option.text {
            "--ctproto" => &CONNECTED[..2],
            "--ctstatus" | "--ctexpire" => &[],
            _ => &CONNECTED[..1],
        };
        let mut packet = Matches::new(family);
        packet.protocol = protocol;
        match &*option.text {
            "--ctstatus" => status(value)?,
            "--ctexpire" => seconds(value)?,
            _ => first_packet(option, *not, value, family, &mut packet)?,
        }
        protocol = packet.protocol;
        if only(by_itself) {
            matches.also(packet.condition());
            continue;
        }
        let earlier: Vec<State> = CONNECTED.into_iter().filter(|state| !by_itself.contains(state)).collect();
        let remembered = RuleCondition::Remembered(memories.len());
        let place = RulePlace { line: option.line, column: option.column };
        let turned = if *not { "! " } else { "" };
        let text = format!("{turned}{} {}", option.text, value.text).into();
        memories.push(Memory { place, text, rate: Err(ONE_PACKET.into()) });
        let remembered = RuleCondition::All(vec![in_states(&earlier), remembered]);
        matches.also(if by_itself.is_empty() {
            remembered
        } else {
            let own = RuleCondition::All(vec![in_states(by_itself), packet.condition()]);
            RuleCondition::Any(vec![own, remembered])
        });
    }
    Ok(())
}

/// What Linux says of the fate of a connection.
fn status(value: &Argument<'_>) -> Result<(), ImportError> {
    const STATUS: [&str; 5] = ["NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED"];
    match value.word().parts(',').find(|word| !STATUS.contains(&word.text)) {
        Some(word) => {
            let what = format!("`{}` is no status of a connection", shown(word.text));
            Err(word.error(what, format!("a status is one of {}", STATUS.join(", "))))
        }
        None => Ok(()),
    }
}

/// The time that a connection has left, or a range of it.
fn seconds(value: &Argument<'_>) -> Result<(), ImportError> {
    let word = value.word();
    let ends = word.split(':').map_or(vec![word], |(low, high)| vec![low, high]);
    ends.into_iter().try_for_each(|end| number(end, u32::MAX.into(), "time in seconds").map(drop))
}

/// What a first packet says of its connection.
fn first_packet(
    option: &Argument<'_>,
    not: bool,
    value: &Argument<'_>,
    family: AddressFamily,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    let at = match &*option.text {
        "--ctproto" => {
            let number = match services::protocol(&value.text.to_ascii_lowercase()) {
                Some(number) => number,
                None => number(value.word(), 255, "protocol")? as u8,
            };
            matches.conditions.is(Set::exact(number.into()), Part::Protocol, not);
            matches.protocol = matches.protocol.or((!not).then_some(number));
            return Ok(());
        }
        "--ctdir" => {
            match (&*value.text, not) {
                ("ORIGINAL", false) => {}
                ("REPLY", false) => matches.conditions.never(),
                ("ORIGINAL" | "REPLY", true) => return Err(values::cannot_be_turned(option)),
                (other, _) => {
                    let what = format!("`{}` is no direction", shown(other));
                    return Err(value.error(what, "directions are ORIGINAL and REPLY"));
                }
            }
            return Ok(());
        }
        // Answers go the other way.
        "--ctorigsrc" | "--ctrepldst" => (Part::Source, false),
        "--ctorigdst" | "--ctreplsrc" => (Part::Destination, false),
        "--ctorigsrcport" | "--ctrepldstport" => (Part::SourcePort, true),
        _ => (Part::DestinationPort, true),
    };
    match at {
        (part, true) => one_port(value, part, not, matches),
        (part, false) => {
            matches.conditions.is(address_set(value, family)?, part, not);
            Ok(())
        }
    }
}

/// The error that a rule asks for connections before Linux looks for them.
pub(super) fn not_known_yet(option: &Argument<'_>) -> ImportError {
    option.error("no connection is known yet in the table `raw`", "ask for states in the table `filter`")
}

/// The states of a connection, as `state` and `conntrack` know them.
pub(super) fn states(
    value: &Argument<'_>,
    not: bool,
    matches: &mut Matches,
) -> Result<Vec<State>, ImportError> {
    let mut wanted = Vec::new();
    for word in value.word().parts(',') {
        let is = |state: &State| state.name().to_ascii_uppercase() == word.text;
        match State::ALL.into_iter().find(is) {
            Some(state) => wanted.push(state),
            None if matches!(word.text, "SNAT" | "DNAT") => {
                let what = format!("the state {} asks for address translation (NAT)", word.text);
                return Err(word.error(what, NO_TRANSLATION));
            }
            None => {
                let what = format!("`{}` is no state of a connection", shown(word.text));
                return Err(word.error(what, "states are NEW, ESTABLISHED, RELATED, INVALID and UNTRACKED"));
            }
        }
    }
    let numbers = wanted.iter().map(|state| (*state as u128, *state as u128)).collect();
    values::holds(PacketField::State, numbers, not, matches);
    Ok(wanted)
}
