//! A zone: which names there are, what is known of each, and which of them need a promise of a waypoint.

use crate::dns::description::{
    Ipv4Mode, MachineServices, NameDescription, NameServerDescription, RecordDescription, ZoneDescription,
};
use crate::dns::name::{DnsName, LONGEST_NAME, ancestors};
use crate::dns::records::{ZoneRecord, host_data, resolve, seconds, static_data};
use crate::dns::zone_error::ZoneError;
use crate::expectation::Responder;
use crate::limits::{LONGEST_BINDING_TTL, MOST_NAME_SERVERS, MOST_NAMES, MOST_RECORDS_AT_NAME};
use crate::service::Services;
use domain::base::iana::Rtype;
use domain::base::{Name, Serial, Ttl};
use domain::rdata::{A, Aaaa, Ns, Soa, ZoneRecordData};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// A host that a name leads to.
#[derive(Clone, Debug)]
pub(crate) struct NamedHost {
    pub(crate) responder: Responder,
    pub(crate) services: Services,
    /// [`Ipv4Mode::Automatic`] has been decided.
    mode: Ipv4Mode,
}

/// A name and what is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) records: Vec<ZoneRecord>,
    host: Option<NamedHost>,
    /// Names right below this one.
    children: u32,
}

impl Node {
    /// Whose address has to be asked for.
    pub(crate) fn needs_binding(&self) -> Option<&NamedHost> {
        self.host.as_ref().filter(|host| host.mode == Ipv4Mode::PerInitiator)
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.host.is_none() && self.children == 0
    }
}

/// What secondary servers, of which there are none, would be told (RIPE-203).
const REFRESH: Ttl = Ttl::from_secs(86_400);
const RETRY: Ttl = Ttl::from_secs(7_200);
const EXPIRE: Ttl = Ttl::from_secs(3_600_000);

/// A zone.
#[derive(Clone, Debug)]
pub struct Zone {
    apex: DnsName,
    apex_name: Name<Vec<u8>>,
    nodes: HashMap<Box<[u8]>, Node>,
    soa: Soa<Name<Vec<u8>>>,
    negative: ZoneRecord,
    glue: Vec<(Name<Vec<u8>>, ZoneRecord)>,
    ttl: Ttl,
    binding_ttl: Ttl,
    shared_address: Option<Ipv4Addr>,
    machine: MachineServices,
}

