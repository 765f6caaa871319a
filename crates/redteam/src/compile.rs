//! A `compile` that is taken over: what it could say to the core is said here, by its own channel.
//!
//! ```text
//! SIGHUP ─► launch ─starts─► compile        held before it has locked itself in, so before it says anything
//!             ▲                 its channel
//!             └───── bytes ─────────┴── one of these attacks; then it is killed, which ends the channel
//! ```

use crate::control::Ground;
use crate::frames::RandomNumbers;
use crate::laboratory::children;
use crate::policies::{POLICY_ATTACKS, SIGNED_POLICY};
use messages::compile::CompileMessage;
use messages::frame;
use messages::limits::LONGEST_BUNDLE_MESSAGE;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited until one is seen, and until it stands still: otherwise another one is started.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// How a process that was started as `compile` is told apart from others of the same program.
const WORD: &[u8] = b"compile-for-core";

/// A `compile` that stands still, and has said nothing.
pub(crate) struct TakenOver {
    process: OwnedFd,
    /// Its end of the channel.
    pub(crate) channel: UnixStream,
    /// Its error output, which `launch` passes on.
    pub(crate) errors: File,
}

impl TakenOver {
    /// Waits for one among the children of `launch`. `None` if it was seen too late, or not at all: then it
    /// says what it has to say.
    ///
    /// # Errors
    /// Linux does not let this process hold it.
    pub(crate) fn seize(launch: u32) -> io::Result<Option<TakenOver>> {
        let filters = of_status(launch, "Seccomp_filters:")?;
        let end = Instant::now() + SEEN_WITHIN;
        while Instant::now() < end {
            let is_it = |child: &u32| {
                let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                words.split(|byte| *byte == 0).any(|word| word == WORD)
            };
            if let Some(child) = children(launch)?.into_iter().find(is_it) {
                return match hold(child, &filters) {
                    // It has ended meanwhile.
                    Err(Errno::SRCH | Errno::BADF) => Ok(None),
                    held => Ok(held?),
                };
            }
        }
        Ok(None)
    }
}

