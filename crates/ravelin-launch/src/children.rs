//! Starts the other processes of a gateway, and hands over what each of them needs.

use crate::arguments::{Fronting, Settings};
use crate::compiled::{self, HandedIn, ToHandIn};
use crate::error::LaunchError;
use crate::error_output::{PassedOn, pass_on};
use crate::kept::Store;
use crate::port::Port;
use crate::reported::Reported;
use crate::said::say;
use crate::supervision::Event;
use confinement::{Role, SeparateStart, separate};
use guard::OwnAddresses;
use messages::Channel;
use messages::front::{ControlSupply, FrontBegin};
use messages::launch::{Begin, CoreReport, Kept, LaunchMessage, SuppliedPort, Unfinished};
use messages::limits::{ANSWERED_WITHIN, LONGEST_BUNDLE_MESSAGE, LONGEST_LINK_FRAME, READY_WITHIN};
use ports::live::handed_over::ethernet_address;
use ports::live::{HandedOver, Offloads, PortKind, PortWay, VnicWishes, WantedPort, secret_file};
use rustix::process::{Signal, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The numbers of the descriptors that processes get.
const STANDARD_INPUT: RawFd = 0;
const STANDARD_OUTPUT: RawFd = 1;

/// How many ports are opened at once, each by a thread.
const OPENED_AT_ONCE: usize = 32;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// How long the next thing that is to be kept waits.
const BETWEEN_KEEPING: Duration = Duration::from_secs(1);

/// What became of what was to be kept.
pub(crate) struct HasKept {
    /// The newest version of it.
    pub(crate) newest: u64,
    /// Whether there was a policy with it.
    pub(crate) is_policy: bool,
    /// Why it is not on the disk, if it is not.
    pub(crate) failed: Option<String>,
}

/// Where the first program of a core comes from that is started beside another one.
#[derive(Debug)]
pub(crate) enum Successor {
    /// From the other one.
    Same,
    /// From `compile`.
    Compiled(ToHandIn),
}

/// The descriptors of a port, with what has to be known of them; none where its interface has gone.
type Descriptors = Option<(HandedOver, Vec<OwnedFd>)>;

/// A core that was started, with the processes that were started for it: they end with it.
pub(crate) struct Core {
    channel: Channel,
    /// The descriptors of its ports, for a core that takes over from it.
    lanes: Vec<Descriptors>,
    seed: u64,
    /// Which of the cores that were started it is.
    number: u64,
    core: Started,
    /// What it was given of `compile`.
    handed_in: HandedIn,
    /// By which the last of it is on its way to the core, or was.
    passes: Option<UnixStream>,
    /// The last one, whether it still runs or not.
    compile: Option<Started>,
    control: Option<Started>,
    front: Option<Started>,
    /// By which `control` is told of fronts, where there are any.
    fronts: Option<Channel>,
}

/// What `control` gets beside the socket of its users.
pub(crate) struct ControlSockets {
    /// Where metrics are asked for.
    pub(crate) metrics: Option<TcpListener>,
    /// What is told of the routes of a container.
    pub(crate) routes: Option<OwnedFd>,
}

/// A process that was started; it is ended when this is dropped.
pub(crate) struct Started {
    id: i32,
    process: OwnedFd,
}

impl Started {
    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// Whether it has this number.
    pub(crate) fn is(&self, id: i32) -> bool {
        self.id == id
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }
}

impl Core {
    /// Starts one, and gives it the ports.
    ///
    /// # Errors
    /// It cannot be started, or a port cannot be opened.
    pub(crate) fn start(
        settings: &Settings,
        ports: &[Port<'_>],
        number: u64,
        store: Option<&Arc<Store>>,
        events: &SyncSender<Event>,
    ) -> Result<Core, LaunchError> {
        // What cannot be opened is known before there is a process.
        let lanes = opened(ports, settings.workers)?;
        let mut core = Core::begin(settings, lanes, seed(), number, events, store, false)?;
        core.hand_ports_over(settings)?;
        Ok(core)
    }

    /// Starts one that takes over from this one: with its ports, and with its program or another one.
    ///
    /// # Errors
    /// It cannot be started, or a port's interface is away.
    pub(crate) fn start_successor(
        &mut self,
        settings: &Settings,
        successor: Successor,
        number: u64,
        store: Option<&Arc<Store>>,
        events: &SyncSender<Event>,
    ) -> Result<Core, LaunchError> {
        let again = |lane: &Descriptors, wanted: &WantedPort| {
            let away = || LaunchError::Away(wanted.interface.clone());
            let (described, descriptors) = lane.as_ref().ok_or_else(away)?;
            let descriptors = descriptors.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
            Ok(Some((described.clone(), descriptors)))
        };
        let lanes = self.lanes.iter().zip(&settings.ports).map(|(lane, wanted)| again(lane, wanted));
        let lanes = lanes.collect::<Result<Vec<_>, LaunchError>>()?;
        // Packets of a flow go to the same worker as before.
        let mut next = Core::begin(settings, lanes, self.seed, number, events, store, true)?;
        let (ours, theirs) = Channel::pair()?;
        for end in [&ours, &theirs] {
            // Neither waits for ever for the other one, and neither may set this itself.
            end.send_within(ANSWERED_WITHIN)?;
        }
        self.channel.send(&LaunchMessage::HandOver, &[ours.as_fd()])?;
        match successor {
            Successor::Same => next.channel.send(&LaunchMessage::Beside, &[theirs.as_fd()])?,
            Successor::Compiled(what) => {
                let (reads, writes) = UnixStream::pair()?;
                next.channel.send(&LaunchMessage::Beside, &[theirs.as_fd(), reads.as_fd()])?;
                next.hand_in(settings, what, writes, events)?;
            }
        }
        next.hand_ports_over(settings)?;
        Ok(next)
    }

    /// Starts one, up to its ports.
    fn begin(
        settings: &Settings,
        lanes: Vec<Descriptors>,
        seed: u64,
        number: u64,
        events: &SyncSender<Event>,
        store: Option<&Arc<Store>>,
        beside: bool,
    ) -> Result<Core, LaunchError> {
        let (mut channel, theirs) = Channel::pair()?;
        // A core that does not read holds nobody up for ever; one that compiles reads its ports when that is
        // done.
        channel.send_within(READY_WITHIN)?;
        let descriptors = &[(theirs.as_fd(), STANDARD_INPUT)];
        let start = Start { role: Role::Core, program: &settings.core, arguments: &[], descriptors };
        let core = start.start(settings, events)?;
        drop(theirs);
        let without = settings.without.iter().map(|layer| layer.name().to_owned()).collect();
        let trust = settings.trust.as_ref().map(|trust| trust.terms.clone());
        let ports = lanes.len() as u16;
        let begin = Begin { workers: settings.workers, ports, seed, without, trust, beside };
        channel.send(&LaunchMessage::Begin(begin), &[])?;
        if let Some(store) = store {
            channel.send(&LaunchMessage::Kept(Kept::clone(&store.kept())), &[])?;
        }
        let (hears, events, store) = (channel.again()?, events.clone(), store.cloned());
        thread::Builder::new()
            .name("reports".to_owned())
            .spawn(move || hear_reports(hears, number, store.as_ref(), &events))?;
        Ok(Core {
            channel,
            lanes,
            seed,
            number,
            core,
            handed_in: HandedIn::default(),
            passes: None,
            compile: None,
            control: None,
            front: None,
            fronts: None,
        })
    }

    /// Gives it its ports: it runs from then on.
    fn hand_ports_over(&mut self, settings: &Settings) -> Result<(), LaunchError> {
        for ((lane, wanted), own) in self.lanes.iter().zip(&settings.ports).zip(&settings.addresses) {
            let Some((described, descriptors)) = lane else { continue };
            let message = LaunchMessage::Port(supplied(described, wanted.vnic.as_ref(), own)?);
            self.channel.send(&message, &descriptors.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
        }
        self.channel.send(&LaunchMessage::Start, &[])?;
        // A core that was taken over and does not read holds nobody up for ever.
        Ok(self.channel.send_within(ANSWERED_WITHIN)?)
    }

    /// Ends what was started for it, once it has ended itself. Returns its sockets of AF_PACKET, which are
    /// still open. All others are closed: those of a queue of AF_XDP exclude each other.
    pub(crate) fn end(self) -> Vec<OwnedFd> {
        let lanes = self.lanes.into_iter().flatten();
        let slow = lanes.filter(|(described, _)| matches!(described.way, PortWay::AfPacket { .. }));
        slow.flat_map(|(_, descriptors)| descriptors).collect()
    }

    /// Whether a report is one of this core.
    pub(crate) fn is(&self, number: u64) -> bool {
        self.number == number
    }

    /// Whether a process is this core, or the last of its kind that was started for it.
    pub(crate) fn has(&self, role: Role, id: i32) -> bool {
        let last = match role {
            Role::Core => Some(&self.core),
            Role::Compile => self.compile.as_ref(),
            Role::Control => self.control.as_ref(),
            Role::Front => self.front.as_ref(),
            Role::Vhost | Role::Tunnel => None,
        };
        last.is_some_and(|process| process.is(id))
    }

    /// Has the core take what `compile` gave before, or else starts a process that makes a program of the
    /// gateway's file, and gives it to the core. An earlier such process is ended.
    ///
    /// # Errors
    /// It cannot be started, or the core is gone.
    pub(crate) fn compile(
        &mut self,
        settings: &Settings,
        what: ToHandIn,
        events: &SyncSender<Event>,
    ) -> Result<(), LaunchError> {
        let (reads, writes) = UnixStream::pair()?;
        self.channel.send(&LaunchMessage::Compile, &[reads.as_fd()])?;
        self.hand_in(settings, what, writes, events)
    }

    /// Gives the core at the other end of `to` what `compile` gave before, or what it gives now.
    fn hand_in(
        &mut self,
        settings: &Settings,
        what: ToHandIn,
        to: UnixStream,
        events: &SyncSender<Event>,
    ) -> Result<(), LaunchError> {
        let number = self.handed_in.begin();
        // One at a time: those of a `compile` that was taken over, one after the other, fill no memory here.
        if let Some(before) = self.passes.replace(to.try_clone()?) {
            let _ = before.shutdown(Shutdown::Write);
        }
        let passes = thread::Builder::new().name("compiled".to_owned());
        let tested = match what {
            ToHandIn::Before(before) => {
                self.handed_in.arrived(number, before.clone());
                // If the core is gone, its end is heard of.
                passes.spawn(move || compiled::write(to, &before))?;
                return Ok(());
            }
            ToHandIn::Anew { tested } => tested,
        };
        let (from, theirs) = UnixStream::pair()?;
        let mut arguments: Vec<&OsStr> = vec!["compile-for-core".as_ref(), settings.file.as_os_str()];
        arguments.extend(do_without(settings));
        if let Some(started) = &settings.as_started {
            arguments.extend(["--as-started".as_ref(), started.as_os_str()]);
        }
        if tested {
            arguments.push("--tested".as_ref());
        }
        let descriptors = &[(theirs.as_fd(), STANDARD_INPUT)];
        let program = &settings.ravelin;
        self.compile = None;
        let start = Start { role: Role::Compile, program, arguments: &arguments, descriptors };
        self.compile = Some(start.start(settings, events)?);
        let (core, events) = (self.number, events.clone());
        // Where policies are signed, the store has what is to be kept.
        let is_kept = settings.trust.is_none();
        passes.spawn(move || {
            let compiled = compiled::read(from);
            // It is known before the core reports of it.
            let event = Event::Compiled { core, number, compiled: compiled.clone() };
            if !is_kept || events.send(event).is_ok() {
                let _ = compiled::write(to, &compiled);
            }
        })?;
        Ok(())
    }

    /// What it was given of `compile`.
    pub(crate) fn handed_in(&mut self) -> &mut HandedIn {
        &mut self.handed_in
    }

    /// Ends the process that answers at the control socket, if there is one.
    pub(crate) fn end_control(&mut self) {
        (self.control, self.fronts) = (None, None);
    }

    /// Starts a process that answers at the control socket, and where metrics are asked for, by what the core
    /// tells it, once the one before it is [ended](Core::end_control).
    ///
    /// # Errors
    /// It cannot be started, or the core is gone.
    pub(crate) fn control(
        &mut self,
        settings: &Settings,
        listener: &UnixListener,
        ControlSockets { metrics, routes }: ControlSockets,
        events: &SyncSender<Event>,
    ) -> Result<(), LaunchError> {
        let (mut ours, theirs) = Channel::pair()?;
        // The core may set no option of a socket.
        ours.send_within(ANSWERED_WITHIN)?;
        let descriptors = &[(theirs.as_fd(), STANDARD_INPUT), (listener.as_fd(), STANDARD_OUTPUT)];
        let mut arguments: Vec<&OsStr> = vec!["control-for-core".as_ref()];
        arguments.extend(do_without(settings));
        if settings.trust.is_some() || settings.ports.iter().any(|port| port.vnic.is_some()) {
            arguments.push("--never-one".as_ref());
        }
        let program = &settings.ravelin;
        if settings.front.is_some() {
            let (tells, told) = Channel::pair()?;
            tells.send_within(ANSWERED_WITHIN)?;
            ours.send(&ControlSupply::Fronts, &[told.as_fd()])?;
            arguments.push("--fronts".as_ref());
            self.fronts = Some(tells);
        }
        if let Some(routing) = &settings.routing {
            arguments.extend(["--routing".as_ref(), routing.as_os_str()]);
        }
        if let Some(metrics) = metrics {
            ours.send(&ControlSupply::Metrics, &[metrics.as_fd()])?;
            arguments.push("--metrics".as_ref());
        }
        if let Some(routes) = routes {
            ours.send(&ControlSupply::Routes, &[routes.as_fd()])?;
            arguments.push("--routes".as_ref());
        }
        self.channel.send(&LaunchMessage::Control, &[ours.as_fd()])?;
        let start = Start { role: Role::Control, program, arguments: &arguments, descriptors };
        self.control = Some(start.start(settings, events)?);
        Ok(())
    }

    /// Starts a process that listens on a network, and passes on to `control` what it is asked there. It gets
    /// the only descriptor of the socket: whoever has one can shut it for all who share it.
    ///
    /// # Errors
    /// It cannot be started, its key cannot be read, or `control` is gone.
    pub(crate) fn front(
        &mut self,
        settings: &Settings,
        front: &Fronting,
        listener: TcpListener,
        events: &SyncSender<Event>,
    ) -> Result<(), LaunchError> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "control is not there");
        let fronts = self.fronts.as_mut().ok_or_else(gone)?;
        let key = secret_file::read(&front.key)?;
        let ((mut tells, told), (asks, answers)) = (Channel::pair()?, Channel::pair()?);
        let arguments: Vec<&OsStr> = do_without(settings).collect();
        let descriptors = &[(told.as_fd(), STANDARD_INPUT)];
        self.front = None;
        fronts.send(&ControlSupply::Front, &[answers.as_fd()])?;
        let start = Start { role: Role::Front, program: &front.program, arguments: &arguments, descriptors };
        self.front = Some(start.start(settings, events)?);
        let begin = FrontBegin { key, clients: front.clients.clone() };
        Ok(tells.send(&begin, &[listener.as_fd(), asks.as_fd()])?)
    }

    /// Says what became of what was to be kept.
    ///
    /// # Errors
    /// The core is gone.
    pub(crate) fn has_kept(&mut self, kept: HasKept) -> Result<(), LaunchError> {
        let HasKept { newest, failed, .. } = kept;
        Ok(self.channel.send(&LaunchMessage::HasKept { newest, failed }, &[])?)
    }

    /// Hands over other descriptors of a port, whose interface is there again, or whose machine shares
    /// something else. The core says `serial` once it has done so.
    ///
    /// # Errors
    /// They cannot be opened, or the core is gone.
    pub(crate) fn renew(
        &mut self,
        number: u16,
        port: &Port<'_>,
        settings: &Settings,
        serial: u64,
    ) -> Result<(), LaunchError> {
        let (described, descriptors) = port.lanes(settings.workers)?;
        let at = usize::from(number).wrapping_sub(1);
        let own = settings.addresses.get(at).map(Vec::as_slice).unwrap_or_default();
        let port = supplied(&described, port.vnic(), own)?;
        let message = LaunchMessage::Renewed { number, port, serial };
        self.channel.send(&message, &descriptors.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
        if let Some(lane) = self.lanes.get_mut(at) {
            *lane = Some((described, descriptors));
        }
        Ok(())
    }

    /// Lets go of what it has of a port whose interface has gone.
    pub(crate) fn let_go(&mut self, number: u16) {
        if let Some(lane) = self.lanes.get_mut(usize::from(number).wrapping_sub(1)) {
            *lane = None;
        }
    }
}

/// Opens all ports, up to [`OPENED_AT_ONCE`] at once: Linux waits for all processors each time a socket of
/// AF_PACKET is bound.
fn opened(ports: &[Port<'_>], workers: u16) -> Result<Vec<Descriptors>, LaunchError> {
    let mut lanes = Vec::new();
    for part in ports.chunks(OPENED_AT_ONCE) {
        thread::scope(|scope| {
            let opening = part.iter().map(|port| {
                let opens = thread::Builder::new().name("opens".to_owned());
                // Those of AF_XDP share their frames, and are opened one after the other.
                let is_alone = port.wanted.kind != PortKind::AfXdp;
                let opens = is_alone.then(|| opens.spawn_scoped(scope, || port.lanes(workers)));
                (port, opens.and_then(Result::ok))
            });
            let opening: Vec<_> = opening.collect();
            opening.into_iter().try_for_each(|(port, opens)| {
                let opened = match opens {
                    Some(opens) => opens.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    None => port.lanes(workers),
                };
                lanes.push(Some(opened?));
                Ok::<_, LaunchError>(())
            })
        })?;
    }
    Ok(lanes)
}

/// Passes on what the core of this number reports until its end. What it wants kept is kept here, one after
/// the other with a pause: a core that was taken over makes nothing grow by it, and leaves others the disk.
fn hear_reports(mut core: Channel, number: u64, store: Option<&Arc<Store>>, events: &SyncSender<Event>) {
    while let Ok(Some(report)) = core.receive_alone::<CoreReport>(LONGEST_BUNDLE_MESSAGE) {
        let event = match (Reported::of(report), store) {
            (Ok(reported), _) => Event::Report(number, reported),
            (Err(kept), Some(store)) => {
                let (newest, is_policy) = (kept.newest, kept.policy.is_some());
                let failed = store.keep(kept).err().map(|error| error.to_string());
                Event::Kept(number, HasKept { newest, is_policy, failed })
            }
            (Err(_), None) => continue,
        };
        let pauses = matches!(event, Event::Kept(..));
        if events.send(event).is_err() {
            return;
        }
        if pauses {
            thread::sleep(BETWEEN_KEEPING);
        }
    }
}

/// The program of a process, and what it is told and given.
pub(crate) struct Start<'a> {
    pub(crate) role: Role,
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [&'a OsStr],
    /// Its standard input, and what else it gets.
    pub(crate) descriptors: &'a [(BorrowedFd<'a>, RawFd)],
}

impl Start<'_> {
    /// Starts it apart from the machine, passes on what it tells as errors, and tells when it has ended. It
    /// ends with the calling thread at the latest.
    pub(crate) fn start(
        &self,
        settings: &Settings,
        events: &SyncSender<Event>,
    ) -> Result<Started, LaunchError> {
        self.start_after(settings, PassedOn::none(), events)
    }

    /// The same for a process that follows others, of which so much was passed on.
    ///
    /// # Errors
    /// As for [`start`](Start::start).
    pub(crate) fn start_after(
        &self,
        settings: &Settings,
        passed_on: Arc<Mutex<PassedOn>>,
        events: &SyncSender<Event>,
    ) -> Result<Started, LaunchError> {
        let role = self.role;
        let failed = |source| LaunchError::Start { program: self.program.to_owned(), source };
        let program = File::open(self.program).map_err(failed)?;
        let (told, errors) = io::pipe()?;
        let arguments = [role.name().as_ref()].into_iter().chain(self.arguments.iter().copied());
        let start = SeparateStart {
            program: program.as_fd(),
            arguments: &arguments.map(OsStr::to_owned).collect::<Vec<_>>(),
            error_output: errors.as_fd(),
            descriptors: self.descriptors,
        };
        let mut child = separate(&start, role, &settings.without)?;
        let id = child.id();
        let started = Started { id, process: child.as_fd().try_clone_to_owned()? };
        let events = events.clone();
        thread::Builder::new()
            .name(format!("{} says", role.name()))
            .spawn(move || pass_on(role.name(), told, &passed_on, say))?;
        thread::Builder::new().name(role.name().to_owned()).spawn(move || {
            let ended = child.wait();
            // Whoever supervises may have ended.
            let _ = events.send(Event::Ended(role, id, ended));
        })?;
        Ok(started)
    }
}

