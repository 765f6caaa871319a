//! The claim on an interface, by which only one gateway uses it: two gateways with AF_PACKET would both
//! answer and forward each packet.
//!
//! A claim is a name in the abstract namespace of Unix sockets, of which each network namespace has its own,
//! as it has numbers of interfaces of its own (unix(7)). It leaves no file, and the kernel takes it away
//! however the process ended. Who has it is found in /proc.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::{Duration, Instant};

/// How long a claim of somebody else is waited for: it goes a moment after its process.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);

/// The claim, as long as it lives.
pub(super) struct Claim {
    #[expect(dead_code, reason = "what matters is that it is bound")]
    name: Option<UnixDatagram>,
}

/// Why it cannot be had.
#[derive(Debug)]
pub(super) enum Refused {
    /// Somebody has it, as /proc tells.
    Taken(String),
    /// What the system says.
    System(io::Error),
}

impl Claim {
    /// Claims the interface of this number.
    ///
    /// # Errors
    /// Another process has it.
    pub(super) fn of(interface: u32) -> Result<Claim, Refused> {
        let name = format!("ravelin/af_packet/{interface}");
        let address = SocketAddr::from_abstract_name(&name).map_err(Refused::System)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match UnixDatagram::bind_addr(&address) {
                Ok(bound) => return Ok(Claim { name: Some(bound) }),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(Refused::System(error)),
                Err(_) if Instant::now() < end => thread::sleep(LOOK),
                Err(_) => {}
            }
            if Instant::now() >= end {
                let holder = holder(&name);
                // Anybody may take a name. Who has no right to take packets keeps nobody from it.
                let may = holder.as_ref().is_none_or(|holder| holder.user == 0 || holder.user == own_user());
                return if may { Err(Refused::Taken(said(holder))) } else { Ok(Claim { name: None }) };
            }
        }
    }
}

/// A process that has a name.
struct Holder {
    process: String,
    program: String,
    user: u32,
}

fn said(holder: Option<Holder>) -> String {
    holder.map_or_else(
        || "a process that /proc does not show".to_owned(),
        |holder| format!("process {} ({})", holder.process, holder.program),
    )
}

/// The user that this process is, as for files.
fn own_user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// Who has an abstract name, as far as /proc tells.
fn holder(name: &str) -> Option<Holder> {
    let sockets = fs::read_to_string("/proc/net/unix").ok()?;
    let link = format!("socket:[{}]", inode(&sockets, name)?);
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit()).find_map(
        |process| {
            let descriptors = fs::read_dir(process.path().join("fd")).ok()?;
            let mut links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
            links.find(|target| target.as_os_str() == link.as_str())?;
            let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            Some(Holder {
                process: process.file_name().display().to_string(),
                program: program.trim_end().to_owned(),
                user: process.metadata().ok()?.uid(),
            })
        },
    )
}

/// The number of the socket that has an abstract name, in the kernel's list: its last columns are the number
/// and `@` with the name.
fn inode<'a>(sockets: &'a str, name: &str) -> Option<&'a str> {
    sockets.lines().find_map(|line| {
        let (before, found) = line.rsplit_once(" @")?;
        (found == name).then(|| before.split_whitespace().next_back()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_an_interface_and_whoever_comes_then_is_told_who() {
        // No interface has this number.
        let number = 0x7fff_0000 + std::process::id() % 0xffff;
        let first = Claim::of(number).expect("nobody has it");
        let Err(Refused::Taken(who)) = Claim::of(number) else { panic!("it is taken") };
        assert!(who.starts_with(&format!("process {} (", std::process::id())), "{who}");
        let other = Claim::of(number + 1).expect("another interface");
        drop(first);
        let again = Claim::of(number).expect("it was given back");
        drop((other, again));
    }

    #[test]
    fn the_list_of_the_kernel_is_read() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 20001 /run/x @ravelin/af_packet/3.sock\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 20731 @ravelin/af_packet/31\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 20732 @ravelin/af_packet/3\n";
        assert_eq!(inode(sockets, "ravelin/af_packet/3"), Some("20732"));
        assert_eq!(inode(sockets, "ravelin/af_packet/4"), None);
    }
}
