//! A gateway that is asked over a network: by whom it knows, for what his role allows, and by nobody else.

use super::signed::{ended, gateway_with, hexadecimal, policy, signed, trust};
use super::{LIMIT, Trusted, built, namespace, status};
use front::limits::SHORT_QUESTION;
use front::{IdentityKey, Session};
use messages::control::{ControlQuestion, CoreAnswer};
use rustix::net::{self, AddressFamily, Shutdown, SocketType, shutdown};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Where it listens.
const LISTEN: &str = "127.0.0.1:4433";

/// Its own key, and one that it does not know.
const OWN: (&str, u8) = ("front", 20);
const STRANGER: (&str, u8) = ("stranger", 30);

/// The clients that it knows, with their keys and roles.
const CLIENTS: [(&str, u8, &str); 4] =
    [("rita", 21, "reader"), ("otto", 22, "operator"), ("anna", 23, "administrator"), ("olga", 24, "owner")];

fn key(number: u8) -> IdentityKey {
    IdentityKey::new([number; 32]).expect("a key")
}

fn public(number: u8) -> String {
    hexadecimal(&key(number).public_key())
}

/// The files of all keys.
pub(crate) struct Keys(tempfile::TempDir);

impl Keys {
    pub(crate) fn new() -> Keys {
        let keys = Keys(tempfile::tempdir().expect("a folder"));
        let clients = CLIENTS.map(|(name, number, _)| (name, number));
        for (name, number) in [OWN, STRANGER].into_iter().chain(clients) {
            let mut file = File::options();
            let file = file.write(true).create_new(true).mode(0o600).open(keys.of(name));
            file.and_then(|mut file| writeln!(file, "{}", key(number).to_text())).expect("written");
        }
        keys
    }

    fn of(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The section of the gateway's file.
    pub(crate) fn section(&self) -> String {
        let mut text =
            format!("[front]\nlisten = \"{LISTEN}\"\nkey = {:?}\n[front.clients]\n", self.of(OWN.0));
        for (name, number, role) in CLIENTS {
            text += &format!("{name} = {{ key = \"{}\", role = \"{role}\" }}\n", public(number));
        }
        text
    }
}

/// A gateway that is asked over a network, and the keys.
struct Remote {
    trusted: Trusted,
    keys: Keys,
}

impl Remote {
    /// It begins with version 1, which lets port 7 pass alone.
    fn new(test: &str) -> Option<Remote> {
        let keys = Keys::new();
        let trusted = gateway_with(test, &(trust() + &keys.section()), |_| {})?;
        trusted.gateway.links().expect("links").up("lo").expect("it is on");
        // The front starts behind `control`.
        trusted.shown();
        Some(Remote { trusted, keys })
    }

    /// A command that asks as this client.
    fn command(&self, client: &str, arguments: &[&str]) -> Command {
        let mut command = self.trusted.gateway.command(built("ravelin"), None);
        command.args(arguments).args(["--front", LISTEN, "--server-key", &public(OWN.1)]);
        command.arg("--identity").arg(self.keys.of(client));
        command
    }

    /// Whether it ends well, and what it says.
    fn asks(&self, client: &str, arguments: &[&str]) -> (bool, String) {
        ended(self.command(client, arguments).output())
    }