impl Zone {
    /// The zone that is described.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(description: &ZoneDescription) -> Result<Zone, ZoneError> {
        let apex = DnsName::parse(&description.zone)?;
        let (ttl, negative_ttl) = (seconds(description.ttl)?, seconds(description.negative_ttl)?);
        if description.binding_ttl > LONGEST_BINDING_TTL {
            return Err(ZoneError::LongBinding(description.binding_ttl));
        }
        let servers = &description.name_servers;
        let most = servers.iter().map(|server| server.addresses.len()).max().unwrap_or(0).max(servers.len());
        if servers.is_empty() || most > MOST_NAME_SERVERS {
            return Err(ZoneError::NameServers(most));
        }
        let primary = resolve(&servers[0].name, &apex)?.to_domain();
        let contact = resolve(&description.contact, &apex)?.to_domain();
        let serial = Serial(description.serial);
        let soa = Soa::new(primary, contact, serial, REFRESH, RETRY, EXPIRE, negative_ttl);
        let mut zone = Zone {
            apex_name: apex.to_domain(),
            nodes: HashMap::new(),
            negative: ZoneRecord::new(negative_ttl.min(ttl), ZoneRecordData::Soa(soa.clone())),
            soa,
            glue: Vec::new(),
            ttl,
            binding_ttl: Ttl::from_secs(description.binding_ttl),
            shared_address: description.shared_address,
            machine: description.machine.clone(),
            apex,
        };
        let apex = zone.apex.clone();
        zone.put(&apex, ZoneRecord::new(ttl, ZoneRecordData::Soa(zone.soa.clone())))?;
        for server in servers {
            zone.add_server(server)?;
        }
        for record in &description.records {
            zone.add_record(record)?;
        }
        for name in &description.names {
            zone.add_described(name)?;
        }
        zone.set_serial(serial);
        Ok(zone)
    }

    fn add_server(&mut self, server: &NameServerDescription) -> Result<(), ZoneError> {
        let name = resolve(&server.name, &self.apex)?;
        let apex = self.apex.clone();
        self.put(&apex, ZoneRecord::new(self.ttl, ZoneRecordData::Ns(Ns::new(name.to_domain()))))?;
        if !self.contains(&name) {
            return Ok(());
        }
        if server.addresses.is_empty() {
            return Err(ZoneError::NoGlue(name));
        }
        for address in &server.addresses {
            let data = match *address {
                IpAddr::V4(address) => ZoneRecordData::A(A::new(address)),
                IpAddr::V6(address) => ZoneRecordData::Aaaa(Aaaa::new(address)),
            };
            self.glue.push((name.to_domain(), ZoneRecord::new(self.ttl, data.clone())));
            self.put(&name, ZoneRecord::new(self.ttl, data))?;
        }
        Ok(())
    }

    /// Adds a record that leads to no host behind a gateway.
    ///
    /// # Errors
    ///
    /// Why it cannot be in this zone. The zone is then as it was.
    pub fn add_record(&mut self, described: &RecordDescription) -> Result<(), ZoneError> {
        let (name, data) = static_data(described, &self.apex)?;
        self.put(&name, ZoneRecord::new(self.ttl, data))
    }

    /// Adds a name that leads to a host, as it is described.
    ///
    /// # Errors
    ///
    /// Why it cannot be in this zone. The zone is then as it was.
    pub fn add_described(&mut self, described: &NameDescription) -> Result<(), ZoneError> {
        let name = resolve(&described.name, &self.apex)?;
        let services: Result<Vec<_>, _> = described.services.iter().map(|text| text.parse()).collect();
        let services = services.map_err(|error| ZoneError::Service(name.clone(), error))?;
        let services = Services::new(services).map_err(|error| ZoneError::Services(name.clone(), error))?;
        self.add(&name, Responder(described.responder), services, described)
    }

    /// Adds a name that leads to a host; of the description, the addresses and modes count.
    ///
    /// # Errors
    ///
    /// Why it cannot be in this zone. The zone is then as it was.
    pub fn add(
        &mut self,
        name: &DnsName,
        responder: Responder,
        services: Services,
        described: &NameDescription,
    ) -> Result<(), ZoneError> {
        if *name == self.apex {
            return Err(ZoneError::Apex(name.clone()));
        }
        if !self.contains(name) {
            return Err(ZoneError::Outside(name.clone(), self.apex.clone()));
        }
        let node = self.nodes.get(name.as_wire());
        if node.is_some_and(|node| node.host.is_some()) {
            return Err(ZoneError::Taken(name.clone()));
        }
        let has = |kind| node.is_some_and(|node| node.records.iter().any(|one| one.kind == kind));
        if has(Rtype::A) || has(Rtype::AAAA) {
            return Err(ZoneError::TwoAddresses(name.clone()));
        }
        let mode = self.decide(name, described.ipv4, &services)?;
        let address = match mode {
            Ipv4Mode::Shared => self.shared_address,
            Ipv4Mode::Dedicated(address) => Some(address),
            _ => None,
        };
        let records = host_data(name, address, described)?;
        let ttl = self.ttl;
        let records = records.into_iter();
        let records: Vec<_> =
            records.map(|data| ZoneRecord { of_host: true, ..ZoneRecord::new(ttl, data) }).collect();
        let node = self.node(name, records.len())?;
        node.records.extend(records);
        node.host = Some(NamedHost { responder, services, mode });
        self.set_serial(self.soa.serial().add(1));
        Ok(())
    }

    /// Says which mode a name gets, or who is in its way.
    fn decide(&self, name: &DnsName, wanted: Ipv4Mode, services: &Services) -> Result<Ipv4Mode, ZoneError> {
        let hosts = || self.nodes.iter().filter_map(|(owner, node)| Some((owner, node.host.as_ref()?)));
        let who = |owner: &[u8]| DnsName::from_wire(owner).unwrap_or_else(|| self.apex.clone());
        let in_way = || {
            let shared = |host: &NamedHost| host.mode == Ipv4Mode::Shared && host.services.meet(services);
            hosts().find(|(_, host)| shared(host))
        };
        let of_machine = |address| match self.machine.meets(address, services) {
            Some(service) => Err(ZoneError::OfMachine(name.clone(), service, address)),
            None => Ok(()),
        };
        let shared = self.shared_address.map_or(Ok(()), of_machine);
        match wanted {
            Ipv4Mode::Automatic if self.shared_address.is_none() || in_way().is_some() || shared.is_err() => {
                Ok(Ipv4Mode::PerInitiator)
            }
            Ipv4Mode::Shared if self.shared_address.is_none() => {
                Err(ZoneError::NoSharedAddress(name.clone()))
            }
            Ipv4Mode::Automatic | Ipv4Mode::Shared => match in_way() {
                None => shared.map(|()| Ipv4Mode::Shared),
                Some((other, _)) => Err(ZoneError::Overlap(name.clone(), who(other))),
            },
            Ipv4Mode::Dedicated(address) => {
                if self.shared_address == Some(address) {
                    return Err(ZoneError::AddressShared(address, name.clone()));
                }
                of_machine(address)?;
                match hosts().find(|(_, host)| host.mode == wanted) {
                    Some((other, _)) => Err(ZoneError::AddressTaken(address, name.clone(), who(other))),
                    None => Ok(wanted),
                }
            }
            Ipv4Mode::PerInitiator | Ipv4Mode::None => Ok(wanted),
        }
    }

    /// Removes a name that leads to a host.
    ///
    /// # Errors
    ///
    /// There is no such name.
    pub fn remove(&mut self, name: &DnsName) -> Result<(), ZoneError> {
        let node = self.nodes.get_mut(name.as_wire()).filter(|node| node.host.is_some());
        let node = node.ok_or_else(|| ZoneError::Absent(name.clone()))?;
        node.host = None;
        node.records.retain(|record| !record.of_host);
        self.forget_empty(name);
        self.set_serial(self.soa.serial().add(1));
        Ok(())
    }

    /// Forgets a name where nothing is any more, and those above that were there because of it.
    fn forget_empty(&mut self, name: &DnsName) {
        for wire in ancestors(name.as_wire()) {
            if wire == self.apex.as_wire() || !self.nodes.get(wire).is_some_and(Node::is_empty) {
                break;
            }
            self.nodes.remove(wire);
            let parent = ancestors(wire).nth(1).and_then(|parent| self.nodes.get_mut(parent));
            if let Some(parent) = parent {
                parent.children -= 1;
            }
        }
    }

    fn put(&mut self, name: &DnsName, record: ZoneRecord) -> Result<(), ZoneError> {
        if !self.contains(name) {
            return Err(ZoneError::Outside(name.clone(), self.apex.clone()));
        }
        self.node(name, 1)?.records.push(record);
        Ok(())
    }

    /// The place of a name of the zone, with room for more records, and those above it.
    fn node(&mut self, name: &DnsName, more: usize) -> Result<&mut Node, ZoneError> {
        let inside = |wire: &&[u8]| wire.len() >= self.apex.as_wire().len();
        let missing: Vec<&[u8]> = ancestors(name.as_wire())
            .take_while(inside)
            .take_while(|wire| !self.nodes.contains_key(*wire))
            .collect();
        if self.nodes.len() + missing.len() > MOST_NAMES {
            return Err(ZoneError::TooManyNames);
        }
        let there = self.nodes.get(name.as_wire()).map_or(0, |node| node.records.len());
        if there + more > MOST_RECORDS_AT_NAME {
            return Err(ZoneError::TooManyRecords(name.clone()));
        }
        for wire in missing.into_iter().rev() {
            self.nodes.insert(wire.into(), Node::default());
            if let Some(parent) = ancestors(wire).nth(1).and_then(|parent| self.nodes.get_mut(parent)) {
                parent.children += 1;
            }
        }
        Ok(self.nodes.entry(name.as_wire().into()).or_default())
    }

    fn set_serial(&mut self, serial: Serial) {
        let old = &self.soa;
        self.soa = Soa::new(
            old.mname().clone(),
            old.rname().clone(),
            serial,
            old.refresh(),
            old.retry(),
            old.expire(),
            old.minimum(),
        );
        let data = ZoneRecordData::Soa(self.soa.clone());
        self.negative.data = data.clone();
        let apex = self.nodes.get_mut(self.apex.as_wire());
        let records = apex.into_iter().flat_map(|node| &mut node.records);
        for record in records.filter(|record| record.kind == Rtype::SOA) {
            record.data = data.clone();
        }
    }
}

