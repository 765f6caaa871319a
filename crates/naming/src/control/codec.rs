//! Bytes of the messages. Each message has one form, and what is not exactly it is refused.
//!
//! ```text
//!  all        0 version  1 kind  2 length   4 epoch                 12 serial                20
//!  SETUP    1 20 host        24 initiators  25 prefix   26 count    28 initiator
//!             32 resolver, IPv4 as ::ffff:a.b.c.d   48 services, then the gateway's name, UTF-8
//!  ACCEPT   2 20 owner epoch             28 address                 32 exclusive, microseconds
//!  REJECT   3 20 owner epoch             28 reason  29 zeros        32
//!  REGISTER 4 20 what  21 has IPv6  22 count  24 host  28 IPv6, or zeros  44 services, then the name
//!  LEASE    5 20 owner epoch             28 milliseconds            32
//!  service    0 protocol  1 zero  2 port                            4
//! ```
//!
//! Numbers have their highest byte first. Initiators are 0 any, 1 a prefix, 2 one, and 128 more where the
//! resolver has shown that it gets what is sent to it; what is not in a prefix is zero. Registrations are 0
//! renew, 1 offer, 2 withdraw, 3 release; fields that one does not have are zero or empty. Services stand in
//! order, each once. Names of hosts are as [`DnsName`] writes them.

use crate::control::message::{
    AnswerBody, AskBody, ControlAsk, ControlMessage, HostOffer, OwnerAnswer, Registration, Rejection, SetUp,
};
use crate::dns::DnsName;
use crate::expectation::Initiators;
use crate::limits::{LONGEST_CONTROL, LONGEST_GATEWAY_NAME};
use crate::service::{Service, Services};
use crate::waypoint::SetUpError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 1;
const SETUP: u8 = 1;
const ACCEPT: u8 = 2;
const REJECT: u8 = 3;
const REGISTER: u8 = 4;
const LEASE: u8 = 5;

