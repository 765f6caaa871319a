//! The control plane of a router: its knowledge of links, routes and neighbours, and the entries of the
//! program's tables that follow from it.
//!
//! A route holds the number of a next hop, and the table of next hops holds the neighbours that are known. A
//! packet whose next hop is not there is punted as `unresolved`: then control asks for the neighbour, and
//! when it answers, its next hop goes in. Hosts of a link are found by a route of their own, which is made
//! with the answer; until then the link's prefix leads to a number of the link that is never in the table. By
//! which port packets of a number come in is told whether or not the neighbour is known, so that a program
//! can check sources.
//!
//! Nothing here reads a clock, sends or waits: time and packets are arguments, and what is to be done comes
//! out as [`Effects`].

use super::account::{Account, Fate};
use super::effects::{self, BROADCAST, Effects, Filled, ITSELF, NextHop, Refused, UNRESOLVED, link_number};
use super::icmp::ErrorRate;
use super::known::KnownNeighbours;
use super::link_frames::question;
use super::neighbours::{Action, Heard, Limits, Mac, Neighbour, NeighbourState, Neighbours};
use super::numbers::{HeldNextHop, Numbers};
use super::paths::{Paths, Several};
use super::port::{Link, Port, PortSettings, beside};
use super::prefix::IpPrefix;
use super::reassembly::Reassembly;
use super::rib::{Rib, Source, Way};
use engine::live::Injected;
use ir::Entry;
use packet::{PortNumber, VirtioHeader};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

/// A route of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticRoute {
    /// Whom it is for.
    pub to: IpPrefix,
    /// The routers that it leads to, at least one, each with its weight.
    pub via: Vec<(Neighbour, u32)>,
}

/// What the file says of addresses and routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutingSettings {
    /// Port 1 and the following.
    pub ports: Vec<PortSettings>,
    /// Routes of the file.
    pub routes: Vec<StaticRoute>,
    /// The kernel's table of routes that is followed.
    pub kernel: FollowedRoutes,
}

/// Which table of the kernel is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowedRoutes {
    /// None.
    #[default]
    Nobody,
    /// The main table of the machine.
    Machine,
    /// The main table in the network of the container at this port. Its interfaces are not those of ports: a
    /// next hop is at the port in whose network it lies.
    Container(PortNumber),
}

impl FollowedRoutes {
    /// Whether there are any.
    pub fn are_any(self) -> bool {
        self != FollowedRoutes::Nobody
    }
}

impl RoutingSettings {
    /// Whether there is anything for control to do.
    pub fn is_active(&self) -> bool {
        self.kernel.are_any()
            || self.ports.iter().any(|port| !port.addresses.is_empty() || port.host_interface.is_some())
    }
}

/// A packet in the hands of control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The port that it came in by.
    pub(crate) port: PortNumber,
    pub(crate) bytes: Vec<u8>,
    pub(crate) virtio: VirtioHeader,
}

/// The number that a prefix leads to now, and the neighbour that it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Led {
    number: u16,
    neighbour: Option<Neighbour>,
    /// The number is the neighbour's; otherwise none was left for it, and control sends its packets.
    numbered: bool,
}

/// What has no number, since none was left.
#[derive(Clone, Default)]
struct Short {
    prefixes: BTreeSet<(Neighbour, IpPrefix)>,
    hosts: BTreeSet<Neighbour>,
    /// Neighbours that got a number since it was looked last.
    fresh: Vec<Neighbour>,
}

/// All that control knows.
#[derive(Clone)]
pub(crate) struct Router {
    pub(super) ports: Vec<Port>,
    pub(super) rib: Rib,
    pub(super) neighbours: Neighbours<Packet>,
    pub(super) reassembly: Reassembly,
    pub(super) account: Account,
    /// How many echoes were answered, which tells the pieces of one answer from those of others.
    pub(super) answers: u16,
    pub(super) numbers: Numbers,
    /// Sets of next hops with their groups.
    pub(super) paths: Paths,
    /// The sets of the routes of the file, which stay.
    pub(super) file_sets: BTreeMap<IpPrefix, Several>,
    /// When next hops of groups that are not known are looked for next.
    pub(super) look_at: u64,
    fib: HashMap<IpPrefix, Led>,
    /// Neighbours whose next hop is in the table.
    pub(super) known: KnownNeighbours,
    short: Short,
    /// What the program's tables had no room for.
    pub(super) refused: Refused,
    /// How many prefixes lead to a router.
    vias: HashMap<Neighbour, usize>,
    /// Whose routes of the kernel it takes.
    kernel: FollowedRoutes,
    /// The addresses of the machine that the gateway runs on.
    pub(super) machine: BTreeSet<IpAddr>,
    /// The routes that follow from the addresses of the ports.
    pub(super) own: BTreeMap<(IpPrefix, Source), Way>,
}

