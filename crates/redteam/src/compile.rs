//! A `compile` that is taken over: what it could say to the core is said here, by its own channel.
//!
//! ```text
//! SIGHUP ─► launch ─starts─► compile        held before it has locked itself in, so before it says anything
//!             ▲                 its channel
//!             └───── bytes ─────────┴── one of these attacks; then it is killed, which ends the channel
//! ```

use crate::control::Ground;
use crate::frames::RandomNumbers;
use crate::policies::{POLICY_ATTACKS, SIGNED_POLICY};
use messages::compile::CompileMessage;
use messages::frame;
use messages::limits::LONGEST_BUNDLE_MESSAGE;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited until one was seen: where it came and went unseen, another one is started.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// How a process that was started as `compile` is told apart from others of the same program.
const WORD: &[u8] = b"compile-for-core";

/// A `compile` that stands still, and has said nothing.
pub(crate) struct TakenOver {
    process: Pid,
    /// Its end of the channel.
    pub(crate) channel: UnixStream,
}

impl TakenOver {
    /// Waits for one among the children of `launch`. `None` if it was seen too late, or not at all.
    ///
    /// # Errors
    /// What Linux says.
    pub(crate) fn seize(launch: u32) -> io::Result<Option<TakenOver>> {
        let end = Instant::now() + SEEN_WITHIN;
        while Instant::now() < end {
            let children = fs::read_to_string(format!("/proc/{launch}/task/{launch}/children"))?;
            let is_it = |child: &&str| {
                let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                words.split(|byte| *byte == 0).any(|word| word == WORD)
            };
            let child = children.split_whitespace().find(is_it).and_then(|child| child.parse().ok());
            if let Some(process) = child.and_then(Pid::from_raw) {
                return Ok(TakenOver::hold(process).filter(TakenOver::is_early));
            }
        }
        Ok(None)
    }

    /// Holds it, if it is still there.
    fn hold(process: Pid) -> Option<TakenOver> {
        let opened = pidfd_open(process, PidfdFlags::empty()).ok()?;
        kill_process(process, Signal::STOP).ok()?;
        let channel = pidfd_getfd(opened, 0, PidfdGetfdFlags::empty()).ok();
        let taken = channel.map(|channel| TakenOver { process, channel: UnixStream::from(channel) });
        // A stopped process that nobody holds would hold back what it has to say.
        if taken.is_none() {
            let _ = kill_process(process, Signal::CONT);
        }
        taken
    }

    /// Whether it stands still before it has locked itself in: it says nothing before that.
    fn is_early(&self) -> bool {
        let status = format!("/proc/{}/status", self.process.as_raw_nonzero());
        let end = Instant::now() + SEEN_WITHIN;
        while Instant::now() < end {
            let Ok(said) = fs::read_to_string(&status) else { return false };
            let is = |name: &str, value: &str| {
                said.lines().any(|line| {
                    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(value))
                })
            };
            if is("State:", "T") {
                return is("Seccomp:", "0");
            }
            thread::yield_now();
        }
        false
    }
}

impl Drop for TakenOver {
    fn drop(&mut self) {
        // It may have been ended by `launch`.
        let _ = kill_process(self.process, Signal::KILL);
    }
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
pub(crate) const FORGED: &str = "ravelin-launch: the administrator is asked for the key of anna";

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

/// A message that is longer than any may be, and a length that says so of less.
fn longest(_: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let bundle = frame::written(&CompileMessage::Bundle(vec![0; LONGEST_BUNDLE_MESSAGE]))?;
    Ok(vec![bundle, [0xff; 64].to_vec()])
}

/// Reasons that look like what `launch` says itself, that move a cursor, and that are long.
fn forged(_: &Ground<'_>) -> io::Result<Vec<Vec<u8>>> {
    let reasons = [
        format!("why\n{FORGED}"),
        format!("why\r{FORGED}\r\n\x1b[2J{FORGED}"),
        format!("{FORGED}\n").repeat(1 << 10),
    ];
    reasons.into_iter().map(|why| frame::written(&CompileMessage::Refused(why))).collect()
}