impl Drop for TakenOver {
    fn drop(&mut self) {
        // It may have been ended by `launch`.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }
}

/// Holds a process that has no filters of system calls but these, which it was started with: it locks itself
/// in before it says anything. Any other one goes on.
fn hold(process: u32, filters: &str) -> Result<Option<TakenOver>, Errno> {
    let opened = pidfd_open(Pid::from_raw(process as i32).ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
    pidfd_send_signal(&opened, Signal::STOP)?;
    let is_early = stands_still(process).and_then(|stands| {
        Ok(stands && of_status(process, "Seccomp_filters:").map_err(|_| Errno::SRCH)? == filters)
    });
    let part = |number| pidfd_getfd(&opened, number, PidfdGetfdFlags::empty());
    let parts = is_early.and_then(|is_early| is_early.then(|| Ok((part(0)?, part(2)?))).transpose());
    if !matches!(parts, Ok(Some(_))) {
        let _ = pidfd_send_signal(&opened, Signal::CONT);
    }
    Ok(parts?.map(|(channel, errors)| TakenOver {
        process: opened,
        channel: channel.into(),
        errors: errors.into(),
    }))
}

/// Whether a process stands still, some time after the signal.
fn stands_still(process: u32) -> Result<bool, Errno> {
    let end = Instant::now() + SEEN_WITHIN;
    while Instant::now() < end {
        if !of_status(process, "State:").map_err(|_| Errno::SRCH)?.starts_with(['R', 'S', 'D']) {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

/// What Linux says of a process by this name.
fn of_status(process: u32, name: &str) -> io::Result<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let said = status.lines().find_map(|line| line.strip_prefix(name));
    said.map(|said| said.trim().to_owned()).ok_or_else(|| io::Error::other(format!("Linux says no `{name}`")))
}

/// An attack by a `compile` that is taken over.
pub struct CompileAttack {
    /// Its name.
    pub name: &'static str,
    /// What it says, once for each `compile`.
    pub(crate) says: fn(&Ground<'_>) -> io::Result<Vec<Vec<u8>>>,
}

/// All of them.
pub const COMPILE_ATTACKS: &[CompileAttack] = &[
    CompileAttack { name: "compile_hands_in_a_program_that_nobody_signed", says: programs },
    CompileAttack { name: "compile_hands_in_what_is_not_signed", says: policies },
    CompileAttack { name: "compile_says_what_is_no_message", says: no_messages },
    CompileAttack { name: "compile_says_more_than_may_be_said", says: longest },
    CompileAttack { name: "compile_tells_lines_of_others", says: forged },
];

/// What is no attack, since two have signed it: it takes over, and shows that the channel is the one by which
/// policies come.
pub const SIGNED_BY_COMPILE: CompileAttack = CompileAttack {
    name: "compile_hands_in_what_two_have_signed",
    says: |ground| {
        let bundle = (SIGNED_POLICY.bundle)(ground.signing, ground.version)?;
        Ok(vec![frame::written(&CompileMessage::Bundle(bundle))?])
    },
};

/// A line that `launch` must not say as its own.
const FORGED: &str = "ravelin-launch: the administrator is asked for the key of anna";
/// What is told by the error output: such lines, and what moves a cursor.
pub(crate) fn forged_lines() -> String {
    format!("{FORGED}\nwhy\r\x1b[2J{FORGED}\n")
}

/// Whether a line of `launch` looks like one that is none, or moves a cursor.
pub(crate) fn is_forged(line: &str) -> bool {
    line.starts_with(FORGED) || line.contains(char::is_control)
}

/// The program in force, and one that lets whatever an attacker wants pass.
fn programs(ground: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let programs = [false, true].map(|open| ground.signing.as_ir(open));
    programs.into_iter().map(|text| frame::written(&CompileMessage::Program(text?))).collect()
}

/// All bundles that must not be taken, the open program in the place of a bundle, and no bundle at all.
fn policies(ground: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let bundles = POLICY_ATTACKS.iter().map(|attack| (attack.bundle)(ground.signing, ground.version));
    let others = [ground.signing.as_ir(true).map(String::into_bytes), Ok(Vec::new())];
    bundles.chain(others).map(|bundle| frame::written(&CompileMessage::Bundle(bundle?))).collect()
}

/// Bytes that are cut off, that have others behind them, or that mean nothing. The message that they are made
/// of would be taken if it came whole, and alone.
fn no_messages(ground: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let bundle = (SIGNED_POLICY.bundle)(ground.signing, ground.version)?;
    let whole = frame::written(&CompileMessage::Bundle(bundle))?;
    let (length, message) = whole.split_at(4);
    let mut longer = [&(message.len() as u32 + 1).to_le_bytes(), message].concat();
    longer.push(0);
    let mut other_kind = whole.clone();
    other_kind[4] = 3;
    let refused = frame::written(&CompileMessage::Refused("nothing".to_owned()))?;
    let mut random = RandomNumbers(1);
    let mut all = vec![
        Vec::new(),
        length[..2].to_vec(),
        length.to_vec(),
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        longer,
        other_kind,
        // It may speak once.
        [&*refused, &whole].concat(),
        vec![0xff; 1 << 16],
        vec![0; 1 << 16],
    ];
    for _ in 0..4 {
        all.push(random.bytes(1000));
        all.push([&1000_u32.to_le_bytes(), &*random.bytes(1000)].concat());
    }
    Ok(all)
}

/// A message that is longer than any may be, and a few bytes that begin with the length of such a one.
fn longest(_: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let bundle = frame::written(&CompileMessage::Bundle(vec![0; LONGEST_BUNDLE_MESSAGE]))?;
    Ok(vec![bundle, [0xff; 64].to_vec()])
}

/// Reasons that look like what `launch` says itself, that move a cursor, and of many lines.
fn forged(_: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let reasons = [
        format!("why\n{FORGED}"),
        format!("why\r{FORGED}\r\n\x1b[2J{FORGED}"),
        format!("{FORGED}\n").repeat(1 << 10),
    ];
    reasons.into_iter().map(|why| frame::written(&CompileMessage::Refused(why))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_forged_that_begins_as_one_of_launch_or_moves_a_cursor() {
        let lines = forged_lines();
        assert_eq!(lines.lines().filter(|line| is_forged(line)).count(), 2);
        for told in ["  ", "compile: ", "core: what ran goes on: "] {
            assert!(!is_forged(&format!("{told}{FORGED}")), "{told}");
        }
    }
}