    /// Hands a policy in that two have signed.
    fn installs(&self, client: &str, version: u64, opens: bool, more: &[&str]) -> (bool, String) {
        let bundle = signed(&policy(self.trusted.folder.path(), version, opens), &[1, 2]);
        let file = self.trusted.folder.path().join("new.bundle");
        fs::write(&file, &bundle).expect("written");
        self.asks(client, &[&["bundle", "install", file.to_str().expect("text")], more].concat())
    }
}

#[test]
fn a_policy_comes_over_a_network_from_an_administrator_and_an_operator_confirms_it() {
    let test = "a_policy_comes_over_a_network_from_an_administrator_and_an_operator_confirms_it";
    let Some(remote) = Remote::new(test) else { return };
    let (well, said) = remote.installs("anna", 2, true, &["--confirm-within", "600s"]);
    assert!(well && said.contains("version 2 runs, signed by bert and cleo"), "{said}");
    assert!(remote.trusted.passes() > 0, "the other port is open");
    remote.trusted.hears("front: anna (administrator) at 127.0.0.1:");
    let shown = remote.trusted.shown();
    let hash = shown["policy"]["hash"].as_str().expect("a text");
    let (well, said) = remote.asks("otto", &["bundle", "confirm", hash]);
    assert!(well && said.starts_with("version 2 runs"), "{said}");
    remote.trusted.hears("policy version 2 is kept");
    let (well, said) = remote.asks("rita", &["show", "policy"]);
    assert!(well && said.contains(hash) && said.contains("confirmed   yes"), "{said}");
}

#[test]
fn whoever_is_not_known_or_has_no_right_changes_nothing() {
    let test = "whoever_is_not_known_or_has_no_right_changes_nothing";
    let Some(remote) = Remote::new(test) else { return };
    let (trusted, folder) = (&remote.trusted, remote.trusted.folder.path());
    let before = trusted.shown();
    let refused = |(well, said): (bool, String), why: &str| assert!(!well && said.contains(why), "{said}");

    // By the key.
    refused(remote.asks("stranger", &["show", "policy"]), "the front does not know this key");
    trusted.hears("is refused: ");
    let mut command = trusted.gateway.command(built("ravelin"), None);
    command.args(["show", "policy", "--front", LISTEN, "--server-key", &public(STRANGER.1)]);
    refused(ended(command.arg("--identity").arg(remote.keys.of("rita")).output()), "has another key");
    let signs = remote.keys.of("signs");
    let made = Command::new(built("ravelin")).args(["bundle", "key", "new"]).arg(&signs).output();
    assert!(ended(made).0);
    refused(remote.asks("signs", &["show", "policy"]), "keys that sign policies are others");

    // By the role, as the command says before it asks, and as the front says to whoever asks nevertheless.
    for (client, more, needed) in [
        ("rita", &["--confirm-within", "60s"][..], "needs the role administrator"),
        ("otto", &[], "needs the role owner"),
        ("anna", &[], "or a time to confirm"),
    ] {
        refused(remote.installs(client, 2, true, more), needed);
    }
    let bundle = signed(&policy(folder, 2, true), &[0, 1]);
    assert!(bundle.len() > SHORT_QUESTION);
    let hash = [0; 32];
    let install = |confirm_within| ControlQuestion::Install { bundle: bundle.clone(), confirm_within };
    for (client, question, why) in [
        (21, install(Some(60)), "of which reader may send 64 at most"),
        (21, ControlQuestion::Confirm { hash }, "needs the role operator"),
        (22, install(Some(60)), "of which operator may send 64 at most"),
        (23, install(None), "needs the role owner"),
    ] {
        let answer = trusted.gateway.inside(|| {
            let session = Session::connect(LISTEN, &key(client), &public(OWN.1));
            session.expect("it is known").ask(&question).map_err(io::Error::other)
        });
        let Ok(CoreAnswer::Refused(said)) = answer else { panic!("{client}: {answer:?}") };
        assert!(said.contains(why), "{said}");
        trusted.hears(&format!("refused: {said}"));
    }

    // By the core: who may hand bundles in has not signed them.
    refused(remote.installs("olga", 1, true, &[]), "version 1 was accepted before");
    let alone = folder.join("alone.bundle");
    fs::write(&alone, signed(&policy(folder, 2, true), &[0])).expect("written");
    let alone = alone.to_str().expect("text");
    refused(remote.asks("olga", &["bundle", "install", alone]), "1 of the 2 signatures");
    let (well, said) = remote.asks("otto", &["bundle", "confirm", &"0".repeat(64)]);
    assert!(!well && said.contains("no policy has to be confirmed"), "{said}");

    let now = trusted.shown();
    assert_eq!((&before["hash"], &before["policy"]), (&now["hash"], &now["policy"]));
    assert_eq!(trusted.passes(), 0);
    let (well, said) = remote.installs("olga", 2, true, &[]);
    assert!(well && said.contains("version 2 runs"), "{said}");
    trusted.hears("policy version 2 is kept");
}

#[test]
fn what_openssl_offers_is_refused_by_its_version_and_for_want_of_a_key() {
    let test = "what_openssl_offers_is_refused_by_its_version_and_for_want_of_a_key";
    let Some(remote) = Remote::new(test) else { return };
    // Numbers of RFC 8446, 6: protocol_version 70; unsupported_certificate 43, handshake_failure 40.
    for (version, alerts) in [
        ("-tls1_1", &["alert number 70", "alert number 40"][..]),
        ("-tls1_2", &["alert number 70"]),
        ("-tls1_3", &["alert number 43", "alert number 40"]),
    ] {
        // At other levels it would refuse old versions itself.
        let arguments = ["s_client", "-cipher", "DEFAULT@SECLEVEL=0", "-connect", LISTEN, version];
        let output = remote.trusted.gateway.run("openssl", &arguments, "").expect("it is installed");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(
            !output.status.success() && alerts.iter().any(|alert| said.contains(alert)),
            "{version}: {said}"
        );
        assert!(!said.contains("BEGIN CERTIFICATE"), "{said}");
    }
    let (well, said) = remote.asks("rita", &["show", "policy"]);
    assert!(well, "{said}");
}

#[test]
fn a_hundred_idle_connections_keep_no_administrator_out() {
    let test = "a_hundred_idle_connections_keep_no_administrator_out";
    let Some(remote) = Remote::new(test) else { return };
    let gateway = &remote.trusted.gateway;
    let connected = |number: u8| {
        gateway.inside(|| {
            let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
            // As from many networks, and each fourth from the administrator's.
            let from = if number.is_multiple_of(4) { [127, 0, 0, 1] } else { [127, 0, 1, number] };
            net::bind(&socket, &SocketAddr::from((from, 0)))?;
            net::connect(&socket, &LISTEN.parse::<SocketAddr>().expect("an address"))?;
            Ok(TcpStream::from(socket))
        })
    };
    let idle: Vec<_> = (0..100).map(|number| connected(number).expect("it listens")).collect();
    let known =
        || gateway.inside(|| Session::connect(LISTEN, &key(21), &public(OWN.1)).map_err(io::Error::other));
    let known: Vec<_> = (0..4).map(|_| known().expect("it is known")).collect();
    let (well, said) = remote.installs("anna", 2, true, &["--confirm-within", "600s"]);
    assert!(well && said.contains("version 2 runs"), "{said}");
    assert_eq!((idle.len(), known.len()), (100, 4));
}

#[test]
fn a_front_that_dies_or_shuts_its_socket_is_followed_by_another_and_has_no_rights() {
    let test = "a_front_that_dies_or_shuts_its_socket_is_followed_by_another_and_has_no_rights";
    let Some(remote) = Remote::new(test) else { return };
    let trusted = &remote.trusted;
    let asks = || {
        let end = Instant::now() + LIMIT;
        loop {
            let (well, said) = remote.asks("rita", &["show", "policy"]);
            if well {
                return;
            }
            assert!(Instant::now() < end, "{said}");
        }
    };
    asks();
    let front = trusted.process("ravelin-front");
    assert_eq!(status(front, "CapEff").trim_matches('0'), "");
    assert_eq!(status(front, "CapBnd").trim_matches('0'), "");
    assert_eq!((status(front, "NoNewPrivs"), status(front, "Seccomp")), ("1".to_owned(), "2".to_owned()));
    assert!(status(front, "Uid").starts_with("65534"), "{}", status(front, "Uid"));
    let network = |pid: Pid| fs::read_link(format!("/proc/{}/ns/net", pid.as_raw_pid())).expect("it runs");
    assert_ne!(network(front), network(trusted.process("ravelin-control")));

    trusted.kill("ravelin-front");
    trusted.hears("front was ended by signal 9");
    asks();
    let control = trusted.process("ravelin-control");
    // What it listens at is open in no other process.
    let listening = |descriptor: i32| {
        let process = pidfd_open(trusted.process("ravelin-front"), PidfdFlags::empty()).ok()?;
        let socket = pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()?;
        net::sockopt::socket_acceptconn(&socket).ok()?.then_some(socket)
    };
    let socket = (0..32).find_map(listening).expect("it listens");
    shutdown(&socket, Shutdown::Both).expect("so may whoever has it");
    drop(socket);
    trusted.kill("ravelin-front");
    asks();
    assert_eq!(trusted.process("ravelin-control"), control, "whoever is asked on the machine goes on");

    trusted.kill("ravelin-control");
    asks();
    trusted.kill("ravelin-core");
    asks();
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn without_a_key_there_is_no_front() {
    let test = "without_a_key_there_is_no_front";
    let Some(gateway) = namespace(test) else { return };
    let (keys, folder) = (Keys::new(), tempfile::tempdir().expect("a folder"));
    fs::write(folder.path().join("first.bundle"), "none").expect("written");
    let file = folder.path().join("gateway.toml");
    let refused = |section: &str, why: &str| {
        let text = format!(
            "program = \"first.bundle\"\ncontrol = {:?}\n[[port]]\ninterface = \"tap\"\nkind = \"tap\"\n{}{section}",
            folder.path().join("control.sock"),
            trust().replace("\"kept\"", &format!("{:?}", folder.path().join("kept")))
        );
        fs::write(&file, text).expect("written");
        let mut serve = gateway.command(built("ravelin"), None);
        let (well, said) = ended(serve.args(["serve", "--trusted"]).arg(&file).output());
        assert!(!well && said.contains(why), "{said}");
    };
    let section = keys.section();
    refused(section.split_once("[front.clients]").expect("it is there").0, "nobody could ask there");
    refused(&section.replace("key = \"/", "#"), "missing field `key`");
    refused(&section.replace("/front\"", "/missing\""), "`ravelin front key new` makes a key");
    let signs = keys.of("signs");
    assert!(ended(Command::new(built("ravelin")).args(["bundle", "key", "new"]).arg(&signs).output()).0);
    refused(&section.replace("/front\"", "/signs\""), "keys that sign policies are others");
    let _taken = gateway.inside(|| TcpListener::bind(LISTEN)).expect("a socket");
    refused(&section, "cannot be asked at 127.0.0.1:4433: Address already in use");
}
