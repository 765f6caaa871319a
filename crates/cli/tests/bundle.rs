//! `ravelin bundle`: a policy is signed by two people, shown and judged.

use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const POLICY: &str = r#"
gateway = "gateway-7"
version = 12
not_before = "2026-01-01T00:00:00Z"
expiry = "2036-01-01T00:00:00Z"
engine = "0.1.0"
program = "wire.rav"

[rights.routes]
prefixes = ["192.168.0.0/16", "10.0.0.0/8", "2001:db8::/32"]
most_entries = 1000
changes_per_second = 50
"#;

/// A folder with a program, its description, two keys, and a gateway's trust in them.
struct Desk {
    folder: TempDir,
    keys: [String; 2],
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/wire.rav");
        fs::copy(program, folder.path().join("wire.rav")).unwrap();
        let mut desk = Desk { folder, keys: [String::new(), String::new()] };
        desk.write("policy.toml", POLICY);
        desk.keys = ["anna.key", "bert.key"].map(|file| desk.good("key new", &[file]).trim().to_owned());
        desk.trust("gateway-7", 2);
        desk
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn trust(&self, gateway: &str, threshold: usize) {
        let [anna, bert] = &self.keys;
        let keys = format!("anna = \"{anna}\"\nbert = \"{bert}\"");
        self.write(
            "trust.toml",
            &format!("gateway = \"{gateway}\"\nthreshold = {threshold}\n[keys]\n{keys}\n"),
        );
    }

    fn run(&self, what: &str, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ravelin"));
        command.current_dir(self.folder.path()).arg("bundle").args(what.split(' ')).args(words);
        command.output().unwrap()
    }

    #[track_caller]
    fn good(&self, what: &str, words: &[&str]) -> String {
        let output = self.run(what, words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is said of a command that finds something.
    #[track_caller]
    fn refused(&self, what: &str, words: &[&str]) -> String {
        let output = self.run(what, words);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    }

    fn sign_by_both(&self) {
        self.good("sign", &["policy.toml", "--key", "anna.key", "--out", "one.bundle"]);
        self.good("sign", &["one.bundle", "--key", "bert.key", "--out", "two.bundle"]);
    }
}

const VERIFY: [&str; 4] = ["--trust", "trust.toml", "--at", "2027-06-01T00:00:00Z"];

#[test]
fn a_policy_that_two_signed_is_accepted_and_shown_as_it_was_described() {
    let desk = Desk::new();
    desk.sign_by_both();
    let told = desk.good("verify two.bundle", &VERIFY);
    for line in [
        "gateway gateway-7",
        "version 12",
        "from 2026-01-01T00:00:00Z",
        "until 2036-01-01T00:00:00Z",
        "engine 0.1.0 or newer",
        "control may change routes: at most 1000 entries, 50 changes a second, under 3 prefixes",
        "  10.0.0.0/8",
        "  192.168.0.0/16",
        "  2001:db8::/32",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    assert!(
        told.contains("accepted, signed by ") && told.contains("anna") && told.contains("bert"),
        "{told}"
    );

    // The program is the IR, which may be signed as it is.
    let program = desk.good("show two.bundle --program", &[]);
    desk.write("wire.ir", &program);
    desk.write("again.toml", &POLICY.replace("wire.rav", "wire.ir"));
    desk.good("sign", &["again.toml", "--key", "anna.key", "--out", "again.bundle"]);
    let bytes = |file: &str| fs::read(desk.folder.path().join(file)).unwrap();
    assert_eq!(bytes("again.bundle"), bytes("one.bundle"));

    let shown: Value = serde_json::from_str(&desk.good("show two.bundle --json", &[])).unwrap();
    assert_eq!(shown["version"], 12);
    let mut keys = desk.keys.clone();
    keys.sort_unstable();
    assert_eq!(shown["keys"], Value::from(keys.to_vec()));
    assert_eq!(desk.good("key show", &["anna.key"]).trim(), desk.keys[0]);
}

#[test]
fn what_a_gateway_would_refuse_is_refused_with_the_reason() {
    let desk = Desk::new();
    desk.sign_by_both();
    let few = desk.refused("verify one.bundle", &VERIFY);
    assert!(few.contains("1 of the 2 signatures that are needed"), "{few}");
    let old = desk.refused("verify two.bundle --newest 12", &VERIFY);
    assert!(old.contains("version 12 was accepted before"), "{old}");
    let expired = desk.refused("verify two.bundle --trust trust.toml --at 2036-01-01T00:00:00Z", &[]);
    assert!(expired.contains("was valid until"), "{expired}");
    desk.trust("gateway-8", 2);
    let other = desk.refused("verify two.bundle", &VERIFY);
    assert!(other.contains("is for gateway gateway-7, and this is gateway-8"), "{other}");
    desk.trust("gateway-7", 3);
    let never = desk.refused("verify two.bundle", &VERIFY);
    assert!(never.contains("the threshold is 3, with 2 keys"), "{never}");
    desk.trust("gateway-7", 2);
    let mut changed = fs::read(desk.folder.path().join("two.bundle")).unwrap();
    changed[40] ^= 1;
    fs::write(desk.folder.path().join("two.bundle"), changed).unwrap();
    let changed = desk.refused("verify two.bundle", &VERIFY);
    assert!(changed.contains("was changed after it was signed"), "{changed}");
}

#[test]
fn what_cannot_be_signed_is_told_and_nothing_is_written_over() {
    let desk = Desk::new();
    let sign = ["--key", "anna.key", "--out", "new.bundle"];
    for (from, to, told) in [
        ("version", "versoin", "unknown field"),
        ("10.0.0.0/8", "10.0.0.1/8", "10.0.0.1/8 is no prefix"),
        ("2036-01-01", "2026-01-01", "an expiry after the first second"),
        ("0.1.0", "0.1", "0.1 is no version"),
        ("2026-01-01T00:00:00Z", "tomorrow", "not_before: tomorrow is no time"),
        ("gateway-7", "gateway 7", "a name of visible characters"),
        ("192.168.0.0/16", "10.0.0.0/8", "prefixes in ascending order"),
    ] {
        desk.write("wrong.toml", &POLICY.replace(from, to));
        let said = desk.refused("sign wrong.toml", &sign);
        assert!(said.contains(told), "{told}\n{said}");
    }
    desk.write("wire.ir", "program no IR\n");
    desk.write("wrong.toml", &POLICY.replace("wire.rav", "wire.ir"));
    assert!(desk.refused("sign wrong.toml", &sign).contains("wire.ir"));
    assert!(!desk.folder.path().join("new.bundle").exists());

    desk.good("sign policy.toml", &sign);
    let again = desk.refused("sign policy.toml", &sign);
    assert!(again.contains("cannot write new.bundle"), "{again}");
    let again = desk.refused("key new anna.key", &[]);
    assert!(again.contains("a key is never written over"), "{again}");
    let key = desk.folder.path().join("anna.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    let open = desk.refused("key show anna.key", &[]);
    assert!(open.contains("may be read or written by others"), "{open}");
    desk.write("empty.key", "");
    fs::set_permissions(desk.folder.path().join("empty.key"), Permissions::from_mode(0o600)).unwrap();
    assert!(desk.refused("key show empty.key", &[]).contains("it does not hold a key"));
}
