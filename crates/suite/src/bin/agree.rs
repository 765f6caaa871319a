//! `agree --seconds N --seed S [--programs N] [--out DIRECTORY]`: compares the back ends over random programs
//! and packets.

use captures::write::PcapWriter;
use packet::LinkType;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use suite::agree::{AgreeTally, Disagreement, search};
use suite::coverage::CONSTRUCTS;
use suite::edit_search::Judged;

const USAGE: &str = "usage: agree [--seconds N] [--seed S] [--programs N] [--out DIRECTORY]";

struct Arguments {
    seconds: u64,
    seed: u64,
    programs: u64,
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match search(arguments.seed, Duration::from_secs(arguments.seconds), arguments.programs) {
        Ok(tally) => {
            print_tally(arguments.seed, &tally);
            ExitCode::SUCCESS
        }
        Err(found) => {
            println!("seed {}: {}", found.seed, found.what);
            println!("again: cargo run --release -p suite --bin agree -- --seed {} --programs 1", found.seed);
            match keep(&arguments.out, &found) {
                Ok(name) => println!("kept: {name}.rav and {name}.pcap"),
                Err(error) => eprintln!("cannot keep it in {}: {error}", arguments.out.display()),
            }
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments =
        Arguments { seconds: 30, seed: 1, programs: u64::MAX, out: PathBuf::from("target/agree") };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("a value is missing behind {word}"))?;
        let number = || value.parse().map_err(|_| format!("{word} takes a whole number, not {value}"));
        match word.as_str() {
            "--seconds" => arguments.seconds = number()?,
            "--seed" => arguments.seed = number()?,
            "--programs" => arguments.programs = number()?,
            "--out" => arguments.out = PathBuf::from(value),
            _ => return Err(format!("there is no option {word}")),
        }
    }
    Ok(arguments)
}

fn print_tally(seed: u64, tally: &AgreeTally) {
    let AgreeTally { programs, accepted, packets, malformed, passed, outputs, .. } = tally;
    let share = *accepted as f64 * 100.0 / (*programs).max(1) as f64;
    println!("seed {seed}: {programs} programs, {accepted} accepted ({share:.1} %), all alike");
    println!("{packets} packets, {passed} not dropped, {malformed} malformed, {outputs} outputs");
    let [inserts, moves, evictions, refused, expired] = tally.changes;
    println!(
        "tables: {inserts} inserted, {moves} moved, {evictions} evicted, {refused} refused, {expired} expired"
    );
    let Judged { programs, refused, packets, checks, resized } = &tally.judged;
    println!(
        "edits: {programs} programs, {refused} refused; {packets} packets left, {resized} of them resized, {checks} checksums and lengths right"
    );
    for (code, (times, seed)) in &tally.refusals {
        println!("refused with {code}: {times} times, for example seed {seed}");
    }
    let seen: Vec<String> =
        CONSTRUCTS.iter().map(|name| format!("{name} {}", tally.coverage.times(name))).collect();
    println!("constructs: {}", seen.join(", "));
    let missing = tally.coverage.missing();
    if !missing.is_empty() {
        println!("never: {}", missing.join(", "));
    }
}

/// Writes program and packets; the comment says what differs and by which port each packet came in.
fn keep(directory: &Path, found: &Disagreement) -> std::io::Result<String> {
    std::fs::create_dir_all(directory)?;
    let name = directory.join(format!("seed-{}", found.seed)).display().to_string();
    let text = format!("// {}\n// ports: {:?}\n{}", found.what, found.arrivals.ports, found.text);
    std::fs::write(format!("{name}.rav"), text)?;
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET)?;
    for frame in found.arrivals.frames.iter() {
        writer.write(frame.time, frame.wire, frame.bytes)?;
    }
    std::fs::write(format!("{name}.pcap"), writer.finish()?)?;
    Ok(name)
}
