//! How a command can fail, and the exit code of each way.

use serde_json::json;
use std::io;

/// A command did not go well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// Something was found that is to be told: exit code 1.
    #[error("{0}")]
    Finding(String),
    /// Something was found that is in the document on standard output too: exit code 1.
    #[error("{0}")]
    Documented(String),
    /// Something was found, and the command has already told it: exit code 1.
    #[error("already told")]
    Told,
    /// The user ended it, and the command has told how far it came: exit code 130, as a shell has it for
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The reader of the output went away: not a failure.
    #[error("the output was closed")]
    Closed,
}

impl Failure {
    /// 1 for findings, 2 for a wrong command line.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Finding(_) | Failure::Documented(_) | Failure::Told => 1,
            Failure::Interrupted => 130,
            Failure::Closed => 0,
        }
    }

    /// Tells it on standard error, and on standard output too where a JSON document is expected there and
    /// none is yet.
    pub(crate) fn report(&self, json: bool) {
        if matches!(self, Failure::Told | Failure::Interrupted | Failure::Closed) {
            return;
        }
        if json && !matches!(self, Failure::Documented(_)) {
            // Nobody is left to tell if this cannot be written.
            let _ = crate::render::json(&json!({ "error": { "message": self.to_string() } }));
        }
        let style = anstyle::AnsiColor::Red.on_default().bold();
        anstream::eprintln!("{style}error{style:#}: {self}");
    }
}

/// A gateway did not answer, or said no.
impl From<gateway::ControlError> for Failure {
    fn from(error: gateway::ControlError) -> Failure {
        Failure::Finding(error.to_string())
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Finding(format!("cannot write the output: {error}"))
        }
    }
}
