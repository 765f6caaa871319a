//! Whether a gateway runs as one process or as several confined ones: as it was said on the command line, or
//! else as the file and the machine allow.

use crate::arguments::live::ServeArguments;
use crate::commands::{doctor_trust, trusted};
use confinement::{ProcessEnd, Role, SeparateError, SeparateStart, separate};
use gateway::Config;
use messages::limits::LONGEST_TEXT;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// How much of what a trial tells is read, in bytes.
const LONGEST_TOLD: u64 = 1 << 16;
/// The rights of root that `ravelin-launch` needs, with their numbers (capabilities(7)): it ends processes of
/// another user, and says who users of new namespaces are outside.
const RIGHTS: [(u32, &str); 3] = [(5, "CAP_KILL"), (6, "CAP_SETGID"), (7, "CAP_SETUID")];

/// What was said on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SaidOfProcesses {
    /// `--trusted`.
    pub(super) trusted: bool,
    /// `--one-process`.
    pub(super) one: bool,
    /// An option that only one process has.
    pub(super) of_one: Option<&'static str>,
}

impl SaidOfProcesses {
    /// By these arguments of `ravelin serve`, and whether `json` is wanted.
    pub(super) fn of(arguments: &ServeArguments, json: bool) -> SaidOfProcesses {
        let options = [
            (arguments.back_end.is_some(), "--back-end"),
            (arguments.schedule.is_said(), "--schedule"),
            // The account at the end.
            (json, "--json"),
        ];
        SaidOfProcesses {
            trusted: arguments.trusted,
            one: arguments.one_process,
            of_one: options.into_iter().find_map(|(is_said, option)| is_said.then_some(option)),
        }
    }
}

/// How a gateway runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Processes {
    /// As several confined ones.
    Several,
    /// As one, for this reason.
    One(String),
    /// Not at all, for this reason.
    Refused(String),
    /// Not at all, for this error of its program.
    WrongProgram(String),
}

/// What keeps a gateway from being several processes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Against {
    /// This is missing, or was said.
    Several(String),
    /// Its program is wrong, as it would be in one process.
    Program(String),
}

/// Why a gateway of this file is never one process, if that holds.
pub(super) fn never_one(config: &Config) -> Option<&'static str> {
    if config.trust.is_some() {
        return Some(
            "with `[trust]` a gateway is never one process, in which programs would run that nobody signed",
        );
    }
    let has_container = config.ports.iter().any(|port| port.vnic.is_some());
    has_container.then_some("with a VNIC a gateway is never one process, which makes no containers")
}

/// How a gateway runs by what was said. Why it is `never_one` process, if that holds, and whether its file
/// `suits` several is known; whether the `machine` has what they need is looked for where it matters.
fn choose(
    said: SaidOfProcesses,
    never_one: Option<&str>,
    suits: Result<(), String>,
    machine: impl FnOnce() -> Result<(), Against>,
) -> Processes {
    if said.trusted {
        return Processes::Several;
    }
    let of_one = match said {
        SaidOfProcesses { one: true, .. } => Err("`--one-process` was said".to_owned()),
        SaidOfProcesses { of_one: Some(option), .. } => Err(format!(
            "`{option}` is for one process alone: without it, there are several where that can be"
        )),
        _ => Ok(()),
    };
    match (of_one.and(suits).map_err(Against::Several).and_then(|()| machine()), never_one) {
        (Ok(()), _) => Processes::Several,
        (Err(Against::Program(error)), _) => Processes::WrongProgram(error),
        (Err(Against::Several(why)), Some(never)) => Processes::Refused(format!("{why}; {never}")),
        (Err(Against::Several(why)), None) => Processes::One(why),
    }
}

/// How a gateway of this file runs.
pub(super) fn of(said: SaidOfProcesses, file: &Path, config: &Config) -> Processes {
    choose(said, never_one(config), trusted::suits(file, config), || offers(file, config))
}

/// What a gateway of one process says of that.
pub(super) fn told_of_one(why: &str) -> String {
    format!("one process: whoever takes over any part of it has the packets and the filter; {why}")
}

