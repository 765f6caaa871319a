//! What a query asks. What the RFCs call malformed becomes the error code to answer with.

use crate::dns::name::LONGEST_NAME;
use domain::base::iana::{Class, Opcode, OptRcode, OptionCode, Rtype};
use domain::base::message::RecordSection;
use domain::base::name::ToName;
use domain::base::opt::{ClientSubnet, Cookie, OptRecord, UnknownOptData};
use domain::base::{Header, Message};
use domain::dep::octseq::Parser;
use std::net::{IpAddr, Ipv4Addr};

/// Why nothing is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum QueryDrop {
    /// Shorter than the header of a message.
    #[error("shorter than a header")]
    Short,
    /// A reply and not a query: to answer it could begin a loop of two servers.
    #[error("a reply and not a query")]
    Reply,
    /// Too many replies of this kind to this network.
    #[error("response rate limited")]
    RateLimited,
    /// The same query of the same client waits already; one reply serves both.
    #[error("repeated while held")]
    Repeated,
}

/// What is copied from the header of a query to that of its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) id: u16,
    pub(crate) opcode: Opcode,
    pub(crate) recursion_desired: bool,
    pub(crate) checking_disabled: bool,
}

/// What a query says by EDNS (RFC 6891).
#[derive(Clone, Debug)]
pub(crate) struct Edns {
    pub(crate) size: u16,
    pub(crate) dnssec_ok: bool,
    pub(crate) cookie: Option<Cookie>,
    pub(crate) subnet: Option<Subnet>,
}

/// The network of the client, as the resolver tells it (RFC 7871).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subnet {
    /// No family and no address: the client wants no address of it to be passed on.
    Nothing,
    Of(ClientSubnet),
}

/// What is asked, with the name as it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Rtype,
    pub(crate) class: Class,
}

/// A query, as far as it could be read.
#[derive(Clone, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) head: Head,
    pub(crate) question: Option<Question<'a>>,
    pub(crate) edns: Option<Edns>,
    /// What to answer with because of how it is written.
    pub(crate) refusal: Option<OptRcode>,
}

impl<'a> Query<'a> {
    /// Reads a query.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Query<'a>, QueryDrop> {
        let message = Message::from_slice(bytes).map_err(|_| QueryDrop::Short)?;
        let header = message.header();
        if header.qr() {
            return Err(QueryDrop::Reply);
        }
        let mut query = Query { head: Head::of(header), question: None, edns: None, refusal: None };
        query.refusal = if header.opcode() == Opcode::QUERY {
            query.fill(bytes, message).err()
        } else {
            Some(OptRcode::NOTIMP)
        };
        Ok(query)
    }

    fn fill(&mut self, bytes: &'a [u8], message: &'a Message<[u8]>) -> Result<(), OptRcode> {
        let bad = OptRcode::FORMERR;
        let counts = message.header_counts();
        if counts.qdcount() > 1 || counts.ancount() > 0 || counts.nscount() > 0 {
            return Err(bad);
        }
        let mut questions = message.question();
        if let Some(question) = questions.next() {
            let question = question.map_err(|_| bad)?;
            // Nothing stands before the first name that it could point to.
            let length = question.qname().as_flat_slice().ok_or(bad)?.len();
            let start = std::mem::size_of::<domain::base::HeaderSection>();
            let name = bytes.get(start..start + length).filter(|_| length <= LONGEST_NAME).ok_or(bad)?;
            self.question = Some(Question { name, kind: question.qtype(), class: question.qclass() });
        }
        let mut section = questions.answer().map_err(|_| bad)?;
        for _ in 0..2 {
            section = section.next_section().map_err(|_| bad)?.ok_or(bad)?;
        }
        let version = self.read_additional(&mut section)?;
        if section.pos() != bytes.len() {
            return Err(bad);
        }
        if version > 0 {
            return Err(OptRcode::BADVERS);
        }
        // A query may ask for nothing but a cookie (RFC 7873, 5.4).
        let asks_cookie = self.edns.as_ref().is_some_and(|edns| edns.cookie.is_some());
        if self.question.is_some() || asks_cookie { Ok(()) } else { Err(bad) }
    }

    /// Reads the last section and says which version of EDNS is wanted.
    fn read_additional(&mut self, section: &mut RecordSection<'a, [u8]>) -> Result<u8, OptRcode> {
        let bad = OptRcode::FORMERR;
        let mut version = 0;
        for record in section {
            let record = record.map_err(|_| bad)?;
            if record.rtype() != Rtype::OPT {
                continue;
            }
            if self.edns.is_some() || !record.owner().is_root() {
                return Err(bad);
            }
            let record = record.into_record::<domain::base::opt::Opt<_>>();
            let record = OptRecord::from(record.map_err(|_| bad)?.ok_or(bad)?);
            version = record.version();
            let edns = self.edns.insert(Edns {
                size: record.udp_payload_size(),
                dnssec_ok: record.dnssec_ok(),
                cookie: None,
                subnet: None,
            });
            // Options of a version that is not known mean what is not known.
            if version == 0 {
                for option in record.opt().iter::<UnknownOptData<_>>() {
                    let option = option.map_err(|_| bad)?;
                    edns.take(option.code(), option.data()).ok_or(bad)?;
                }
            }
        }
        Ok(version)
    }
}

impl Head {
    fn of(header: Header) -> Head {
        Head {
            id: header.id(),
            opcode: header.opcode(),
            recursion_desired: header.rd(),
            checking_disabled: header.cd(),
        }
    }
}

impl Edns {
    /// Takes an option; nothing if it is malformed. Of several of one kind the first counts (RFC 7873, 5.2).
    fn take(&mut self, code: OptionCode, data: &[u8]) -> Option<()> {
        if code == OptionCode::COOKIE {
            if !matches!(data.len(), 8 | 16..=40) {
                return None;
            }
            let cookie = Cookie::parse(&mut Parser::from_ref(data)).ok()?;
            self.cookie.get_or_insert(cookie);
        }
        if code == OptionCode::CLIENT_SUBNET {
            let subnet = if data == [0; 4] {
                Subnet::Nothing
            } else {
                let subnet = ClientSubnet::parse(&mut Parser::from_ref(&data)).ok()?;
                // Only a reply has a scope (RFC 7871, 6).
                (subnet.scope_prefix_len() == 0).then_some(Subnet::Of(subnet))?
            };
            self.subnet.get_or_insert(subnet);
        }
        Some(())
    }

    /// The network of the client and the length of its prefix, if it is told and of IPv4.
    pub(crate) fn ipv4_subnet(&self) -> Option<(Ipv4Addr, u8)> {
        match self.subnet? {
            Subnet::Of(subnet) => match subnet.addr() {
                IpAddr::V4(address) if subnet.source_prefix_len() > 0 => {
                    Some((address, subnet.source_prefix_len()))
                }
                _ => None,
            },
            Subnet::Nothing => None,
        }
    }
}
