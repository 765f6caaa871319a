//! What rules of NPF and pf ask alike: addresses, ports, protocols, flags and interfaces, as conditions.

use super::limits::MOST_ASKED_RANGES;
use super::words::FilterWord;
use crate::ImportError;
use crate::address::{AddressFamily, PrefixFault, host_mask, parse, parse_prefix};
use crate::conditions::Unnamed;
use crate::services;
use crate::text::{lines, parse_number, shown};
use policy::{LOOPBACK, MAPPED, PacketField, Reject, RuleAction, RuleCondition, Unreachable, Values};

/// TCP and UDP, the protocols whose ports rules compare.
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The loopback interface of the BSDs that every machine has.
pub(super) const LOOPBACK_OF_BSD: &str = "lo0";

/// Every packet.
pub(super) fn all() -> RuleCondition {
    RuleCondition::All(Vec::new())
}

/// No packet.
pub(super) fn never() -> RuleCondition {
    RuleCondition::Any(Vec::new())
}

/// A field with one value.
pub(super) fn is(field: PacketField, value: u128) -> RuleCondition {
    RuleCondition::Holds(field, vec![Values::exact(value)])
}

/// The conditions and those of a rule, in one list.
pub(super) fn with(first: impl IntoIterator<Item = RuleCondition>, rule: &RuleCondition) -> RuleCondition {
    let rest = match rule {
        RuleCondition::All(all) => all.clone(),
        other => vec![other.clone()],
    };
    RuleCondition::All(first.into_iter().chain(rest).collect())
}

/// One of the conditions holds.
pub(super) fn one_of(mut any: Vec<RuleCondition>) -> RuleCondition {
    if any.len() == 1 { any.remove(0) } else { RuleCondition::Any(any) }
}

/// Packets of a family.
pub(super) fn of_family(family: AddressFamily) -> RuleCondition {
    is(PacketField::Family, if family == AddressFamily::V4 { 4 } else { 6 })
}

/// How many ranges of values rules may still have.
#[derive(Debug)]
pub(super) struct Ranges(usize);

impl Default for Ranges {
    fn default() -> Self {
        Self(MOST_ASKED_RANGES)
    }
}

impl Ranges {
    /// Takes so many.
    pub(super) fn take(&mut self, count: usize, word: &FilterWord<'_>) -> Result<(), ImportError> {
        self.0 = self.0.checked_sub(count).ok_or_else(|| {
            let what = format!(
                "up to here rules ask for more than {MOST_ASKED_RANGES} ranges of addresses and ports"
            );
            word.error(what, "ask large tables in fewer rules")
        })?;
        Ok(())
    }
}

/// Addresses of both families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    v4: Vec<Values>,
    v6: Vec<Values>,
}

impl Addresses {
    pub(super) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(super) fn add(&mut self, (family, bits, length): (AddressFamily, u128, u8)) {
        let (base, values) = match family {
            AddressFamily::V4 => (MAPPED, &mut self.v4),
            AddressFamily::V6 => (0, &mut self.v6),
        };
        let low = base | bits;
        values.push(Values::Range { low, high: low | host_mask(family.width(), length) });
    }

    /// Whether all of them are single addresses.
    pub(super) fn are_single(&self) -> bool {
        let is_single = |values: &Values| matches!(values, Values::Range { low, high } if low == high);
        self.v4.iter().chain(&self.v6).all(is_single)
    }

    pub(super) fn append(&mut self, mut other: Addresses) {
        self.v4.append(&mut other.v4);
        self.v6.append(&mut other.v6);
    }

    /// Whether the field holds one of them.
    pub(super) fn holds(&self, field: PacketField) -> RuleCondition {
        let families = [(AddressFamily::V4, &self.v4), (AddressFamily::V6, &self.v6)];
        let mut any: Vec<RuleCondition> = families
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(family, values)| {
                RuleCondition::All(vec![of_family(family), RuleCondition::Holds(field, values.clone())])
            })
            .collect();
        if any.len() == 1 { any.remove(0) } else { RuleCondition::Any(any) }
    }
}

/// What to do about a table whose addresses stand outside of the file.
pub(super) const GIVE_TABLE: &str = "give its addresses, one or a prefix a line, in a file that you name: \
     `tables { friends = \"friends.txt\" }` in a program, `--table friends=friends.txt` on a command line";

/// The addresses of a table whose text stands outside of the file: one or a prefix a line.
pub(super) fn table_text(name: &str, text: &str) -> Result<Addresses, String> {
    let mut addresses = Addresses::default();
    for line in lines(text.as_bytes()).map_err(|error| error.to_string())? {
        if line.is_blank() {
            continue;
        }
        let prefix = parse_prefix(line.text.trim().as_bytes())
            .map_err(|fault| format!("line {} of the table `{}` {fault}", line.number, shown(name)))?;
        addresses.add(prefix);
    }
    Ok(addresses)
}

/// An address, or a prefix with its length or its mask.
pub(super) fn prefix(word: &FilterWord<'_>) -> Result<(AddressFamily, u128, u8), ImportError> {
    const ADVICE: &str = "write an address, or a prefix as 192.0.2.0/24";
    let masked = word.text.split_once('/').and_then(|(address, mask)| {
        let ((family, bits), (of_mask, mask)) = (parse(address.as_bytes())?, parse(mask.as_bytes())?);
        let length = (mask << (128 - u32::from(of_mask.width()))).leading_ones() as u8;
        let whole = host_mask(family.width(), length) == !mask & host_mask(family.width(), 0);
        (family == of_mask && whole).then_some((family, bits, length))
    });
    let refuse = |fault: PrefixFault| word.error(format!("{} {fault}", word.shown()), ADVICE);
    match masked {
        Some((family, bits, length)) if bits & host_mask(family.width(), length) == 0 => {
            Ok((family, bits, length))
        }
        Some((family, ..)) => Err(refuse(PrefixFault::HostBits(family))),
        None => parse_prefix(word.text.as_bytes()).map_err(refuse),
    }
}

