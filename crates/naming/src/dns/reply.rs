//! A reply, and how it becomes bytes: whole where it fits, else short and with TC.

use crate::dns::query::{Edns, Query, Subnet};
use crate::dns::records::ZoneRecord;
use crate::limits::LONGEST_UDP_REPLY;
use domain::base::iana::{Class, OptRcode, OptionCode, Rtype};
use domain::base::message_builder::{AdditionalBuilder, OptBuilder, PushError};
use domain::base::opt::{ClientSubnet, ComposeOptData, Cookie};
use domain::base::wire::Composer;
use domain::base::{CharStr, MessageBuilder, Name, Question, StaticCompressor, Ttl};
use domain::rdata::{A, Hinfo};
use std::net::Ipv4Addr;

/// Bytes of a reply without EDNS (RFC 1035, 4.2.1).
const LEAST: usize = 512;

/// How long the answer to a question for everything is kept (RFC 8482, 4.2).
const ANY_TTL: Ttl = Ttl::from_secs(3_600);

/// The code of "other error" (RFC 8914, 4.1).
const OTHER_ERROR: [u8; 2] = [0, 0];

/// What the answer section holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answers<'z> {
    Nothing,
    /// Those of the records that are of this type.
    Records(&'z [ZoneRecord], Rtype),
    /// An address that was promised.
    Address(Ipv4Addr, Ttl),
    /// A record that stands for all others (RFC 8482, 4.2).
    Any,
}

/// A reply before it is bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'z> {
    pub(crate) rcode: OptRcode,
    pub(crate) authoritative: bool,
    pub(crate) truncated: bool,
    pub(crate) answers: Answers<'z>,
    /// The zone and its SOA, where something is not there.
    pub(crate) negative: Option<(&'z Name<Vec<u8>>, &'z ZoneRecord)>,
    /// What helps and may be left out.
    pub(crate) glue: &'z [(Name<Vec<u8>>, ZoneRecord)],
    /// For how many bits of the client's network the answer holds (RFC 7871, 7.2.1).
    pub(crate) scope: u8,
    /// Why it fails, for people (RFC 8914).
    pub(crate) explanation: Option<&'static str>,
}

