//! `ravelin serve`: a program between network interfaces, until it is told to stop.

use crate::arguments::live::ServeArguments;
use crate::arguments::{BackEndChoice, DecodeChoice, DiagnosticFormat};
use crate::failure::Failure;
use crate::program;
use crate::render;
use engine::live::{Loaded, Remote};
use gateway::{Config, PortPicture, ServeError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;

/// What random choices are made from: a gateway that is started again places flows as before.
const SEED: u64 = 0;

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments, json: bool) -> Result<(), Failure> {
    let file = &arguments.file;
    let text = program::read(file)?;
    let config = Config::read(&text, file.parent().unwrap_or(Path::new("")))
        .map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
    let load = |ports, workers| loaded(&config.program, ports, workers);
    if arguments.check {
        let loaded = load(config.ports.len() as u16, 1).map_err(Failure::Finding)?;
        let suits = config.workers.suit(&loaded.program);
        suits.map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
        let ports = render::quantity::of(config.ports.len() as u64, "port");
        return Ok(render::text(&format!("{} is right: {ports}\n", file.display()))?);
    }
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::Finding(format!("signals: {error}")))?;
    let handle = signals.handle();
    let started = |ports: &[PortPicture], remote: Remote| {
        tell(ports, &config);
        thread::spawn(move || {
            let mut signals = signals.forever();
            if signals.next().is_some() {
                remote.stop();
            }
            if let Some(signal) = signals.next() {
                // Whoever asks twice does not want to wait; the kernel detaches the ports.
                process::exit(128 + signal);
            }
        });
    };
    let served = gateway::serve::serve(&config, &load, started);
    handle.close();
    let served = served.map_err(|error| match error {
        ServeError::Program(text) => Failure::Finding(text),
        error => Failure::Finding(format!("{}: {error}", file.display())),
    })?;
    if json {
        return Ok(render::json(&served.report)?);
    }
    Ok(render::text(&render::report::report(&served.report, &served.program, &served.sources))?)
}

/// The program of a gateway, loaded for every worker, or what is wrong with it as people read it.
fn loaded(path: &Path, ports: u16, workers: u16) -> Result<Loaded, String> {
    let compiled = program::compile(path, DecodeChoice::Lazy).map_err(|error| error.to_string())?;
    let told = |diagnostic| render::diagnostic::one(&compiled.sources, diagnostic, DiagnosticFormat::Human);
    let program = compiled
        .program
        .ok_or_else(|| compiled.diagnostics.iter().map(told).collect::<Vec<_>>().join("\n"))?;
    let load =
        |_| program::load(&program, BackEndChoice::Native, ports, SEED).map_err(|error| error.to_string());
    let processors = (0..workers).map(load).collect::<Result<Vec<_>, _>>()?;
    Ok(Loaded { program: Arc::new(program), sources: Arc::new(compiled.sources), processors })
}

/// Says what was obtained.
fn tell(ports: &[PortPicture], config: &Config) {
    for port in ports {
        anstream::eprintln!("port {}: {}, {}", port.port, port.interface, port.mode);
    }
    let (program, control) = (config.program.display(), config.control.display());
    anstream::eprintln!("{program} runs; it can be asked at {control} (`ravelin show run`); Ctrl-C ends it");
}