/// Whether this machine and this process have what several processes need.
fn offers(file: &Path, config: &Config) -> Result<(), Against> {
    machine_offers(config).map_err(Against::Several)?;
    match config.trust {
        // The file names a bundle, which need not be there.
        Some(_) => Ok(()),
        None => compiles(file, config),
    }
}

/// The same without the gateway's program.
fn machine_offers(config: &Config) -> Result<(), String> {
    let status =
        fs::read_to_string("/proc/self/status").map_err(|error| format!("/proc/self/status: {error}"))?;
    has_rights(&status)?;
    let ravelin = env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
    trusted::programs(&ravelin, config)?;
    match doctor_trust::lacks_for_t0() {
        Some(lack) => Err(format!("{lack}: `ravelin doctor trust` says what this machine lacks")),
        None => Ok(()),
    }
}

/// Whether a process has the rights of `ravelin-launch`, by its `/proc/PID/status`.
fn has_rights(status: &str) -> Result<(), String> {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    // Of the numbers of the user the second one counts (proc_pid_status(5)).
    let is_root = line("Uid").and_then(|numbers| numbers.split_whitespace().nth(1)) == Some("0");
    let rights = line("CapEff").and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    match RIGHTS.into_iter().find(|(number, _)| rights & 1 << number == 0) {
        _ if !is_root => Err("several need root to start them".to_owned()),
        Some((_, name)) => Err(format!("several need {name}, which root lacks here")),
        None => Ok(()),
    }
}

/// Whether the confined process that compiles makes a program of the file: it may read less than this one.
fn compiles(file: &Path, config: &Config) -> Result<(), Against> {
    let trial = tried(file);
    let (well, told) =
        trial.map_err(|error| Against::Several(format!("the program cannot be compiled apart: {error}")))?;
    if well {
        return Ok(());
    }
    // What is wrong whoever compiles is no reason for one process.
    trusted::program_of(file, config).map_err(Against::Program)?;
    // A confined process may have been told by a hostile file what to say.
    let first = told.lines().next().unwrap_or("it ended");
    let first: String = first.chars().filter(|letter| !letter.is_control()).take(LONGEST_TEXT).collect();
    Err(Against::Several(format!(
        "the process that compiles is `nobody` (65534), and can read only the folder of the file and below: {first}"
    )))
}

