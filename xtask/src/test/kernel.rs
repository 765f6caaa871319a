//! `cargo xtask kernel`: the tests beside the Linux kernel with several seeds, until so many
//! packets are judged, and what they have counted as one document of JSON.

use super::binaries::{self, Binary};
use super::{Context, checkout, deadline, packages};
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
const ROUNDS: u64 = 60;
const TIMES: u64 = 6;
/// Seeds at once, and tests of each at once: most of the time they wait for packets.
const AT_ONCE: u64 = 3;
const TESTS_AT_ONCE: &str = "6";
/// How long the tests of one seed may take. On two cores with a load of 30, three seeds at once took 48
/// minutes (`docs/results/kernel.json`).
const LONGEST: Duration = Duration::from_secs(3 * 60 * 60);
/// With this a test binary says how its tests ended.
const RESULT: &str = "test result: ";

/// What tests count, by the words of their lines.
const COUNTS: [&str; 5] = ["rulesets", "rules", "packets", "stricter", "in_conversations"];

/// Sums by test, and the tests that failed, each with its seed.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    tests: BTreeMap<String, [u64; COUNTS.len()]>,
    failed: Vec<(u64, String)>,
}

impl Sums {
    /// Adds what the tests of a seed have printed.
    ///
    /// # Errors
    /// They did not come to their end, or a test failed without saying what it has judged, or says that it
    /// failed and did not.
    fn add_all(&mut self, seed: u64, printed: &str) -> anyhow::Result<()> {
        let before = self.failed.len();
        printed.lines().try_for_each(|line| self.add(seed, line))?;
        let (failed, told) = (failed(printed)?, self.failed.len() - before);
        ensure!(failed == told, "{failed} tests failed, and {told} say that they did");
        Ok(())
    }

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

