//! The one way in which everything is timed: packets in memory, the product's own packet loop, contenders in
//! turn.
//!
//! A run is cut into slices, and those of contenders that mean the same take turns, in the opposite order
//! every other time, so that what else happens on the machine falls on all of them. Before a figure is taken,
//! a fresh contender must count what the interpreter counts; contenders that mean the same and are run
//! equally often must count the same in every measured run, too.

use crate::counts::Counts;
use crate::plan::{LabPlan, Length};
use crate::traffic::first;
use cpu_time::ThreadTime;
use engine::ordering::fragment_order;
use engine::{Ledger, Report, Setting, TimedPart, Times, Worker};
use exec::{Backend, BackendKind};
use ir::Program;
use packet::Frames;
use ports::{Ingress, IngressPolicy, MemorySource, Order};

/// What chooses the hash functions of tables in all measurements.
pub(crate) const SEED: u64 = 1;
/// In so many slices at most a run of some seconds is cut, so that contenders take turns more often than
/// other programs disturb them.
const SLICES: u32 = 10;

/// Packets in memory and the way they are run.
pub(crate) struct Workload {
    frames: Frames,
    order: Order,
    ports: u16,
    policy: IngressPolicy,
    copies: bool,
    own_time: bool,
    judged: usize,
}

/// One of several that are held against each other.
pub(crate) struct Contender<'p> {
    name: &'static str,
    program: &'p Program,
    backend: Box<dyn Backend>,
}

/// One timed run.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    /// Seconds in the packet loop.
    pub(crate) seconds: f64,
    /// What it did.
    pub(crate) counts: Counts,
}

/// The runs of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its runs, in order.
    pub(crate) passes: Vec<Pass>,
}

/// Contenders that mean the same.
pub(crate) struct Group<'p> {
    pub(crate) contenders: Vec<Contender<'p>>,
    repeat: u64,
    slices: u32,
}

impl Pass {
    /// Nanoseconds a packet.
    pub(crate) fn nanoseconds(&self) -> f64 {
        self.seconds * 1e9 / self.counts.received.packets.max(1) as f64
    }

    /// Packets received a second, in millions.
    pub(crate) fn mpps(&self) -> f64 {
        self.counts.received.packets as f64 / self.seconds / 1e6
    }

    /// Bits received a second, in thousands of millions.
    pub(crate) fn gbps(&self) -> f64 {
        self.counts.received.bytes as f64 * 8.0 / self.seconds / 1e9
    }

    /// Per cent of the bytes that were forwarded, each packet once.
    pub(crate) fn forwarded_share(&self) -> f64 {
        self.counts.forwarded.bytes as f64 / self.counts.received.bytes.max(1) as f64 * 100.0
    }

    /// Bits forwarded a second, each packet once, in thousands of millions.
    pub(crate) fn forwarded_gbps(&self) -> f64 {
        self.counts.forwarded.bytes as f64 * 8.0 / self.seconds / 1e9
    }
}

impl Measured {
    /// A figure of all runs.
    pub(crate) fn figure(&self, value: impl Fn(&Pass) -> f64) -> Option<crate::Figure> {
        crate::Figure::of(self.passes.iter().map(value))
    }
}

impl<'p> Contender<'p> {
    /// A program on a back end.
    pub(crate) fn loaded(
        program: &'p Program,
        back_end: BackendKind,
        ports: u16,
    ) -> Result<Contender<'p>, String> {
        let backend = exec::load(program, back_end, ports, SEED).map_err(|error| error.to_string())?;
        Ok(Contender { name: back_end.name(), program, backend })
    }

    /// A program under a name of its own, beside others that mean the same.
    pub(crate) fn named(
        name: &'static str,
        program: &'p Program,
        back_end: BackendKind,
        ports: u16,
    ) -> Result<Contender<'p>, String> {
        Ok(Contender { name, ..Contender::loaded(program, back_end, ports)? })
    }

    /// Something that claims to do what the program does.
    pub(crate) fn other(
        name: &'static str,
        program: &'p Program,
        backend: Box<dyn Backend>,
    ) -> Contender<'p> {
        Contender { name, program, backend }
    }
}

impl Workload {
    /// Packets that enter by `ports` ports in turn.
    pub(crate) fn new(frames: Frames, order: Order, ports: u16) -> Workload {
        Workload {
            frames,
            order,
            ports,
            policy: IngressPolicy::RoundRobin,
            copies: false,
            own_time: false,
            judged: usize::MAX,
        }
    }

