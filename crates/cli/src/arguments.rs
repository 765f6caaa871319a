//! The command line: commands, options, their help and examples.

pub(crate) mod bundle;
pub(crate) mod choices;
pub(crate) mod contain;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod front;
pub(crate) mod generate;
pub(crate) mod live;
pub(crate) mod names;
pub(crate) mod naming;
pub(crate) mod policy;
pub(crate) mod schedule;
pub(crate) mod seeing;
pub(crate) mod settings;
pub(crate) mod socket;
pub(crate) mod table;
pub(crate) mod table_live;

use self::choices::{BACK, DECODE, DEVICES, LINKS, ORDERS, OVER, PRESETS, TABLES, TEST_BACK_ENDS, one_of};
use self::schedule::ScheduleArguments;
use self::settings::SetArguments;
use captures::generate::Profile;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use exec::BackendKind;
use exec::kernel::{Back, CopiedPart};
use lab::{ComparedTable, DeviceChoice, ExperimentKind};
use lang::pipeline::Decode;
use ports::{CaptureLinks, Order};
use std::path::PathBuf;
use std::sync::LazyLock;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "ravelin",
    version,
    about = "A programmable software gateway: a program decides what happens to each packet",
    long_about = "A programmable software gateway.\n\nA packet comes in by a port, a program written in the Ravelin language decides what happens to it, and it \
leaves by a port. Start with `ravelin demo`; then look at programs/firewall.rav and change it.",
    after_help = "Exit codes: 0 all is well; 1 something was found (a fault in a program, a damaged capture, a failed test); 2 the command line is wrong.",
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct CommandLine {
    /// Print one JSON document on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether programs are right, and what is wrong with them
    Check(CheckArguments),
    /// Lay out programs in the one usual way
    Fmt(FmtArguments),
    /// Apply the edits that the compiler suggests
    Fix(FixArguments),
    /// Show what the compiler makes of a program, step by step
    Compile(CompileArguments),
    /// Run a program over a capture and report what happened to every packet
    Run(RunArguments),
    /// Run a program between network interfaces
    Serve(live::ServeArguments),
    /// Show what a running gateway does
    Show(live::ShowArguments),
    /// Watch a running gateway: rates, drops, tables, where time goes
    Top(seeing::TopArguments),
    /// Why a running gateway dropped its last packets, and where in the program
    Why(seeing::WhyArguments),
    /// Take packets out of a running gateway, with what became of them
    Capture(seeing::CaptureArguments),
    /// Let a running gateway read its program and tables again
    Reload(live::ReloadArguments),
    /// End a running gateway
    Stop(socket::Socket),
    /// Run the tests of programs, and packet tests in STF files
    Test(TestArguments),
    /// Follow packets through a program, step by step
    Trace(TraceArguments),
    /// Explain an error code
    Explain(ExplainArguments),
    /// Make a capture of invented traffic, or what tables are filled with
    Generate(GenerateArguments),
    /// Show and change tables of a running gateway, or look up in a table that is filled from a file
    #[command(subcommand)]
    Table(table::TableCommand),
    /// Show and change the names that a running process answers for, and where they lead
    #[command(subcommand)]
    Names(names::NamesCommand),
    /// Prepare what gateways need to reach each other by tunnels
    #[command(subcommand)]
    Naming(naming::NamingCommand),
    /// Ask about the rules of a firewall: what never decides, what changes, which line decides
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Sign policies for gateways, and judge what others signed
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Keys for asking a gateway over a network
    #[command(subcommand)]
    Front(front::FrontCommand),
    /// Write the rules of a program or of a file as nftables or NPF
    #[command(subcommand)]
    Export(export::ExportKind),
    /// Measure programs, decoding and single operations, and report it
    Lab(Box<LabArguments>),
    /// Say what of this machine a program can run on, and what is missing
    Doctor(doctor::DoctorArguments),
    /// Run the firewall over the capture that ships with Ravelin
    Demo,
    /// Run a command as root in the container of a gateway
    Contain(contain::ContainArguments),
    /// Become a command in a container; `ravelin contain` runs it
    #[command(hide = true)]
    EnterContainer(contain::EnterArguments),
    /// Give a confined core the program of a gateway's file; `ravelin-launch` runs it
    #[command(hide = true)]
    CompileForCore(CompileForCoreArguments),
    /// Answer at a control socket for a confined core; `ravelin-launch` runs it
    #[command(hide = true)]
    ControlForCore(ControlForCoreArguments),
}