/// What a zone says of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'z> {
    /// The name is of another zone.
    Elsewhere,
    /// There is no such name.
    Nothing,
    /// There is.
    Here(&'z Node),
}

impl Zone {
    /// The name of the zone.
    pub fn apex(&self) -> &DnsName {
        &self.apex
    }

    /// The serial number, which each change raises.
    pub fn serial(&self) -> u32 {
        self.soa.serial().into_int()
    }

    /// The name that a text stands for in this zone: `@` is the zone itself, and what ends without a dot is
    /// below it.
    ///
    /// # Errors
    ///
    /// What is not a name.
    pub fn name(&self, text: &str) -> Result<DnsName, ZoneError> {
        Ok(resolve(text, &self.apex)?)
    }

    /// How the host of a name is reached by IPv4, never [`Ipv4Mode::Automatic`]; nothing if the name leads to
    /// no host.
    pub fn mode(&self, name: &DnsName) -> Option<Ipv4Mode> {
        Some(self.nodes.get(name.as_wire())?.host.as_ref()?.mode)
    }

    /// The address of IPv4 that leads to the host of a name whoever asks, if there is one.
    pub fn standing_address(&self, name: &DnsName) -> Option<Ipv4Addr> {
        match self.mode(name)? {
            Ipv4Mode::Shared => self.shared_address,
            Ipv4Mode::Dedicated(address) => Some(address),
            Ipv4Mode::Automatic | Ipv4Mode::PerInitiator | Ipv4Mode::None => None,
        }
    }

