//! A generation: one worker's part of a program, from its takeover to its replacement, and the losses at
//! ports in this time.

use super::recent::Recent;
use crate::Ledger;
use crate::device_queue::{DeviceQueue, Schedule};
use exec::{Backend, OpenProof, SegmentProof};
use ir::Program;
use ir::source::Sources;
use ir::steering::WORKER_BUSY;
use packet::OpenClasses;
use ports::live::{ReceiveLosses, SendLosses};
use serde::Serialize;
use std::ops::{AddAssign, Sub};
use std::sync::Arc;
use std::time::Instant;

/// One worker's part of a program: its own tables and account, from the takeover of the program to its
/// replacement.
pub struct Generation {
    /// The program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// The program, loaded for the ports of the gateway.
    pub backend: Box<dyn Backend>,
    /// What happened to the packets of this worker.
    pub ledger: Ledger,
    /// An empty ledger, which takes the place of `ledger` during a look; `None` during a look.
    pub(super) empty: Option<Ledger>,
    /// How many programs have taken over, this one included.
    pub number: u64,
    /// When it took over.
    pub since: Instant,
    /// Punted packets that found no room on their way to the control plane, or had no share while others
    /// waited, by the number of the reason.
    pub punts_lost: Vec<u64>,
    /// Packets that left with the checksum that their sender left open.
    pub left_open: u64,
    /// Which packets the program gets with such a checksum.
    pub(super) open: OpenProof,
    /// Which segments it gets whole.
    pub(super) segments: OpenClasses,
    /// The last packets that it dropped or punted.
    pub recent: Recent,
    /// The device queue, if the back end is asynchronous.
    pub(super) device_queue: Option<Box<DeviceQueue>>,
    /// What says to which worker a packet goes, if the program says so and there are several.
    pub(super) steering: Option<Box<dyn Backend>>,
    /// Whether the worker has the memory in which packets cross to other workers, because this program or one
    /// before it steers its packets; known from the beginning of its run.
    pub has_parcels: bool,
    /// The reason for packets that find no room on their way to their worker. If there are several workers
    /// and the program lacks it, that of no packet, so that the account does not balance.
    pub(super) worker_busy: u16,
    /// The names of the program's reasons.
    pub(super) reasons: Vec<Arc<str>>,
    /// The losses at each port at the time of the takeover.
    pub(super) lost_before: Vec<PortLosses>,
}

impl Generation {
    /// A generation that has not run a packet yet.
    fn new(
        program: Arc<Program>,
        sources: Arc<Sources>,
        mut backend: Box<dyn Backend>,
        schedule: Option<Schedule>,
        (open, segments): (OpenProof, SegmentProof),
        ports: u16,
        number: u64,
    ) -> Generation {
        let ledger = Ledger::new(&program, ports);
        let empty = Some(ledger.clone());
        let recent = Recent::new(program.reasons.len());
        let punts_lost = vec![0; program.reasons.len()];
        let reasons = program.reasons.iter().map(|reason| Arc::from(reason.name.as_str())).collect();
        let worker_busy = program.reasons.iter().position(|reason| reason.name == WORKER_BUSY);
        let worker_busy = worker_busy.unwrap_or(program.reasons.len()) as u16;
        let lost_before = vec![PortLosses::default(); usize::from(ports)];
        let since = Instant::now();
        let device_queue =
            schedule.and_then(|schedule| DeviceQueue::new(backend.as_mut(), schedule, since)).map(Box::new);
        Generation {
            program,
            sources,
            backend,
            ledger,
            empty,
            number,
            since,
            punts_lost,
            left_open: 0,
            // A device gets packets as they are, and its results come back later.
            open: if device_queue.is_some() { OpenProof::default() } else { open },
            segments: match device_queue.is_some() {
                true => OpenClasses::NONE,
                false => segments.classes.and(open.classes),
            },
            recent,
            device_queue,
            steering: None,
            has_parcels: false,
            worker_busy,
            reasons,
            lost_before,
        }
    }

    /// The losses at each port from its attachment to the takeover of this generation.
    pub fn lost_before(&self) -> &[PortLosses] {
        &self.lost_before
    }
}

/// A program that was loaded once for every worker.
pub struct Loaded {
    /// The program. For several workers it has the reason
    /// [`WORKER_BUSY`](ir::steering::declare_worker_busy).
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// One for each worker.
    pub backends: Vec<Box<dyn Backend>>,
    /// The schedule of the device queue, if the back end is asynchronous; without it, batches run one by one.
    pub schedule: Option<Schedule>,
    /// What says to which worker a packet goes, for each of several workers, if the program says so:
    /// [`load_steering`](super::load_steering).
    pub steering: Vec<Box<dyn Backend>>,
}

impl Loaded {
    /// The generations that take over from generation `number - 1`, worker by worker.
    pub fn generations(self, ports: u16, number: u64) -> Vec<Generation> {
        let Loaded { program, sources, backends, schedule, steering } = self;
        let mut steering = steering.into_iter();
        let shown = (OpenProof::of(&program), SegmentProof::of(&program));
        let new = |backend| Generation {
            steering: steering.next(),
            ..Generation::new(program.clone(), sources.clone(), backend, schedule, shown, ports, number)
        };
        backends.into_iter().map(new).collect()
    }
}

/// The losses at one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortLosses {
    /// Before the program.
    #[serde(flatten)]
    pub receive: ReceiveLosses,
    /// Behind it.
    #[serde(flatten)]
    pub send: SendLosses,
}

impl PortLosses {
    fn each(self, other: PortLosses, of: impl Fn(u64, u64) -> u64) -> PortLosses {
        PortLosses { receive: self.receive.each(other.receive, &of), send: self.send.each(other.send, &of) }
    }
}

impl AddAssign for PortLosses {
    fn add_assign(&mut self, other: PortLosses) {
        *self = self.each(other, |a, b| a + b);
    }
}

impl Sub for PortLosses {
    type Output = PortLosses;

    /// The losses since `earlier`.
    fn sub(self, earlier: PortLosses) -> PortLosses {
        let mut since = self.each(earlier, u64::saturating_sub);
        // The number of waiting packets is no sum over time, so it is not subtracted.
        (since.receive.waiting, since.send.waiting) = (self.receive.waiting, self.send.waiting);
        since
    }
}
