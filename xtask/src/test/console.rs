//! Commands in documents: a fenced block marked `console` holds `$ command` lines, each followed by what it
//! prints.
//!
//! Every shown line must appear in the output, in that order. What differs from run to run is left out of the
//! comparison: on a line that holds a time or a rate, digits count as equal; a line `…` stands for any lines.

use super::{Context, Outcome, program};
use anyhow::{Context as _, bail, ensure};
use std::process::Command;

/// Words that mark a line as measured.
const MEASURED: [&str; 7] = ["Mpps", "Gbit/s", "seconds", " s", " ms", " µs", " ns"];

/// Units of times: a slower machine may need another one.
const TIMES: [&str; 4] = ["s", "ms", "µs", "ns"];

/// Commands of a document that only the reader runs: they need the network, or run these very checks.
const LEFT_TO_THE_READER: [&str; 3] = ["git clone", "cd ", "cargo xtask"];

/// Runs the commands of README.md.
pub(super) fn readme(context: &Context) -> anyhow::Result<Outcome> {
    let text = std::fs::read_to_string(context.root.join("README.md")).context("cannot read README.md")?;
    let examples: Vec<Example> = examples(&text)
        .into_iter()
        .filter(|e| !LEFT_TO_THE_READER.iter().any(|c| e.command.starts_with(c)))
        .collect();
    ensure!(!examples.is_empty(), "README.md shows no command in a `console` block");
    for example in examples {
        println!("$ {}", example.command);
        let output = command(context, &example.command)?.output().with_context(|| example.command.clone())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!(
                "`{}` ended with {}:\n{}",
                example.command,
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        if let Some(line) = first_missing(&example.expected, &printed) {
            bail!(
                "README.md shows that `{}` prints the line\n{line}\nbut it printed\n{printed}",
                example.command
            );
        }
    }
    Ok(Outcome::Passed)
}

#[derive(Debug, PartialEq)]
struct Example {
    command: String,
    expected: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Example { command: command.to_owned(), expected: Vec::new() });
        } else if let Some(example) = found.last_mut() {
            example.expected.push(line.to_owned());
        }
    }
    found
}

/// The first shown line that the output lacks at its place.
fn first_missing<'a>(expected: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    let mut shown =
        expected.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty() && *line != "…");
    shown.find(|line| !lines.any(|printed| comparable(printed) == comparable(line)))
}

/// A line without what may differ: blanks count once, digits of measured figures and the units of times not
/// at all.
fn comparable(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let whole = words.join(" ");
    if !MEASURED.iter().any(|word| whole.contains(word)) {
        return whole;
    }
    let is_unit = |word: &&str| TIMES.contains(&word.trim_end_matches([',', ';']));
    let words: Vec<&str> = words.into_iter().filter(|word| !is_unit(word)).collect();
    words.join(" ").chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | ',')).collect()
}

/// The command as a process: `cargo run --release --` and `ravelin` both mean the binary that is already
/// built.
fn command(context: &Context, line: &str) -> anyhow::Result<Command> {
    let arguments = line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("ravelin "));
    let arguments =
        arguments.with_context(|| format!("README.md shows `{line}`, which is not a ravelin command"))?;
    let mut command = program::ravelin(context);
    command.args(arguments.split_whitespace());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "Text\n```console\n$ ravelin demo\nflooded   12\n…\n0.5 seconds\n```\n```\n$ not this\n```\n";

    #[test]
    fn a_console_block_gives_command_and_output() {
        let found = examples(PAGE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].command, "ravelin demo");
        assert_eq!(found[0].expected, ["flooded   12", "…", "0.5 seconds"]);
    }

    #[test]
    fn counts_must_be_equal_and_times_need_not() {
        let expected = &examples(PAGE)[0].expected;
        assert_eq!(first_missing(expected, "flooded 12\nmore\n0.731 seconds\n"), None);
        assert_eq!(first_missing(expected, "flooded 13\n0.5 seconds\n"), Some("flooded   12"));
        assert_eq!(first_missing(expected, "0.5 seconds\nflooded 12\n"), Some("0.5 seconds"));
        assert_eq!(comparable("343.9 ms in the loop"), comparable("1.4 s in the loop"));
        assert_ne!(comparable("343.9 ms in the loop"), comparable("343.9 ms in the kernel"));
    }
}