/// Has a confined process try, and returns whether it went well and what was told.
fn tried(file: &Path) -> Result<(bool, String), SeparateError> {
    let failed = |what| move |error| SeparateError::Failed { what, error };
    let real = fs::canonicalize(file).map_err(failed("the file"))?;
    let ravelin = File::open("/proc/self/exe").map_err(failed("/proc/self/exe"))?;
    let (told, errors) = io::pipe().map_err(failed("pipe"))?;
    let arguments =
        [Role::Compile.name().into(), "compile-for-core".into(), "--trial".into(), OsString::from(real)];
    let start = SeparateStart {
        program: ravelin.as_fd(),
        arguments: &arguments,
        error_output: errors.as_fd(),
        descriptors: &[],
    };
    let mut child = separate(&start, Role::Compile, &[])?;
    drop(errors);
    let mut bytes = Vec::new();
    told.take(LONGEST_TOLD).read_to_end(&mut bytes).map_err(failed("what it tells"))?;
    let end = child.wait().map_err(failed("its end"))?;
    Ok((end == ProcessEnd::Exited(0), String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_run_where_nothing_speaks_against_it_and_else_one_with_the_reason() {
        let no = |why: &str| Err::<(), _>(why.to_owned());
        let said = SaidOfProcesses::default();
        let trusted = SaidOfProcesses { trusted: true, ..said };
        let one = SaidOfProcesses { one: true, ..said };
        let option = SaidOfProcesses { of_one: Some("--back-end"), ..said };
        // What was said, whether the file suits, whether the machine does; what is told, if it is one.
        let cases = [
            (said, Ok(()), Ok(()), None),
            (said, no("the file"), Ok(()), Some("the file")),
            (said, Ok(()), no("the machine"), Some("the machine")),
            (said, no("the file"), no("the machine"), Some("the file")),
            (option, Ok(()), Ok(()), Some("`--back-end` is for one process alone")),
            (option, no("the file"), no("the machine"), Some("`--back-end` is for one process alone")),
            (one, Ok(()), Ok(()), Some("`--one-process` was said")),
            (one, no("the file"), no("the machine"), Some("`--one-process` was said")),
            // Whoever asks for it is refused later, by whoever cannot do it.
            (trusted, Ok(()), Ok(()), None),
            (trusted, no("the file"), no("the machine"), None),
        ];
        for (said, suits, machine, told) in cases {
            for never in [None, Some("never one process")] {
                let machine = || machine.clone().map_err(Against::Several);
                match (told, choose(said, never, suits.clone(), machine), never) {
                    (None, Processes::Several, _) => {}
                    (Some(told), Processes::One(why), None) => assert!(why.starts_with(told), "{why}"),
                    (Some(told), Processes::Refused(why), Some(never)) => {
                        assert!(why.starts_with(told) && why.ends_with(never), "{why}");
                    }
                    (_, choice, _) => panic!("{said:?}, {never:?}: {choice:?}"),
                }
            }
        }
    }

    #[test]
    fn a_wrong_program_is_no_reason_for_one_process() {
        let wrong = || Err(Against::Program("p.rav: 1:1".to_owned()));
        for never in [None, Some("never one process")] {
            let choice = choose(SaidOfProcesses::default(), never, Ok(()), wrong);
            assert_eq!(choice, Processes::WrongProgram("p.rav: 1:1".to_owned()));
        }
    }

    #[test]
    fn signed_policies_and_containers_are_never_in_one_process() {
        let never = |text: &str| {
            let text = format!("program = \"p\"\n[[port]]\n{text}");
            never_one(&Config::read(&text, Path::new("")).expect("a file"))
        };
        assert_eq!(never("interface = \"a\"\n"), None);
        let vnic = never(
            "interface = \"a\"\nkind = \"vnic\"\nvnic = { ethernet = \"02:00:00:00:01:01\", addresses = [\"192.0.2.1/24\"] }\n",
        );
        assert!(vnic.is_some_and(|why| why.contains("VNIC")));
        let key = "11".repeat(32);
        let trust = never(&format!(
            "interface = \"a\"\n[trust]\ngateway = \"g\"\nthreshold = 1\n[trust.keys]\na = \"{key}\"\n"
        ));
        assert!(trust.is_some_and(|why| why.contains("`[trust]`")));
    }

    #[test]
    fn the_machine_is_asked_only_where_it_matters() {
        let asked = || panic!("nobody has to ask");
        let said = SaidOfProcesses::default();
        let trusted = choose(SaidOfProcesses { trusted: true, ..said }, None, Ok(()), asked);
        assert_eq!(trusted, Processes::Several);
        choose(SaidOfProcesses { one: true, ..said }, None, Ok(()), asked);
        choose(said, Some("never"), Err("the file".to_owned()), asked);
    }

    #[test]
    fn rights_are_those_of_root_as_a_whole() {
        let status = |user: u32, rights: &str| {
            has_rights(&format!("Name:\tx\nUid:\t1000\t{user}\t0\t0\nCapPrm:\t0\nCapEff:\t{rights}\n"))
        };
        assert_eq!(status(0, "000001ffffffffff"), Ok(()));
        assert_eq!(status(0, "00000000000000e0"), Ok(()));
        assert!(status(1000, "000001ffffffffff").is_err_and(|why| why.contains("need root")));
        for (rights, lacks) in
            [("c0", "CAP_KILL"), ("a0", "CAP_SETGID"), ("60", "CAP_SETUID"), ("none", "CAP_KILL")]
        {
            assert!(status(0, rights).is_err_and(|why| why.contains(lacks)), "{rights}");
        }
        assert!(has_rights("").is_err());
    }
}
