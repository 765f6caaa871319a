//! `ravelin serve`: a program between network interfaces, until it is told to stop.

use crate::allowance::Allowance;
use crate::arguments::DiagnosticFormat;
use crate::arguments::live::ServeArguments;
use crate::commands::policy::review::{review, tested};
use crate::commands::processes::{self, Processes, SaidOfProcesses};
use crate::commands::{bundle, reload, trusted};
use crate::executing::Executing;
use crate::failure::Failure;
use crate::imported::Imported;
use crate::memory_limit::{self, Room};
use crate::program;
use crate::remembered::Remembered;
use crate::render;
use crate::render::quantity::{bytes, of};
use engine::live::{self, Loaded, Remote};
use exec::BackendKind;
use gateway::config::{AloneConfig, NamesConfig, ProcessConfig};
use gateway::names::{self, alone::Stopper};
use gateway::{Config, ConfigError, ConfigReader, Policies, PortView, ServeError, Telling};
use ir::Program;
use ir::limits::LARGEST_MEMORY;
use ir::source::Sources;
use ir::steering::declare_worker_busy;
use lang::cost::cost;
use lang::diagnostic::Diagnostic;
use lang::pipeline::CompileOptions;
use lang::settings::Settable;
use packet::PortNumber;
use ports::live::PortKind;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, OnceLock};
use std::thread;

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments, json: bool) -> Result<(), Failure> {
    let file = &arguments.file;
    let executing = Executing::new(arguments.back_end.unwrap_or_default(), &arguments.schedule);
    if arguments.check {
        return check(file, executing, json);
    }
    if arguments.trusted && json {
        let why = "`--json` gives the account of a gateway of one process: `--trusted` has none";
        return Err(Failure::Usage(why.to_owned()));
    }
    let said = SaidOfProcesses::of(arguments, json);
    let config = match read_any(file)? {
        ProcessConfig::Gateway(config) => config,
        ProcessConfig::Names(_) if said.trusted => {
            let why = "without ports there is no core to be confined: leave `--trusted` out";
            return Err(Failure::Finding(format!("{}: {why}", file.display())));
        }
        ProcessConfig::Names(config) => return serve_names(file, &config),
    };
    match processes::of(said, file, &config) {
        Processes::Several => return trusted::serve(file, arguments.native, &arguments.without),
        Processes::Refused(why) => return Err(Failure::Finding(format!("{}: {why}", file.display()))),
        Processes::WrongProgram(error) => return Err(Failure::Finding(error)),
        Processes::One(why) => remark(&processes::told_of_one(&why)),
    }
    let remote = Arc::new(OnceLock::new());
    let (named, names, running) = (file.clone(), file.clone(), remote.clone());
    let reader = ConfigReader {
        config: Arc::new(move || {
            let config = read(&named).map_err(|error| error.to_string())?;
            refuse_untrusted(&named, &config).map_err(|error| error.to_string())?;
            Ok(config)
        }),
        load: Arc::new(move |config| loaded(&names, config, executing, running.get().map(Running::of))),
        review: Arc::new(review),
        provides: memory_limit::to_provide,
    };
    let running = remote.clone();
    heed_signals(config.control.clone(), move || running.get().map(Remote::stop).is_some())?;
    let started = |ports: &[PortView], running: Remote| {
        tell(ports, &config);
        // Nobody else sets it.
        let _ = remote.set(running);
    };
    let served = gateway::serve::serve(&config, reader, started, Telling { back: tell_again, remark });
    let served = served.map_err(|error| match error {
        ServeError::Program(text) => Failure::Finding(text),
        error => Failure::Finding(format!("{}: {error}", file.display())),
    })?;
    if json {
        return Ok(render::json(&served.report)?);
    }
    let text = render::report::live(&served.report, served.programs, &served.program, &served.sources);
    Ok(render::text(&text)?)
}

