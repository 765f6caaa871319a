//! Where and how figures were measured: what goes with every experiment.

use serde::{Deserialize, Serialize};

/// The machine, the build and the manner of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model as the system names it.
    pub cpu: String,
    /// Its clock in MHz as the system gives it; under load it may be another.
    pub mhz: Option<f64>,
    /// Extensions of its instruction set that bear on packet processing.
    pub features: Vec<String>,
    /// Processors that this program may use.
    pub cores: usize,
    /// The processor that the measuring thread was held on, if it could be.
    pub pinned: Option<usize>,
    /// The system and its version.
    pub kernel: String,
    /// The compiler of this program.
    pub rust: String,
    /// How this program was built: `release` or `debug`.
    pub build: String,
    /// The commit that it was built from, with `, changed` behind it if files differed from it; none where
    /// that is not known, as in debug builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many threads ran or waited to run on the machine before the experiment, over a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// How packets were run.
    pub mode: String,
    /// How many runs each figure is the median of.
    pub runs: usize,
    /// How long a run took: seconds, or a number of repeats.
    pub length: String,
    /// When, in UTC.
    pub date: String,
    /// The command that made it.
    pub command: String,
}

/// Extensions worth naming.
const FEATURES: [&str; 14] = [
    "sse4_2",
    "popcnt",
    "bmi2",
    "avx",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "gfni",
    "vaes",
    "vpclmulqdq",
    "neon",
    "sve",
];

impl Machine {
    /// Describes the machine from what Linux says in `/proc/cpuinfo` and `/proc/sys/kernel/osrelease`; either
    /// may be empty.
    pub fn describe(cpuinfo: &str, osrelease: &str) -> Machine {
        let field = |name: &str| {
            cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)
        };
        let value = |name: &str| field(name).map(|(_, value)| value.trim().to_owned());
        let flags = value("flags").or_else(|| value("Features")).unwrap_or_default();
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let family = match (value("cpu family"), value("model")) {
            (Some(family), Some(model)) => format!(" (family {family}, model {model})"),
            _ => String::new(),
        };
        let name = value("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let release = osrelease.trim();
        Machine {
            cpu: format!("{name}{family}"),
            mhz: value("cpu MHz").and_then(|mhz| mhz.parse().ok()),
            features: FEATURES
                .iter()
                .filter(|feature| flags.contains(feature))
                .map(|feature| (*feature).to_owned())
                .collect(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!("{} {release}", std::env::consts::OS).trim().to_owned(),
            rust: env!("LAB_COMPILER").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            commit: option_env!("LAB_COMMIT").map(str::to_owned),
            ..Machine::default()
        }
    }

    /// The same with the load that the machine has now, as Linux says it in `/proc/loadavg`.
    #[must_use]
    pub fn with_load(self, loadavg: &str) -> Machine {
        let load = loadavg.split_whitespace().next().and_then(|load| load.parse().ok());
        Machine { load, ..self }
    }

    /// The build in words: its kind, compiler and commit.
    pub fn built(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
        format!("{} build, {}{commit}", self.build, self.rust)
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let mhz = self.mhz.map(|mhz| format!(" at {mhz:.0} MHz")).unwrap_or_default();
        let pinned = self.pinned.map(|core| format!(", thread held on processor {core}")).unwrap_or_default();
        let load = self.load.map(|load| format!(", load average {load:.1} before")).unwrap_or_default();
        format!("{}{mhz}, {} processors{pinned}, {}{load}", self.cpu, self.cores, self.kernel)
    }
}

/// Holds this thread on the last processor it may use, so that it does not wander while it measures; gives
/// its number.
pub fn pin() -> Option<usize> {
    let core = core_affinity::get_core_ids()?.pop()?;
    core_affinity::set_for_current(core).then_some(core.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.118\nflags\t\t: fpu avx2 avx512f foo\n\nprocessor\t: 1\n";
        let machine = Machine::describe(cpuinfo, "6.1.0\n");
        assert_eq!(machine.cpu, "AMD EPYC (family 26, model 2)");
        assert_eq!(machine.mhz, Some(2596.118));
        assert_eq!(machine.features, ["avx2", "avx512f"]);
        assert!(machine.kernel.ends_with("6.1.0"));
        assert!(machine.line().contains("AMD EPYC") && machine.line().contains("2596 MHz"));
        assert!(machine.rust.starts_with("rustc 1."), "{}", machine.rust);
        assert!(!machine.line().contains("load"));
        let loaded = machine.with_load("1.25 0.71 0.41 2/66 4653\n");
        assert_eq!(loaded.load, Some(1.25));
        assert!(loaded.line().ends_with(", load average 1.2 before"), "{}", loaded.line());
    }

    #[test]
    fn a_system_that_says_nothing_is_described_all_the_same() {
        let machine = Machine::describe("", "");
        assert!(!machine.cpu.is_empty() && machine.mhz.is_none() && machine.features.is_empty());
    }
}
