//! Attacks on a laboratory that are no frames of one kind: policies, a `control` or a `compile` that is taken
//! over, and what Linux inside can be made to do with the link.

use crate::attacks::ANY;
use crate::between::Listener;
use crate::compile::{CompileAttack, TakenOver, forged_lines, is_forged};
use crate::control::{ControlAttack, Ground, channel_of_control};
use crate::laboratory::{LIMIT, Laboratory};
use crate::link_actions::{LinkAction, TRIED};
use crate::policies::PolicyAttack;
use crate::report::AttackResult;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{self, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// The tier of the gateway's own processes.
const OF_PROCESSES: &str = "T0";

/// How the lines begin that `launch` tells once the core has reported of what `compile` gave.
const REPORTS: [&str; 2] = ["core: what ran goes on: ", "core: program "];

/// Leaves `lo` alone in the container. The gateway makes its link again.
const DELETE_LINKS: &str = "ip -o link | cut -d: -f2 | cut -d@ -f1 | grep -v -x ' lo' | \
                            while read -r link; do ip link delete \"$link\"; done";

impl Laboratory {
    /// The version of the policy in force, and all that is said of it, with how many have taken over.
    fn policy(&self) -> io::Result<(u64, Value)> {
        let shown = self.shown()?;
        let numbers = shown["policy"]["version"].as_u64().zip(shown["generation"].as_u64());
        let (version, takeovers) =
            numbers.ok_or_else(|| io::Error::other(format!("no policy is in force: {shown}")))?;
        Ok((version, Value::from(vec![takeovers.into(), shown["hash"].clone(), shown["policy"].clone()])))
    }

    /// Has the next version of the same policy take over, as two have signed it.
    ///
    /// # Errors
    /// The gateway does not take it.
    pub fn renew_policy(&self) -> io::Result<()> {
        let version = self.policy()?.0 + 1;
        let taken = self.signing.install(&self.signing.right(version, false)?, &self.control())?;
        if taken && self.policy()?.0 == version {
            return Ok(());
        }
        Err(io::Error::other(format!("version {version}, which two have signed, does not take over")))
    }

    /// Hands in a bundle that the gateway must not take: the policy in force stays.
    ///
    /// # Errors
    /// It cannot be made, or nobody says which policy is in force.
    pub fn attack_by_policy(&self, attack: &PolicyAttack) -> io::Result<AttackResult> {
        let (version, before) = self.policy()?;
        let taken = self.signing.install(&(attack.bundle)(&self.signing, version)?, &self.control())?;
        let violations = u64::from(taken || self.policy()?.1 != before);
        Ok(AttackResult::without_frames(attack.name, OF_PROCESSES, violations))
    }

    /// Speaks to the core in the place of `control`, which ends with it, and judges what came of it.
    ///
    /// # Errors
    /// There is no `control`, it does not even get what it has a right to, or the gateway passes nothing any
    /// more.
    pub fn attack_by_control(&mut self, attack: &ControlAttack) -> io::Result<AttackResult> {
        self.forget()?;
        self.ends += 1;
        let ((version, before), core) = (self.policy()?, self.core()?);
        let control =
            Pid::from_raw(self.process("ravelin-control")? as i32).ok_or(io::ErrorKind::NotFound)?;
        let mut channel = channel_of_control(control)?;
        let ground = Ground { scene: &self.scene, signing: &self.signing, version };
        let done = (attack.attempt)(&mut channel, &ground);
        // Whoever follows it gets a channel of its own once this one is gone.
        drop(channel);
        kill_process(control, Signal::KILL)?;
        let mut violations = done?;
        violations += u64::from(self.policy()?.1 != before) + u64::from(self.core()? != core);
        violations += self.settle()?;
        Ok(AttackResult::without_frames(attack.name, OF_PROCESSES, violations))
    }

    /// Has `compile` hand in the file that the gateway began with.
    fn read_anew(&self) -> io::Result<()> {
        let launch = Pid::from_raw(self.launch() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(launch, Signal::HUP)?)
    }

    /// What is told until the core has reported of what `compile` gave.
    fn hears_report(&self) -> io::Result<Vec<String>> {
        self.hears_until("a report of the core", |line| REPORTS.iter().any(|report| line.starts_with(report)))
    }

    /// Has `compile` started, and takes it over before it says anything. What is told meanwhile is added to
    /// `told`.
    fn seize_compile(&self, told: &mut Vec<String>) -> io::Result<TakenOver> {
        let end = Instant::now() + LIMIT;
        while Instant::now() < end {
            self.read_anew()?;
            if let Some(taken) = TakenOver::seize(self.launch())? {
                return Ok(taken);
            }
            // It was faster.
            told.extend(self.hears_report()?);
        }
        Err(io::Error::other("no `compile` is seen before it has spoken"))
    }

    /// Speaks to the core in the place of one `compile` after the other, and judges what came of it.
    ///
    /// # Errors
    /// No `compile` is started, the core does not report of what it is given, or the gateway passes nothing
    /// any more.
    pub fn attack_by_compile(&mut self, attack: &CompileAttack) -> io::Result<AttackResult> {
        self.forget()?;
        self.ends += 1;
        let ((version, before), core) = (self.policy()?, self.core()?);
        let ground = Ground { scene: &self.scene, signing: &self.signing, version };
        let says = (attack.says)(&ground)?;
        // What is told from now on is of what is said here.
        self.forget_told();
        self.read_anew()?;
        let (mut violations, mut told) = (0, self.hears_report()?);
        for bytes in says {
            let mut taken = self.seize_compile(&mut told)?;
            // `launch` may have had enough.
            let _ = taken.errors.write_all(forged_lines().as_bytes());
            let _ = taken.channel.write_all(&bytes);
            drop(taken);
            told.extend(self.hears_report()?);
            violations += u64::from(self.policy()?.1 != before);
        }
        // Lines behind the last report are told before the next one.
        self.read_anew()?;
        told.extend(self.hears_report()?);
        violations += told.iter().filter(|line| is_forged(line)).count() as u64;
        violations += u64::from(self.core()? != core);
        violations += self.settle()?;
        Ok(AttackResult::without_frames(attack.name, OF_PROCESSES, violations))
    }

    /// A `compile` that says nothing, and does not end: policies come by `control` all the same, and another
    /// `compile` takes its place where the file is to be read anew.
    ///
    /// # Errors
    /// They do not, or the gateway passes nothing any more.
    pub fn outlast_silent_compile(&mut self) -> io::Result<AttackResult> {
        self.forget()?;
        self.ends += 1;
        let core = self.core()?;
        let silent = self.seize_compile(&mut Vec::new())?;
        self.renew_policy()?;
        let violations = self.settle()?;
        self.forget_told();
        self.read_anew()?;
        // Of the silent one, and of the one that follows it.
        self.hears("compile ended without a program")?;
        self.hears_report()?;
        drop(silent);
        let violations = violations + u64::from(self.core()? != core);
        Ok(AttackResult::without_frames("compile_says_nothing", OF_PROCESSES, violations))
    }

    /// Sends so many frames of all attacks from inside by AF_XDP.
    ///
    /// # Errors
    /// They cannot be sent, or the gateway passes nothing any more.
    pub fn attack_by_af_xdp(&mut self, frames: u64) -> io::Result<AttackResult> {
        let sent = self.attack_by("xdp:services", &ANY, frames)?;
        Ok(AttackResult { name: "frames_by_af_xdp".to_owned(), ..sent })
    }

    /// Has Linux inside do something with the link, and judges what came of it; the gateway makes the link
    /// again after that. `None` where this Linux has no such kind of device or of filter, so that nothing was
    /// tried.
    ///
    /// # Errors
    /// The gateway passes nothing any more.
    pub fn act_on_link(&mut self, action: &LinkAction) -> io::Result<Option<AttackResult>> {
        self.forget()?;
        self.ends += 1;
        let core = self.core()?;
        let script = format!("REDTEAM={}\n{}", self.sender.display(), action.script);
        let mut acts = self.contain(&["sh", "-c", &script]);
        let mut acts = acts.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut violations = 0;
        let done = loop {
            violations += self.judge(None)?.0;
            if let Some(status) = acts.try_wait()? {
                break status.success();
            }
            thread::sleep(Duration::from_millis(1));
        };
        let said = io::read_to_string(acts.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?)?;
        violations += u64::from(done && action.forbidden) + u64::from(self.core()? != core);
        self.renew_link()?;
        violations += self.settle()?;
        let result = AttackResult::without_frames(action.name, self.tier(), violations);
        Ok(said.lines().any(|line| line == TRIED).then_some(result))
    }

    /// Deletes all links of the container, and waits until the gateway has made its own again.
    fn renew_link(&mut self) -> io::Result<()> {
        self.contain(&["sh", "-c", DELETE_LINKS]).stderr(Stdio::null()).status()?;
        let (router, end) = (self.scene.own().ipv4.to_string(), Instant::now() + LIMIT);
        while !self.lan.run("ping", &["-c", "1", "-W", "1", &router], "")?.status.success() {
            if Instant::now() > end {
                return Err(io::Error::other("the link of the container does not come back"));
            }
        }
        let tap = self.tap_inside()?;
        match &mut self.listener {
            Some(listener) => listener.renew(tap),
            None => self.listener = Some(Listener::new(tap)),
        }
        Ok(())
    }

    /// What the container saw of what the hosts have said to each other since the start.
    ///
    /// # Errors
    /// The hosts do not reach each other, or nobody listens, as where a machine is in the container.
    pub fn overheard(&mut self) -> io::Result<AttackResult> {
        self.judge(None)?;
        let seen = self.listener.as_ref().ok_or(io::ErrorKind::NotFound)?.seen;
        let sent = self.conversation.sent;
        if self.conversation.arrived == 0 {
            return Err(io::Error::other(format!("none of {sent} datagrams between hosts arrives")));
        }
        let name = "lan_frames_seen".to_owned();
        Ok(AttackResult { name, tier: self.tier(), frames: sent, violations: seen })
    }
}