/// The port of an interface's name.
pub(super) fn interface(word: &FilterWord<'_>, bound: &[(String, u16)]) -> Result<u16, ImportError> {
    let port = bound.iter().find(|(name, _)| name == word.text).map(|(_, port)| *port);
    port.or((word.text == LOOPBACK_OF_BSD).then_some(LOOPBACK)).ok_or_else(|| {
        let (what, advice) = Unnamed::Unbound.words(word.text);
        word.error(what, advice)
    })
}

/// A protocol by name or number.
pub(super) fn protocol(word: &FilterWord<'_>) -> Result<u8, ImportError> {
    let number = parse_number(word.text).and_then(|number| u8::try_from(number).ok());
    number.or_else(|| services::protocol(word.text)).ok_or_else(|| {
        word.error(
            format!("{} is no protocol that is known here", word.shown()),
            "write its number, from 0 to 255",
        )
    })
}

/// A port by name or number; `text` is a part of the word.
pub(super) fn port(text: &str, word: &FilterWord<'_>) -> Result<u16, ImportError> {
    let number = parse_number(text).and_then(|number| u16::try_from(number).ok());
    number.or_else(|| services::port(text, None)).ok_or_else(|| {
        let what = format!("`{}` is no port that is known here", shown(text));
        word.error(what, "write its number, from 0 to 65535")
    })
}

/// Ports from one to another.
pub(super) fn port_range(low: u16, high: u16, word: &FilterWord<'_>) -> Result<Values, ImportError> {
    if low > high {
        let what = format!("no port is from {low} to {high}");
        return Err(word.error(what, "write the smaller one first"));
    }
    Ok(Values::Range { low: low.into(), high: high.into() })
}

/// Flags of TCP by their letters.
pub(super) fn flags(text: &str, word: &FilterWord<'_>) -> Result<u8, ImportError> {
    text.chars().try_fold(0, |flags, letter| {
        let bit = "FSRPAUEW".find(letter).ok_or_else(|| {
            word.error(
                format!("`{}` is no flag of TCP", shown(&letter.to_string())),
                "write flags by their letters F, S, R, P, A, U, E and W",
            )
        })?;
        Ok(flags | 1 << bit)
    })
}

/// The flags of `mask` are as `set` says.
pub(super) fn flags_are(set: u8, mask: u8) -> RuleCondition {
    let (value, mask) = (set.into(), mask.into());
    RuleCondition::Holds(PacketField::TcpFlags, vec![Values::Masked { value, mask }])
}

/// What `S/SA` says: these flags are set, and no others of those behind the `/`; one part stands for both if
/// `alone`.
pub(super) fn flags_word(word: &FilterWord<'_>, alone: bool) -> Result<(u8, u8), ImportError> {
    const ADVICE: &str = "write it as S/SA: which are set, and which are looked at";
    let (set, mask) = match word.text.split_once('/') {
        Some((set, mask)) => (flags(set, word)?, flags(mask, word)?),
        None if alone => (flags(word.text, word)?, flags(word.text, word)?),
        None => return Err(word.error(format!("{} has no `/`", word.shown()), ADVICE)),
    };
    if set & !mask != 0 {
        let what = format!("{} matches no packet: it asks for flags that it does not look at", word.shown());
        return Err(word.error(what, ADVICE));
    }
    Ok((set, mask))
}

/// What senders of blocked packets are told, by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// To a segment of TCP.
    pub(super) tcp: Option<Reject>,
    /// To a datagram of UDP.
    pub(super) udp: Option<Reject>,
    /// To all others.
    pub(super) others: Option<Reject>,
}

impl Answers {
    /// The same to everybody.
    pub(super) fn same(reject: Reject) -> Self {
        Self { tcp: Some(reject), udp: Some(reject), others: Some(reject) }
    }

    /// "Administratively prohibited", as NPF says it.
    pub(super) const PROHIBITED: Option<Reject> = Some(Reject::Unreachable(Unreachable::Prohibited));

    /// The conditions of a rule that blocks, and what happens to the packets of each; they share no packet.
    pub(super) fn of(self, condition: &RuleCondition) -> Vec<(RuleCondition, RuleAction)> {
        let action = |reject: Option<Reject>| reject.map_or(RuleAction::Block, RuleAction::Reject);
        let parts = [
            (action(self.tcp), is(PacketField::Protocol, TCP.into())),
            (action(self.udp), is(PacketField::Protocol, UDP.into())),
            (
                action(self.others),
                RuleCondition::Not(Box::new(RuleCondition::Holds(
                    PacketField::Protocol,
                    vec![Values::exact(TCP.into()), Values::exact(UDP.into())],
                ))),
            ),
        ];
        if parts.iter().all(|(action, _)| *action == parts[0].0) {
            return vec![(condition.clone(), parts[0].0)];
        }
        let with = |(action, protocol): (RuleAction, RuleCondition)| {
            let RuleCondition::All(mut all) = with([], condition) else { return (protocol, action) };
            all.push(protocol);
            (RuleCondition::All(all), action)
        };
        parts.into_iter().map(with).collect()
    }
}
