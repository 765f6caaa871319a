//! A `control` that is taken over: what it could say to the core is said here, by its own channel.

use crate::frames::{RandomNumbers, Scene, arp, ethernet, udp4};
use crate::policies::{MOST_ENTRIES, OWN_KEYS, POLICY_ATTACKS, Signing};
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer, EntryChange, EntryOperation, LinkFrame};
use messages::limits::{LONGEST_BUNDLE_MESSAGE, LONGEST_MESSAGE};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited until a `control` is not in the middle of an answer.
const LIMIT: Duration = Duration::from_secs(60);
/// The bits of a key of the table `doors`, which is the first one.
const KEY: u8 = 16;

/// The channel of `control` to the core, while `control` itself stands still, and not in the middle of an
/// answer. Where it asks by itself, as for routes, a whole answer may wait there.
///
/// # Errors
/// There is no such process, or the right is missing.
pub fn channel_of_control(control: Pid) -> io::Result<Channel> {
    let process = pidfd_open(control, PidfdFlags::empty())?;
    // It asks by its standard input.
    let channel = pidfd_getfd(process, 0, PidfdGetfdFlags::empty())?;
    let end = Instant::now() + LIMIT;
    loop {
        kill_process(control, Signal::STOP)?;
        // What it has asked for comes meanwhile.
        thread::sleep(Duration::from_millis(100));
        let mut waits = [0; 1 << 16];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let whole = match recv(&channel, &mut waits, flags) {
            Ok((_, length)) => {
                let (said, answer) = waits[..length].split_at(4.min(length));
                said.try_into().is_ok_and(|said| u32::from_le_bytes(said) as usize == answer.len())
            }
            Err(_) => true,
        };
        if whole {
            return Ok(Channel::of(channel));
        }
        if Instant::now() > end {
            return Err(io::Error::other("it is always in the middle of an answer"));
        }
        kill_process(control, Signal::CONT)?;
    }
}

/// What the core answers, if it does.
pub fn asked(core: &mut Channel, question: &ControlQuestion) -> Option<CoreAnswer> {
    core.send(question, &[]).ok()?;
    core.receive_alone(LONGEST_MESSAGE).ok()?
}

/// What an attack starts from.
pub(crate) struct Ground<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) signing: &'a Signing,
    /// The version of the policy in force.
    pub(crate) version: u64,
}

