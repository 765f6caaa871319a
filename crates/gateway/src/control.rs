//! Asking a running gateway, over a Unix socket: one line of JSON in, one line of JSON out, as often as the client likes.
//!
//! ```text
//! → {"ask":"picture"}                     everything there is to see, at one moment between two batches
//! ← {"picture":{…}}
//! → {"ask":"reload"}                      reads program and tables again; what packets made in tables stays where it fits
//! ← {"done":"…"} or {"error":"…"}         on an error nothing has changed
//! → anything else
//! ← {"error":"…"}                         and the connection is closed
//! ```

use engine::Report;
use engine::live::PortLosses;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest question, in bytes.
const LONGEST: u64 = 64 << 10;
/// How long a client may take over a question once it has begun, and over reading an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Asked {
    /// Everything there is to see.
    Picture,
    /// To read program and tables again.
    Reload,
    /// To end.
    Stop,
}

/// What the gateway answers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Everything there is to see.
    Picture(Box<Picture>),
    /// It was done; what there is to say about it.
    Done(String),
    /// It was not done, or not understood.
    Error(String),
}

/// A running gateway at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Seconds since the program took over.
    pub seconds: f64,
    /// How many programs have taken over, this one included.
    pub generation: u64,
    /// What happened to its packets.
    pub report: Report,
    /// What the reasons for drops and punts mean.
    pub reasons: BTreeMap<String, String>,
    /// Its ports.
    pub ports: Vec<PortPicture>,
}

/// A port of a running gateway.
#[derive(Clone, Debug, Serialize)]
pub struct PortPicture {
    /// Its number.
    pub port: u16,
    /// The interface.
    pub interface: String,
    /// What was really obtained.
    pub mode: String,
    /// What was lost at it since it was attached.
    #[serde(flatten)]
    pub losses: PortLosses,
}

/// Why a gateway did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// nobody listens
    #[error(
        "no gateway answers at {path}: {source}; `ravelin serve` starts one, and `--control` names its socket"
    )]
    Connect {
        /// The socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// the connection broke
    #[error("the gateway at {path} broke off: {source}")]
    Broken {
        /// The socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// it said no
    #[error("{0}")]
    Refused(String),
}

/// Asks the gateway at `path`.
///
/// # Errors
/// Nobody answers, or the answer is an error.
pub fn ask(path: &Path, asked: Asked) -> Result<serde_json::Value, ControlError> {
    let name = || path.display().to_string();
    let broken = |source| ControlError::Broken { path: name(), source };
    let mut stream =
        UnixStream::connect(path).map_err(|source| ControlError::Connect { path: name(), source })?;
    let mut line = serde_json::to_string(&asked).map_err(|error| broken(error.into()))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(broken)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|error| broken(error.into()))?;
    match answer.get("error").and_then(|error| error.as_str()) {
        Some(error) => Err(ControlError::Refused(error.to_owned())),
        None => Ok(answer),
    }
}

/// Answers one client until it goes, or asks something that is not understood. Says whether the gateway is to end.
pub(crate) fn converse(stream: &UnixStream, answer: &mut dyn FnMut(Asked) -> Answer) -> io::Result<bool> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(false);
        }
        let (said, asked) = match serde_json::from_slice(&line) {
            Ok(asked) => (answer(asked), Some(asked)),
            Err(error) => {
                (Answer::Error(format!("not a question that a gateway understands: {error}")), None)
            }
        };
        let mut text = serde_json::to_vec(&said).map_err(io::Error::from)?;
        text.push(b'\n');
        (&*stream).write_all(&text)?;
        match asked {
            Some(Asked::Stop) => return Ok(true),
            Some(_) => {}
            None => return Ok(false),
        }
    }
}

/// A socket that is listened at; it goes with this.
pub(crate) struct Listening {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have been taken away already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens at `path`. A socket that a gateway left behind which was killed is taken away; one at which a gateway answers is not.
pub(crate) fn listen(path: &Path) -> io::Result<Listening> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        result => result?,
    };
    Ok(Listening { listener, path: path.to_owned() })
}
