//! The policies of the gateway that is attacked, who signs them, and what is handed in instead of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The policy: hosts reach each other, the LAN host and the router too, and the router not the WAN host. The
/// router opens no connections to the LAN host, does not reach [`CLOSED`](crate::policy_judge::CLOSED) there,
/// and sends no fragments by which it could.
const PROGRAM: &str = "import std.net.{ethernet, ipv4, tcp, udp}
reason closed \"nothing goes there\"
reason torn \"a fragment that lies over the header of its transport, or has a part of it alone\"
table doors: exact(u16) -> port { capacity 8 }
start decoder frame(eth: ethernet) {
    match (in_port, eth.type) {
        (3, 0x0800) => of_router
        else => by_station
    }
}
decoder of_router(ip: ipv4) {
    // Places below 20 bytes, the shortest header of TCP.
    if ip.frag == 1 || ip.frag == 2 { drop torn }
    if ip.frag != 0 { goto by_station }
    if ip.flags.mf && ip.total < ip.ihl as u16 * 4 + 20 { drop torn }
    match ip.proto {
        6 => segment
        17 => datagram
        else => by_station
    }
}
decoder segment(t: tcp) {
    // It answers connections, and opens none.
    if t.flags.syn && !t.flags.ack { drop closed }
    goto by_station
}
decoder datagram(u: udp) {
    match u.dst {
        4002 => drop closed
        else => by_station
    }
}
stage by_station() requires eth {
    match eth.dst {
        02:00:00:00:00:63 => to_router
        02:00:00:00:00:01 => to_lan
        02:00:00:00:00:02 => to_wan
        else => to_group
    }
}
stage to_router() {
    match in_port {
        1 => send 3
        else => drop closed
    }
}
stage to_lan() {
    match in_port {
        2 => send 1
        3 => send 1
        else => drop closed
    }
}
stage to_wan() requires eth {
    match in_port {
        1 => send 2
        3 => match doors[eth.type] { some door => send door, none => drop closed }
        else => drop closed
    }
}
stage to_group() {
    match in_port {
        1 => flood
        2 => send 1
        3 => send 1
        else => drop closed
    }
}
";

/// What an attacker would have in its place.
const OPEN_PROGRAM: [(&str, &str); 3] = [
    ("(3, 0x0800) => of_router", "(3, 0x0801) => of_router"),
    ("1 => send 2", "1 => flood"),
    ("3 => match doors[eth.type] { some door => send door, none => drop closed }", "3 => send 2"),
];

/// The first key of the table `doors` that `control` may change, and how many bits of it count.
pub(crate) const OWN_KEYS: (u16, u32) = (0x9000, 4);
/// How many entries `control` may have there.
pub(crate) const MOST_ENTRIES: usize = 2;

/// The name of the gateway.
const GATEWAY: &str = "g7";
/// Who may sign, of whom two must; and somebody whom the gateway does not know.
const SIGNERS: [&str; 3] = ["anna", "bert", "cleo"];
const STRANGER: &str = "stranger";

/// The file of the policy that the gateway begins with.
pub(crate) const FIRST: &str = "first.bundle";

/// A policy, as it is to be signed.
#[derive(Clone, Copy)]
struct Policy {
    gateway: &'static str,
    version: u64,
    not_before: &'static str,
    expiry: &'static str,
    open: bool,
}

impl Policy {
    fn of(version: u64, open: bool) -> Policy {
        let (not_before, expiry) = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
        Policy { gateway: GATEWAY, version, not_before, expiry, open }
    }
}

/// Who signs, with their keys in a folder.
pub(crate) struct Signing {
    ravelin: PathBuf,
    folder: PathBuf,
    /// The section of the gateway's file.
    pub(crate) section: String,
}

impl Signing {
    /// Makes the keys, and the policy that the gateway begins with.
    ///
    /// # Errors
    /// A command fails.
    pub(crate) fn new(ravelin: &Path, folder: &Path) -> io::Result<Signing> {
        let section =
            format!("[trust]\ngateway = \"{GATEWAY}\"\nthreshold = 2\nkeep_in = \"kept\"\n[trust.keys]\n");
        let mut signing = Signing { ravelin: ravelin.to_owned(), folder: folder.to_owned(), section };
        fs::write(signing.program(false), PROGRAM)?;
        let open = OPEN_PROGRAM.iter().fold(PROGRAM.to_owned(), |text, (from, to)| text.replace(from, to));
        fs::write(signing.program(true), open)?;
        for name in SIGNERS {
            let key = signing.said(&["bundle", "key", "new", &signing.file(name)])?;
            signing.section += &format!("{name} = \"{}\"\n", key.trim());
        }
        signing.said(&["bundle", "key", "new", &signing.file(STRANGER)])?;
        fs::write(folder.join(FIRST), signing.right(1, false)?)?;
        Ok(signing)
    }

    /// A bundle that the gateway takes where its version is above that in force.
    ///
    /// # Errors
    /// It cannot be signed.
    pub(crate) fn right(&self, version: u64, open: bool) -> io::Result<Vec<u8>> {
        self.signed(Policy::of(version, open), &SIGNERS[..2])
    }