/// The arguments that name the layers to do without.
pub(crate) fn do_without(settings: &Settings) -> impl Iterator<Item = &OsStr> {
    settings.without.iter().flat_map(|layer| [OsStr::new("--without"), OsStr::new(layer.name())])
}

/// The port as a message describes it, at which the gateway has these addresses.
fn supplied(
    port: &HandedOver,
    vnic: Option<&VnicWishes>,
    own: &[IpAddr],
) -> Result<SuppliedPort, LaunchError> {
    let own = Some(own).filter(|own| !own.is_empty());
    let control = own.map(|own| Ok::<_, io::Error>(speaks(ethernet_address(&port.interface)?, own)));
    Ok(SuppliedPort {
        way: port.way.clone(),
        router: vnic.map(router),
        control: control.transpose()?,
        unfinished: match port.offloads {
            Offloads::Cut => Unfinished::Cut,
            Offloads::Whole => Unfinished::Whole,
            Offloads::Off => Unfinished::Off,
        },
        interface: port.interface.clone(),
        promiscuous: port.promiscuous,
        mode: port.mode.clone(),
    })
}

/// Who `control` is at a port with this Ethernet address and these addresses.
fn speaks(ethernet: [u8; 6], own: &[IpAddr]) -> OwnAddresses {
    let (ipv4, ipv6) = by_family(own.iter().copied());
    let mtu = (LONGEST_LINK_FRAME - ETHERNET) as u16;
    OwnAddresses { ethernet, ipv4, ipv6, mtu, advertises: false, dhcp_client: false }
}

/// The router in a container, as a message describes it.
fn router(vnic: &VnicWishes) -> OwnAddresses {
    let (ipv4, ipv6) = by_family(vnic.addresses.iter().map(|(address, _)| *address));
    let &VnicWishes { ethernet, mtu, advertises, dhcp_client, .. } = vnic;
    OwnAddresses { ethernet, ipv4, ipv6, mtu, advertises, dhcp_client }
}

fn by_family(addresses: impl Iterator<Item = IpAddr>) -> (Vec<Ipv4Addr>, Vec<Ipv6Addr>) {
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    for address in addresses {
        match address {
            IpAddr::V4(address) => ipv4.push(address),
            IpAddr::V6(address) => ipv6.push(address),
        }
    }
    (ipv4, ipv6)
}

/// What chooses the tables' hash functions: the standard library draws its keys from the system, and has no
/// other stable way to ask it for a number.
fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
