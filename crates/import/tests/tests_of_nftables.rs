//! What is kept of nftables' own tests: `RAVELIN_NFT_TESTS=DIRECTORY` names the folder `tests/py` of its
//! source, or a copy of some of its folders. Without it there is nothing to do.
//!
//! ```text
//! :input;type filter hook input priority 0     a chain, and what it is
//! *ip;test-ip4;input                           a table of a family, and its chains
//! !set1 type ipv4_addr;ok                      a set, `?set1 10.0.0.1;ok` an element, `%x counter;ok` an
//! object tcp dport 22;ok                              a rule that nft takes, or with `fail` refuses
//! ```
//!
//! Each rule is loaded by nft into a network namespace of its own, into each table of `ip`, `ip6` and `inet`,
//! and what nft prints is read as a policy. A line is kept if it is kept in all of these tables. Counted are
//! the lines of all, and of those that are about filtering: without marks, priorities, changes of packets and
//! what tells how connections are followed.

use import::policies::{PolicyOptions, read};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One file of tests.
#[derive(Default)]
struct Tests {
    chains: BTreeMap<String, String>,
    tables: Vec<[String; 3]>,
    sets: Vec<(String, String)>,
    elements: BTreeMap<String, Vec<String>>,
    objects: Vec<(String, String)>,
    /// The rules, and whether nft takes them.
    rules: Vec<(String, bool)>,
}

fn tests(text: &str) -> Tests {
    let mut tests = Tests::default();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '-'])) {
        let (kind, rest) = line.split_at(1);
        let named = || {
            let (text, _) = rest.rsplit_once(';')?;
            let (name, text) = text.split_once(' ')?;
            Some((name.to_owned(), text.to_owned()))
        };
        match kind {
            ":" => {
                let (name, text) = rest.split_once(';').expect("a chain says what it is");
                tests.chains.insert(name.to_owned(), text.to_owned());
            }
            "*" => {
                let parts: Vec<&str> = rest.split(';').collect();
                let [family, table, chains] = parts[..] else { panic!("{line} is no table") };
                let chain = chains.split(',').next().unwrap_or(chains);
                if ["ip", "ip6", "inet"].contains(&family) {
                    tests.tables.push([family, table, chain].map(str::to_owned));
                }
            }
            "!" if line.ends_with(";ok") => tests.sets.extend(named()),
            "%" if line.ends_with(";ok") => tests.objects.extend(named()),
            "?" if line.ends_with(";ok") => {
                let (name, element) = named().expect("an element has a set");
                tests.elements.entry(name).or_default().push(element);
            }
            "!" | "%" | "?" => {}
            _ => {
                let parts: Vec<&str> = line.split(';').collect();
                let verdict = parts.iter().position(|part| *part == "ok" || *part == "fail");
                let verdict = verdict.unwrap_or_else(|| panic!("{line} has no verdict"));
                tests.rules.push((parts[..verdict].join(";").replace('\\', ""), parts[verdict] == "ok"));
            }
        }
    }
    tests
}

impl Tests {
    fn ruleset(&self, [family, table, chain]: &[String; 3], rule: &str) -> String {
        let mut text = format!("table {family} {table} {{\n");
        for (name, object) in &self.objects {
            let object = object.strip_prefix("type ").unwrap_or(object);
            let (kind, rest) = object.split_once(' ').unwrap_or((object, ""));
            text += &format!("{kind} {name} {{ {rest}\n }}\n");
        }
        for (name, kind) in self.sets.iter().filter(|(name, _)| rule.contains(&format!("@{name}"))) {
            let kind = kind.replace(" timeout ", "; timeout ").replace(" flags ", "; flags ");
            let elements =
                self.elements.get(name).map(|all| format!("elements = {{ {} }}\n", all.join(", ")));
            text += &format!("set {name} {{ {kind}\n{}}}\n", elements.unwrap_or_default());
        }
        text + &format!("chain {chain} {{ {};\n{rule}\n}}\n}}\n", self.chains[chain])
    }
}

/// What nft prints of a ruleset; `None` if it refuses it.
fn printed(ruleset: &str) -> Option<Vec<u8>> {
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && nft -f - && nft -j list ruleset"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("unshare runs");
    // nft may end before it has read all.
    let _ = child.stdin.take().expect("a pipe").write_all(ruleset.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    output.status.success().then_some(output.stdout)
}

/// Why a ruleset is not kept, if it is not.
fn refused(json: &[u8]) -> Option<String> {
    let interfaces = ["dummy0", "dummy2"].iter().zip(1..).map(|(name, port)| ((*name).to_owned(), port));
    let options = PolicyOptions { interfaces: interfaces.collect(), ..PolicyOptions::default() };
    match read(json, "nft", &options) {
        Ok(policy) => policy.refused.first().map(|error| error.what.clone()),
        Err(error) => Some(error.what),
    }
}

/// Whether a rule asks the packet and its connection alone, and changes neither.
fn filters(rule: &str) -> bool {
    let words: Vec<&str> = rule.split_whitespace().collect();
    !words.iter().any(|word| ["mark", "set", "priority", "notrack", "map"].contains(word))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for family in ["any", "inet", "ip", "ip6"] {
        let Ok(entries) = fs::read_dir(folder.join(family)) else { continue };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "t")));
    }
    files.sort();
    files
}

#[test]
fn what_is_kept_of_nftables_own_tests_is_counted() {
    let Some(folder) = std::env::var_os("RAVELIN_NFT_TESTS").map(PathBuf::from) else {
        println!("RAVELIN_NFT_TESTS names no folder of tests: nothing was counted");
        return;
    };
    assert!(printed("table ip t { }\n").is_some(), "nft runs in no network namespace here");
    let (mut not_loaded, mut failing, mut taken) = (0, 0, Vec::new());
    let (mut lines, mut kept) = ([0; 2], [0; 2]);
    let mut causes: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for path in files(&folder) {
        let tests = tests(&fs::read_to_string(&path).expect("the file can be read"));
        for (rule, ok) in tests.rules.iter().filter(|_| !tests.tables.is_empty()) {
            let all: Vec<Option<Vec<u8>>> =
                tests.tables.iter().map(|table| printed(&tests.ruleset(table, rule))).collect();
            let place = format!("{}: {rule}", path.display());
            if !ok {
                failing += 1;
                taken.extend(
                    all.iter().flatten().filter(|json| refused(json).is_none()).map(|_| place.clone()),
                );
                continue;
            }
            if all.iter().any(Option::is_none) {
                not_loaded += 1;
                continue;
            }
            let cause = all.iter().flatten().find_map(|json| refused(json));
            for (index, counts) in [true, filters(rule)].into_iter().enumerate() {
                lines[index] += usize::from(counts);
                kept[index] += usize::from(counts && cause.is_none());
            }
            if let Some(cause) = cause {
                causes.entry(cause).or_insert((0, place)).0 += 1;
            }
        }
    }
    println!("{} of {} lines kept; about filtering {} of {}", kept[0], lines[0], kept[1], lines[1]);
    println!(
        "{not_loaded} lines that this nft does not load; {} of {failing} that must fail kept",
        taken.len()
    );
    let mut causes: Vec<(String, (usize, String))> = causes.into_iter().collect();
    causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (cause, (count, place)) in causes {
        println!("  {count} {cause} ({place})");
    }
    assert!(lines[0] > 0, "the folder holds no tests");
    assert_eq!(taken, Vec::<String>::new());
}