/// Beside the kind of initiators.
const VERIFIED: u8 = 128;

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ControlCodecError {
    /// Of another version.
    #[error("control message of version {0}, and this is version {VERSION}: update the older side")]
    Version(u8),
    /// Of a kind that there is not.
    #[error("control message of kind {0}, which there is not")]
    Kind(u8),
    /// Its length is not what it says, or not what its parts need.
    #[error("control message of a wrong length")]
    Length,
    /// A field has a value that it cannot have.
    #[error("control message with a wrong value in `{0}`")]
    Value(&'static str),
}

/// Reasons and their numbers.
const REASONS: [(Rejection, u8); 11] = [
    (Rejection::SetUp(SetUpError::Full), 1),
    (Rejection::SetUp(SetUpError::Share), 2),
    (Rejection::SetUp(SetUpError::InitiatorFull), 3),
    (Rejection::UnknownResponder, 4),
    (Rejection::NameTaken, 5),
    (Rejection::NotAllowed, 6),
    (Rejection::NoRoom, 7),
    (Rejection::Superseded, 8),
    (Rejection::Unsupported, 9),
    (Rejection::NotGiven, 10),
    (Rejection::SetUp(SetUpError::Unproved), 11),
];

/// Writes a message over what `out` holds.
pub fn encode(message: &ControlMessage, out: &mut Vec<u8>) {
    let (kind, epoch, serial) = match message {
        ControlMessage::Ask(ask) => {
            let kind = match ask.body {
                AskBody::SetUp(_) => SETUP,
                AskBody::Register(_) => REGISTER,
            };
            (kind, ask.epoch, ask.serial)
        }
        ControlMessage::Answer(answer) => {
            let kind = match answer.body {
                AnswerBody::Accept(..) => ACCEPT,
                AnswerBody::Reject(_) => REJECT,
                AnswerBody::Lease(_) => LEASE,
            };
            (kind, answer.epoch, answer.serial)
        }
    };
    out.clear();
    out.extend([VERSION, kind, 0, 0]);
    out.extend(epoch.to_be_bytes());
    out.extend(serial.to_be_bytes());
    match message {
        ControlMessage::Ask(ControlAsk { body: AskBody::SetUp(ask), .. }) => encode_set_up(ask, out),
        ControlMessage::Ask(ControlAsk { body: AskBody::Register(what), .. }) => encode_register(what, out),
        ControlMessage::Answer(answer) => {
            out.extend(answer.owner_epoch.to_be_bytes());
            match answer.body {
                AnswerBody::Accept(address, exclusive) => {
                    out.extend(address.octets());
                    out.extend(exclusive.to_be_bytes());
                }
                AnswerBody::Reject(why) => {
                    let number = REASONS.iter().find(|(reason, _)| *reason == why).map_or(0, |found| found.1);
                    out.extend([number, 0, 0, 0]);
                }
                AnswerBody::Lease(milliseconds) => out.extend(milliseconds.to_be_bytes()),
            }
        }
    }
    let length = out.len() as u16;
    out[2..4].copy_from_slice(&length.to_be_bytes());
}

fn encode_set_up(ask: &SetUp, out: &mut Vec<u8>) {
    let (how, length, address) = match ask.initiators {
        Initiators::Any => (0, 0, Ipv4Addr::UNSPECIFIED),
        Initiators::Prefix(address, length) => (1, length.min(32), prefix(address, length)),
        Initiators::Exact(address) => (2, 32, address),
    };
    out.extend(ask.host.octets());
    out.extend([if ask.is_verified { how | VERIFIED } else { how }, length]);
    out.extend((ask.services.iter().count() as u16).to_be_bytes());
    out.extend(address.octets());
    let resolver = match ask.resolver {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    out.extend(resolver.octets());
    encode_services(&ask.services, out);
    out.extend(ask.gateway.as_bytes());
}

fn encode_register(what: &Registration, out: &mut Vec<u8>) {
    let (number, offer, name) = match what {
        Registration::Renew => (0, None, None),
        Registration::Offer(offer) => (1, Some(offer), Some(&offer.name)),
        Registration::Withdraw(name) => (2, None, Some(name)),
        Registration::Release => (3, None, None),
    };
    let ipv6 = offer.and_then(|offer| offer.ipv6);
    out.extend([number, u8::from(ipv6.is_some())]);
    out.extend(offer.map_or(0, |offer| offer.services.iter().count() as u16).to_be_bytes());
    out.extend(offer.map_or(Ipv4Addr::UNSPECIFIED, |offer| offer.host).octets());
    out.extend(ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    if let Some(offer) = offer {
        encode_services(&offer.services, out);
    }
    out.extend(name.map_or(&[][..], DnsName::as_wire));
}

fn encode_services(services: &Services, out: &mut Vec<u8>) {
    for Service { protocol, port } in services.iter() {
        out.extend([protocol, 0]);
        out.extend(port.to_be_bytes());
    }
}

fn prefix(address: Ipv4Addr, length: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

/// Whether a gateway can be called so in messages.
pub fn is_gateway_name(name: &str) -> bool {
    (1..=LONGEST_GATEWAY_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

/// Reads a message.
///
/// # Errors
///
/// Bytes that [`encode`] does not write.
pub fn decode(bytes: &[u8]) -> Result<ControlMessage, ControlCodecError> {
    let mut fields = Fields { rest: bytes };
    let [version] = fields.take()?;
    if version != VERSION {
        return Err(ControlCodecError::Version(version));
    }
    let [kind] = fields.take()?;
    let length = usize::from(u16::from_be_bytes(fields.take()?));
    if length != bytes.len() || length > LONGEST_CONTROL {
        return Err(ControlCodecError::Length);
    }
    let (epoch, serial) = (fields.word()?, fields.word()?);
    if serial == 0 {
        return Err(ControlCodecError::Value("serial"));
    }
    let message = match kind {
        SETUP => {
            let body = AskBody::SetUp(fields.set_up()?);
            ControlMessage::Ask(ControlAsk { epoch, serial, body })
        }
        REGISTER => {
            let body = AskBody::Register(fields.register()?);
            ControlMessage::Ask(ControlAsk { epoch, serial, body })
        }
        ACCEPT | REJECT | LEASE => {
            let owner_epoch = fields.word()?;
            let body = fields.answer(kind)?;
            ControlMessage::Answer(OwnerAnswer { epoch, serial, owner_epoch, body })
        }
        other => return Err(ControlCodecError::Kind(other)),
    };
    if fields.rest.is_empty() { Ok(message) } else { Err(ControlCodecError::Length) }
}

/// What is left of a message.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ControlCodecError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ControlCodecError::Length)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn word(&mut self) -> Result<u64, ControlCodecError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    fn answer(&mut self, kind: u8) -> Result<AnswerBody, ControlCodecError> {
        Ok(match kind {
            ACCEPT => {
                let address = Ipv4Addr::from(self.take::<4>()?);
                AnswerBody::Accept(address, u32::from_be_bytes(self.take()?))
            }
            LEASE => AnswerBody::Lease(u32::from_be_bytes(self.take()?)),
            _ => {
                let [number, zeros @ ..] = self.take::<4>()?;
                let reason = REASONS.iter().find(|(_, known)| *known == number && zeros == [0; 3]);
                AnswerBody::Reject(reason.ok_or(ControlCodecError::Value("reason"))?.0)
            }
        })
    }

    fn set_up(&mut self) -> Result<SetUp, ControlCodecError> {
        let host = Ipv4Addr::from(self.take::<4>()?);
        let [how, length] = self.take()?;
        let count = u16::from_be_bytes(self.take()?);
        let address = Ipv4Addr::from(self.take::<4>()?);
        let initiators = match (how & !VERIFIED, length) {
            (0, 0) if address.is_unspecified() => Initiators::Any,
            (1, 0..=32) if prefix(address, length) == address => Initiators::Prefix(address, length),
            (2, 32) => Initiators::Exact(address),
            _ => return Err(ControlCodecError::Value("initiators")),
        };
        let resolver = IpAddr::V6(Ipv6Addr::from(self.take::<16>()?)).to_canonical();
        let services = self.services(count)?;
        let gateway = self.gateway()?.into();
        let is_verified = how & VERIFIED != 0;
        Ok(SetUp { gateway, host, services, initiators, resolver, is_verified })
    }

    fn register(&mut self) -> Result<Registration, ControlCodecError> {
        let [number, has_ipv6] = self.take()?;
        let count = u16::from_be_bytes(self.take()?);
        let host = Ipv4Addr::from(self.take::<4>()?);
        let ipv6 = Ipv6Addr::from(self.take::<16>()?);
        let is_offer = number == 1;
        if has_ipv6 > u8::from(is_offer) || (has_ipv6 == 0 && !ipv6.is_unspecified()) {
            return Err(ControlCodecError::Value("IPv6"));
        }
        if !is_offer && (count != 0 || !host.is_unspecified()) {
            return Err(ControlCodecError::Value("host"));
        }
        Ok(match number {
            0 => Registration::Renew,
            1 => {
                let services = self.services(count)?;
                let ipv6 = (has_ipv6 == 1).then_some(ipv6);
                Registration::Offer(HostOffer { name: self.name()?, host, ipv6, services })
            }
            2 => Registration::Withdraw(self.name()?),
            3 => Registration::Release,
            _ => return Err(ControlCodecError::Value("what")),
        })
    }

    fn services(&mut self, count: u16) -> Result<Services, ControlCodecError> {
        let (taken, rest) =
            self.rest.split_at_checked(4 * usize::from(count)).ok_or(ControlCodecError::Length)?;
        self.rest = rest;
        let (fields, _) = taken.as_chunks::<4>();
        let service =
            |&[protocol, _, high, low]: &[u8; 4]| Service { protocol, port: u16::from_be_bytes([high, low]) };
        let are_zero = fields.iter().all(|[_, zero, ..]| *zero == 0);
        let services = are_zero.then(|| Services::in_order(fields.iter().map(service))).flatten();
        services.ok_or(ControlCodecError::Value("services"))
    }

    /// The name of a gateway, which is all that is left.
    fn gateway(&mut self) -> Result<&str, ControlCodecError> {
        let name = str::from_utf8(std::mem::take(&mut self.rest)).ok();
        name.filter(|name| is_gateway_name(name)).ok_or(ControlCodecError::Value("gateway"))
    }

    /// The name of a host, which is all that is left.
    fn name(&mut self) -> Result<DnsName, ControlCodecError> {
        let bytes = std::mem::take(&mut self.rest);
        DnsName::from_wire(bytes).ok_or(ControlCodecError::Value("name"))
    }
}
