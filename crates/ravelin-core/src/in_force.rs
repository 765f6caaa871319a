//! Which policy is in force where policies have to be signed: what takes over, what is returned to, and what
//! is to be kept meanwhile.
//!
//! ```text
//!      ┌───────────────── accepted, needs confirmation ─────────────────┐
//!      │ accepted, needs no confirmation  accepted, needs confirmation  ▼
//!   nothing ──────────────► confirmed ─────────────────────────► unconfirmed ─┐
//!      ▲                     ▲  ▲  └─◄─ accepted, needs none ─◄──┘ │ │        │ accepted, needs confirmation
//!      │                     │  └──────────◄─ confirmed ─◄─────────┘ │ ◄──────┘
//!      └──── the time to confirm is over: the last confirmed one ────┘
//! ```
//!
//! The newest version rises with every policy that is accepted, also with one that is never confirmed.
//! Nothing of an unconfirmed policy is kept but its version, so that another core begins with the confirmed
//! one.

use crate::activation::{Activation, ActivationError, Active};
use bundle::{Accepted, BundleRefusal, EngineVersion, TableRight, Trust, TrustError};
use messages::control::{ShownPolicy, ShownSigner, Unconfirmed};
use messages::launch::{Because, Kept, KeptPolicy, TrustTerms};
use messages::limits::{LONGEST_BUNDLE, LONGEST_TO_CONFIRM};
use std::time::{Duration, Instant};

// Whatever may be signed can be handed in.
const _: () = assert!(bundle::limits::BUNDLE_BYTES == LONGEST_BUNDLE);

/// Why a policy does not take over, or is not confirmed. What ran before goes on.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// not signed
    #[error("the program is not signed, and this gateway takes only policies that its administrators signed")]
    Unsigned,
    /// signatures are not looked at
    #[error(
        "this gateway does not know whose signatures count: write `[trust]` into its file, and start it again"
    )]
    NoTrust,
    /// the bundle
    #[error("{0}")]
    Bundle(#[from] BundleRefusal),
    /// the program
    #[error("{0}")]
    Activation(#[from] ActivationError),
    /// a time that nobody waits for
    #[error(
        "{0} seconds are no time within which a policy can be confirmed: use 1 to {LONGEST_TO_CONFIRM} seconds"
    )]
    TimeToConfirm(u32),
    /// nothing is unconfirmed
    #[error(
        "no policy has to be confirmed: the time for it may be over; `ravelin show policy` says what runs"
    )]
    NothingToConfirm,
    /// another one is
    #[error("another policy has to be confirmed, with the hash {}", bundle::hex(.0))]
    OtherToConfirm([u8; 32]),
}

/// Runs programs.
pub trait Runs {
    /// Has the program of this text take over, with these rights of `control`.
    ///
    /// # Errors
    /// It does not; what ran before goes on.
    fn run(&self, text: &str, rights: &[TableRight]) -> Result<Active, ActivationError>;
}

impl Runs for Activation {
    fn run(&self, text: &str, rights: &[TableRight]) -> Result<Active, ActivationError> {
        self.activate(text, rights)
    }
}

/// What has taken over, and what is to be told of it.
#[derive(Debug)]
pub struct TakenOver {
    /// The program.
    pub active: Active,
    /// Why it has.
    pub because: Because,
    /// What is to be kept from now on, if that changes.
    pub keep: Option<Kept>,
}

/// A moment, by the clock that can be set and by the one that only goes on.
#[derive(Clone, Copy, Debug)]
pub struct TwoClocks {
    /// Seconds of Unix time.
    pub unix: u64,
    /// The clock for times to confirm.
    pub steady: Instant,
}

/// A policy that was accepted.
#[derive(Clone, Debug)]
struct Policy {
    version: u64,
    hash: [u8; 32],
    signed_by: Vec<ShownSigner>,
    bundle: Vec<u8>,
}

/// A policy that has to be confirmed.
#[derive(Debug)]
struct Waiting {
    policy: Policy,
    until: Instant,
}

/// The policies of a gateway that takes only signed ones.
#[derive(Debug)]
pub struct InForce {
    trust: Trust,
    keys: Vec<(String, String)>,
    engine: EngineVersion,
    newest: u64,
    confirmed: Option<Policy>,
    waiting: Option<Waiting>,
}

impl InForce {
    /// Policies by these terms; none is in force yet.
    ///
    /// # Errors
    /// The terms are no trust.
    pub fn new(terms: TrustTerms, engine: EngineVersion) -> Result<InForce, TrustError> {
        let keys = terms.keys.iter().map(|(name, digits)| (name, digits));
        let trust = Trust::of_digits(&terms.gateway, keys, usize::from(terms.threshold))?;
        Ok(InForce { trust, keys: terms.keys, engine, newest: 0, confirmed: None, waiting: None })
    }

    /// Begins with what was kept while no core ran. From now on the newest version is that one, whatever
    /// becomes of the policy; nothing takes over if none was kept.
    ///
    /// # Errors
    /// It is not signed as it has to be, or is of another version; nothing takes over.
    pub fn restore(&mut self, kept: Kept, runs: &dyn Runs) -> Result<Option<TakenOver>, InstallError> {
        self.newest = self.newest.max(kept.newest);
        let Some(KeptPolicy { version, bundle }) = kept.policy else { return Ok(None) };
        let accepted = self.trust.accept_kept(&bundle, version, self.engine)?;
        let active = runs.run(&accepted.policy.program, &accepted.policy.rights)?;
        self.newest = self.newest.max(version);
        self.confirmed = Some(self.policy(accepted, bundle));
        Ok(Some(TakenOver { active, because: Because::Kept { version }, keep: None }))
    }

