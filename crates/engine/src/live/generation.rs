//! A generation: one worker's part of a program, from when it takes over to when it is replaced; and what is
//! lost at ports meanwhile.

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

/// One worker's part of a program: its own tables and account, from when it takes over to when it is
/// replaced.
pub struct Generation {
    /// The program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// The same, loaded for the ports there are.
    pub backend: Box<dyn Backend>,
    /// What happened to the packets of this worker.
    pub ledger: Ledger,
    /// One that has counted nothing, to take its place when somebody looks; none while somebody does.
    pub(super) empty: Option<Ledger>,
    /// How many programs have taken over, this one included.
    pub number: u64,
    /// When it took over.
    pub since: Instant,
    /// Packets that it punted and that found no room on their way to control, by the number of the reason.
    pub punts_lost: Vec<u64>,
    /// The last packets that it dropped or punted.
    pub recent: Recent,
    /// Where packets wait until many can be run together, if the back end can begin with them ahead of time.
    pub(super) device_queue: Option<Box<DeviceQueue>>,
    /// The names of its reasons.
    pub(super) reasons: Vec<Arc<str>>,
    /// What had been lost when it took over.
    pub(super) lost_before: Vec<PortLosses>,
}

impl Generation {
    /// A program that has not seen a packet.
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
            reasons,
            lost_before,
        }
    }

    /// What had been lost at each port since it was attached, when this took over.
    pub fn lost_before(&self) -> &[PortLosses] {
        &self.lost_before
    }
}

/// A program that has been loaded, once for every worker.
pub struct Loaded {
    /// The program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// One for each worker.
    pub backends: Vec<Box<dyn Backend>>,
    /// When packets are run, and where, if the back end can begin with them ahead of time; batch by batch
    /// without it.
    pub schedule: Option<Schedule>,
}

impl Loaded {
    /// What takes over from generation `number - 1`, worker by worker.
    pub fn generations(self, ports: u16, number: u64) -> Vec<Generation> {
        let Loaded { program, sources, backends, schedule } = self;
        let new =
            |backend| Generation::new(program.clone(), sources.clone(), backend, schedule, ports, number);
        backends.into_iter().map(new).collect()
    }
}

/// What was lost at one port.
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

    /// What was lost since `earlier`.
    fn sub(self, earlier: PortLosses) -> PortLosses {
        let mut since = self.each(earlier, u64::saturating_sub);
        // What waits now is no sum over time.
        (since.receive.waiting, since.send.waiting) = (self.receive.waiting, self.send.waiting);
        since
    }
}
