//! The program `redteam`: sends one attack from inside a container, or runs all of them against a gateway
//! that it starts.
//!
//! ```text
//! redteam send INTERFACE ATTACK FRAMES SEED      inside: says how many frames were taken; by a socket of AF_XDP
//!                                                where INTERFACE begins with `xdp:`
//! redteam serve PORT                             inside: a server of TCP that sends back what it gets
//! redteam frame INTERFACE DIGITS                 inside: sends this frame
//! redteam open COUNT                             inside: ends well once so many files are open
//! redteam attach INTERFACE                       inside: ends well once a program of BPF is at it
//! redteam listen INTERFACE                       inside: ends well once a frame comes that is for somebody else
//! redteam rings SOCKET ATTACK SEED               inside: as a machine that shares its memory
//! redteam run FRAMES [--guest FOLDER] [--json]   outside, as root: every attack with so many frames, and with a
//!                                                fiftieth of them from a virtual machine with the Linux in FOLDER
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
        ["frame", interface, digits] => frame(interface, digits),
        ["open", count] => open(count),
        ["attach", interface] => attach(interface),
        ["listen", interface] => listen(interface),
        ["rings", socket, attack, seed] => rings(socket, attack, seed),
        ["run", frames, ref options @ ..] => run(frames, options),
        _ => Err("`redteam run FRAMES` runs every attack with so many frames".into()),
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
    let mut known = redteam::ATTACKS.iter().chain([&redteam::ANY, &redteam::DATAGRAMS]);
    let attack = known.find(|known| known.name == attack).ok_or("no attack has this name")?;
    println!("{}", redteam::send(interface, &scene, attack, frames.parse()?, seed.parse()?)?);
    Ok(true)
}

/// Whether the gateway lets it go on is for whoever judges to know.
#[cfg(target_os = "linux")]
fn rings(socket: &str, attack: &str, seed: &str) -> Done {
    let attack = redteam::RING_ATTACKS.iter().find(|known| known.name == attack);
    attack.ok_or("no attack has this name")?.run(socket, seed.parse()?)?;
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
fn frame(interface: &str, digits: &str) -> Done {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let frame: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    redteam::one(interface, &frame.ok_or("the digits of a frame")?)?;
    Ok(true)
}

/// Ends well if one process can have so many files open.
#[cfg(target_os = "linux")]
fn open(count: &str) -> Done {
    let files: Result<Vec<_>, _> = (0..count.parse()?).map(|_| std::fs::File::open("/dev/null")).collect();
    Ok(files.is_ok())
}

/// Ends well if a program that lets everything through can be loaded and attached.
#[cfg(target_os = "linux")]
fn attach(interface: &str) -> Done {
    ports::live::pass(ports::live::sys::interface_index(interface)?)?;
    Ok(true)
}

/// Ends when a frame comes that is neither for this router nor for a group.
#[cfg(target_os = "linux")]
fn listen(interface: &str) -> Done {
    let own = redteam::frames::Scene::usual().own().ethernet;
    let mut tap = redteam::Tap::new(interface)?;
    loop {
        match tap.take()? {
            Some(frame) if frame.first().is_some_and(|first| first & 1 == 0) && !frame.starts_with(&own) => {
                return Ok(true);
            }
            Some(_) => {}
            None => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

/// Of a virtual machine, which is emulated, so many times fewer frames come than of a container.
#[cfg(target_os = "linux")]
const FEWER_OF_MACHINES: u64 = 50;

#[cfg(target_os = "linux")]
fn run(frames: &str, options: &[&str]) -> Done {
    use redteam::{AttackReport, GuestLink, GuestSystem, InContainer, Laboratory};
    let frames: u64 = frames.parse()?;
    let (guest, json) = match *options {
        [] => (None, false),
        ["--json"] => (None, true),
        ["--guest", folder] => (Some(folder), false),
        ["--guest", folder, "--json"] => (Some(folder), true),
        _ => return Err("behind the number of frames come `--guest FOLDER` and `--json`".into()),
    };
    let own = std::env::current_exe()?;
    let mut attacks = Laboratory::start(&own, &InContainer::Services)?.report(frames)?;
    attacks.extend(Laboratory::start(&own, &InContainer::Rings)?.report(frames)?);
    for link in guest.iter().flat_map(|_| [GuestLink::Tap, GuestLink::VhostUser]) {
        let guest = GuestSystem::below(guest.unwrap_or_default().as_ref(), link)?;
        let frames = frames.div_ceil(FEWER_OF_MACHINES);
        attacks.extend(Laboratory::start(&own, &InContainer::Machine(guest))?.report(frames)?);
    }
    let report = AttackReport::of(attacks);
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for attack in &report.attacks {
            println!(
                "{:<14}{:<52}{:>12} frames {:>6} violations",
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