    /// Has the policy of a bundle take over. With `confirm_within`, in seconds, it has to be confirmed.
    ///
    /// # Errors
    /// It is not accepted, or its program does not take over.
    pub fn accept(
        &mut self,
        bundle: Vec<u8>,
        confirm_within: Option<u32>,
        now: TwoClocks,
        runs: &dyn Runs,
    ) -> Result<TakenOver, InstallError> {
        if let Some(seconds) = confirm_within.filter(|seconds| !(1..=LONGEST_TO_CONFIRM).contains(seconds)) {
            return Err(InstallError::TimeToConfirm(seconds));
        }
        let accepted = self.trust.accept(&bundle, now.unix, self.newest, self.engine)?;
        let active = runs.run(&accepted.policy.program, &accepted.policy.rights)?;
        let (version, signed_by) = (accepted.policy.version, accepted.signed_by.clone());
        let policy = self.policy(accepted, bundle);
        self.newest = version;
        let keep = match confirm_within {
            Some(seconds) => {
                let until = now.steady + Duration::from_secs(u64::from(seconds));
                self.waiting = Some(Waiting { policy, until });
                Kept { newest: version, policy: None }
            }
            None => self.confirm_now(policy),
        };
        let because = Because::Accepted { version, signed_by, confirm_within };
        Ok(TakenOver { active, because, keep: Some(keep) })
    }

    /// Confirms the policy with this hash. Returns what is to be kept from now on.
    ///
    /// # Errors
    /// It does not have to be confirmed, or no longer can be.
    pub fn confirm(&mut self, hash: [u8; 32], now: TwoClocks) -> Result<Kept, InstallError> {
        match self.waiting.take() {
            Some(waiting) if waiting.policy.hash == hash && now.steady < waiting.until => {
                Ok(self.confirm_now(waiting.policy))
            }
            Some(waiting) => {
                let other = waiting.policy.hash;
                self.waiting = Some(waiting);
                match other == hash {
                    true => Err(InstallError::NothingToConfirm),
                    false => Err(InstallError::OtherToConfirm(other)),
                }
            }
            None => Err(InstallError::NothingToConfirm),
        }
    }

    /// The newest version that was accepted; 0 before the first.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// When the time to confirm is over, if a policy has to be confirmed.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.until)
    }

    /// Has the last confirmed policy take over if the time to confirm is over. If that fails, the unconfirmed
    /// one still runs and may not: the core has to end, so that another one begins with the confirmed one.
    ///
    /// # Errors
    /// The last confirmed policy does not take over.
    pub fn return_if_due(
        &mut self,
        now: TwoClocks,
        runs: &dyn Runs,
    ) -> Result<Option<TakenOver>, InstallError> {
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.until <= now.steady) else {
            return Ok(None);
        };
        let active = match &self.confirmed {
            Some(before) => {
                let accepted = self.trust.accept_kept(&before.bundle, before.version, self.engine)?;
                runs.run(&accepted.policy.program, &accepted.policy.rights)?
            }
            None => runs.run(crate::boot::TEXT, &[])?,
        };
        let before = self.confirmed.as_ref().map(|policy| policy.version);
        let because = Because::Unconfirmed { version: waiting.policy.version, before };
        Ok(Some(TakenOver { active, because, keep: None }))
    }

    /// The policy that runs.
    #[must_use]
    pub fn shown(&self, now: TwoClocks) -> Option<ShownPolicy> {
        let unconfirmed = self.waiting.as_ref().map(|waiting| Unconfirmed {
            seconds_left: whole_seconds(waiting.until.saturating_duration_since(now.steady)),
            before: self.confirmed.as_ref().map(|policy| policy.version),
        });
        let policy = self.waiting.as_ref().map(|waiting| &waiting.policy).or(self.confirmed.as_ref())?;
        let Policy { version, hash, signed_by, .. } = policy;
        Some(ShownPolicy { version: *version, hash: *hash, signed_by: signed_by.clone(), unconfirmed })
    }

    /// The policy needs no confirmation any more. Returns what is to be kept.
    fn confirm_now(&mut self, policy: Policy) -> Kept {
        let (version, bundle) = (policy.version, policy.bundle.clone());
        (self.confirmed, self.waiting) = (Some(policy), None);
        Kept { newest: self.newest, policy: Some(KeptPolicy { version, bundle }) }
    }

    fn policy(&self, accepted: Accepted, bundle: Vec<u8>) -> Policy {
        let signer = |name: &String| {
            let key = self.keys.iter().find(|(of, _)| of == name).map(|(_, key)| key.to_ascii_lowercase());
            ShownSigner { name: name.clone(), key: key.unwrap_or_default() }
        };
        let signed_by = accepted.signed_by.iter().map(signer).collect();
        Policy { version: accepted.policy.version, hash: accepted.hash, signed_by, bundle }
    }
}

/// Seconds, rounded up; times to confirm are within the limit.
fn whole_seconds(time: Duration) -> u32 {
    time.as_millis().div_ceil(1000) as u32
}