/// `ravelin compile-for-core`
#[derive(Debug, Args)]
pub(crate) struct CompileForCoreArguments {
    /// The file that describes the gateway
    pub(crate) file: PathBuf,
    /// The layers of confinement to do without
    #[arg(long)]
    pub(crate) without: Vec<confinement::Layer>,
    /// Only find out whether there is a program, and give it to nobody
    #[arg(long)]
    pub(crate) trial: bool,
    /// What the gateway was started with: a file that says something else is refused
    #[arg(long)]
    pub(crate) as_started: Option<String>,
    /// Whether the tests beside the rules of policies are run
    #[arg(long)]
    pub(crate) tested: bool,
}

/// `ravelin control-for-core`
#[derive(Debug, Args)]
pub(crate) struct ControlForCoreArguments {
    /// The layers of confinement to do without
    #[arg(long)]
    pub(crate) without: Vec<confinement::Layer>,
    /// Whether fronts are handed over
    #[arg(long)]
    pub(crate) fronts: bool,
    /// Whether a socket for metrics is handed over
    #[arg(long)]
    pub(crate) metrics: bool,
    /// The gateway's addresses and routes
    #[arg(long)]
    pub(crate) routing: Option<String>,
    /// Whether a socket for the routes of a container is handed over
    #[arg(long)]
    pub(crate) routes: bool,
    /// Whether the gateway of this file is never one process
    #[arg(long)]
    pub(crate) never_one: bool,
}