/// Refuses a file that has come to ask for signed policies: a gateway that is one process does not look for
/// signatures.
fn refuse_untrusted(file: &Path, config: &Config) -> Result<(), Failure> {
    match config.trust {
        Some(_) => Err(Failure::Finding(format!(
            "{}: with `[trust]` a gateway is never one process, as this one is: stop it and start it again",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// Answers for names, without ports.
fn serve_names(file: &Path, config: &AloneConfig) -> Result<(), Failure> {
    remark(
        "one process: whoever takes it over answers for its names; without ports there is no core to be confined",
    );
    let stopper = Arc::new(OnceLock::<Stopper>::new());
    let running = stopper.clone();
    heed_signals(config.control.clone(), move || running.get().map(Stopper::stop).is_some())?;
    let started = |own: Stopper| {
        tell_names(&config.names);
        let _ =
            writeln!(anstream::stderr(), "it can be asked at {}; Ctrl-C ends it", config.control.display());
        // Nobody else sets it.
        let _ = stopper.set(own);
    };
    let served = gateway::names::alone::serve(config, started);
    served.map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))
}

/// Says where names are answered.
fn tell_names(names: &NamesConfig) {
    let _ = writeln!(anstream::stderr(), "{}", names_answered(names));
}

fn names_answered(names: &NamesConfig) -> String {
    if names.listen.is_empty() {
        let servers = names.elsewhere.name_servers.join("`, `");
        return format!("addresses for names of {} are asked for by `{servers}`", names.zone.zone);
    }
    let addresses: Vec<String> = names.listen.iter().map(ToString::to_string).collect();
    format!("names of {} are answered at {}", names.zone.zone, addresses.join(", "))
}

/// Ends the process in order at the first signal for it, a gateway between two batches. While it starts, and
/// at the second signal, it ends at once: who asks twice does not want to wait, and the kernel detaches the
/// ports. That holds to the very end, as where nobody reads the account. `stop` says whether there was
/// something to end. SIGHUP has the file read again, as it does beside a confined core.
fn heed_signals(control: PathBuf, stop: impl Fn() -> bool + Send + 'static) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::Finding(format!("signals: {error}")))?;
    thread::spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            if signal == SIGHUP {
                let control = control.clone();
                // A signal to end is heeded meanwhile.
                thread::spawn(move || reload::at_signal(&control, remark));
                continue;
            }
            if asked || !stop() {
                process::exit(128 + signal);
            }
            asked = true;
        }
    });
    Ok(())
}

/// Whether a gateway's file, its program and the files that both name are right.
pub(super) fn check(file: &Path, executing: Executing, json: bool) -> Result<(), Failure> {
    let config = match read_any(file)? {
        ProcessConfig::Gateway(config) => config,
        ProcessConfig::Names(config) => return check_names(file, &config, json),
    };
    if let Some(trust) = &config.trust {
        return bundle::check(trust, &config.program, json);
    }
    let (loaded, policies, filled, settables) =
        loaded_filled(file, &config, executing, None, &mut Allowance::to_check())
            .map_err(Failure::Finding)?;
    let suits = config.workers.suit(&loaded.program).and_then(|()| config.routes_by(&loaded.program));
    let suits = suits.and_then(|()| config.check_keys());
    let suits = suits.and_then(|()| names::carried(&config, &loaded.program).map(drop));
    suits.map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
    policies.iter().try_for_each(tested).map_err(Failure::Finding)?;
    let count = config.ports.iter().filter(|port| port.kind != PortKind::Empty).count();
    let ports = of(count as u64, "port");
    let workers = config.workers.count;
    let memory = Remembered::of(&loaded.program, workers).map_err(Failure::Finding)?;
    let notes: &[&str] = if config.routing.kernel.are_any() {
        &[
            "of a kernel's route with several next hops the first whose link is up is used, not all of them side by side",
            "a kernel's route that says what the gateway cannot do (encap, throw, an interface that is no port) leads nowhere; `show routes` tells which",
            "metrics of a kernel's route, such as its own MTU, are not followed: the port's MTU holds",
        ]
    } else {
        &[]
    };
    let warnings = shared(&config);
    let mut sources = Sources::clone(&loaded.sources);
    let found: Vec<Diagnostic> =
        filled.iter().flat_map(|filled| filled.never_found(&loaded.program, &mut sources)).collect();
    if json {
        let told = serde_json::json!({ "gateway": file.display().to_string(), "ports": count, "notes": notes,
                "workers": workers, "memory_bytes": memory.most, "memory": memory.document(),
                "filled": filled.iter().map(|filled| filled.document(&loaded.program)).collect::<Vec<_>>(),
                "settable": render::settable::document(&sources, &settables),
                "warnings": warnings,
                "diagnostics": render::diagnostic::as_json(&sources, &found) });
        return Ok(render::json(&told)?);
    }
    render::diagnostic::to_stderr(&sources, &found, DiagnosticFormat::Human);
    let notes = notes.iter().map(|note| format!("note: {note}\n"));
    let warnings = warnings.iter().map(|warning| format!("warning: {warning}\n"));
    let told = filled.iter().map(|filled| filled.told(&loaded.program)).chain(notes).chain(warnings);
    let settable = render::settable::told(&sources, &settables);
    let told = [memory.told(), settable].into_iter().chain(told);
    Ok(render::text(&format!("{} is right: {ports}\n{}", file.display(), told.collect::<String>()))?)
}

