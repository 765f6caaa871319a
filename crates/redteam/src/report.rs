//! The report: every attack of each place, one after the other.

use crate::actions::{ACTIONS, EXHAUSTIONS, GUEST_ACTIONS};
use crate::attacks::ATTACKS;
use crate::compile::COMPILE_ATTACKS;
use crate::control::CONTROL_ATTACKS;
use crate::laboratory::{BY_RINGS, Laboratory};
use crate::link_actions::LINK_ACTIONS;
use crate::policies::POLICY_ATTACKS;
use crate::rings::RING_ATTACKS;
use serde::Serialize;
use std::io;

/// What came of one attack.
#[derive(Clone, Debug, Serialize)]
pub struct AttackResult {
    /// Its name.
    pub name: String,
    /// The tier that it attacks.
    pub tier: String,
    /// How many frames were sent.
    pub frames: u64,
    /// How many of them arrived although they must not, or unseen; of an action, whether it succeeded.
    pub violations: u64,
}

impl AttackResult {
    /// Of an attack that is no frames.
    pub(crate) fn without_frames(name: &str, tier: impl Into<String>, violations: u64) -> AttackResult {
        AttackResult { name: name.to_owned(), tier: tier.into(), frames: 0, violations }
    }
}

/// What came of all attacks.
#[derive(Clone, Debug, Serialize)]
pub struct AttackReport {
    /// Of each attack.
    pub attacks: Vec<AttackResult>,
    /// Frames sent together.
    pub frames: u64,
    /// Violations together.
    pub violations: u64,
}

impl Laboratory {
    /// Runs every attack by frames with so many, and every action.
    ///
    /// # Errors
    /// One cannot be run.
    pub fn report(&mut self, frames: u64) -> io::Result<Vec<AttackResult>> {
        let core = self.core()?;
        let mut attacks = Vec::new();
        for attack in ATTACKS {
            let result = self.attack(attack, frames)?;
            eprintln!(
                "{} {}: {} frames, {} violations",
                result.tier, result.name, result.frames, result.violations
            );
            attacks.push(result);
        }
        if self.tier() == BY_RINGS {
            for attack in RING_ATTACKS {
                let result = self.attack_by_rings(attack)?;
                attacks.push(AttackResult {
                    violations: result.violations + u64::from(self.core()? != core),
                    ..result
                });
            }
            return Ok(attacks);
        }
        if self.machine().is_ok() {
            attacks.push(AttackResult::without_frames(
                "see_what_hosts_say",
                self.tier(),
                self.overhear_in_machine()?.into(),
            ));
            for (name, script) in GUEST_ACTIONS {
                let (done, violations) = self.act_in_machine(script)?;
                let violations = violations + u64::from(done || self.core()? != core);
                attacks.push(AttackResult::without_frames(name, self.tier(), violations));
            }
            return Ok(attacks);
        }
        attacks.push(self.attack_by_af_xdp(frames)?);
        for attack in ACTIONS.iter().chain(EXHAUSTIONS) {
            let done = self.act(attack)?.status.success() || self.core()? != core;
            attacks.push(AttackResult::without_frames(attack.name, self.tier(), done.into()));
        }
        for attack in ACTIONS {
            let done = self.act_with_sys_admin(attack)?.status.success() || self.core()? != core;
            attacks.push(AttackResult::without_frames(attack.name, self.tier() + " sys-admin", done.into()));
        }
        // One was in force before, to which an attacker would return.
        self.renew_policy()?;
        for attack in POLICY_ATTACKS {
            attacks.push(self.attack_by_policy(attack)?);
        }
        for attack in CONTROL_ATTACKS {
            attacks.push(self.attack_by_control(attack)?);
        }
        for attack in COMPILE_ATTACKS {
            attacks.push(self.attack_by_compile(attack)?);
        }
        attacks.push(self.outlast_silent_compile()?);
        for action in LINK_ACTIONS {
            match self.act_on_link(action)? {
                Some(result) => attacks.push(result),
                None => eprintln!("{} is not tried: this Linux has no such device or filter", action.name),
            }
        }
        attacks.push(self.overheard()?);
        Ok(attacks)
    }
}

impl AttackReport {
    /// All of these together.
    pub fn of(attacks: Vec<AttackResult>) -> AttackReport {
        let sum = |of: fn(&AttackResult) -> u64| attacks.iter().map(of).sum();
        let (frames, violations) = (sum(|attack| attack.frames), sum(|attack| attack.violations));
        AttackReport { attacks, frames, violations }
    }
}
