//! `ravelin serve`: a program between network interfaces, until it is told to stop.

use crate::arguments::live::ServeArguments;
use crate::arguments::{DecodeChoice, DiagnosticFormat};
use crate::executing::Executing;
use crate::failure::Failure;
use crate::program;
use crate::render;
use engine::live::{Loaded, Remote};
use gateway::{Config, ConfigError, PortPicture, Reader, ServeError};
use packet::PortNumber;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::Path;
use std::process;
use std::sync::{Arc, OnceLock};
use std::thread;

/// What random choices are made from: a gateway that is started again places flows as before.
const SEED: u64 = 0;

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments, json: bool) -> Result<(), Failure> {
    let file = &arguments.file;
    let executing = Executing::new(arguments.back_end, &arguments.schedule);
    if arguments.check {
        return check(file, executing, json);
    }
    let config = read(file)?;
    let reader = Reader {
        config: &|| read(file).map_err(|error| error.to_string()),
        load: &|config| loaded(file, config, executing),
    };
    let remote = Arc::new(OnceLock::new());
    heed_signals(remote.clone())?;
    let started = |ports: &[PortPicture], running: Remote| {
        tell(ports, &config);
        // Nobody else sets it.
        let _ = remote.set(running);
    };
    let served = gateway::serve::serve(&config, reader, started, tell_again);
    let served = served.map_err(|error| match error {
        ServeError::Program(text) => Failure::Finding(text),
        error => Failure::Finding(format!("{}: {error}", file.display())),
    })?;
    if json {
        return Ok(render::json(&served.report)?);
    }
    Ok(render::text(&render::report::report(&served.report, &served.program, &served.sources))?)
}

/// Ends the gateway between two batches at the first signal. While it starts, and at the second signal, it ends at once: who asks twice does not want to wait,
/// and the kernel detaches the ports. That holds to the very end, as where nobody reads the account.
fn heed_signals(remote: Arc<OnceLock<Remote>>) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::Finding(format!("signals: {error}")))?;
    thread::spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            match remote.get() {
                Some(remote) if !asked => remote.stop(),
                _ => process::exit(128 + signal),
            }
            asked = true;
        }
    });
    Ok(())
}

/// Whether a gateway's file, its program and the files that both name are right.
pub(super) fn check(file: &Path, executing: Executing, json: bool) -> Result<(), Failure> {
    let config = read(file)?;
    let loaded = loaded(file, &config, executing).map_err(Failure::Finding)?;
    let suits = config.workers.suit(&loaded.program).and_then(|()| config.routes_by(&loaded.program));
    suits.map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
    let ports = render::quantity::of(config.ports.len() as u64, "port");
    let notes: &[&str] = if config.routing.kernel {
        &["of a kernel's route with several next hops the first is used, not all of them side by side"]
    } else {
        &[]
    };
    if json {
        let count = config.ports.len();
        let told =
            serde_json::json!({ "gateway": file.display().to_string(), "ports": count, "notes": notes });
        return Ok(render::json(&told)?);
    }
    let notes: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
    Ok(render::text(&format!("{} is right: {ports}\n{notes}", file.display()))?)
}

fn read(file: &Path) -> Result<Config, Failure> {
    let text = program::read(file)?;
    Config::read(&text, file.parent().unwrap_or(Path::new("")))
        .map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))
}

/// The program of a gateway, loaded for every worker, with the entries of the files that the gateway's `file` names; or what is wrong as people read it.
fn loaded(file: &Path, config: &Config, executing: Executing) -> Result<Loaded, String> {
    let mut compiled =
        program::compile(&config.program, DecodeChoice::Lazy).map_err(|error| error.to_string())?;
    let told = |diagnostic| render::diagnostic::one(&compiled.sources, diagnostic, DiagnosticFormat::Human);
    let mut program = (compiled.program.take())
        .ok_or_else(|| compiled.diagnostics.iter().map(told).collect::<Vec<_>>().join("\n"))?;
    for table in &config.tables {
        program::refill(&mut program, table).map_err(|error| {
            let error = ConfigError::at(table.place, error);
            format!("{}: {error}", file.display())
        })?;
    }
    let (ports, program) = (config.ports.len() as u16, Arc::new(program));
    let load = |worker| {
        let here = |back_end| exec::load_measurable(&program, back_end, ports, SEED);
        let loaded = executing.load((&program, &compiled.sources), ports, SEED, &here);
        let loaded = loaded.map_err(|error| error.to_string())?;
        if worker == 0 {
            let _ = write!(anstream::stderr(), "{}", loaded.notes);
        }
        Ok::<_, String>(loaded.processor)
    };
    let processors = (0..config.workers.count).map(load).collect::<Result<Vec<_>, _>>()?;
    let schedule = Some(executing.schedule());
    Ok(Loaded { program, sources: Arc::new(compiled.sources), processors, schedule })
}

/// Says what was obtained of an interface that is there again. Where nobody can read it, packets matter more.
fn tell_again(port: PortNumber, interface: &str, mode: &str) {
    let _ = writeln!(anstream::stderr(), "port {port} is there again: {interface}, {mode}");
}

/// Says what was obtained, as far as somebody can read it.
fn tell(ports: &[PortPicture], config: &Config) {
    let mut err = anstream::stderr();
    for port in ports {
        let _ = writeln!(err, "port {}: {}, {}", port.port, port.interface, port.mode);
    }
    let (program, control) = (config.program.display(), config.control.display());
    let _ =
        writeln!(err, "{program} runs; it can be asked at {control} (`ravelin show run`); Ctrl-C ends it");
}