/// Says that the file of a process without ports is right: it was when it was read.
fn check_names(file: &Path, config: &AloneConfig, json: bool) -> Result<(), Failure> {
    if json {
        let told = serde_json::json!({ "names": file.display().to_string(),
                "zone": config.names.zone.zone, "listen": config.names.listen });
        return Ok(render::json(&told)?);
    }
    Ok(render::text(&format!("{} is right: {}\n", file.display(), names_answered(&config.names)))?)
}

/// Addresses that the kernel has, too. What it does not tell of here cannot be warned of: the file may be for
/// another machine.
fn shared(config: &Config) -> Vec<String> {
    gateway::routing::shared(&config.routing, &config.ports).unwrap_or_default()
}

/// The file of a gateway that runs: it has ports.
pub(super) fn read(file: &Path) -> Result<Config, Failure> {
    match read_any(file)? {
        ProcessConfig::Gateway(config) => Ok(*config),
        ProcessConfig::Names(_) => Err(Failure::Finding(format!(
            "{}: it has no ports any more: stop the gateway and start it again",
            file.display()
        ))),
    }
}

fn read_any(file: &Path) -> Result<ProcessConfig, Failure> {
    let text = program::read(file)?;
    let mut config = ProcessConfig::read(&text, file.parent().unwrap_or(Path::new("")))
        .map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
    if let ProcessConfig::Gateway(config) = &mut config {
        config.settings.name = file.display().to_string();
    }
    Ok(config)
}

/// What chooses the tables' hash functions: drawn from the system, once for a process. Whoever knew it could
/// send keys that collide.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(unpredictable)
}

/// The standard library draws the keys of SipHash from the system, and has no other stable way to ask it for
/// a number.
fn unpredictable() -> u64 {
    RandomState::new().hash_one(process::id())
}

/// The program of a gateway, loaded for every worker, with the entries of the files that the gateway's `file`
/// names; or what is wrong as people read it. Where another runs `beside` it, it is not loaded unless there
/// is memory for both.
fn loaded(
    file: &Path,
    config: &Config,
    executing: Executing,
    beside: Option<Running>,
) -> Result<(Loaded, Policies), String> {
    let mut allowance = if beside.is_some() { Allowance::to_load_beside() } else { Allowance::to_load() };
    loaded_filled(file, config, executing, beside, &mut allowance)
        .map(|(loaded, policies, ..)| (loaded, policies))
}

/// A program of a gateway whose tables are filled.
pub(super) struct FilledProgram {
    pub(super) program: Program,
    sources: Sources,
    pub(super) policies: Policies,
    /// What the files gave that tables are filled from.
    filled: Vec<Imported>,
    /// What can be set.
    settables: Vec<Settable>,
}