/// An attack by a `control` that is taken over.
pub struct ControlAttack {
    /// Its name.
    pub name: &'static str,
    /// Makes it, and says how often the core did what it must not. An error says that the core does not even
    /// do what it must.
    pub(crate) attempt: fn(&mut Channel, &Ground<'_>) -> io::Result<u64>,
}

/// All of them.
pub const CONTROL_ATTACKS: &[ControlAttack] = &[
    ControlAttack { name: "control_changes_entries_beyond_its_right", attempt: other_entries },
    ControlAttack { name: "control_inserts_more_entries_than_its_right_says", attempt: more_entries },
    ControlAttack { name: "control_sends_frames_of_others", attempt: other_frames },
    ControlAttack { name: "control_hands_in_what_is_not_signed", attempt: other_policies },
    ControlAttack { name: "control_asks_for_more_changes_than_may_come_together", attempt: many_changes },
    ControlAttack { name: "control_asks_longer_than_anything_may_be", attempt: longest },
];

fn unexpected(answer: Option<CoreAnswer>) -> io::Error {
    io::Error::other(format!("the core does not do what it must: {answer:?}"))
}

/// The number of the program, which changes have to name.
fn number(core: &mut Channel) -> io::Result<u64> {
    match asked(core, &ControlQuestion::Table(0)) {
        Some(CoreAnswer::Table { number, table: Some(_), .. }) => Ok(number),
        other => Err(unexpected(other)),
    }
}

/// A change that `control` has a right to.
fn right_change(key: u16, operation: EntryOperation) -> EntryChange {
    EntryChange { table: 0, length: KEY, bits: (OWN_KEYS.0 + key).into(), operation }
}

fn insert() -> EntryOperation {
    EntryOperation::Insert(vec![2])
}

/// Does a change, or waits until it may be done.
fn changed(core: &mut Channel, number: u64, changes: &[EntryChange]) -> Option<CoreAnswer> {
    loop {
        match asked(core, &ControlQuestion::Change { number, changes: changes.to_vec() }) {
            Some(CoreAnswer::TooFast { milliseconds, .. }) => {
                thread::sleep(Duration::from_millis(milliseconds));
            }
            answer => return answer,
        }
    }
}

/// How many entries the table has.
fn entries(core: &mut Channel, number: u64) -> io::Result<u64> {
    let question = ControlQuestion::Entries { number, table: 0, worker: 0, own: false, place: (0, 0) };
    match asked(core, &question) {
        Some(CoreAnswer::Entries(page)) => Ok(page.entries.len() as u64),
        other => Err(unexpected(other)),
    }
}

/// Changes of which one is beyond the right, each time another one.
fn other_entries(core: &mut Channel, _: &Ground<'_>) -> io::Result<u64> {
    let (number, mut random, mut violations) = (number(core)?, RandomNumbers(1), 0);
    for turn in 0..1000 {
        let mut wrong = right_change(0, insert());
        let mut of = number;
        match turn % 5 {
            0 => wrong.table = 1 + random.below(1 << 20) as u32,
            1 => {
                wrong.bits = u128::from(random.number() as u16 & 0x0fff | random.one_of(&[0, 0x8000, 0xa000]))
            }
            2 => wrong.length = random.one_of(&[0, 1, OWN_KEYS.1 as u8, KEY - 1, KEY + 1, 128, 255]),
            3 => {
                let values = [vec![], vec![2, 2], vec![1 << 16], vec![u128::MAX]];
                wrong.operation = EntryOperation::Insert(values[random.below(4)].clone());
            }
            _ => of = random.one_of(&[0, number - 1, number + 1, u64::MAX]),
        }
        // All is done or nothing, so that the right one must not be done either.
        let changes = [vec![right_change(1, insert()); turn % 2], vec![wrong]].concat();
        violations += u64::from(matches!(changed(core, of, &changes), Some(CoreAnswer::Changed { .. })));
    }
    Ok(violations + entries(core, number)?)
}

/// Entries that the right is for, but more of them.
fn more_entries(core: &mut Channel, _: &Ground<'_>) -> io::Result<u64> {
    let (number, mut violations) = (number(core)?, 0);
    for key in 0..20 {
        match changed(core, number, &[right_change(key, insert())]) {
            Some(CoreAnswer::Changed { .. }) if usize::from(key) < MOST_ENTRIES => {}
            Some(CoreAnswer::Changed { .. }) => violations += 1,
            Some(CoreAnswer::Refused(_)) if usize::from(key) >= MOST_ENTRIES => {}
            other => return Err(unexpected(other)),
        }
    }
    violations += entries(core, number)?.saturating_sub(MOST_ENTRIES as u64);
    for key in 0..MOST_ENTRIES as u16 {
        match changed(core, number, &[right_change(key, EntryOperation::Remove)]) {
            Some(CoreAnswer::Changed { removed: 1 }) => {}
            other => return Err(unexpected(other)),
        }
    }
    Ok(violations)
}

/// Frames by each port. The ports have no addresses here, so that none of them may leave.
fn other_frames(core: &mut Channel, ground: &Ground<'_>) -> io::Result<u64> {
    let (own, lan, wan) = (ground.scene.own(), ground.scene.lan, ground.scene.wan);
    let question =
        |from: [u8; 6], host| ethernet([0xff; 6], from, 0x0806, &arp(1, (from, host), ([0; 6], lan.ipv4)));
    let gateway = [2, 0, 0, 0, 9, 1];
    let frames = [
        question(own.ethernet, own.ipv4),
        question(wan.ethernet, wan.ipv4),
        question(gateway, wan.ipv4),
        question(gateway, own.ipv4),
        ethernet(lan.ethernet, own.ethernet, 0x0800, &udp4(own.ipv4, lan.ipv4, (53, 53), b"by control")),
    ];
    let mut violations = 0;
    for frame in frames {
        let frames: Vec<_> = (0..=4).map(|port| LinkFrame { port, bytes: frame.clone() }).collect();
        let all = frames.len() as u32;
        match asked(core, &ControlQuestion::Exchange { frames, patience: 0 }) {
            Some(CoreAnswer::Exchanged { left_out, .. }) => violations += u64::from(all - left_out),
            Some(CoreAnswer::Refused(_)) => {}
            other => return Err(unexpected(other)),
        }
    }
    Ok(violations)
}

/// All bundles that must not be taken, by its own channel, and the confirmation of another policy.
fn other_policies(core: &mut Channel, ground: &Ground<'_>) -> io::Result<u64> {
    let bundles = POLICY_ATTACKS.iter().map(|attack| (attack.bundle)(ground.signing, ground.version));
    let installs =
        bundles.map(|bundle| Ok(ControlQuestion::Install { bundle: bundle?, confirm_within: Some(600) }));
    let questions = installs.chain([Ok(ControlQuestion::Confirm { hash: [0; 32] })]);
    let mut violations = 0;
    for question in questions.collect::<io::Result<Vec<_>>>()? {
        loop {
            match asked(core, &question) {
                Some(CoreAnswer::TooFast { milliseconds, .. }) => {
                    thread::sleep(Duration::from_millis(milliseconds));
                }
                Some(CoreAnswer::Refused(_)) => break,
                Some(CoreAnswer::Runs { .. }) => {
                    violations += 1;
                    break;
                }
                other => return Err(unexpected(other)),
            }
        }
    }
    Ok(violations)
}

/// More changes than may come together: the channel ends at the first of them that is too many.
fn many_changes(core: &mut Channel, _: &Ground<'_>) -> io::Result<u64> {
    let changes = vec![right_change(0, insert()); 1 << 20];
    let number = number(core)?;
    Ok(u64::from(asked(core, &ControlQuestion::Change { number, changes }).is_some()))
}

/// A question that is longer than any may be: it is not read, and the channel ends.
fn longest(core: &mut Channel, _: &Ground<'_>) -> io::Result<u64> {
    let bundle = vec![0; LONGEST_BUNDLE_MESSAGE];
    Ok(u64::from(asked(core, &ControlQuestion::Install { bundle, confirm_within: None }).is_some()))
}
