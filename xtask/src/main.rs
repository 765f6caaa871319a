//! Repository tasks: `cargo xtask test`, `soak`, `kernel`, `fuzz`, `miri`, `redteam`, `kills`, `tidy`,
//! `trusted`, `reproduce`, `sbom`, `demo-capture` and `gpu`.

mod cargo;
mod demo_capture;
mod dependencies;
mod gpu;
mod kills;
mod miri;
mod redteam;
mod test;
mod tidy;
mod trusted;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Tasks of this repository.

  cargo xtask test [--only NAME]...   every check, in order; --list names them
  cargo xtask soak [SECONDS]          long tests of names, and a random mix of what happens around them, for an hour if nothing else is said
  cargo xtask kernel [PACKETS]        rules beside the Linux kernel, until 5,000,000 packets are judged if nothing else is said
  cargo xtask fuzz [--seconds N] [TARGET]...   fuzz targets by libFuzzer, the readers for 60 s each if nothing else is said
  cargo xtask miri                    unsafe code of the core's tables, interpreted by Miri of a nightly toolchain
  cargo xtask redteam [FRAMES] [--json]   attacks by root of a container, 2,000,000 frames of each if nothing else is said
  cargo xtask kills [N]               kills processes of a gateway while policies change, 10,000 times if nothing else is said
  cargo xtask tidy                    the rules of the house alone
  cargo xtask trusted [--native] [--json]   lines, crates and unsafe blocks of ravelin-core, or of ravelin-core-native
  cargo xtask reproduce               builds the program ravelin-core twice from nothing, and compares
  cargo xtask sbom [CRATE]            a bill of materials (CycloneDX) of a program, of ravelin-core if no crate is said
  cargo xtask demo-capture [--check]  make captures/demo.pcapng again, or compare it
  cargo xtask gpu [--binary PATH]     all about this machine's NVIDIA device into docs/results/, by a binary that is built
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test", ref options @ ..] => test::run(&root(), options),
        ["soak", ref options @ ..] => test::soak(&root(), options),
        ["kernel", ref options @ ..] => test::kernel(&root(), options),
        ["fuzz", ref options @ ..] => test::fuzz(&root(), options),
        ["miri"] => test::target().and_then(|target| miri::run(&root(), &target)),
        ["redteam", ref options @ ..] => redteam::run(&root(), options),
        ["kills", ref options @ ..] => kills::run(&root(), options),
        ["tidy"] => tidy_alone(),
        ["trusted", ref options @ ..] => {
            test::target().and_then(|target| trusted::print(&root(), &target, options))
        }
        ["reproduce"] => test::target().and_then(|target| trusted::reproduce(&root(), &target)),
        ["sbom", ref arguments @ ..] => dependencies::print(&root(), arguments),
        ["demo-capture"] => demo_capture::write(&root()).map(|()| true),
        ["demo-capture", "--check"] => demo_capture::check(&root()).map(|()| true),
        ["gpu", ref options @ ..] => gpu::run(&root(), options),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tidy_alone() -> anyhow::Result<bool> {
    let findings = tidy::check(&root(), &test::names())?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("{} findings", findings.len());
    Ok(findings.is_empty())
}

/// The root of the repository: the folder above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}
