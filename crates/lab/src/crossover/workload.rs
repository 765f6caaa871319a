//! What is measured: a program with its tables full, packets, and the interpreter's verdict on each.
//!
//! Packets have numbers without end; the memory holds so many different ones, which come again and again.
//! What a program says of a packet may be another thing the first time than later, when it has learned; so
//! the interpreter judges every packet twice.

use crate::measure::SEED;
use crate::plan::LabPlan;
use crate::programs::{compile, compiled};
use crate::router::data::{Classifier, Data};
use crate::router::packets::{Filling, routed};
use crate::traffic::{LabError, random_hosts};
use exec::kernel::{Back, CopiedPart, KernelOptions};
use exec::{BackendKind, Outputs};
use lang::ir::Program;
use lang::pipeline::Decode;
use packet::{BATCH, Batch, Frames, Verdict};

/// Ports of every program.
pub(crate) const PORTS: u16 = 4;
/// Different packets, and those of 512 bytes; the interpreter searches these for every pattern at every
/// place.
const PACKETS: usize = 65_536;
const LARGE_PACKETS: usize = 1024;
/// The same with `--quick`.
const QUICK_PACKETS: usize = 4096;
const QUICK_LARGE_PACKETS: usize = 256;
/// About so many rules there are.
const RULES: usize = 1000;
/// Hosts behind a switch.
const HOSTS: u64 = 4096;
/// When the first packet comes, and the nanoseconds from one to the next, by the time that packets carry.
const EPOCH: u64 = 1_000_000_000;
const APART: u64 = 50;

/// Tables' contents, made once for all programs.
pub(crate) struct Contents {
    data: Data,
    classifier: Classifier,
    quick: bool,
}

/// A program over its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// What it is called in the report.
    pub(crate) name: &'static str,
    program: &'static str,
    large: bool,
    /// What is chosen about its kernel.
    pub(crate) options: KernelOptions,
}

const TREES: KernelOptions =
    KernelOptions { linear_rules: false, bloom: false, over: CopiedPart::Header, back: Back::Word };
const LINEAR: KernelOptions = KernelOptions { linear_rules: true, ..TREES };
const BLOOM: KernelOptions = KernelOptions { bloom: true, ..TREES };

/// Everything that is measured.
pub(crate) const CASES: [Case; 9] = [
    Case { name: "lpm", program: "lpm", large: false, options: TREES },
    Case { name: "firewall_rules (trees)", program: "firewall_rules", large: false, options: TREES },
    Case { name: "firewall_rules (one by one)", program: "firewall_rules", large: false, options: LINEAR },
    Case { name: "both", program: "both", large: false, options: TREES },
    Case { name: "router", program: "router", large: false, options: TREES },
    Case { name: "mac_switch", program: "mac_switch", large: false, options: TREES },
    Case { name: "search of 512 bytes (automaton)", program: "search", large: true, options: TREES },
    Case { name: "search of 512 bytes (Bloom filter)", program: "search", large: true, options: BLOOM },
    Case { name: "dpi of 512 bytes", program: "dpi", large: true, options: TREES },
];

impl Contents {
    /// Makes or reads them.
    pub(crate) fn new(plan: &LabPlan) -> Result<Contents, LabError> {
        let data = Data::new(&plan.tables, plan.quick).map_err(LabError::Tables)?;
        let mut classifiers = Classifier::all(&plan.tables, plan.quick).map_err(LabError::Tables)?;
        let fitting = classifiers.iter().rposition(|one| one.len() <= RULES).unwrap_or(0);
        if classifiers.is_empty() {
            return Err(LabError::Tables("there is no set of rules".to_owned()));
        }
        Ok(Contents { data, classifier: classifiers.swap_remove(fitting), quick: plan.quick })
    }

    /// In words.
    pub(crate) fn line(&self) -> String {
        let patterns = self.data.patterns.len();
        format!("{}, {}, {patterns} patterns, {HOSTS} hosts", self.data.name, self.classifier.name)
    }
}

/// A program on its data.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) options: KernelOptions,
    frames: Frames,
    /// Bytes as they are received, for programs that change them.
    pristine: Option<Vec<u8>>,
    /// The port of each packet.
    ports: Vec<u16>,
    /// What the interpreter says the first time, and later.
    verdicts: [Vec<Verdict>; 2],
}

