//! A generation: one worker's part of a program, from its takeover to its replacement, and the losses at
//! ports in this time.

use super::recent::Recent;
use crate::Ledger;
use exec::Backend;
use lang::ir::Program;
use lang::source::Sources;
use offload::device_queue::{DeviceQueue, Schedule};
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
    /// Punted packets that found no room on their way to the control plane, by the number of the reason.
    pub punts_lost: Vec<u64>,
    /// The last packets that it dropped or punted.
    pub recent: Recent,
    /// The device queue, if the back end is asynchronous.
    pub(super) device_queue: Option<Box<DeviceQueue>>,
    /// What says to which worker a packet goes, if the program says so and there are several.
    pub(super) steering: Option<Box<dyn Backend>>,
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
        ports: u16,
        number: u64,
    ) -> Generation {
        let ledger = Ledger::new(&program, ports);
        let empty = Some(ledger.clone());
        let recent = Recent::new(program.reasons.len());
        let punts_lost = vec![0; program.reasons.len()];
        let reasons = program.reasons.iter().map(|reason| Arc::from(reason.name.as_str())).collect();
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
            recent,
            device_queue,
            steering: None,
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
    /// The program.
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
        let new = |backend| Generation {
            steering: steering.next(),
            ..Generation::new(program.clone(), sources.clone(), backend, schedule, ports, number)
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
