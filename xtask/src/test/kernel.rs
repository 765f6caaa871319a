//! `cargo xtask kernel`: the tests beside the Linux kernel with several seeds, until so many
//! packets are judged, and what they have counted as one document of JSON.

use super::binaries::{self, Binary};
use super::{Context, deadline, packages};
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How many packets are judged if nothing else is said.
const PACKETS: u64 = 5_000_000;
/// Files of rules of a kind that are made of one seed, and how many times as many packets as in the tests go
/// through each.
const ROUNDS: &str = "60";
const TIMES: &str = "6";
/// Seeds at once, and tests of each at once: most of the time they wait for packets.
const AT_ONCE: u64 = 3;
const TESTS_AT_ONCE: &str = "6";
/// How long the tests of one seed may take. On two cores they take a fifth of it.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// What tests count, by the words of their lines.
const COUNTS: [&str; 5] = ["rulesets", "rules", "packets", "stricter", "in_conversations"];

/// Sums by test, and the tests that failed, each with its seed.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    tests: BTreeMap<String, [u64; COUNTS.len()]>,
    failed: Vec<(u64, String)>,
}

impl Sums {
    /// Adds a line that a test of a seed has printed, if it is one about what was judged.
    fn add(&mut self, seed: u64, line: &str) -> anyhow::Result<()> {
        // Other tests may have begun the line.
        let Some((_, counts)) = line.split_once("judged {") else { return Ok(()) };
        let counts: Value = serde_json::from_str(&format!("{{{counts}")).with_context(|| line.to_owned())?;
        let name = counts["test"].as_str().with_context(|| format!("no test in {line}"))?;
        let own = self.tests.entry(name.to_owned()).or_default();
        for (sum, count) in own.iter_mut().zip(COUNTS) {
            *sum += counts[count].as_u64().with_context(|| format!("no {count} in {line}"))?;
        }
        if counts["failed"] != false {
            self.failed.push((seed, name.to_owned()));
        }
        Ok(())
    }

    /// The sum of a count over all tests.
    fn sum(&self, count: &str) -> u64 {
        let place = COUNTS.iter().position(|own| *own == count).expect("it is counted");
        self.tests.values().map(|counts| counts[place]).sum()
    }

    /// All packets.
    fn packets(&self) -> u64 {
        self.sum("packets") + self.sum("in_conversations")
    }

