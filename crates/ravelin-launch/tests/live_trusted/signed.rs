//! A gateway that takes only policies that its administrators signed.

use super::changed::channel_of_control;
use super::{LIMIT, PROGRAM, Trusted, built};
use bundle::sign::{Signer, add_signature, sign};
use bundle::{EngineVersion, SignedPolicy, TableRight};
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer};
use messages::limits::AFTER_POLICY;
use redteam::asked;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

const NAMES: [&str; 3] = ["anna", "bert", "cleo"];

fn signer(number: u8) -> Signer {
    Signer::new(&[number + 1; 32]).expect("a key")
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The section of the gateway's file: two of three must sign.
pub(crate) fn trust() -> String {
    let mut text = "[trust]\ngateway = \"g7\"\nthreshold = 2\nkeep_in = \"kept\"\n[trust.keys]\n".to_owned();
    for (number, name) in (0..).zip(NAMES) {
        text += &format!("{name} = \"{}\"\n", hexadecimal(&signer(number).public_key()));
    }
    text
}

/// A program of the language as the text of its IR.
pub(crate) fn ir(folder: &Path, program: &str) -> String {
    let file = folder.join("signed.rav");
    fs::write(&file, program).expect("written");
    let output = Command::new(built("ravelin")).args(["compile", "--show", "ir"]).arg(&file).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A policy that lets datagrams to port 7 pass, and those to port 9 if it `opens` that.
pub(crate) fn policy(folder: &Path, version: u64, opens: bool) -> SignedPolicy {
    let program = if opens { PROGRAM.replace("7 => across", "7 | 9 => across") } else { PROGRAM.to_owned() };
    policy_of(folder, version, &program)
}

/// A policy of a program.
pub(crate) fn policy_of(folder: &Path, version: u64, program: &str) -> SignedPolicy {
    let engine = EngineVersion::OWN;
    let (not_before, expiry) = (0, 1 << 40);
    let program = ir(folder, program);
    SignedPolicy {
        gateway: "g7".to_owned(),
        version,
        not_before,
        expiry,
        engine,
        program,
        rights: Vec::new(),
    }
}

/// Its bundle.
pub(crate) fn signed(policy: &SignedPolicy, by: &[u8]) -> Vec<u8> {
    let bundle = sign(policy, &signer(by[0])).expect("a policy");
    by[1..].iter().fold(bundle, |bundle, number| add_signature(&bundle, &signer(*number)).expect("signed"))
}

/// A gateway that begins with version 1, which lets port 7 pass alone.
fn gateway(test: &str) -> Option<Trusted> {
    gateway_with(test, &trust(), |_| {})
}

/// The same with this section in its file, and with what is to be made ready.
pub(crate) fn gateway_with(test: &str, in_file: &str, ready: impl FnOnce(&Path)) -> Option<Trusted> {
    let trusted = Trusted::with(test, &[], in_file, |folder| {
        ready(folder);
        let bundle = signed(&policy(folder, 1, false), &[0, 1]);
        fs::write(folder.join("first.bundle"), bundle).expect("written");
        let file = folder.join("gateway.toml");
        let text = fs::read_to_string(&file).expect("it is there").replace("filter.rav", "first.bundle");
        fs::write(file, text).expect("written");
    })?;
    // In the order of their keys.
    trusted.hears(": policy version 1, signed by bert and anna");
    trusted.hears("policy version 1 is kept");
    Some(trusted)
}

/// Whether a command ended well, and what it said.
pub(crate) fn ended(output: io::Result<Output>) -> (bool, String) {
    let output = output.expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

impl Trusted {
    /// `ravelin bundle` with these arguments.
    pub(crate) fn bundle_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(built("ravelin"));
        command.arg("bundle").args(arguments);
        command.arg("--control").arg(self.folder.path().join("control.sock"));
        command
    }

    /// Whether it ends well, and what it says.
    fn bundle(&self, arguments: &[&str]) -> (bool, String) {
        ended(self.bundle_command(arguments).output())
    }

    /// Hands in a bundle.
    pub(crate) fn install(&self, bundle: &[u8], more: &[&str]) -> (bool, String) {
        // Whoever answers may be starting.
        self.shown();
        let file = self.folder.path().join("new.bundle");
        fs::write(&file, bundle).expect("written");
        self.bundle(&[&["install", file.to_str().expect("text")], more].concat())
    }

    /// Hands in a policy that two have signed, and returns its hash.
    pub(crate) fn installed(&self, version: u64, opens: bool, more: &[&str]) -> String {
        let bundle = signed(&policy(self.folder.path(), version, opens), &[1, 2]);
        let (well, said) = self.install(&bundle, more);
        assert!(well && said.contains(&format!("version {version} runs, signed by bert and cleo")), "{said}");
        let shown = self.shown();
        assert_eq!(shown["policy"]["version"], version, "{shown}");
        shown["policy"]["hash"].as_str().expect("a text").to_owned()
    }

    /// Hands in a bundle that is refused, and returns why; what ran goes on.
    pub(crate) fn refused(&self, bundle: &[u8]) -> String {
        let before = self.shown();
        let (well, said) = self.install(bundle, &[]);
        assert!(!well, "{said}");
        self.hears("core: what ran goes on: ");
        let now = self.shown();
        assert_eq!((&before["hash"], &before["policy"]), (&now["hash"], &now["policy"]));
        said
    }

    /// Kills everything at once, and starts it again.
    pub(crate) fn kill_all(&mut self) {
        let launch = Pid::from_raw(self.launch.id() as i32).expect("not 0");
        kill_process(launch, Signal::KILL).expect("it runs");
        self.launch.wait().expect("it ends");
        self.start_again();
    }
}

#[test]
fn only_the_confirmed_policy_comes_back_and_no_version_a_second_time_whatever_is_killed() {
    let test = "only_the_confirmed_policy_comes_back_and_no_version_a_second_time_whatever_is_killed";
    let Some(mut trusted) = gateway(test) else { return };
    assert_eq!(trusted.passes(), 0);
    let shown = trusted.shown();
    let key = |number| hexadecimal(&signer(number).public_key());
    assert_eq!(shown["policy"]["signed_by"]["anna"], key(0), "{shown}");
    assert_eq!(shown["policy"]["signed_by"]["bert"], key(1), "{shown}");
    assert_eq!(shown["policy"]["confirmed"], true, "{shown}");

    // The kept one takes over before `compile` hands in what the file names.
    trusted.kill("ravelin-core");
    trusted.hears("core: program 2 runs");
    trusted.hears("version 1 was accepted before");
    assert_eq!(trusted.passes(), 0);

    // Nothing of an unconfirmed one is left but its version.
    trusted.installed(2, true, &["--confirm-within", "600s"]);
    let shown = trusted.shown();
    assert_eq!((&shown["policy"]["confirmed"], &shown["policy"]["before"]), (&false.into(), &1.into()));
    assert!((1..=600).contains(&shown["policy"]["seconds_left"].as_u64().expect("a number")), "{shown}");
    assert!(trusted.passes() > 0, "the other port is open");
    trusted.kill("ravelin-core");
    trusted.hears(": policy version 1, which was kept");
    assert_eq!(trusted.passes(), 0);
    let second = signed(&policy(trusted.folder.path(), 2, true), &[0, 1, 2]);
    assert!(trusted.refused(&second).contains("version 2 was accepted before"));

    // One that is confirmed stays.
    let hash = trusted.installed(3, true, &["--confirm-within", "600s"]);
    let (well, said) = trusted.bundle(&["confirm", &"0".repeat(64)]);
    assert!(!well && said.contains(&hash), "{said}");
    let (well, said) = trusted.bundle(&["confirm", &hash]);
    assert!(well && said.starts_with("version 3 runs"), "{said}");
    trusted.hears("policy version 3 is kept");
    assert_eq!(trusted.shown()["policy"]["confirmed"], true);
    trusted.kill("ravelin-core");
    trusted.hears(": policy version 3, which was kept");
    assert!(trusted.passes() > 0);
    trusted.kill_all();
    trusted.hears(": policy version 3, which was kept");
    assert!(trusted.passes() > 0);
    assert_eq!(trusted.shown()["policy"]["hash"], hash.as_str());
    let third = signed(&policy(trusted.folder.path(), 3, false), &[0, 1]);
    assert!(trusted.refused(&third).contains("version 3 was accepted before"));
    let (well, said) = trusted.bundle(&["confirm", &hash]);
    assert!(!well && said.contains("no policy has to be confirmed"), "{said}");
}

#[test]
fn a_policy_that_is_not_confirmed_in_time_gives_way_to_the_one_before_it() {
    let test = "a_policy_that_is_not_confirmed_in_time_gives_way_to_the_one_before_it";
    let Some(trusted) = gateway(test) else { return };
    // The disk may take its time before the answer.
    trusted.installed(2, true, &["--confirm-within", "10s"]);
    // Whoever hands policies in is not needed for it.
    trusted.kill("ravelin-control");
    trusted.hears(": policy version 1, since version 2 was not confirmed");
    assert_eq!(trusted.passes(), 0);
    let shown = trusted.shown();
    assert_eq!((&shown["policy"]["version"], &shown["policy"]["confirmed"]), (&1.into(), &true.into()));
    let second = signed(&policy(trusted.folder.path(), 2, true), &[0, 1]);
    assert!(trusted.refused(&second).contains("version 2 was accepted before"));
}

#[test]
fn what_administrators_have_not_signed_for_now_is_refused_from_whomever_it_comes() {
    let test = "what_administrators_have_not_signed_for_now_is_refused_from_whomever_it_comes";
    let Some(mut trusted) = gateway(test) else { return };
    let folder = trusted.folder.path().to_owned();
    let folder = folder.as_path();
    trusted.installed(5, false, &[]);
    let second = SystemTime::now().duration_since(UNIX_EPOCH).expect("later").as_secs();
    let good = policy(folder, 6, true);
    let both = |policy: &SignedPolicy| signed(policy, &[0, 1]);
    let right = TableRight {
        table: "routes".to_owned(),
        prefixes: Vec::new(),
        most_entries: 1,
        changes_per_second: 1,
    };
    let mut changed = both(&good);
    let at = changed.len() / 2;
    changed[at] ^= 1;
    let cases = [
        ("version 5 was accepted before", both(&SignedPolicy { version: 5, ..good.clone() })),
        ("version 5 was accepted before", both(&SignedPolicy { version: 4, ..good.clone() })),
        ("is for gateway g8", both(&SignedPolicy { gateway: "g8".to_owned(), ..good.clone() })),
        ("1 of the 2 signatures", signed(&good, &[0])),
        ("does not know", signed(&good, &[0, 7])),
        ("was valid until", both(&SignedPolicy { expiry: second - 1, ..good.clone() })),
        ("is valid from", both(&SignedPolicy { not_before: second + 3600, ..good.clone() })),
        ("the signature of", changed),
        ("byte 0 of the bundle", good.program.clone().into_bytes()),
        ("a right for the table `routes`", both(&SignedPolicy { rights: vec![right], ..good.clone() })),
        ("cannot be read", both(&SignedPolicy { program: "program".to_owned(), ..good.clone() })),
    ];
    let (begun, count) = (Instant::now(), cases.len() as u32);
    for (why, bundle) in cases {
        let said = trusted.refused(&bundle);
        assert!(said.contains(why), "{why}: {said}");
    }
    // Nobody has the core compute signatures without a pause.
    assert!(begun.elapsed() >= AFTER_POLICY * (count - 1));
    assert_eq!(trusted.passes(), 0);

    // `compile` may hand in a bundle, but none that is replayed, and no program by itself, whatever it reads.
    let reload = |trusted: &Trusted| {
        let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
        kill_process(launch, Signal::HUP).expect("it runs");
    };
    reload(&trusted);
    trusted.hears("core: what ran goes on: the bundle has version 1");
    let file = folder.join("gateway.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let (before, _) = text.split_once("[trust]").expect("it is there");
    let open = PROGRAM.replace("7 => across", "7 | 9 => across");
    fs::write(folder.join("filter.rav"), open).expect("written");
    fs::write(&file, before.replace("first.bundle", "filter.rav")).expect("written");
    reload(&trusted);
    trusted.hears("core: what ran goes on: gateway.toml: other `[trust]` than the gateway runs with");
    trusted.start_blind();
    trusted.hears("core: what ran goes on: the program is not signed");
    assert_eq!(trusted.passes(), 0);
    fs::write(&file, text).expect("written");
    fs::write(folder.join("first.bundle"), both(&good)).expect("written");
    reload(&trusted);
    trusted.hears(": policy version 6, signed by bert and anna");
    assert!(trusted.passes() > 0);
}

/// A file system in memory, as long as it is needed.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mounted(at: &Path) -> SmallDisk<'_> {
        fs::create_dir(at).expect("a folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs"]).arg(at);
        assert!(mount.status().expect("it runs").success());
        SmallDisk(at)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_the_policy_takes_over_nevertheless() {
    let test = "a_full_disk_is_told_and_the_policy_takes_over_nevertheless";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk");
    let mut disk = None;
    let in_file = trust().replace("\"kept\"", &format!("\"{}\"", path.display()));
    let Some(mut trusted) = gateway_with(test, &in_file, |_| disk = Some(SmallDisk::mounted(&path))) else {
        return;
    };
    let filling = vec![0; 128 << 10];
    assert!(fs::write(path.join("filling"), &filling).is_err(), "it is full");
    let bundle = signed(&policy(trusted.folder.path(), 2, true), &[0, 1]);
    let (well, said) = trusted.install(&bundle, &[]);
    assert!(well && said.contains("it is not kept") && said.contains("No space left"), "{said}");
    trusted.hears("ravelin-launch: version 2 is not on the disk: No space left");
    assert!(trusted.passes() > 0, "it has taken over");
    // As long as the gateway runs, nothing else comes back.
    trusted.kill("ravelin-core");
    trusted.hears(": policy version 2, which was kept");
    assert!(trusted.passes() > 0);
    // The old one is whole on the disk.
    trusted.kill_all();
    trusted.hears(": policy version 1, which was kept");
    assert_eq!(trusted.passes(), 0);
    fs::remove_file(path.join("filling")).expect("it is there");
    trusted.installed(3, true, &[]);
    trusted.hears("policy version 3 is kept");
}

#[test]
fn within_a_second_after_a_policy_the_core_takes_no_other_and_answers_other_questions() {
    let test = "within_a_second_after_a_policy_the_core_takes_no_other_and_answers_other_questions";
    let Some(trusted) = gateway(test) else { return };
    let (control, mut core) = channel_of_control(&trusted);
    let mut asks = |question: &ControlQuestion| asked(&mut core, question).expect("it answers");
    let install = ControlQuestion::Install { bundle: vec![1; 9], confirm_within: None };
    let questions = [&install, &ControlQuestion::Show, &install, &ControlQuestion::Confirm { hash: [0; 32] }];
    let end = Instant::now() + LIMIT;
    let answers = loop {
        assert!(Instant::now() < end, "four answers never come within a second");
        let begun = Instant::now();
        let answers = questions.map(&mut asks);
        // Otherwise a second has passed, whoever had the processors.
        if begun.elapsed() < AFTER_POLICY {
            break answers;
        }
        thread::sleep(AFTER_POLICY);
    };
    let [
        CoreAnswer::Refused(_),
        CoreAnswer::Shown(_),
        CoreAnswer::TooFast { milliseconds, .. },
        CoreAnswer::TooFast { .. },
    ] = answers
    else {
        panic!("{answers:?}")
    };
    assert!(milliseconds <= AFTER_POLICY.as_millis() as u64);
    thread::sleep(AFTER_POLICY);
    assert!(matches!(asks(&install), CoreAnswer::Refused(_)));
    kill_process(control, Signal::KILL).expect("it is there");
}

#[test]
fn a_control_that_shuts_its_socket_shuts_no_other() {
    let test = "a_control_that_shuts_its_socket_shuts_no_other";
    let Some(trusted) = gateway(test) else { return };
    trusted.shown();
    let control = pidfd_open(trusted.process("ravelin-control"), PidfdFlags::empty()).expect("it runs");
    // It has its socket as its standard output.
    let socket = pidfd_getfd(control, 1, PidfdGetfdFlags::empty()).expect("root may have it");
    shutdown(&socket, Shutdown::Both).expect("so may whoever has it");
    trusted.kill("ravelin-control");
    trusted.hears("control was ended by signal 9");
    assert_eq!(trusted.shown()["policy"]["version"], 1);
}

#[test]
fn whatever_is_killed_while_a_policy_is_handed_in_the_old_or_the_new_one_runs() {
    let test = "whatever_is_killed_while_a_policy_is_handed_in_the_old_or_the_new_one_runs";
    let Some(mut trusted) = gateway(test) else { return };
    let mut told = 1;
    let victims = ["ravelin-core", "ravelin-control", "ravelin-launch"];
    for (version, wait) in (2..).zip([0, 3, 10, 20, 30, 40, 60, 80, 120]) {
        let bundle = signed(&policy(trusted.folder.path(), version, false), &[0, 1]);
        let victim = victims[version as usize % victims.len()];
        trusted.shown();
        let file = trusted.folder.path().join("new.bundle");
        fs::write(&file, bundle).expect("written");
        let mut installs = trusted.bundle_command(&["install", file.to_str().expect("text")]);
        let installs = installs.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(wait));
        let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
        let process = trusted.processes(victim).first().copied().unwrap_or(launch);
        kill_process(process, Signal::KILL).expect("it runs");
        let (well, said) = ended(installs.wait_with_output());
        if process == launch {
            trusted.launch.wait().expect("it ends");
            trusted.start_again();
        }
        // What was told to run and to be kept comes back after an end of everything.
        if well {
            assert!(!said.contains("not kept"), "{said}");
            told = version;
        }
        let shown = trusted.shown()["policy"]["version"].as_u64().expect("one runs");
        assert!((told..=version).contains(&shown), "{victim}: {told}, {version}: {shown}: {said}");
        assert_eq!(trusted.passes(), 0);
    }
    trusted.kill_all();
    let shown = trusted.shown()["policy"]["version"].as_u64().expect("one runs");
    assert!((told..=10).contains(&shown), "{told}: {shown}");
}

#[test]
fn a_policy_that_cannot_return_in_place_returns_by_another_core() {
    let test = "a_policy_that_cannot_return_in_place_returns_by_another_core";
    let Some(trusted) = gateway(test) else { return };
    let folder = trusted.folder.path();
    let core = trusted.process("ravelin-core");
    let with = |version, table: &str| {
        let program = ir(folder, &PROGRAM.replace("reason closed", &format!("{table}\nreason closed")));
        signed(&SignedPolicy { program, ..policy(folder, version, false) }, &[0, 1])
    };
    let table = |column: &str| format!("table seen: exact(a: {column}) -> {{ known }} {{ capacity 8 }}");
    let install = |bundle: &[u8], within: &[&str]| {
        let (well, said) = trusted.install(bundle, within);
        assert!(well, "{said}");
    };
    install(&with(2, &table("ip4")), &[]);
    // What it remembers is given up, so that another one may remember something else under the name.
    install(&with(3, ""), &["--confirm-within", "600s"]);
    install(&with(4, &table("u16")), &["--confirm-within", "10s"]);
    assert_eq!(trusted.process("ravelin-core"), core);
    trusted.hears("core: ravelin-core: the policy before the unconfirmed one does not take over: ");
    trusted.hears("core ended with 1");
    trusted.hears(": policy version 2, which was kept");
    assert_eq!(trusted.passes(), 0);
    assert_ne!(trusted.process("ravelin-core"), core);
}

#[test]
fn a_control_that_reads_no_answer_holds_nobody_up() {
    let test = "a_control_that_reads_no_answer_holds_nobody_up";
    let Some(trusted) = gateway(test) else { return };
    trusted.shown();
    let number = trusted.process("ravelin-control");
    kill_process(number, Signal::STOP).expect("it runs");
    let control = pidfd_open(number, PidfdFlags::empty()).expect("it is there");
    // It asks by its standard input.
    let channel = pidfd_getfd(control, 0, PidfdGetfdFlags::empty()).expect("root may have it");
    let mut core = Channel::of(channel);
    core.send_within(Duration::from_millis(100)).expect("a time");
    // Until neither questions nor answers have room.
    while core.send(&ControlQuestion::Show, &[]).is_ok() {}
    trusted.hears("control does not take its answer");
    kill_process(number, Signal::KILL).expect("it is there");
    trusted.installed(2, true, &[]);
    assert!(trusted.passes() > 0);
}

#[test]
fn a_file_that_asks_for_signatures_is_refused_where_they_would_mean_less() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("filter.rav"), PROGRAM).expect("written");
    let file = folder.path().join("gateway.toml");
    let text = format!("program = \"filter.rav\"\n[[port]]\ninterface = \"lo\"\n{}", trust());
    let serve =
        |more: &[&str]| ended(Command::new(built("ravelin")).arg("serve").arg(&file).args(more).output());
    for (more, refused) in [
        ("[[table]]\nname = \"t\"\nfrom = \"filter.rav\"\n", "mean nothing with `[trust]`"),
        ("[set]\nLIMIT = 5\n", "mean nothing with `[trust]`"),
    ] {
        fs::write(&file, format!("{text}{more}")).expect("written");
        let (well, said) = serve(&["--trusted"]);
        assert!(!well && said.contains(refused), "{said}");
    }
    fs::write(&file, format!("workers = 2\n{text}")).expect("written");
    let (well, said) = serve(&["--trusted"]);
    assert!(!well && said.contains("write `state = \"per-worker\"` if policies may"), "{said}");
    fs::write(&file, &text).expect("written");
    let (well, said) = serve(&["--one-process"]);
    assert!(!well && said.contains("with `[trust]` a gateway is never one process"), "{said}");
    let (well, said) = serve(&["--check"]);
    assert!(!well && said.contains("byte 0 of the bundle"), "{said}");
    let bundle = signed(&policy(folder.path(), 1, false), &[0, 1]);
    fs::write(folder.path().join("filter.rav"), bundle).expect("written");
    let (well, said) = serve(&["--check"]);
    assert!(well && said.contains("accepted, signed by bert, anna"), "{said}");
}
