//! What a core reported, as much of it as is needed: a core that is taken over makes nothing grow by it.

use crate::said::told;
use messages::launch::{Because, CoreReport, Kept};

/// What is done about a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The core hears others from now on.
    Locked,
    /// It has taken over from another one.
    TookOver,
    /// It has a program.
    Activated {
        /// Whether `compile` gave it, without a signature.
        handed_in: bool,
    },
    /// It has refused one.
    Refused,
    /// It goes on with a port that was handed over anew, or cannot.
    Renewed {
        /// Which handing over it was.
        serial: u64,
    },
}

/// A report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) what: What,
    /// What is said of it; nothing if it is empty.
    pub(crate) line: String,
}

impl Reported {
    /// What is needed of a report, unless something is to be kept by it.
    ///
    /// # Errors
    /// What is to be kept.
    pub(crate) fn of(report: CoreReport) -> Result<Reported, Kept> {
        let (what, line) = match report {
            CoreReport::Locked { layers } if layers.is_empty() => {
                (What::Locked, "core: runs, and drops every packet until a policy is there".to_owned())
            }
            CoreReport::Locked { layers } => {
                let layers = told(&layers.join(", "));
                let line =
                    format!("core: locked in by {layers}; it drops every packet until a policy is there");
                (What::Locked, line)
            }
            CoreReport::TookOver { gap, state } => {
                let line = format!(
                    "core: another core runs, which took over after {}.{:03} ms, with {state} entries and cells",
                    gap / 1000,
                    gap % 1000
                );
                (What::TookOver, line)
            }
            CoreReport::Activated { hash, number, because } => {
                let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("core: program {number} runs, sha256 {hash}{}", told(&why(&because)));
                (What::Activated { handed_in: because == Because::HandedIn }, line)
            }
            CoreReport::Refused { why } => (What::Refused, format!("core: what ran goes on: {}", told(&why))),
            CoreReport::Renewed { serial } => (What::Renewed { serial }, String::new()),
            CoreReport::Keep(kept) => return Err(kept),
        };
        Ok(Reported { what, line })
    }
}

/// Why a program took over, behind what is said of it.
fn why(because: &Because) -> String {
    match because {
        Because::HandedIn => String::new(),
        Because::Accepted { version, signed_by, confirm_within } => {
            let confirm = confirm_within
                .map_or(String::new(), |seconds| format!("; it has to be confirmed within {seconds} s"));
            format!(": policy version {version}, signed by {}{confirm}", signed_by.join(" and "))
        }
        Because::RanBefore => ": it ran before in another core".to_owned(),
        Because::Kept { version } => format!(": policy version {version}, which was kept"),
        Because::Unconfirmed { version, before: Some(before) } => {
            format!(": policy version {before}, since version {version} was not confirmed")
        }
        Because::Unconfirmed { version, before: None } => {
            format!(
                ": every packet is dropped, since version {version} was not confirmed and there is none before it"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messages::limits::LONGEST_TEXT;

    #[test]
    fn of_a_long_report_little_is_left() {
        let long = || "x\x1b".repeat(1 << 20);
        for report in [
            CoreReport::Refused { why: long() },
            CoreReport::Locked { layers: vec![long(), long()] },
            CoreReport::Activated {
                hash: [0; 32],
                number: 1,
                because: Because::Accepted { version: 1, signed_by: vec![long()], confirm_within: None },
            },
        ] {
            let reported = Reported::of(report).expect("nothing is to be kept");
            // A character that a terminal obeys takes six in its place.
            assert!(reported.line.len() < 6 * LONGEST_TEXT, "{}", reported.line.len());
            assert!(!reported.line.contains('\x1b'));
        }
        let kept = Kept { newest: 7, policy: None };
        assert_eq!(Reported::of(CoreReport::Keep(kept.clone())), Err(kept));
    }
}
