//! `ravelin serve`: a program between network interfaces, until it is told to stop.

use crate::arguments::live::ServeArguments;
use crate::arguments::{BackEndChoice, DecodeChoice, DiagnosticFormat};
use crate::failure::Failure;
use crate::program;
use crate::render;
use engine::live::{Remote, Request};
use exec::Processor;
use gateway::{Config, PortPicture, ServeError};
use lang::ir::Program;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::thread;

/// What random choices are made from: a gateway that is started again places flows as before.
const SEED: u64 = 0;

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments, json: bool) -> Result<(), Failure> {
    let file = &arguments.file;
    let text = program::read(file)?;
    let config = Config::read(&text, file.parent().unwrap_or(Path::new("")))
        .map_err(|error| Failure::Finding(format!("{}: {error}", file.display())))?;
    let load = |ports| loaded(&config.program, ports);
    if arguments.check {
        load(config.ports.len() as u16).map_err(Failure::Finding)?;
        let ports = render::quantity::of(config.ports.len() as u64, "port");
        return Ok(render::text(&format!("{} is right: {ports}\n", file.display()))?);
    }
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::Finding(format!("signals: {error}")))?;
    let handle = signals.handle();
    let started = |ports: &[PortPicture], remote: Remote| {
        tell(ports, &config);
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                remote.request(Request::Stop);
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
    let ready = program::ready(&config.program, DecodeChoice::Lazy, json)?;
    Ok(render::text(&render::report::report(&served.report, &ready.program, &ready.sources))?)
}

/// The program of a gateway, loaded, or what is wrong with it as people read it.
fn loaded(path: &Path, ports: u16) -> Result<(Program, Box<dyn Processor>), String> {
    let compiled = program::compile(path, DecodeChoice::Lazy).map_err(|error| error.to_string())?;
    let told = |diagnostic| render::diagnostic::one(&compiled.sources, diagnostic, DiagnosticFormat::Human);
    let program = compiled
        .program
        .ok_or_else(|| compiled.diagnostics.iter().map(told).collect::<Vec<_>>().join("\n"))?;
    let processor =
        program::load(&program, BackEndChoice::Native, ports, SEED).map_err(|error| error.to_string())?;
    Ok((program, processor))
}

/// Says what was obtained.
fn tell(ports: &[PortPicture], config: &Config) {
    for port in ports {
        anstream::eprintln!("port {}: {}, {}", port.port, port.interface, port.mode);
    }
    let (program, control) = (config.program.display(), config.control.display());
    anstream::eprintln!("{program} runs; it can be asked at {control} (`ravelin show run`); Ctrl-C ends it");
}
