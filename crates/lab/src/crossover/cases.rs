//! The programs that are measured on devices, with the contents of their tables and their packets.

use crate::device_workload::{DeviceWorkload, Packets};
use crate::plan::LabPlan;
use crate::programs::{compile, compiled};
use crate::router::data::{Classifier, Data};
use crate::router::packets::{Filling, routed};
use crate::traffic::{LabError, random_hosts};
use exec::kernel::{Back, CopiedPart, KernelOptions};
use lang::pipeline::Decode;

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

/// Tables' contents, made once for all programs.
pub(crate) struct Contents {
    data: Data,
    classifier: Classifier,
    quick: bool,
}

/// A program over its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// The name in reports.
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

impl Case {
    /// The program with its tables full, its packets and the interpreter's verdicts.
    ///
    /// # Errors
    /// The program cannot be compiled, or its tables do not take the contents.
    pub(crate) fn workload(&self, contents: &Contents) -> Result<DeviceWorkload, String> {
        let mut program = match self.program {
            "search" => compile("search", include_str!("search.rav"), Decode::Lazy)?,
            name => compiled(name, Decode::Lazy)?,
        };
        contents.data.fill(&mut program, &contents.classifier)?;
        let count = match (self.large, contents.quick) {
            (false, false) => PACKETS,
            (false, true) => QUICK_PACKETS,
            (true, false) => LARGE_PACKETS,
            (true, true) => QUICK_LARGE_PACKETS,
        };
        let (size, filling) = if self.large { (512, Filling::Random) } else { (64, Filling::Padding) };
        let packets = match self.program {
            "mac_switch" => {
                let hosts = HOSTS.min(count as u64 / 4);
                Packets::by_sender(random_hosts(hosts, count as u64 - hosts))
            }
            _ => Packets::by_port_1(routed(&contents.data, &contents.classifier, size, filling, count)),
        };
        DeviceWorkload::new(self.name, program, self.options, packets)
    }
}