/// The program of a gateway with the entries of the files that the gateway's `file` names; or what is wrong
/// as people read it. Where another runs `beside` it, it is refused unless there is memory for both.
pub(super) fn filled_program(
    file: &Path,
    config: &Config,
    beside: Option<Running>,
    allowance: &mut Allowance,
) -> Result<FilledProgram, String> {
    let options = CompileOptions { settings: config.settings.clone(), ..CompileOptions::default() };
    let mut compiled = program::unfilled(&config.program, &options).map_err(|error| error.to_string())?;
    let enough = |program: &Program| {
        let needed = Needed::of(program, config.workers.count);
        bounded(needed.all(), config.workers.count)?;
        beside.map_or(Ok(()), |running| needed.beside(running).fits(memory_limit::room().as_ref()))
    };
    // What has no room even empty has none with its files.
    compiled.program.as_ref().map_or(Ok(()), enough)?;
    let mut filled = program::fill(compiled.program.as_mut(), &config.program, allowance)
        .map_err(|error| error.to_string())?;
    let told = |diagnostic| render::diagnostic::one(&compiled.sources, diagnostic, DiagnosticFormat::Human);
    let mut program = (compiled.program.take())
        .ok_or_else(|| compiled.diagnostics.iter().map(told).collect::<Vec<_>>().join("\n"))?;
    let constant = |name: &str| {
        let settable = compiled.settables.iter().find(|one| one.name == name)?;
        Some(compiled.sources.text(*settable.set.first().unwrap_or(&settable.default)).to_owned())
    };
    config.agrees(&constant).map_err(|error| format!("{}: {error}", file.display()))?;
    for table in &config.tables {
        let mut again = program::refill(&mut program, table, allowance).map_err(|message| {
            let (line, column) = table.place;
            let error = ConfigError { line, column, message };
            format!("{}: {error}", file.display())
        })?;
        if again.default.is_none() {
            // A file that says nothing of the rest leaves the default as it is, also where another file gave
            // it: without one the program might let everything through.
            let before = filled.iter().find(|filled| filled.table == again.table);
            again.default = before.and_then(|before| before.default.clone());
        }
        filled.retain(|filled| filled.table != again.table);
        filled.push(again);
    }
    enough(&program)?;
    let policies = compiled.policies.into();
    Ok(FilledProgram { program, sources: compiled.sources, policies, filled, settables: compiled.settables })
}

/// The same, loaded for every worker.
fn loaded_filled(
    file: &Path,
    config: &Config,
    executing: Executing,
    beside: Option<Running>,
    allowance: &mut Allowance,
) -> Result<(Loaded, Policies, Vec<Imported>, Vec<Settable>), String> {
    let FilledProgram { mut program, sources, policies, filled, settables } =
        filled_program(file, config, beside, allowance)?;
    if config.workers.count > 1 {
        declare_worker_busy(&mut program)
            .map_err(|error| format!("{}: {error}", config.program.display()))?;
    }
    let (ports, program) = (config.ports.len() as u16, Arc::new(program));
    let seed = seed();
    let load = |worker| {
        let here = |back_end| exec::load_measurable(&program, back_end, ports, seed);
        let loaded = executing.load(&program, &sources, ports, seed, &here);
        let loaded = loaded.map_err(|error| error.to_string())?;
        if worker == 0 {
            let _ = write!(anstream::stderr(), "{}", loaded.notes);
        }
        Ok::<_, String>(loaded.backend)
    };
    let backends = (0..config.workers.count).map(load).collect::<Result<Vec<_>, _>>()?;
    let schedule = Some(executing.schedule());
    let steering = live::load_steering(&program, BackendKind::Native, config.workers.count)
        .map_err(|error| error.to_string())?;
    let loaded = Loaded { program, sources: Arc::new(sources), backends, schedule, steering };
    Ok((loaded, policies, filled, settables))
}

/// Whether all workers together take no more than a program may.
fn bounded(needed: u64, workers: u16) -> Result<(), String> {
    if needed <= LARGEST_MEMORY {
        return Ok(());
    }
    Err(format!(
        "with {} what the program remembers takes up to {}, since each has its own, and all of them may take {} together: lower the capacity of tables (`ravelin check` tells what they take), or take fewer workers",
        of(workers.into(), "worker"),
        bytes(needed),
        bytes(LARGEST_MEMORY),
    ))
}

/// What runs while another program is loaded.
#[derive(Clone, Copy)]
pub(super) struct Running {
    /// Its workers have the parcels in which packets cross, which stay for the program that takes over.
    has_parcels: bool,
}

impl Running {
    fn of(remote: &Remote) -> Running {
        // Where a worker has ended, nothing is loaded any more.
        let parcels = remote.ask(|generation, _| generation.has_parcels).unwrap_or_default();
        Running { has_parcels: parcels.contains(&true) }
    }
}

/// The memory, in bytes, that a program needs at most at all workers together.
#[derive(Clone, Copy)]
struct Needed {
    tables: u64,
    parcels: u64,
}