impl<'z> Reply<'z> {
    /// A reply with nothing but a code.
    pub(crate) fn bare(rcode: OptRcode) -> Reply<'z> {
        Reply {
            rcode,
            authoritative: false,
            truncated: false,
            answers: Answers::Nothing,
            negative: None,
            glue: &[],
            scope: 0,
            explanation: None,
        }
    }

    /// A short reply about a name of the zone that tells the client to come by TCP. Resolvers such as glibc
    /// take a reply for broken that is neither authoritative nor of a server that recurses, and do not come.
    pub(crate) fn truncated() -> Reply<'z> {
        Reply { truncated: true, authoritative: true, ..Reply::bare(OptRcode::NOERROR) }
    }

    /// Writes the reply to a query, in at most so many bytes if it is possible at all.
    pub(crate) fn write(&self, query: &Query<'_>, cookie: Option<&Cookie>, limit: usize, out: &mut Vec<u8>) {
        if self.compose(query, cookie, limit, out).is_err() {
            let short = Reply { rcode: self.rcode, authoritative: self.authoritative, ..Reply::truncated() };
            // The bytes of the query and of a few options fit into a vector.
            let _ = short.compose(query, cookie, usize::MAX, out);
        }
    }

    fn compose(
        &self,
        query: &Query<'_>,
        cookie: Option<&Cookie>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PushError> {
        out.clear();
        let mut builder = MessageBuilder::from_target(StaticCompressor::new(out)).map_err(PushError::from)?;
        builder.set_push_limit(limit.saturating_sub(self.options_length(query, cookie)).saturating_add(1));
        let header = builder.header_mut();
        header.set_id(query.head.id);
        header.set_qr(true);
        header.set_opcode(query.head.opcode);
        header.set_rd(query.head.recursion_desired);
        header.set_cd(query.head.checking_disabled);
        header.set_aa(self.authoritative);
        header.set_tc(self.truncated);
        header.set_rcode(self.rcode.rcode());
        let mut builder = builder.question();
        let name = query.question.and_then(|question| Name::from_octets(question.name).ok());
        if let (Some(question), Some(name)) = (query.question, name.as_ref()) {
            builder.push(Question::new(name, question.kind, question.class))?;
        }
        let mut builder = builder.answer();
        if let Some(name) = &name {
            match self.answers {
                Answers::Nothing => {}
                Answers::Records(records, kind) => {
                    for record in records.iter().filter(|record| record.kind == kind) {
                        builder.push((name, Class::IN, record.ttl, &record.data))?;
                    }
                }
                Answers::Address(address, ttl) => {
                    builder.push((name, Class::IN, ttl, A::new(address)))?;
                }
                Answers::Any => {
                    let cpu = CharStr::from_octets(&b"RFC8482"[..]).expect("short");
                    let system = CharStr::from_octets(&b""[..]).expect("short");
                    builder.push((name, Class::IN, ANY_TTL, Hinfo::new(cpu, system)))?;
                }
            }
        }
        let mut builder = builder.authority();
        if let Some((apex, record)) = self.negative {
            builder.push((apex, Class::IN, record.ttl, &record.data))?;
        }
        let mut builder = builder.additional();
        for (name, record) in self.glue {
            if builder.push((name, Class::IN, record.ttl, &record.data)).is_err() {
                break;
            }
        }
        builder.clear_push_limit();
        self.push_options(query, cookie, &mut builder, limit)
    }

    /// Bytes that the options need, without the explanation.
    fn options_length(&self, query: &Query<'_>, cookie: Option<&Cookie>) -> usize {
        let Some(edns) = &query.edns else { return 0 };
        let subnet = edns.subnet.map_or(0, |subnet| 4 + subnet_length(subnet));
        11 + cookie.map_or(0, |_| 4 + 24) + subnet
    }

    fn push_options<T: Composer>(
        &self,
        query: &Query<'_>,
        cookie: Option<&Cookie>,
        builder: &mut AdditionalBuilder<T>,
        limit: usize,
    ) -> Result<(), PushError> {
        let Some(edns) = &query.edns else { return Ok(()) };
        let used = builder.as_slice().len() + self.options_length(query, cookie);
        let room = limit.saturating_sub(used);
        builder.opt(|options: &mut OptBuilder<'_, T>| {
            options.set_udp_payload_size(LONGEST_UDP_REPLY as u16);
            options.set_rcode(self.rcode);
            options.set_dnssec_ok(edns.dnssec_ok);
            if let Some(cookie) = cookie {
                options.push(cookie)?;
            }
            match edns.subnet {
                Some(Subnet::Of(told)) => {
                    options.push(&ClientSubnet::new(told.source_prefix_len(), self.scope, told.addr()))?;
                }
                Some(Subnet::Nothing) => {
                    options.push_raw_option(OptionCode::CLIENT_SUBNET, 4, |target| {
                        target.append_slice(&[0; 4])
                    })?;
                }
                None => {}
            }
            if let Some(text) = self.explanation.filter(|text| text.len() + 6 <= room) {
                let length = (OTHER_ERROR.len() + text.len()) as u16;
                options.push_raw_option(OptionCode::EXTENDED_ERROR, length, |target| {
                    target.append_slice(&OTHER_ERROR)?;
                    target.append_slice(text.as_bytes())
                })?;
            }
            Ok(())
        })
    }
}

/// Bytes of the option that repeats the client's network.
fn subnet_length(subnet: Subnet) -> usize {
    match subnet {
        Subnet::Nothing => 4,
        Subnet::Of(subnet) => usize::from(subnet.compose_len()),
    }
}

/// How long a reply by UDP may be.
pub(crate) fn udp_limit(edns: Option<&Edns>) -> usize {
    edns.map_or(LEAST, |edns| usize::from(edns.size).clamp(LEAST, LONGEST_UDP_REPLY))
}