    fn report(&self, tree: &Tree, seeds: u64, seconds: u64) -> Value {
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
            "kernel": first_line(Command::new("uname").arg("-sr")),
            "nft": first_line(Command::new("nft").arg("--version")),
            "iptables": first_line(Command::new("iptables-legacy-restore").arg("--version")),
            "commit": tree.commit,
            "clean": tree.is_clean,
            "date": first_line(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"])),
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

/// What the tests are built of.
struct Tree {
    commit: String,
    /// Whether all but reports is as committed.
    is_clean: bool,
}

impl Tree {
    fn of(context: &Context) -> Tree {
        let mut git = Command::new("git");
        git.args(["rev-parse", "--short=12", "HEAD"]).current_dir(&context.root);
        Tree { commit: first_line(&mut git), is_clean: checkout::is_clean(&context.root) }
    }
}

/// How many packets are to be judged, of which there is at least one.
fn wanted(options: &[&str]) -> anyhow::Result<u64> {
    match options {
        [] => Ok(PACKETS),
        [packets] => {
            let number = packets.parse::<u64>().ok().filter(|number| *number > 0);
            number.with_context(|| format!("`{packets}` is no number of packets; give one from 1"))
        }
        _ => bail!("`cargo xtask kernel [PACKETS]` takes nothing else"),
    }
}

/// Runs the tests, and prints the counts. False, if the kernel said something else.
pub(super) fn run(context: &Context, options: &[&str]) -> anyhow::Result<bool> {
    let wanted = wanted(options)?;
    let tree = Tree::of(context);
    let binaries = binaries::build(context, &["-p", "import", "--test", "kernel"])?;
    let [binary] = &binaries[..] else { bail!("cargo names {} test binaries", binaries.len()) };
    let folder = context.target.join("printed");
    fs::create_dir_all(&folder)?;
    let begin = Instant::now();
    let (mut sums, mut seeds) = (Sums::default(), 0);
    while sums.packets() < wanted {
        let before = sums.packets();
        let printed = thread::scope(|scope| {
            let running: Vec<_> = (seeds + 1..=seeds + AT_ONCE)
                .map(|seed| {
                    let path = folder.join(format!("kernel-{seed}.txt"));
                    let run = move || one(context, binary, seed, &path).map(|printed| (seed, path, printed));
                    scope.spawn(run)
                })
                .collect();
            running.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        for printed in printed {
            let (seed, path, printed) = printed?;
            sums.add_all(seed, &printed).with_context(|| path.display().to_string())?;
        }
        seeds += AT_ONCE;
        ensure!(sums.packets() > before, "the kernel judged nothing: {}", folder.display());
        eprintln!("{} packets, seeds 1 to {seeds}, failed: {:?}", sums.packets(), sums.failed);
    }
    println!("{}", sums.report(&tree, seeds, begin.elapsed().as_secs()));
    Ok(sums.failed.is_empty())
}

/// Runs the tests of one seed, and returns what they printed; what they say of a failure stays in the file.
///
/// # Errors
/// They cannot be run, or did not end as they say.
fn one(context: &Context, binary: &Binary, seed: u64, path: &Path) -> anyhow::Result<String> {
    let file = File::create(path)?;
    let mut test = Command::new(&binary.file);
    test.args(["--nocapture", "--test-threads", TESTS_AT_ONCE]).current_dir(&binary.folder);
    test.env("RAVELIN_SEED", seed.to_string()).env("RAVELIN_ROUNDS", ROUNDS.to_string());
    test.env("RAVELIN_TIMES", TIMES.to_string());
    // What is missing here is an error, so that a test is run or fails.
    test.env("CI", "true").env("PATH", packages::search_path(context));
    let status = deadline::run(test.stdout(file.try_clone()?).stderr(file), LONGEST)?;
    let printed = fs::read_to_string(path)?;
    let failed = failed(&printed).with_context(|| format!("{}: {status}", path.display()))?;
    ensure!(status.success() == (failed == 0), "{failed} tests failed, with {status}: {}", path.display());
    Ok(printed)
}

/// How many tests of a binary failed, by what it prints at its end.
fn failed(printed: &str) -> anyhow::Result<usize> {
    let result = printed.lines().rev().find_map(|line| line.strip_prefix(RESULT));
    let result = result.context("the tests did not come to their end")?;
    let count = result.split("; ").find_map(|part| part.strip_suffix(" failed"));
    count.and_then(|count| count.parse().ok()).with_context(|| format!("no count of failures in {result}"))
}

/// The first line that a program prints, or nothing if it does not run.
fn first_line(program: &mut Command) -> String {
    let printed = program.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let printed = printed.unwrap_or_default();
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
        let tree = Tree { commit: "c".to_owned(), is_clean: false };
        let report = sums.report(&tree, 2, 3);
        assert_eq!((&report["judged"], &report["all"]["rules"]), (&json!(1_050), &json!(60)));
        assert_eq!((&report["commit"], &report["clean"]), (&json!("c"), &json!(false)));
        assert_eq!((&report["rounds"], &report["times"]), (&json!(60), &json!(6)));
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

    #[test]
    fn each_test_that_failed_says_so_or_nothing_counts() {
        let line = |failed: bool| LINE.replace("NAME", "a").replace("FAILED", &failed.to_string()) + "\n";
        let result = |word: &str, failed: usize| {
            format!("\ntest result: {word}. 3 passed; {failed} failed; 0 ignored; finished in 1.00s\n")
        };
        let add = |printed: &str| {
            let mut sums = Sums::default();
            sums.add_all(1, printed).map(|()| sums.failed.len())
        };
        assert_eq!(add(&(line(false) + &result("ok", 0))).expect("none failed"), 0);
        assert_eq!(add(&(line(true) + &line(false) + &result("FAILED", 1))).expect("it says so"), 1);
        let error = add(&(line(true) + &result("FAILED", 2))).expect_err("one says nothing").to_string();
        assert_eq!(error, "2 tests failed, and 1 say that they did");
        assert!(add(&(line(true) + &result("ok", 0))).is_err());
        assert!(add(&line(false)).expect_err("it was ended").to_string().contains("to their end"));
        assert!(add("test result: FAILED.").is_err());
    }

    #[test]
    fn no_packets_are_no_order() {
        assert_eq!((wanted(&[]).unwrap(), wanted(&["7"]).unwrap()), (PACKETS, 7));
        for options in [&["0"][..], &["-1"], &["many"], &["1", "2"]] {
            assert!(wanted(options).is_err(), "{options:?}");
        }
    }
}