    fn report(&self, commit: &str, seeds: u64, seconds: u64) -> Value {
        let counts = |of: &dyn Fn(usize) -> u64| -> serde_json::Map<String, Value> {
            COUNTS.iter().enumerate().map(|(place, name)| (name.to_string(), of(place).into())).collect()
        };
        let tests: Vec<Value> = self
            .tests
            .iter()
            .map(|(name, own)| {
                let mut row = counts(&|place| own[place]);
                row.insert("test".to_owned(), name.as_str().into());
                row.into()
            })
            .collect();
        let failed: Vec<Value> =
            self.failed.iter().map(|(seed, test)| json!({ "seed": seed, "test": test })).collect();
        json!({
            "experiment": "kernel",
            "kernel": first_line("uname", &["-sr"]),
            "nft": first_line("nft", &["--version"]),
            "iptables": first_line("iptables-legacy-restore", &["--version"]),
            "commit": commit,
            "date": first_line("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            "seconds": seconds,
            "seeds": { "first": 1, "last": seeds },
            "rounds": ROUNDS,
            "times": TIMES,
            "all": counts(&|place| self.sum(COUNTS[place])),
            "judged": self.packets(),
            "failed": failed,
            "tests": tests,
        })
    }
}

/// Runs the tests, and prints the counts. False, if the kernel said something else.
pub(super) fn run(context: &Context, options: &[&str]) -> anyhow::Result<bool> {
    let wanted = match options {
        [] => PACKETS,
        [packets] => packets.parse().with_context(|| format!("`{packets}` is no number of packets"))?,
        _ => bail!("`cargo xtask kernel [PACKETS]` takes nothing else"),
    };
    let binaries = binaries::build(context, &["-p", "import", "--test", "kernel"])?;
    let [binary] = &binaries[..] else { bail!("cargo names {} test binaries", binaries.len()) };
    let folder = context.target.join("printed");
    fs::create_dir_all(&folder)?;
    let (commit, begin) = (first_line("git", &["rev-parse", "--short=12", "HEAD"]), Instant::now());
    let (mut sums, mut seeds) = (Sums::default(), 0);
    while sums.packets() < wanted {
        let before = sums.packets();
        let printed = thread::scope(|scope| {
            let running: Vec<_> = (seeds + 1..=seeds + AT_ONCE)
                .map(|seed| {
                    let path = folder.join(format!("kernel-{seed}.txt"));
                    scope.spawn(move || one(context, binary, seed, &path).map(|printed| (seed, printed)))
                })
                .collect();
            running.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        for printed in printed {
            let (seed, printed) = printed?;
            printed.lines().try_for_each(|line| sums.add(seed, line))?;
        }
        seeds += AT_ONCE;
        ensure!(sums.packets() > before, "the kernel judged nothing: {}", folder.display());
        eprintln!("{} packets, seeds 1 to {seeds}, failed: {:?}", sums.packets(), sums.failed);
    }
    println!("{}", sums.report(&commit, seeds, begin.elapsed().as_secs()));
    Ok(sums.failed.is_empty())
}

/// Runs the tests of one seed, and returns what they printed; what they say of a failure stays in the file.
///
/// # Errors
/// They cannot be run, or failed and none of them says so.
fn one(context: &Context, binary: &Binary, seed: u64, path: &Path) -> anyhow::Result<String> {
    let file = File::create(path)?;
    let mut test = Command::new(&binary.file);
    test.args(["--nocapture", "--test-threads", TESTS_AT_ONCE]).current_dir(&binary.folder);
    test.env("RAVELIN_SEED", seed.to_string()).env("RAVELIN_ROUNDS", ROUNDS).env("RAVELIN_TIMES", TIMES);
    // What is missing here is an error, so that a test is run or fails.
    test.env("CI", "true").env("PATH", packages::search_path(context));
    let status = deadline::run(test.stdout(file.try_clone()?).stderr(file), LONGEST)?;
    let printed = fs::read_to_string(path)?;
    ensure!(status.code().is_some(), "the tests were ended by {status}: {}", path.display());
    let is_told = printed.contains("\"failed\":true");
    ensure!(status.success() != is_told, "the tests ended with {status}: {}", path.display());
    Ok(printed)
}

/// The first line that a program prints, or nothing if it does not run.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let printed =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    printed.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"test a ... judged {"test":"NAME","rulesets":1,"rules":20,"packets":300,"stricter":4,"in_conversations":50,"failed":FAILED}"#;

    #[test]
    fn what_tests_count_is_added_up() {
        let mut sums = Sums::default();
        let mut add = |seed, name: &str, failed| {
            sums.add(seed, &LINE.replace("NAME", name).replace("FAILED", failed)).expect("a line");
        };
        add(1, "a", "false");
        add(2, "a", "false");
        add(2, "b", "true");
        sums.add(2, "something else").expect("no line of counts");
        assert_eq!(sums.tests["a"], [2, 40, 600, 8, 100]);
        assert_eq!(sums.failed, [(2, "b".to_owned())]);
        assert_eq!(sums.packets(), 1_050);
        let report = sums.report("c", 2, 3);
        assert_eq!((&report["judged"], &report["all"]["rules"]), (&json!(1_050), &json!(60)));
        assert_eq!(report["failed"], json!([{ "seed": 2, "test": "b" }]));
    }

    #[test]
    fn a_line_without_a_count_is_an_error() {
        let mut sums = Sums::default();
        assert!(sums.add(1, r#"judged {"test":"a"}"#).is_err());
        assert!(sums.add(1, "judged {").is_err());
        // A test that does not say that it passed has failed.
        sums.add(1, &LINE.replace(",\"failed\":FAILED", "")).expect("all counts are there");
        assert_eq!(sums.failed.len(), 1);
    }
}