    /// How many packets there are in one repeat.
    pub(crate) fn packets(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Lets all packets enter by one port.
    pub(crate) fn enter_by(&mut self, port: u16) {
        self.policy = IngressPolicy::Port(port);
    }

    /// Whether programs get copies of the packets, so that those that change packets find the same at every
    /// repeat. Copying counts as receiving.
    pub(crate) fn set_copies(&mut self, copies: bool) {
        self.copies = copies;
    }

    /// Has the interpreter judge so many packets only, the first ones: its tables look at every rule and
    /// every pattern.
    pub(crate) fn judge_first(&mut self, packets: usize) {
        self.judged = packets;
    }

    /// Takes the time of this thread alone instead of the clock's, so that other programs on the machine
    /// count less.
    pub(crate) fn take_own_time(&mut self) {
        self.own_time = true;
    }

    /// Lets packets enter by so many ports in turn.
    pub(crate) fn set_ports(&mut self, ports: u16) {
        self.ports = ports;
    }

    /// Runs every packet `repeat` times.
    pub(crate) fn pass(&mut self, contender: &mut Contender<'_>, repeat: u64) -> Result<Pass, String> {
        let mut ledger = Ledger::new(contender.program, self.ports);
        let ingress = Ingress::new(self.policy.clone(), self.ports);
        let frames = std::mem::take(&mut self.frames);
        let mut source = MemorySource::new(frames, self.order, repeat, self.copies, ingress);
        let backend = contender.backend.as_mut();
        let mut order = fragment_order(contender.program, 0);
        let mut worker = Worker {
            backend,
            ledger: &mut ledger,
            transmitter: None,
            selection: None,
            device_queue: None,
            order: order.as_deref_mut(),
        };
        let start = ThreadTime::now();
        let finished = worker.run(&mut source, TimedPart::Whole);
        let own = start.elapsed().as_secs_f64();
        self.frames = source.into_frames();
        let times = Times { packets: finished.packets, ..Times::default() };
        let backend = contender.backend.as_ref();
        let report = Report::new(Setting::default(), contender.program, &ledger, backend, times)
            .map_err(|error| error.to_string())?;
        if report.received.packets != self.packets() * repeat {
            return Err(format!(
                "{} of {} packets came in",
                report.received.packets,
                self.packets() * repeat
            ));
        }
        let seconds = if self.own_time { own } else { report.seconds };
        Ok(Pass { seconds, counts: Counts::of(&report) })
    }

    /// Runs fresh contenders and the interpreter over all packets and says in what they differ.
    pub(crate) fn check(&mut self, group: &mut Group<'_>) -> Result<(), String> {
        let repeat = match self.order {
            Order::Replay => 1,
            Order::Each => 2,
        };
        if self.judged >= self.frames.len() {
            return self.check_all(group, repeat);
        }
        let few = first(&self.frames, self.judged);
        let all = std::mem::replace(&mut self.frames, few);
        let checked = self.check_all(group, repeat);
        self.frames = all;
        checked
    }

    fn check_all(&mut self, group: &mut Group<'_>, repeat: u64) -> Result<(), String> {
        let Some(first) = group.contenders.first() else { return Ok(()) };
        let mut judge = Contender::loaded(first.program, BackendKind::Interpreter, self.ports)?;
        let right = self.pass(&mut judge, repeat)?.counts;
        for contender in &mut group.contenders {
            let found = self.pass(contender, repeat)?.counts;
            if let Some(difference) = found.difference(&right) {
                return Err(format!(
                    "{} does not count what the interpreter counts: {difference}",
                    contender.name
                ));
            }
        }
        Ok(())
    }
}

impl<'p> Group<'p> {
    /// Contenders that are held against each other; the first is ours.
    pub(crate) fn new(contenders: Vec<Contender<'p>>) -> Group<'p> {
        Group { contenders, repeat: 1, slices: 1 }
    }

    /// Finds out how often packets are to be repeated, and warms everything up.
    pub(crate) fn warm_up(&mut self, workload: &mut Workload, plan: &LabPlan) -> Result<(), String> {
        self.repeat = match plan.length {
            Length::Repeat(repeat) => repeat,
            Length::Seconds(seconds) => {
                let Some(first) = self.contenders.first_mut() else { return Ok(()) };
                // A first run finds cold caches, so the second one counts.
                workload.pass(first, 1)?;
                let mut repeat = 1;
                let mut taken = workload.pass(first, repeat)?.seconds;
                while taken < seconds / 20.0 {
                    repeat *= 4;
                    taken = workload.pass(first, repeat)?.seconds;
                }
                let whole = (seconds / taken * repeat as f64).ceil().max(1.0);
                // Each slice repeats every packet so often that `each` finds it in the cache all but once.
                let least = if workload.order == Order::Each { 64.0 } else { 1.0 };
                self.slices = (whole / least).clamp(1.0, f64::from(SLICES)) as u32;
                (whole / f64::from(self.slices)).ceil() as u64
            }
        };
        Ok(())
    }

    /// One run of every contender, in slices that take turns.
    fn round(
        &mut self,
        workload: &mut Workload,
        reverse: bool,
        measured: &mut [Measured],
    ) -> Result<(), String> {
        let count = self.contenders.len();
        let mut passes: Vec<Option<Pass>> = vec![None; count];
        for slice in 0..self.slices {
            for turn in 0..count {
                let index = if reverse == (slice % 2 == 0) { count - 1 - turn } else { turn };
                let pass = workload.pass(&mut self.contenders[index], self.repeat)?;
                match &mut passes[index] {
                    None => passes[index] = Some(pass),
                    Some(whole) => {
                        whole.seconds += pass.seconds;
                        whole.counts.add(&pass.counts);
                    }
                }
            }
        }
        for (pass, measured) in passes.into_iter().flatten().zip(measured.iter_mut()) {
            measured.passes.push(pass);
        }
        Ok(())
    }
}

/// Runs all groups round by round; gives for each group its contenders' runs, or why there are none.
pub(crate) fn rounds(
    workload: &mut Workload,
    groups: &mut [(Group<'_>, u16)],
    plan: &LabPlan,
) -> Vec<Result<Vec<Measured>, String>> {
    let mut results: Vec<Result<Vec<Measured>, String>> = Vec::new();
    for (group, ports) in groups.iter_mut() {
        workload.set_ports(*ports);
        let ready = workload.check(group).and_then(|()| group.warm_up(workload, plan));
        results.push(ready.map(|()| {
            let empty = |contender: &Contender<'_>| Measured { name: contender.name, passes: Vec::new() };
            group.contenders.iter().map(empty).collect()
        }));
    }
    // One round more than wanted: the first one warms up what the search for the number of repeats did not.
    for round in 0..=plan.runs {
        for ((group, ports), result) in groups.iter_mut().zip(&mut results) {
            workload.set_ports(*ports);
            let Ok(measured) = result else { continue };
            if let Err(error) = group.round(workload, round % 2 == 1, measured) {
                *result = Err(error);
            } else if round == 0 {
                measured.iter_mut().for_each(|measured| measured.passes.clear());
            }
        }
    }
    results.into_iter().map(|result| result.and_then(alike)).collect()
}

/// Whether contenders counted the same in every run.
fn alike(measured: Vec<Measured>) -> Result<Vec<Measured>, String> {
    if let Some((first, others)) = measured.split_first() {
        for other in others {
            for (ours, theirs) in first.passes.iter().zip(&other.passes) {
                let (mut ours, mut theirs) = (ours.counts.clone(), theirs.counts.clone());
                // Tables count since they were made, and warming up ran the first contender more often.
                ours.tables.clear();
                theirs.tables.clear();
                if let Some(difference) = theirs.difference(&ours) {
                    return Err(format!(
                        "{} and {} differ in a measured run: {difference}",
                        other.name, first.name
                    ));
                }
            }
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TablesPlan;
    use crate::programs::compiled;
    use crate::switch_apps::app_rows;
    use crate::traffic::segments;
    use lang::pipeline::Decode;

    /// The firewall beside another program that claims to be one.
    fn measured(other: &str) -> Result<Vec<Measured>, String> {
        let firewall = compiled("firewall", Decode::Lazy).expect("it compiles");
        let other = compiled(other, Decode::Lazy).expect("it compiles");
        let other = exec::load(&other, BackendKind::Native, 5, SEED).expect("it loads");
        let contenders = vec![
            Contender::loaded(&firewall, BackendKind::Native, 5).expect("it loads"),
            Contender::other("other", &firewall, other),
        ];
        let mut workload = Workload::new(segments(600), Order::Replay, 5);
        let length = Length::Repeat(2);
        let plan = LabPlan {
            simulated: Vec::new(),
            kinds: Vec::new(),
            captures: Vec::new(),
            runs: 3,
            length,
            quick: true,
            tables: TablesPlan::default(),
            gateways: Vec::new(),
            prefixes: Vec::new(),
            guest: None,
            device: crate::DeviceChoice::default(),
            until: None,
        };
        rounds(&mut workload, &mut [(Group::new(contenders), 5)], &plan).remove(0)
    }

    #[test]
    fn what_counts_otherwise_gets_no_figure() {
        let why = measured("wire").expect_err("a wire is no firewall");
        assert!(why.contains("other does not count what the interpreter counts: verdicts"), "{why}");
        let rows = app_rows("case", Err(why), None);
        assert_eq!(rows.len(), 1);
        assert!(rows[0].ours.is_none() && rows[0].other.is_none() && rows[0].what.contains("no figure"));
    }

    #[test]
    fn what_counts_the_same_gets_as_many_runs_as_wanted() {
        let measured = measured("firewall").expect("the same program twice");
        assert_eq!(measured.len(), 2);
        for measured in measured {
            assert_eq!(measured.passes.len(), 3);
            assert!(
                measured.passes.iter().all(|pass| pass.counts.received.packets == 1200 && pass.seconds > 0.0)
            );
        }
    }

    #[test]
    fn slices_add_up() {
        let firewall = compiled("firewall", Decode::Lazy).expect("it compiles");
        let mut workload = Workload::new(segments(600), Order::Replay, 5);
        let load = || Contender::loaded(&firewall, BackendKind::Native, 5).expect("it loads");
        let (mut whole, mut sliced) = (load(), load());
        let right = workload.pass(&mut whole, 5).expect("it runs").counts;
        let mut sum = workload.pass(&mut sliced, 1).expect("it runs").counts;
        for _ in 1..5 {
            sum.add(&workload.pass(&mut sliced, 1).expect("it runs").counts);
        }
        // 600 packets come in by 5 ports in turn, so that cutting after each repeat changes no port.
        assert_eq!(sum.difference(&right), None);
    }
}