    fn signed(&self, policy: Policy, by: &[&str]) -> io::Result<Vec<u8>> {
        let Policy { gateway, version, not_before, expiry, open } = policy;
        let (first, length) = OWN_KEYS;
        let (keys, most) = match open {
            true => ("*".to_owned(), MOST_ENTRIES * 4),
            false => (format!("{first:#x}/{length} of 16 bits"), MOST_ENTRIES),
        };
        let text = format!(
            "gateway = \"{gateway}\"\nversion = {version}\nnot_before = \"{not_before}\"\n\
             expiry = \"{expiry}\"\nprogram = \"{}\"\n[rights.doors]\n\
             prefixes = [\"{keys}\"]\nmost_entries = {most}\n\
             changes_per_second = 1000\n",
            self.program(open)
        );
        let mut signed = self.file("policy.toml");
        fs::write(&signed, text)?;
        for (number, name) in by.iter().enumerate() {
            let out = self.file(&format!("{number}.bundle"));
            self.said(&["bundle", "sign", &signed, "--key", &self.file(name), "--out", &out])?;
            signed = out;
        }
        let bundle = fs::read(&signed)?;
        (0..by.len()).try_for_each(|number| fs::remove_file(self.file(&format!("{number}.bundle"))))?;
        Ok(bundle)
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn program(&self, open: bool) -> String {
        self.file(if open { "open.rav" } else { "filter.rav" })
    }

    /// The policy, or what an attacker would have in its place, as the core is given it.
    ///
    /// # Errors
    /// It does not compile.
    pub(crate) fn as_ir(&self, open: bool) -> io::Result<String> {
        self.said(&["compile", &self.program(open), "--show", "ir"])
    }

    /// What `ravelin` says.
    fn said(&self, arguments: &[&str]) -> io::Result<String> {
        let output = Command::new(&self.ravelin).args(arguments).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// Hands a bundle in at the control socket, and says whether it was taken.
    ///
    /// # Errors
    /// The command cannot be run.
    pub(crate) fn install(&self, bundle: &[u8], control: &Path) -> io::Result<bool> {
        let file = self.file("handed_in.bundle");
        fs::write(&file, bundle)?;
        let mut install = Command::new(&self.ravelin);
        install.args(["bundle", "install", &file, "--control"]).arg(control);
        Ok(install.output()?.status.success())
    }
}

/// A bundle that a gateway must not take.
pub struct PolicyAttack {
    /// Its name.
    pub name: &'static str,
    /// Makes it, where this version is in force.
    pub(crate) bundle: fn(&Signing, u64) -> io::Result<Vec<u8>>,
}

macro_rules! policy_attacks {
    ($($name:literal: |$signing:ident, $version:ident| $bundle:expr,)*) => {
        /// All of them.
        pub const POLICY_ATTACKS: &[PolicyAttack] = &[
            $(PolicyAttack { name: $name, bundle: |$signing, $version| $bundle },)*
        ];
    };
}

policy_attacks! {
    // What was in force before.
    "policy_rolled_back": |signing, version| signing.right(version - 1, false),
    "policy_replayed": |signing, version| signing.right(version, false),
    "policy_of_the_same_version": |signing, version| signing.right(version, true),
    "policy_of_another_gateway": |signing, version| {
        signing.signed(Policy { gateway: "g8", ..Policy::of(version + 1, true) }, &SIGNERS[..2])
    },
    "policy_that_has_expired": |signing, version| {
        signing.signed(Policy { expiry: "2021-01-01T00:00:00Z", ..Policy::of(version + 1, true) }, &SIGNERS[..2])
    },
    "policy_of_the_future": |signing, version| {
        let not_before = "2099-01-01T00:00:00Z";
        signing.signed(Policy { not_before, ..Policy::of(version + 1, true) }, &SIGNERS[..2])
    },
    "policy_with_a_signature_too_few": |signing, version| {
        signing.signed(Policy::of(version + 1, true), &SIGNERS[..1])
    },
    "policy_signed_by_a_stranger": |signing, version| {
        signing.signed(Policy::of(version + 1, true), &[SIGNERS[0], STRANGER])
    },
    "policy_with_a_byte_changed": |signing, version| {
        let mut bundle = signing.right(version + 1, true)?;
        let middle = bundle.len() / 2;
        bundle[middle] ^= 1;
        Ok(bundle)
    },
    "policy_with_a_byte_of_a_signature_changed": |signing, version| {
        let mut bundle = signing.right(version + 1, true)?;
        if let Some(last) = bundle.last_mut() {
            *last ^= 1;
        }
        Ok(bundle)
    },
    "policy_that_is_no_bundle": |signing, _version| fs::read(signing.program(true)),
}

/// What is no attack, since two have signed it: it takes over, and lets whatever an attacker wants pass.
pub const SIGNED_POLICY: PolicyAttack = PolicyAttack {
    name: "policy_that_two_have_signed",
    bundle: |signing, version| signing.right(version + 1, true),
};
