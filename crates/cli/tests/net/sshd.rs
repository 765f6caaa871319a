//! An OpenSSH server and client with keys and a configuration of their own.

use super::Net;
use std::fs;
use std::process::Command;

/// The programs that this needs.
pub(crate) const PROGRAMS: [&str; 3] = ["sshd", "ssh", "ssh-keygen"];

/// What a client is told to do at the server; both sides must get the same text.
pub(crate) const WORK: &str = "seq 1 20000 | cksum";

/// The command lines of a server and of its client.
pub(crate) struct Shell {
    /// Starts the server, as an argument of `sh -c`.
    pub(crate) server: String,
    /// Logs in and does [`WORK`].
    pub(crate) client: Vec<String>,
}

impl Shell {
    /// Makes the keys and the configuration of a server at an address, port 2222.
    pub(crate) fn at(net: &Net, address: &str) -> Shell {
        let at = |name: &str| net.path(name).display().to_string();
        let written = |name: &str, text: String| fs::write(net.path(name), text).expect("can be written");
        for key in ["host", "user"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(made.is_ok_and(|status| status.success()));
        }
        let config = format!(
            "Port 2222\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n",
            at("host"),
            at("user.pub")
        );
        written("sshd.conf", config);
        // The folder and the user that it insists on are made where nobody else sees them.
        let users = fs::read_to_string("/etc/passwd").expect("a list of users");
        written("passwd", users + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n");
        let server = format!(
            "mount -t tmpfs none /run && mkdir /run/sshd && mount --bind {} /etc/passwd && \
             exec $(command -v sshd) -D -e -f {}",
            at("passwd"),
            at("sshd.conf")
        );
        let options =
            "-q -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes";
        let client = format!("ssh {options} -p 2222 -i {} root@{address}", at("user"));
        let client = client.split(' ').chain([WORK]).map(str::to_owned).collect();
        Shell { server, client }
    }
}

/// The text that [`WORK`] has here.
pub(crate) fn expected() -> String {
    super::text(&Command::new("sh").args(["-c", WORK]).output().expect("runs"))
}
