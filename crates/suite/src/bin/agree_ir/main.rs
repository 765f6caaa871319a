//! `agree_ir [--seconds N] [--seed S] [--programs N]`: random IR that the verifier admits means the same as
//! machine code, and touches nothing else.

mod guarded;

use guarded::Guarded;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use suite::ir_agree::{Seeds, Tried, compare};

const USAGE: &str = "usage: agree_ir [--seconds N] [--seed S] [--programs N]";

#[global_allocator]
static MEMORY: Guarded = Guarded;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut seconds, mut first, mut programs) = (30, 1_u64, u64::MAX);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|value| value.parse().ok());
        let number = number.ok_or_else(|| format!("{word} takes a whole number\n{USAGE}"))?;
        match word.as_str() {
            "--seconds" => seconds = number,
            "--seed" => first = number,
            "--programs" => programs = number,
            _ => return Err(format!("there is no option {word}\n{USAGE}")),
        }
    }
    let seeds = Seeds::of_repository().map_err(|error| error.to_string())?;
    let (begin, mut tried) = (Instant::now(), Tried::default());
    for offset in 0..programs {
        if begin.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        let seed = first.wrapping_add(offset);
        // A wild access ends the process, so what is being run is told before.
        eprint!("\rseed {seed} ");
        let trial = seeds.program(seed);
        if let Err(what) = compare(&trial, &guarded::switch, &mut tried) {
            let again =
                format!("again: cargo run --release -p suite --bin agree_ir -- --seed {seed} --programs 1");
            return Err(format!("{}\nseed {seed}: {what}\n{again}", trial.program));
        }
    }
    eprintln!();
    let (guarded, open) = guarded::pieces();
    println!("seed {first}: {tried}; {guarded} pieces of memory guarded, {open} not");
    if tried.loaded == 0 || tried.packets == 0 || guarded == 0 || open > guarded {
        return Err("nothing was shown: no program ran, or most memory was not guarded".to_owned());
    }
    match tried.never_ran()[..] {
        [] => Ok(()),
        ref missing => Err(format!("no program from scratch ran {}", missing.join(", "))),
    }
}