impl Router {
    /// A router whose links are not known yet. `hops` is how many next hops there is room for, and `groups`
    /// how many sets of several.
    pub(crate) fn new(settings: &RoutingSettings, hops: usize, groups: u16) -> Router {
        Router::resuming(settings, hops, groups, &[])
    }

    /// The same, of one whose tables hold these next hops.
    pub(crate) fn resuming(
        settings: &RoutingSettings,
        hops: usize,
        groups: u16,
        held: &[HeldNextHop],
    ) -> Router {
        let limits = Limits::new(hops, settings.ports.len());
        let port = |settings: &PortSettings| Port {
            settings: settings.clone(),
            addresses: settings.addresses.clone(),
            link_locals: Vec::new(),
            link: None,
            errors: ErrorRate::new(0),
        };
        let mut router = Router {
            ports: settings.ports.iter().map(port).collect(),
            rib: Rib::default(),
            neighbours: Neighbours::new(limits),
            reassembly: Reassembly::default(),
            account: Account::default(),
            answers: 0,
            numbers: Numbers::new(hops),
            paths: Paths::new(groups),
            file_sets: BTreeMap::new(),
            look_at: 0,
            fib: HashMap::new(),
            known: KnownNeighbours::default(),
            short: Short::default(),
            refused: Refused::default(),
            vias: HashMap::new(),
            kernel: settings.kernel,
            machine: BTreeSet::new(),
            own: BTreeMap::new(),
        };
        router.set_own();
        let (mut effects, mut actions) = (Effects::default(), Vec::new());
        router.numbers.are_held(held);
        for (neighbour, held) in held.iter().filter_map(|held| Some((held.neighbour?, held))) {
            // Taken as a question from this neighbour, so that it is asked whether it is still there.
            router.neighbours.heard(neighbour, held.mac, Heard::Question, 0, &mut actions);
        }
        router.act(actions, 0, &mut effects);
        for route in &settings.routes {
            router.set_of_file(route, &mut effects);
        }
        router.settle(&mut effects);
        router
    }

    /// Goes on with what another router knew of links, the kernel's routes and neighbours, as far as they are
    /// neighbours still.
    pub(crate) fn succeed(&mut self, old: &Router) {
        let same = |port: &Port, old: &Port| port.settings.interface == old.settings.interface;
        let staying: HashSet<PortNumber> = (1..)
            .zip(self.ports.iter().zip(&old.ports))
            .filter_map(|(number, (port, old))| same(port, old).then_some(number))
            .collect();
        for (port, old) in self.ports.iter_mut().zip(&old.ports).filter(|(port, old)| same(port, old)) {
            port.link = old.link;
            if port.has_host() {
                port.addresses.clone_from(&old.addresses);
                port.link_locals.clone_from(&old.link_locals);
            }
        }
        self.set_own();
        self.rib.succeed_links(&old.rib, |port| staying.contains(&port));
        self.succeed_sets_of_file(old, &staying);
        if self.kernel == old.kernel {
            self.succeed_routes(old, &staying);
        }
        self.machine = old.machine.clone();
        for address in &self.machine {
            self.rib.set(IpPrefix::host(*address), Source::Machine, Some(Way::Machine));
        }
        self.account = old.account.clone();
        self.answers = old.answers;
        self.reassembly = old.reassembly.clone();
        self.neighbours.succeed(&old.neighbours);
        for action in self.forget_strangers() {
            if let Action::Unreachable(..) = action {
                self.account.count(Fate::Unreachable);
            }
        }
        let mut effects = Effects::default();
        for seen in self.neighbours.all() {
            if seen.mac.is_some() {
                self.learned(seen.neighbour, &mut effects);
            }
        }
        self.settle(&mut effects);
    }