impl Workload {
    /// Makes it and lets the interpreter judge every packet.
    pub(crate) fn new(case: &Case, contents: &Contents) -> Result<Workload, String> {
        let mut program = match case.program {
            "search" => compile("search", include_str!("search.rav"), Decode::Lazy)?,
            name => compiled(name, Decode::Lazy)?,
        };
        contents.data.fill(&mut program, &contents.classifier)?;
        let count = match (case.large, contents.quick) {
            (false, false) => PACKETS,
            (false, true) => QUICK_PACKETS,
            (true, false) => LARGE_PACKETS,
            (true, true) => QUICK_LARGE_PACKETS,
        };
        let (size, filling) = if case.large { (512, Filling::Random) } else { (64, Filling::Padding) };
        let (frames, ports) = match case.program {
            "mac_switch" => {
                let hosts = HOSTS.min(count as u64 / 4);
                let frames = random_hosts(hosts, count as u64 - hosts);
                // A host is always behind the same port.
                let ports = frames.iter().map(|frame| 1 + u16::from(frame.bytes[11]) % PORTS).collect();
                (frames, ports)
            }
            _ => {
                let frames = routed(&contents.data, &contents.classifier, size, filling, count);
                let ports = vec![1; frames.len()];
                (frames, ports)
            }
        };
        let mut workload = Workload {
            name: case.name,
            pristine: changes_packets(&program).then(|| frames.memory().to_vec()),
            program,
            options: case.options,
            frames,
            ports,
            verdicts: [Vec::new(), Vec::new()],
        };
        workload.judge()?;
        Ok(workload)
    }

    fn judge(&mut self) -> Result<(), String> {
        let judge = exec::load(&self.program, BackendKind::Interpreter, PORTS, SEED);
        let mut judge = judge.map_err(|error| error.to_string())?;
        let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
        let mut number = 0;
        for pass in 0..2 {
            while self.verdicts[pass].len() < self.frames.len() {
                self.fill(&mut batch, number, BATCH);
                outputs.clear();
                judge.run(self.frames.memory_mut(), &mut batch, &mut outputs);
                self.verdicts[pass].extend_from_slice(batch.verdicts());
                number += batch.len as u64;
            }
        }
        Ok(())
    }

    /// How many different packets there are.
    pub(crate) fn packets(&self) -> usize {
        self.frames.len()
    }

    /// The memory that packets lie in.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        self.frames.memory_mut()
    }

    /// The same, to be read.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.frames.memory()
    }

    /// When packet `number` comes, by the time that it carries.
    pub(crate) fn time(number: u64) -> u64 {
        EPOCH + number * APART
    }

    /// Puts packets from `number` on into a batch, at most `most`, as they are received.
    #[inline]
    pub(crate) fn fill(&mut self, batch: &mut Batch, number: u64, most: usize) {
        let first = (number % self.frames.len() as u64) as usize;
        batch.clear();
        let count = self.frames.fill(batch, first..first.saturating_add(most));
        batch.port[..count].copy_from_slice(&self.ports[first..first + count]);
        for (time, number) in batch.time[..count].iter_mut().zip(number..) {
            *time = Workload::time(number);
        }
        if let Some(pristine) = &self.pristine {
            let last = count - 1;
            let bytes = batch.frame[0] as usize..batch.frame[last] as usize + batch.captured[last] as usize;
            self.frames.memory_mut()[bytes.clone()].copy_from_slice(&pristine[bytes]);
        }
    }

    /// Which packet of some from `number` on, as many as there are verdicts and not beyond the last different
    /// one, has another verdict than the interpreter's.
    pub(crate) fn wrong(&self, number: u64, verdicts: &[Verdict]) -> Option<String> {
        let packets = self.frames.len() as u64;
        let right = &self.verdicts[usize::from(number >= packets)];
        let right = &right[(number % packets) as usize..][..verdicts.len()];
        let place = verdicts.iter().zip(right).position(|(found, right)| found != right)?;
        let (found, right) = (verdicts[place], right[place]);
        Some(format!("the verdict on packet {} is {found:?} and not {right:?}", number + place as u64))
    }
}

/// Whether a program writes to packets, so that it has to get copies.
fn changes_packets(program: &Program) -> bool {
    let changes = exec::kernel::Kernel::new(program, PORTS, &KernelOptions::default());
    // Where there is no kernel, nothing is known.
    changes.map_or(true, |kernel| kernel.plan.writes)
}
