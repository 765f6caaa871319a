//! The program `redteam`: sends one attack from inside a container, or runs all of them against a gateway
//! that it starts.
//!
//! ```text
//! redteam send INTERFACE ATTACK FRAMES SEED      inside: says how many frames were taken
//! redteam serve PORT                             inside: a server of TCP that sends back what it gets
//! redteam run FRAMES [--json]                    outside, as root: every attack with so many frames
//! ```

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["send", interface, attack, frames, seed] => sent(interface, attack, frames, seed),
        ["serve", port] => serve(port),
        ["run", frames] => run(frames, false),
        ["run", frames, "--json"] => run(frames, true),
        _ => Err("`redteam run FRAMES [--json]` runs every attack with so many frames".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("redteam: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
type Done = Result<bool, Box<dyn std::error::Error>>;

#[cfg(target_os = "linux")]
fn sent(interface: &str, attack: &str, frames: &str, seed: &str) -> Done {
    let scene = redteam::frames::Scene::usual();
    let attack =
        redteam::ATTACKS.iter().find(|known| known.name == attack).ok_or("no attack has this name")?;
    println!("{}", redteam::send(interface, &scene, attack, frames.parse()?, seed.parse()?)?);
    Ok(true)
}

#[cfg(target_os = "linux")]
fn serve(port: &str) -> Done {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(("0.0.0.0", port.parse()?))?;
    println!("listening");
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut bytes) {
            stream.write_all(&bytes[..length])?;
        }
    }
    Ok(true)
}

#[cfg(target_os = "linux")]
fn run(frames: &str, json: bool) -> Done {
    let frames: u64 = frames.parse()?;
    let own = std::env::current_exe()?;
    let mut laboratory = redteam::Laboratory::start(&own)?;
    let report = laboratory.report(frames)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for attack in &report.attacks {
            println!(
                "{:<4}{:<48}{:>12} frames {:>6} violations",
                attack.tier, attack.name, attack.frames, attack.violations
            );
        }
        println!("{} frames, {} violations", report.frames, report.violations);
    }
    Ok(report.violations == 0)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("redteam: it needs the namespaces of Linux");
    ExitCode::FAILURE
}