    pub(super) fn vias(&self) -> HashSet<Neighbour> {
        let via = |(_, way)| if let Way::Via(neighbour) = way { Some(neighbour) } else { None };
        let of_groups = self.paths.all().flat_map(|(_, members)| members).copied();
        self.rib.ways().filter_map(via).chain(of_groups).collect()
    }

    /// What the system says of a port's interface; `None` where there is none.
    pub(crate) fn link(&mut self, number: PortNumber, link: Option<Link>, now: u64, effects: &mut Effects) {
        let Some(port) = self.ports.get_mut(usize::from(number).wrapping_sub(1)) else { return };
        let own =
            |link: Link| if port.settings.shared { Link { mac: beside(link.mac), ..link } } else { link };
        let link = link.map(own);
        if port.link == link {
            return;
        }
        port.link = link;
        if port.has_host() {
            effects.links.push((number, link));
        }
        let up = link.is_some_and(|link| link.up);
        self.rib.set_link(number, up);
        let mut changed = self.relink_sets_of_file();
        changed.extend(self.rib.by(number));
        self.update_all(&changed, effects);
        self.settle_hosts(effects);
        let known: Vec<Neighbour> = self.known.all().filter(|known| known.port == number).collect();
        for neighbour in &known {
            self.regroup(*neighbour, effects);
        }
        if !up {
            // Whoever was there may be somebody else when it is on again.
            let mut actions = Vec::new();
            let goes = |known: &Neighbour, state| known.port == number && state != NeighbourState::Permanent;
            self.neighbours.forget_where(goes, &mut actions);
            return self.act(actions, now, effects);
        }
        // Next hops of groups may be there again.
        self.look_at = 0;
        if let Some(entry) = self.interface(number) {
            effects.insert(entry);
        }
        for neighbour in known {
            if let Some(entry) = self.next_hop(neighbour) {
                effects.insert(entry);
            }
        }
    }

    /// Routes of the kernel's table, put in or taken out.
    pub(crate) fn kernel_routes(&mut self, routes: Vec<(IpPrefix, Option<Way>)>, effects: &mut Effects) {
        let mut changed = Vec::with_capacity(routes.len());
        for (prefix, way) in routes {
            self.count_several(self.rib.of(prefix, Source::Kernel), way);
            self.rib.set(prefix, Source::Kernel, way);
            changed.push(prefix);
        }
        self.update_all(&changed, effects);
        self.drop_unused(effects);
        self.settle_hosts_in(&changed, effects);
    }

    /// How many next hops there is room for.
    pub(crate) fn most_next_hops(&self) -> usize {
        self.numbers.most()
    }

    /// Where a prefix leads by a route of the kernel.
    pub(crate) fn kernel_way(&self, prefix: IpPrefix) -> Option<Way> {
        self.rib.of(prefix, Source::Kernel)
    }

    /// Whether routes that found no group for their next hops may find one now. It says so once.
    pub(crate) fn has_groups_again(&mut self) -> bool {
        self.paths.is_worth_trying_again()
    }

    /// The neighbours whose Ethernet addresses somebody has set in the machine, at ports where it is a host.
    pub(crate) fn permanent(&mut self, wanted: &BTreeMap<Neighbour, Mac>, now: u64, effects: &mut Effects) {
        let mut actions = Vec::new();
        self.neighbours.permanent(wanted, now, &mut actions);
        self.act(actions, now, effects);
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: u64, effects: &mut Effects) {
        let mut actions = Vec::new();
        self.neighbours.advance(now, &mut actions);
        self.look(now, &mut actions);
        self.act(actions, now, effects);
        self.give_pieces_up(now, effects);
    }

    /// When time is to pass next.
    pub(crate) fn due(&self) -> Option<u64> {
        [self.neighbours.due(), self.reassembly.due(), self.look_due()].into_iter().flatten().min()
    }

    /// How many packets and pieces wait.
    pub(super) fn waiting(&self) -> usize {
        self.neighbours.waiting() + self.reassembly.waiting()
    }

