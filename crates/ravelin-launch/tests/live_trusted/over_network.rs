//! A gateway that is asked over a network: by whom it knows, for what his role allows, and by nobody else.

use super::signed::{ended, gateway_with, hexadecimal, policy, signed, trust};
use super::{Trusted, built};
use front::IdentityKey;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

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
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Keys {
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
    fn section(&self) -> String {
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
        let trusted = gateway_with(test, &(trust() + &keys.section()), || {})?;
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