    /// Whether the name is the zone or below it.
    pub fn contains(&self, name: &DnsName) -> bool {
        ancestors(name.as_wire()).any(|wire| wire == self.apex.as_wire())
    }

    /// Looks a name up; letters may be of any size.
    pub(crate) fn find(&self, name: &[u8]) -> Found<'_> {
        let mut small = [0; LONGEST_NAME];
        let Some(small) = small.get_mut(..name.len()) else { return Found::Elsewhere };
        small.copy_from_slice(name);
        // Lengths of labels are below the letters.
        small.make_ascii_lowercase();
        if let Some(node) = self.nodes.get(&*small) {
            return Found::Here(node);
        }
        let inside = ancestors(small).any(|wire| wire == self.apex.as_wire());
        if inside { Found::Nothing } else { Found::Elsewhere }
    }

    /// The name of the zone, and its SOA record as it stands in a reply that says that something is not
    /// there.
    pub(crate) fn negative(&self) -> (&Name<Vec<u8>>, &ZoneRecord) {
        (&self.apex_name, &self.negative)
    }

    /// Addresses of the servers of the zone.
    pub(crate) fn glue(&self) -> &[(Name<Vec<u8>>, ZoneRecord)] {
        &self.glue
    }

    /// How long a promised address may be kept.
    pub(crate) fn binding_ttl(&self) -> Ttl {
        self.binding_ttl
    }
}