    /// Everything that belongs into a table of the program.
    pub(crate) fn entries(&self, table: Filled) -> Vec<Entry> {
        let every: Vec<(Filled, Entry)> = match table {
            Filled::Routes | Filled::Routes6 => {
                self.fib.iter().map(|(prefix, led)| effects::route(*prefix, led.number)).collect()
            }
            Filled::NextHops => self.known.all().filter_map(|known| self.next_hop(known)).collect(),
            Filled::Behind => {
                let neighbours =
                    self.numbers.all().map(|(number, known)| effects::behind(number, known.port));
                neighbours.chain(self.links().map(|port| effects::behind(link_number(port), port))).collect()
            }
            Filled::Groups | Filled::GroupPorts => self.group_entries().collect(),
            Filled::Interfaces => self.interfaces().flatten().collect(),
        };
        let mut entries: Vec<Entry> =
            every.into_iter().filter(|(of, _)| *of == table).map(|(_, entry)| entry).collect();
        entries.sort_unstable();
        entries
    }

    /// Whether the program routes by itself to a prefix.
    pub(super) fn installed(&self, prefix: IpPrefix) -> bool {
        let led = self.fib.get(&prefix);
        led.is_some_and(|led| led.numbered || led.neighbour.is_none()) && !self.refused.has(prefix)
    }

    /// The prefixes that the program has entries of, or is to have.
    pub(super) fn fib_prefixes(&self) -> impl Iterator<Item = &IpPrefix> {
        self.fib.keys()
    }

    /// Ports whose links have a number.
    fn links(&self) -> impl Iterator<Item = PortNumber> {
        (1..=self.ports.len() as u16).filter(|port| link_number(*port) != UNRESOLVED)
    }

