//! Takes policies from whoever may hand them in, and tells `launch` what became of them and what is to be
//! kept.

use crate::activation::{Activation, Active};
use crate::in_force::{InForce, InstallError, TakenOver, TwoClocks};
use messages::Channel;
use messages::compile::CompileMessage;
use messages::control::ShownPolicy;
use messages::launch::{Because, CoreReport};
use messages::limits::{LONGEST_BUNDLE_MESSAGE, LONGEST_TEXT};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The policies of a core.
pub(crate) struct Policies {
    activation: Arc<Activation>,
    /// Nothing where programs need no signature.
    in_force: Option<Mutex<InForce>>,
    reports: Mutex<Channel>,
    /// The thread that waits for the end of the time to confirm.
    watch: Thread,
}

impl Policies {
    /// Those of a core whose calling thread is to wait for the end of the time to confirm.
    pub(crate) fn new(activation: Arc<Activation>, in_force: Option<InForce>, reports: Channel) -> Policies {
        let (in_force, reports) = (in_force.map(Mutex::new), Mutex::new(reports));
        Policies { activation, in_force, reports, watch: thread::current() }
    }

    /// What has programs take over.
    pub(crate) fn activation(&self) -> &Activation {
        &self.activation
    }

    /// Lets nobody hand in a policy as long as this is held.
    pub(crate) fn hold(&self) -> Option<MutexGuard<'_, InForce>> {
        self.in_force.as_ref().map(|in_force| in_force.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells `launch`.
    pub(crate) fn report(&self, report: &CoreReport) {
        // If `launch` is gone, the core ends.
        let _ = self.reports.lock().unwrap_or_else(PoisonError::into_inner).send(report, &[]);
    }

    /// Whether a policy waits to be confirmed.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.hold().is_some_and(|in_force| in_force.until().is_some())
    }

    /// Takes what `compile` hands in.
    pub(crate) fn take_compiled(&self, message: CompileMessage) {
        let taken = match message {
            CompileMessage::Refused(why) => return self.refuse(&why),
            CompileMessage::Program(_) if self.in_force.is_some() => Err(InstallError::Unsigned),
            CompileMessage::Program(text) => {
                self.activation.activate(&text, &[]).map(handed_in).map_err(Into::into)
            }
            CompileMessage::Bundle(bundle) => match self.hold() {
                Some(mut in_force) => in_force.accept(bundle, None, now(), &*self.activation),
                None => Err(InstallError::NoTrust),
            },
        };
        match taken {
            Ok(takeover) => drop(self.tell(takeover)),
            Err(error) => self.refuse(&error.to_string()),
        }
    }

    /// Takes a bundle that `control` hands in. Returns what runs, and the version that `launch` is to keep.
    ///
    /// # Errors
    /// Why it does not take over. What ran before goes on.
    pub(crate) fn install(
        &self,
        bundle: Vec<u8>,
        confirm_within: Option<u32>,
    ) -> Result<(Option<ShownPolicy>, Option<u64>), InstallError> {
        let Some(mut in_force) = self.hold() else { return Err(InstallError::NoTrust) };
        let now = now();
        let taken = in_force.accept(bundle, confirm_within, now, &*self.activation);
        let shown = in_force.shown(now);
        drop(in_force);
        match taken {
            Ok(takeover) => {
                self.watch.unpark();
                Ok((shown, self.tell(takeover)))
            }
            Err(error) => {
                self.refuse(&error.to_string());
                Err(error)
            }
        }
    }

    /// Confirms the policy with this hash. Returns as [`install`](Policies::install).
    ///
    /// # Errors
    /// It does not have to be confirmed.
    pub(crate) fn confirm(&self, hash: [u8; 32]) -> Result<(Option<ShownPolicy>, Option<u64>), InstallError> {
        let Some(mut in_force) = self.hold() else { return Err(InstallError::NoTrust) };
        let now = now();
        let keep = in_force.confirm(hash, now)?;
        let shown = in_force.shown(now);
        drop(in_force);
        let newest = keep.newest;
        self.report(&CoreReport::Keep(keep));
        Ok((shown, Some(newest)))
    }

    /// The program that runs, and the signed policy that it is of, if it is of one.
    pub(crate) fn shown(&self) -> (Active, Option<ShownPolicy>) {
        let held = self.hold();
        (self.activation.active(), held.and_then(|in_force| in_force.shown(now())))
    }

    /// Waits for ends of times to confirm, and has the last confirmed policy take over then. Returns why it
    /// does not take over: the core has to end.
    pub(crate) fn watch(&self) -> InstallError {
        loop {
            let until = self.hold().and_then(|in_force| in_force.until());
            match until {
                None => thread::park(),
                Some(until) => thread::park_timeout(until.saturating_duration_since(Instant::now())),
            }
            let returned = self.hold().map(|mut in_force| in_force.return_if_due(now(), &*self.activation));
            match returned {
                Some(Ok(Some(takeover))) => drop(self.tell(takeover)),
                Some(Err(error)) => return error,
                Some(Ok(None)) | None => {}
            }
        }
    }

    /// Tells of a takeover. Returns the version that `launch` is to keep.
    pub(crate) fn tell(&self, takeover: TakenOver) -> Option<u64> {
        let TakenOver { active, because, keep } = takeover;
        self.report(&CoreReport::Activated { hash: active.hash, number: active.number, because });
        let newest = keep.as_ref().map(|keep| keep.newest);
        if let Some(keep) = keep {
            self.report(&CoreReport::Keep(keep));
        }
        newest
    }

    /// Tells of a policy that does not take over.
    pub(crate) fn refuse(&self, why: &str) {
        self.report(&refused(why));
    }
}

/// What is told of a policy that does not take over.
pub(crate) fn refused(why: &str) -> CoreReport {
    // A text for people, cut where a message would get too long.
    CoreReport::Refused { why: why[..why.floor_char_boundary(LONGEST_TEXT)].to_owned() }
}

/// Of a program that needs no signature.
fn handed_in(active: Active) -> TakenOver {
    TakenOver { active, because: Because::HandedIn, keep: None }
}

/// This moment. A clock that is before 1970 stands at its beginning, when no policy is valid.
pub(crate) fn now() -> TwoClocks {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    TwoClocks { unix, steady: Instant::now() }
}

/// Takes one message of `compile`.
pub(crate) fn take_of(mut compile: Channel, policies: &Policies) {
    match compile.receive_alone::<CompileMessage>(LONGEST_BUNDLE_MESSAGE) {
        Ok(Some(message)) => policies.take_compiled(message),
        Ok(None) => policies.refuse("compile ended without a program"),
        Err(error) => policies.refuse(&format!("compile: {error}")),
    }
}