impl Needed {
    fn of(program: &Program, workers: u16) -> Needed {
        let parcels = Remembered::parcels(program, workers).1;
        Needed { tables: cost(program).memory_of(workers), parcels }
    }

    fn all(self) -> u64 {
        self.tables.saturating_add(self.parcels)
    }

    /// What of it is not there yet: tables are made anew beside those of the program that runs.
    fn beside(self, running: Running) -> Needed {
        if running.has_parcels { Needed { parcels: 0, ..self } } else { self }
    }

    /// Whether there is room for it: who takes more than there is is ended by the kernel.
    fn fits(self, room: Option<&Room>) -> Result<(), String> {
        let Some(Room { file, most, left }) = room.filter(|room| self.all() > room.left) else {
            return Ok(());
        };
        let what =
            if self.parcels > 0 { "its tables, and the parcels between workers," } else { "its tables" };
        Err(format!(
            "{what} take up to {} at all workers together, beside the tables of the program that runs, and {} leaves {} of {}: raise that, or lower the capacity of tables (`ravelin check` tells what they take)",
            bytes(self.all()),
            file.display(),
            bytes(*left),
            bytes(*most),
        ))
    }
}

/// Says what was obtained of an interface that is there again. Where nobody can read it, packets matter more.
fn tell_again(port: PortNumber, interface: &str, mode: &str) {
    let _ = writeln!(anstream::stderr(), "port {port} is there again: {interface}, {mode}");
}

/// Says what whoever runs the gateway should know.
fn remark(words: &str) {
    let _ = writeln!(anstream::stderr(), "{words}");
}

/// Says what was obtained, as far as somebody can read it.
fn tell(ports: &[PortView], config: &Config) {
    let mut err = anstream::stderr();
    for port in ports {
        let _ = writeln!(err, "port {}: {}, {}", port.port, port.interface, port.mode);
    }
    for warning in shared(config) {
        let _ = writeln!(err, "warning: {warning}");
    }
    config.names.iter().for_each(tell_names);
    let (program, control) = (config.program.display(), config.control.display());
    let _ =
        writeln!(err, "{program} runs; it can be asked at {control} (`ravelin show run`); Ctrl-C ends it");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_drawn_and_not_chosen() {
        assert_ne!(unpredictable(), unpredictable());
        assert_eq!(seed(), seed(), "a reload takes the tables over as they are");
    }

    #[test]
    fn all_workers_together_take_no_more_than_one_program_may() {
        assert_eq!(bounded(LARGEST_MEMORY, 4), Ok(()));
        let error = bounded(LARGEST_MEMORY + 1, 4).expect_err("a byte too much");
        assert!(error.contains("with 4 workers") && error.contains("17.2 GB together"), "{error}");
    }

    #[test]
    fn what_has_no_room_beside_what_runs_is_refused_before_it_is_made() {
        let room = Room { file: "/sys/fs/cgroup/memory.max".into(), most: 64 << 20, left: 40 << 20 };
        let tables = |tables| Needed { tables, parcels: 0 };
        assert_eq!(tables(40 << 20).fits(Some(&room)), Ok(()));
        assert_eq!(tables(u64::MAX).fits(None), Ok(()));
        let error = tables((40 << 20) + 1).fits(Some(&room)).expect_err("a byte too much");
        assert!(error.starts_with("its tables take up to"), "{error}");
        assert!(error.contains("/sys/fs/cgroup/memory.max leaves"), "{error}");
    }

    #[test]
    fn parcels_that_are_there_already_are_not_needed_a_second_time() {
        let text = "start stage all() { flood }\nsteer stage by() { steer 1 }";
        let compiled = lang::pipeline::compile("p.rav", text, &|_| None, &CompileOptions::default());
        let needed = Needed::of(&compiled.program.expect("it compiles"), 64);
        assert!(needed.parcels > 1 << 30 && needed.tables < 1 << 20, "{} bytes", needed.all());
        let room = Room { file: "/sys/fs/cgroup/memory.max".into(), most: 4 << 30, left: 40 << 20 };
        assert_eq!(needed.beside(Running { has_parcels: true }).fits(Some(&room)), Ok(()));
        let error = needed.beside(Running { has_parcels: false }).fits(Some(&room)).expect_err("too much");
        assert!(error.starts_with("its tables, and the parcels between workers, take up to 1."), "{error}");
    }
}
