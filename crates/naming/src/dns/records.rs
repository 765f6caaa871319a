//! Records of a zone, made from what is described.

use crate::dns::description::{HttpsDescription, NameDescription, RecordDescription};
use crate::dns::name::{DnsName, DnsNameError};
use crate::dns::zone_error::ZoneError;
use crate::limits::LONGEST_TEXT;
use domain::base::iana::Rtype;
use domain::base::{Name, RecordData, Ttl};
use domain::rdata::svcb::{HttpsVariant, SvcParams, SvcParamsBuilder, SvcbRdata, SvcbVariant};
use domain::rdata::{A, Aaaa, Txt, ZoneRecordData};
use std::net::Ipv4Addr;

/// What a record says.
pub(crate) type ZoneData = ZoneRecordData<Vec<u8>, Name<Vec<u8>>>;

/// A record of the zone, without its name.
#[derive(Clone, Debug)]
pub(crate) struct ZoneRecord {
    pub(crate) kind: Rtype,
    pub(crate) ttl: Ttl,
    pub(crate) data: ZoneData,
    /// It came with a host, and goes with it.
    pub(crate) of_host: bool,
}

impl ZoneRecord {
    pub(crate) fn new(ttl: Ttl, data: ZoneData) -> ZoneRecord {
        ZoneRecord { kind: data.rtype(), ttl, data, of_host: false }
    }
}

/// A name as it stands in a description.
pub(crate) fn resolve(text: &str, apex: &DnsName) -> Result<DnsName, DnsNameError> {
    if text == "@" {
        return Ok(apex.clone());
    }
    let name = DnsName::parse(text)?;
    if text.ends_with('.') { Ok(name) } else { name.below(apex) }
}

/// A time to live (RFC 2181, 8).
pub(crate) fn seconds(seconds: u32) -> Result<Ttl, ZoneError> {
    if seconds > i32::MAX as u32 { Err(ZoneError::LongTtl(seconds)) } else { Ok(Ttl::from_secs(seconds)) }
}

/// Parameters of a service binding; none if the protocols are too long.
fn parameters(alpn: &[String], port: Option<u16>) -> Option<SvcParams<Vec<u8>>> {
    let protocols: Vec<&[u8]> = alpn.iter().map(|one| one.as_bytes()).collect();
    let length: usize = protocols.iter().map(|one| one.len() + 1).sum();
    if length > LONGEST_TEXT || !protocols.iter().all(|one| (1..=255).contains(&one.len())) {
        return None;
    }
    let mut builder = SvcParamsBuilder::<Vec<u8>>::empty();
    if !protocols.is_empty() {
        builder.alpn(&protocols).ok()?;
    }
    if let Some(port) = port {
        builder.port(port).ok()?;
    }
    builder.freeze().ok()
}

/// The name and the data of a record that leads to no host.
pub(crate) fn static_data(
    described: &RecordDescription,
    apex: &DnsName,
) -> Result<(DnsName, ZoneData), ZoneError> {
    let (name, data) = match described {
        RecordDescription::A { name, address } => (name, Some(ZoneRecordData::A(A::new(*address)))),
        RecordDescription::Aaaa { name, address } => (name, Some(ZoneRecordData::Aaaa(Aaaa::new(*address)))),
        RecordDescription::Txt { name, text } => {
            let short = Some(text).filter(|text| text.len() <= LONGEST_TEXT);
            let text = short.and_then(|text| Txt::build_from_slice(text.as_bytes()).ok());
            (name, text.map(ZoneRecordData::Txt))
        }
        RecordDescription::Svcb { name, priority, target, alpn, port } => {
            let target = resolve(target, apex)?.to_domain();
            let binding = parameters(alpn, *port)
                .and_then(|all| SvcbRdata::<SvcbVariant, _, _>::new(*priority, target, all).ok());
            (name, binding.map(ZoneRecordData::Svcb))
        }
    };
    let name = resolve(name, apex)?;
    let data = data.ok_or_else(|| ZoneError::Text(name.clone()))?;
    Ok((name, data))
}

/// The data of the records of a name that leads to a host.
pub(crate) fn host_data(
    name: &DnsName,
    ipv4: Option<Ipv4Addr>,
    described: &NameDescription,
) -> Result<Vec<ZoneData>, ZoneError> {
    let ipv4 = ipv4.map(|address| ZoneRecordData::A(A::new(address)));
    let ipv6 = described.ipv6.map(|address| ZoneRecordData::Aaaa(Aaaa::new(address)));
    let mut data: Vec<ZoneData> = ipv4.into_iter().chain(ipv6).collect();
    if let Some(HttpsDescription { alpn, port }) = &described.https {
        let binding = parameters(alpn, *port)
            .and_then(|all| SvcbRdata::<HttpsVariant, _, _>::new(1, Name::root_vec(), all).ok());
        data.push(ZoneRecordData::Https(binding.ok_or_else(|| ZoneError::Text(name.clone()))?));
    }
    Ok(data)
}