    pub(super) fn port(&self, number: PortNumber) -> Option<&Port> {
        self.ports.get(usize::from(number).wrapping_sub(1))
    }

    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        matches!(self.rib.best(IpPrefix::host(address)), Some((Source::Own, _)))
    }

    /// Whether nobody else may say that an address is theirs.
    pub(super) fn is_claimed(&self, address: IpAddr) -> bool {
        self.is_own(address) || self.is_machine(address)
    }

    /// Whether an address may be one of a port's link: that of one of its networks, one that a route says is
    /// there, or one that was looked for there.
    pub(super) fn is_near(&self, neighbour: Neighbour) -> bool {
        is_on_link(&self.ports, &self.rib, neighbour)
            || self.vias.contains_key(&neighbour)
            || self.neighbours.has(neighbour)
    }

    /// Does what follows from what happened to neighbours.
    pub(super) fn act(&mut self, actions: Vec<Action<Packet>>, now: u64, effects: &mut Effects) {
        for action in actions {
            match action {
                Action::Ask(neighbour, to) => {
                    let frame = self.port(neighbour.port).and_then(|port| {
                        let own = (port.link?.mac, port.own_for(neighbour.address)?);
                        question(own, neighbour.address, to)
                    });
                    effects.frames.extend(frame.map(|bytes| Injected {
                        port: neighbour.port,
                        bytes,
                        virtio: VirtioHeader::NONE,
                    }));
                }
                Action::Known(neighbour, _) => self.learned(neighbour, effects),
                Action::Gone(neighbour) => {
                    self.short.hosts.remove(&neighbour);
                    self.update(IpPrefix::host(neighbour.address), effects);
                    if self.known.remove(&neighbour) {
                        self.regroup(neighbour, effects);
                        if let Some(number) = self.numbers.of(neighbour) {
                            let hop = NextHop { port: 0, neighbour: [0; 6], own: [0; 6], mtu: 0 };
                            effects.remove(effects::next_hop(number, hop));
                        }
                        self.give_back(neighbour, effects);
                    }
                }
                Action::Send(neighbour, mac, packet) => self.send_on(neighbour, mac, packet, effects),
                Action::Unreachable(_, packet) => self.unreachable(&packet, now, effects),
                Action::QueueFull(_) => self.account.count(Fate::QueueFull),
                Action::TableFull(_) => self.account.count(Fate::TableFull),
            }
        }
        self.resume(effects);
    }

    /// A neighbour's Ethernet address goes into the table, and a host of a link gets a route of its own.
    fn learned(&mut self, neighbour: Neighbour, effects: &mut Effects) {
        if !self.known.contains(&neighbour) {
            if self.take(neighbour, effects).is_none() {
                self.account.entries_refused += u64::from(self.short.hosts.insert(neighbour));
                return;
            }
            self.short.hosts.remove(&neighbour);
        }
        if let Some(entry) = self.next_hop(neighbour) {
            effects.insert(entry);
        }
        if self.known.insert(neighbour) {
            self.regroup(neighbour, effects);
        }
        self.update(IpPrefix::host(neighbour.address), effects);
    }

    fn next_hop(&self, neighbour: Neighbour) -> Option<(Filled, Entry)> {
        let port = self.port(neighbour.port)?;
        let hop = NextHop {
            port: neighbour.port,
            neighbour: self.neighbours.mac(neighbour)?,
            own: port.link?.mac,
            mtu: port.mtu(),
        };
        Some(effects::next_hop(self.numbers.of(neighbour)?, hop))
    }

    /// Brings every prefix of the program in line with the routes.
    fn settle(&mut self, effects: &mut Effects) {
        // What leads nowhere any more comes first, as it makes room.
        let gone = self.fib.keys().copied().filter(|prefix| self.rib.best(*prefix).is_none());
        let mut prefixes: Vec<IpPrefix> = gone.collect();
        prefixes.extend(self.rib.ways().map(|(prefix, _)| prefix));
        for prefix in prefixes {
            self.update(prefix, effects);
        }
        self.settle_hosts(effects);
    }

    /// The same for neighbours: a route may have come between a link and one of its hosts, or gone.
    pub(super) fn settle_hosts(&mut self, effects: &mut Effects) {
        let known: Vec<Neighbour> = self.known.all().collect();
        self.settle_these(known, effects);
    }

    /// The same where routes to these prefixes alone have changed.
    pub(super) fn settle_hosts_in(&mut self, changed: &[IpPrefix], effects: &mut Effects) {
        let mut known: Vec<Neighbour> =
            changed.iter().flat_map(|prefix| self.known.within(*prefix)).collect();
        // A host lies in many prefixes.
        known.sort_unstable();
        known.dedup();
        self.settle_these(known, effects);
    }

    fn settle_these(&mut self, neighbours: Vec<Neighbour>, effects: &mut Effects) {
        for neighbour in neighbours {
            self.update(IpPrefix::host(neighbour.address), effects);
        }
        self.resume(effects);
    }

    /// Brings a prefix of the program in line with the routes.
    pub(super) fn update(&mut self, prefix: IpPrefix, effects: &mut Effects) {
        let wanted = self.wanted(prefix);
        let neighbour = if let Some(Way::Via(neighbour)) = wanted { Some(neighbour) } else { None };
        let old = self.fib.get(&prefix).copied();
        if let (Some(led), Some(way)) = (old, wanted)
            && led.neighbour == neighbour
            && (led.numbered || (neighbour.is_none() && fixed_number(way) == led.number))
        {
            return;
        }
        let led = wanted.map(|way| {
            let number = neighbour.and_then(|neighbour| self.take(neighbour, effects));
            let fixed = fixed_number(way);
            Led { number: number.unwrap_or(fixed), neighbour, numbered: number.is_some() }
        });
        if led == old {
            return;
        }
        match led {
            Some(led) => {
                self.fib.insert(prefix, led);
                if old.map(|old| old.number) != Some(led.number) {
                    effects.insert(effects::route(prefix, led.number));
                }
            }
            None => {
                if self.fib.remove(&prefix).is_some() {
                    effects.remove(effects::route(prefix, 0));
                }
            }
        }
        if let Some((led, neighbour)) = led.and_then(|led| Some((led, led.neighbour?))) {
            self.count_via(prefix, neighbour, true);
            if !led.numbered {
                self.short.prefixes.insert((neighbour, prefix));
                self.account.entries_refused += 1;
            }
        }
        if let Some((old, neighbour)) = old.and_then(|old| Some((old, old.neighbour?))) {
            self.count_via(prefix, neighbour, false);
            if old.numbered {
                self.give_back(neighbour, effects);
            } else if led.is_none_or(|led| led.numbered || led.neighbour != Some(neighbour)) {
                self.short.prefixes.remove(&(neighbour, prefix));
            }
        }
    }

    /// Counts the prefixes that lead to a router; a host's own route makes it none.
    fn count_via(&mut self, prefix: IpPrefix, neighbour: Neighbour, more: bool) {
        if prefix == IpPrefix::host(neighbour.address) {
            return;
        }
        self.count_router(neighbour, more);
    }

    /// Counts what leads to a router.
    pub(super) fn count_router(&mut self, neighbour: Neighbour, more: bool) {
        let count = self.vias.entry(neighbour).or_default();
        *count = if more { *count + 1 } else { *count - 1 };
        match (*count, more) {
            (1, true) => self.neighbours.name(neighbour, true),
            (0, _) => {
                self.vias.remove(&neighbour);
                self.neighbours.name(neighbour, false);
            }
            _ => {}
        }
    }

    /// A number for a neighbour, or one use more of the one it has.
    pub(super) fn take(&mut self, neighbour: Neighbour, effects: &mut Effects) -> Option<u16> {
        let new = self.numbers.of(neighbour).is_none();
        let number = self.numbers.take(neighbour)?;
        if new {
            effects.insert(effects::behind(number, neighbour.port));
        }
        if new && !(self.short.prefixes.is_empty() && self.short.hosts.is_empty()) {
            self.short.fresh.push(neighbour);
        }
        Some(number)
    }

    /// One use less of a neighbour's number.
    pub(super) fn give_back(&mut self, neighbour: Neighbour, effects: &mut Effects) {
        if let Some(number) = self.numbers.give_back(neighbour) {
            effects.remove(effects::behind(number, neighbour.port));
        }
    }

    /// Gives numbers to those that got none, as far as there are some again.
    fn resume(&mut self, effects: &mut Effects) {
        loop {
            let short = &mut self.short;
            let next = short.fresh.pop().or_else(|| {
                let waiting = short.hosts.first().or_else(|| short.prefixes.first().map(|(first, _)| first));
                waiting.copied().filter(|_| self.numbers.is_free())
            });
            let Some(neighbour) = next else { return };
            if short.hosts.remove(&neighbour) && self.neighbours.mac(neighbour).is_some() {
                self.learned(neighbour, effects);
            }
            let first = IpPrefix::of(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            let of_it = self.short.prefixes.range((neighbour, first)..);
            let of_it = of_it.take_while(|(of, _)| *of == neighbour).map(|(_, prefix)| *prefix);
            for prefix in of_it.collect::<Vec<_>>() {
                self.update(prefix, effects);
            }
        }
    }

    /// The way of a prefix: that of its route, or, where that or a shorter one leads to a link, to the
    /// neighbour whose address it is.
    pub(super) fn wanted(&self, prefix: IpPrefix) -> Option<Way> {
        let own = self.rib.best(prefix).map(|(_, way)| way);
        if IpPrefix::host(prefix.address()) != prefix {
            return own;
        }
        match self.rib.lookup(prefix.address()) {
            Some((_, _, Way::Link(port))) => {
                let neighbour = Neighbour { port, address: prefix.address() };
                let known = self.known.contains(&neighbour) && self.neighbours.mac(neighbour).is_some();
                known.then_some(Way::Via(neighbour)).or(own)
            }
            _ => own,
        }
    }

    /// Whose routes of the kernel it takes.
    pub(crate) fn followed_routes(&self) -> FollowedRoutes {
        self.kernel
    }

    /// The number that a prefix leads to in the program.
    pub(super) fn number(&self, prefix: IpPrefix) -> Option<u16> {
        self.fib.get(&prefix).map(|led| led.number)
    }
}

/// The number of a way that leads to no neighbour that has one.
fn fixed_number(way: Way) -> u16 {
    match way {
        // What is for the machine is handed over as it came: whatever a router would say about it, such as
        // that its TTL is used up, is not to be said.
        Way::Itself | Way::Machine => ITSELF,
        Way::Broadcast(_) => BROADCAST,
        Way::Several(several) => several.number(),
        Way::Link(port) | Way::Via(Neighbour { port, .. }) => link_number(port),
        _ => UNRESOLVED,
    }
}

/// Whether an address is one of a port's networks, or one that a route says is on its link.
pub(super) fn is_on_link(ports: &[Port], rib: &Rib, Neighbour { port: number, address }: Neighbour) -> bool {
    let port = ports.get(usize::from(number).wrapping_sub(1));
    port.is_some_and(|port| port.reaches(address))
        || matches!(rib.lookup(address), Some((_, _, Way::Link(link))) if link == number)
}