/// `ravelin check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin check programs/firewall.rav
  ravelin check programs/*.rav --format short
  ravelin check gateway.toml
  ravelin check limits.rav --set LIMIT=500 --set IDLE=5min
  ravelin check new.rav --replaces running.rav --discard hosts")]
pub(crate) struct CheckArguments {
    /// Programs (.rav)
    #[arg(required = true, value_name = "PROGRAM")]
    pub(crate) programs: Vec<PathBuf>,
    /// How faults are shown
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DiagnosticFormat,
    /// Says what would go over from the tables and groups of this program, and refuses what does not fit
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) replaces: Option<PathBuf>,
    /// Gives up what this table or group of the old program held
    #[arg(long, value_name = "NAME", requires = "replaces")]
    pub(crate) discard: Vec<String>,
    #[command(flatten)]
    pub(crate) set: SetArguments,
}

/// How faults are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiagnosticFormat {
    /// With the source text and all places
    #[default]
    Human,
    /// One line each: file:line:column: code: headline
    Short,
}

/// `ravelin fmt`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin fmt programs/firewall.rav
  ravelin fmt --check programs/*.rav")]
pub(crate) struct FmtArguments {
    /// Programs (.rav); `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "PROGRAM")]
    pub(crate) programs: Vec<PathBuf>,
    /// Change nothing; exit with 1 if something would change
    #[arg(long)]
    pub(crate) check: bool,
}

/// `ravelin fix`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin fix programs/firewall.rav
  ravelin fix --dry-run programs/firewall.rav")]
pub(crate) struct FixArguments {
    /// The program (.rav)
    pub(crate) program: PathBuf,
    /// Show the edits and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `ravelin compile`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin compile programs/firewall.rav --show ir
  ravelin compile programs/firewall.rav --show graph | dot -Tsvg > firewall.svg
  ravelin compile programs/firewall.rav --show cost")]
pub(crate) struct CompileArguments {
    /// The program (.rav)
    pub(crate) program: PathBuf,
    /// Which form of the program
    #[arg(long, value_enum)]
    pub(crate) show: Show,
    /// How much of each header is decoded
    #[arg(long, value_parser = one_of(&DECODE), default_value = "lazy")]
    pub(crate) decode: Decode,
    /// How many ports the gateway has, for forms that depend on it: kernels and what they move
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: u16,
    /// What of a packet goes over to a device
    #[arg(long, value_parser = one_of(&OVER), default_value = "header")]
    pub(crate) over: CopiedPart,
    /// What of it comes back
    #[arg(long, value_parser = one_of(&BACK), default_value = "word")]
    pub(crate) back: Back,
    #[command(flatten)]
    pub(crate) set: SetArguments,
}

/// A form of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// The words of the text
    Tokens,
    /// The syntax tree
    Tree,
    /// The intermediate representation
    Ir,
    /// The machine code of this processor
    Native,
    /// The stages and how packets pass them, for Graphviz
    Graph,
    /// The most that one packet can cost
    Cost,
    /// The kernel for devices in OpenCL C, and what stays on the host
    Opencl,
    /// The kernel for devices in CUDA C++, and what stays on the host
    Cuda,
    /// What of a packet a device is sent and sends back
    HeaderBytes,
}

/// What executes a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackEndChoice {
    /// Step by step: slow and obviously right
    Interpreter,
    /// As bytecode, without machine code: what a confined core does
    Bytecode,
    /// As machine code
    #[default]
    Native,
    /// On an OpenCL device, the host doing what the device cannot
    Opencl,
    /// On an NVIDIA device by CUDA, the host doing what the device cannot
    Cuda,
    /// On threads that stand in for a device: for trying a program's kernel out, not for speed
    Host,
    /// On a device if there is a graphics card (by CUDA, else by OpenCL), else as machine code
    Auto,
}

/// `ravelin run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin run programs/firewall.rav --in traffic.pcapng
  ravelin run programs/mac_switch.rav --in traffic.pcap.zst --ports 8 --ingress hash --out sent/
  ravelin run programs/firewall.rav --in traffic.pcap --repeat 1000 --json
  ravelin run programs/firewall.rav --in traffic.pcap --filter 'host 10.0.0.1 and verdict == drop' --out sent/
  ravelin generate --preset sample1 | ravelin run programs/firewall.rav --in -
  ravelin run programs/router.rav --in captured.pcapng --ingress interface

Ctrl-C ends a run with the account of the packets that had run by then. Captures are pcap or pcapng, plain or compressed with gzip or zstd; `-` is standard input.")]
pub(crate) struct RunArguments {
    /// The program (.rav)
    pub(crate) program: PathBuf,
    /// The capture; `-` is standard input
    #[arg(long = "in", value_name = "CAPTURE")]
    pub(crate) input: String,
    /// How many ports the gateway has, numbered from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: u16,
    /// Which port each packet enters by: round-robin, hash, random:SEED, port:P, interface (that of the
    /// capture), or by its source: subnet:10.0.1.0/24=1,else=2 or mac:02:00:00:00:00:01=1,else=2
    #[arg(long, default_value = "round-robin", value_name = "WAY")]
    pub(crate) ingress: String,
    /// Which link types are let through
    #[arg(long, value_parser = one_of(&LINKS), default_value = "ethernet")]
    pub(crate) link: CaptureLinks,
    /// How often every packet is run
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "TIMES")]
    pub(crate) repeat: u64,
    /// The order of repeated packets
    #[arg(long, value_parser = one_of(&ORDERS), default_value = "replay")]
    pub(crate) order: Order,
    /// What executes the program
    #[arg(long, value_enum, default_value_t)]
    pub(crate) back_end: BackEndChoice,
    #[command(flatten)]
    pub(crate) schedule: ScheduleArguments,
    /// How much of each header is decoded; never changes what the program means
    #[arg(long, value_parser = one_of(&DECODE), default_value = "lazy")]
    pub(crate) decode: Decode,
    /// Write what leaves by each port, and what is dropped, into this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Report and write only packets that this holds for (docs/filters.md); all of them run
    #[arg(
        long,
        value_name = "FILTER",
        long_help = "Report and write only packets that this holds for (docs/filters.md). All packets of the capture run, so that tables hold what they would; \
tables, counters, events and speed in the report are those of all of them. What timers and event handlers make is left out."
    )]
    pub(crate) filter: Option<String>,
    /// Chooses the hash functions of tables; never changes what the program means
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) set: SetArguments,
}

/// `ravelin test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin test programs/
  ravelin test programs/firewall.rav --filter ssh
  ravelin test cases/switch.stf --program programs/mac_switch.rav

An STF file `x.stf` tests the program `x.rav` beside it, unless --program names another. Its lines:
  packet PORT HEX     a packet enters        expect PORT HEX     a packet leaves; * fits any half byte, $ ends it exactly
  ports N             number of ports        expect PORT         any packet leaves")]
pub(crate) struct TestArguments {
    /// Programs (.rav), STF files (.stf), or directories of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What executes the program
    #[arg(long, value_parser = one_of(&TEST_BACK_ENDS), default_value = "all")]
    pub(crate) back_end: &'static [BackendKind],
    /// The program that STF files test
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    /// Only tests whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) set: SetArguments,
}

/// `ravelin trace`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin trace programs/firewall.rav --in traffic.pcap --number 17
  ravelin trace programs/firewall.rav --in traffic.pcap --filter 'tcp port 80 and verdict == drop' --count 3
  ravelin trace programs/wire.rav --packet 'ffffffffffff 020000000001 0800 …' --port 2
  ravelin trace --live 'icmp and host 10.0.0.1' --count 3")]
pub(crate) struct TraceArguments {
    /// The program (.rav); none with --live, where it is the one that runs
    #[arg(required_unless_present = "live", conflicts_with = "live")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: seeing::LiveTraceArguments,
    /// The packet in hexadecimal; blanks and colons are skipped
    #[arg(long, value_name = "HEX", conflicts_with = "input")]
    pub(crate) packet: Option<String>,
    /// A capture that holds the packet; `-` is standard input
    #[arg(long = "in", value_name = "CAPTURE")]
    pub(crate) input: Option<String>,
    /// Which packet of the capture, counted from 1; those before it are run first, so that tables hold what
    /// they would
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), requires = "input")]
    pub(crate) number: Option<u64>,
    /// The first packets of the capture that this holds for, as many as --count says (docs/filters.md); all
    /// those between run, too
    #[arg(long, value_name = "FILTER", requires = "input", conflicts_with = "number", group = "which")]
    pub(crate) filter: Option<String>,
    /// The port it enters by; in a capture the packets take turns unless this is given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// How many ports the gateway has
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: u16,
    /// Which link types are let through
    #[arg(long, value_parser = one_of(&LINKS), default_value = "ethernet")]
    pub(crate) link: CaptureLinks,
    #[command(flatten)]
    pub(crate) set: SetArguments,
}

/// `ravelin explain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin explain E0412")]
pub(crate) struct ExplainArguments {
    /// An error code such as E0412
    pub(crate) code: String,
}

/// `ravelin generate`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  ravelin generate --preset demo -o demo.pcapng
  ravelin generate --packets 1000000 --flows 5000 --mean-bytes 300 --zipf 1.1 --seed 7 -o big.pcapng
  ravelin generate --preset sample1 | ravelin run programs/firewall.rav --in -
  ravelin generate routes --count 900000 -o rib.txt

The same options always make the same capture, byte for byte."
)]
pub(crate) struct GenerateArguments {
    /// What else to make than a capture
    #[command(subcommand)]
    pub(crate) kind: Option<generate::GenerateKind>,
    /// Start from this shape of traffic; the other options change it
    #[arg(long, value_parser = one_of(&PRESETS), default_value = "demo")]
    pub(crate) preset: fn() -> Profile,
    /// How many packets
    #[arg(long)]
    pub(crate) packets: Option<u64>,
    /// How many flows; each kind of traffic has at least one
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flows: Option<u64>,
    /// Mean length of a packet on the wire, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) mean_bytes: Option<f64>,
    /// Shares of all packets: tcp, udp, icmp, arp and other add up to 1; web is a part of tcp, fragments of
    /// udp; vlan and ipv6 are any part
    #[arg(
        long,
        value_name = "SHARES",
        long_help = "Shares of all packets, as in tcp=0.6,udp=0.3,icmp=0.1,arp=0,other=0,web=0.5: tcp, udp, icmp, arp and \
other add up to 1; web is a part of tcp, fragments of udp; vlan and ipv6 are parts of all. What is not named stays as in the preset."
    )]
    pub(crate) protocols: Option<String>,
    /// How unevenly packets fall on flows: the exponent of Zipf's law; 0 is evenly
    #[arg(long, value_name = "EXPONENT")]
    pub(crate) zipf: Option<f64>,
    /// What every random choice is made from
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The file to write; `-` is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) output: String,
}

/// `ravelin lab`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin lab switch-apps
  ravelin lab switch-apps decode operations --html report.html
  ravelin lab all --quick
  ravelin lab tables --peers --html tables.html
  ravelin lab tables --table lpm --routes rib4.txt.gz --peers
  ravelin lab router --routes rib4.txt.gz --rules acl1_1k.rules --html router.html
  ravelin lab switch-apps --capture sample1=smallFlows.pcap --capture other.pcapng --json
  ravelin lab gpu --out results --device cuda
  ravelin lab --draw report.json --html report.html
  ravelin lab --studies docs/results --out docs/studies

Without --capture, captures are made to the published shape of the thesis' samples and labelled as generated. `sample1=FILE` (or 2, 3) says that
the file is that sample, so that the thesis' figures stand beside it. A program whose counts differ from the interpreter's gets no figure.")]
pub(crate) struct LabArguments {
    /// What to measure
    #[arg(required_unless_present_any = ["draw", "studies"], value_enum, value_name = "EXPERIMENT")]
    pub(crate) experiments: Vec<ExperimentChoice>,
    /// A capture to run instead of the generated ones; may be given several times
    #[arg(long, value_name = "[SAMPLE=]FILE")]
    pub(crate) capture: Vec<String>,
    /// How many runs each figure is the median of; 5 unless --quick
    #[arg(long, visible_alias = "rounds", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: Option<u64>,
    /// How long one run takes, in seconds; about 0.3 unless --quick, and 600 for soak
    #[arg(long, value_parser = seconds, conflicts_with = "repeat")]
    pub(crate) seconds: Option<f64>,
    /// How often every packet is run in one run, instead of a time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "TIMES")]
    pub(crate) repeat: Option<u64>,
    /// Write a page with plots and all numbers
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Measure nothing, and write the page of a report that --json has written before; may be given several
    /// times
    #[arg(long, value_name = "REPORT", requires = "html", conflicts_with = "experiments")]
    pub(crate) draw: Vec<PathBuf>,
    /// Measure nothing, and write the pages of studies, claim by claim, from the reports in a folder into
    /// that of --out
    #[arg(long, value_name = "DIR", requires = "out", conflicts_with_all = ["experiments", "draw"])]
    pub(crate) studies: Option<PathBuf>,
    /// Fewer and shorter runs over shortened captures: to see that it works, not to quote
    #[arg(long)]
    pub(crate) quick: bool,
    /// Hold tables against the libraries that are installed here: DPDK, Hyperscan, aho-corasick, daachorse
    #[arg(long)]
    pub(crate) peers: bool,
    /// Only gateways whose names hold this take part in `forwarding`, `trusted` and `availability`; may be
    /// given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway: Vec<String>,
    /// How many prefixes `routes` announces; 10,000, 100,000 and 900,000 unless named; may be given several
    /// times
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1_000_000), value_name = "COUNT")]
    pub(crate) prefixes: Vec<u32>,
    /// The folder with the unpacked files of Debian's package linux-image-cloud-amd64, from which `trusted`
    /// starts its virtual machines, with QEMU and busybox-static; without it T2 has no figures
    #[arg(long, value_name = "DIR")]
    pub(crate) guest: Option<PathBuf>,
    /// Which tables the experiment `tables` measures; all unless named; may be given several times
    #[arg(long, value_parser = one_of(&TABLES), value_name = "KIND")]
    pub(crate) table: Vec<ComparedTable>,
    /// Routes for `tables` and `router` instead of made ones, `prefix next-hop` a line; may be given several
    /// times, of which `router` takes the first
    #[arg(long, value_name = "FILE")]
    pub(crate) routes: Vec<PathBuf>,
    /// ClassBench sets for `tables` and `router` instead of made ones: NAME.rules beside its NAME.trace, or a
    /// directory of them; may be given several times
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) rules: Vec<PathBuf>,
    /// Patterns for `tables` instead of made ones: number, nocase, length and bytes in hexadecimal a line
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// A capture whose TCP and UDP payload `tables` searches instead of made payload
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) payload: Option<PathBuf>,
    /// The device of `transfer`, `crossover`, `schedule` (all that there are, without it) and `gpu`; without
    /// it an NVIDIA device by CUDA, else the best one by OpenCL, else threads of this machine
    #[arg(long, value_parser = one_of(&DEVICES), value_name = "KIND")]
    pub(crate) device: Option<DeviceChoice>,
    /// The folder that `gpu` and --studies write their files to
    #[arg(long, value_name = "DIR", required_if_eq("experiments", "gpu"))]
    pub(crate) out: Option<PathBuf>,
    /// Programs whose answers `gpu` compares instead of those that ship: the .rav files of a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// How long `gpu` may take, in seconds
    #[arg(long, value_parser = seconds, default_value = "450")]
    pub(crate) budget: f64,
    /// Something of the device that `hermes` simulates, such as cores=17; may be given several times, and a
    /// wrong name lists all
    #[arg(long = "set", value_parser = setting, value_name = "NAME=NUMBER")]
    pub(crate) simulated: Vec<(String, u32)>,
}

/// A name and a number.
fn setting(text: &str) -> Result<(String, u32), String> {
    let (name, number) = text.split_once('=').ok_or("write a name, `=` and a number, such as cores=17")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a number from 0 to {}", u32::MAX))?;
    Ok((name.to_owned(), number))
}

/// What `ravelin lab` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExperimentChoice {
    /// One experiment
    One(ExperimentKind),
    /// All about one device
    Gpu,
    /// Everything that runs in memory
    All,
}

impl ValueEnum for ExperimentChoice {
    fn value_variants<'a>() -> &'a [ExperimentChoice] {
        static CHOICES: LazyLock<Vec<ExperimentChoice>> = LazyLock::new(|| {
            let kinds = ExperimentKind::every().map(ExperimentChoice::One);
            kinds.chain([ExperimentChoice::Gpu, ExperimentChoice::All]).collect()
        });
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            ExperimentChoice::One(kind) => PossibleValue::new(kind.name()).help(kind.help()),
            ExperimentChoice::Gpu => PossibleValue::new("gpu").help(
                "All about one device in eight minutes (--budget): programs beside the interpreter, the transfer ladder, the crossover; writes files into --out",
            ),
            ExperimentChoice::All => PossibleValue::new("all").help("Everything that runs in memory"),
        })
    }
}

/// A time in seconds that a run can take.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.001 to 3600".to_owned()),
    }
}
