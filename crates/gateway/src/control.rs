//! The control protocol and its client, over a Unix socket: the client sends one line of JSON, the gateway
//! answers with one line, any number of times.
//!
//! ```text
//! → {"ask":"picture"}                     all figures, at one moment between two batches
//! ← {"picture":{…}}
//! → {"ask":"reload"}                      reads program and tables again; entries that packets made stay if they fit
//! ← {"review":{…}}                        what changes between the policies, if it is asked for (`"diff":true`)
//! ← {"done":"…"} or {"error":"…"}         on an error nothing has changed
//! → {"ask":"active"}                      which program runs, shown by its hash, and what became of packets
//! ← {"active":{…}}
//! → {"ask":"policies"}                    the policies, as the tables of their hooks hold them now
//! ← {"policies":[…]}
//! → {"ask":"policycounts"}                what the rules of the policies have counted
//! ← {"policycounts":[…]}
//! → {"ask":"measure","seconds":1}         where the time of the packet loop goes over the next second
//! ← {"measure":{…}}
//! → {"ask":"routes"}                      the routes there are
//! ← {"routes":{…}}
//! → {"ask":"neighbours"}                  the neighbours there are, and what became of packets handed to control
//! ← {"neighbours":{…}}
//! → {"ask":"names"}                       what the name server of this process does
//! ← {"names":{…}}
//! → {"ask":"whyname","initiator":"203.0.113.9","address":"198.51.100.1","service":"tcp/22"}
//! ← {"whyname":{…}}                       what becomes of a first packet, and why
//! → {"ask":"addname","name":"nas","gateway":"home","address":"192.168.1.10","services":["tcp/22"]}
//! ← {"done":"…"} or {"error":"…"}
//! → {"ask":"removename","name":"nas"}
//! ← {"done":"…"} or {"error":"…"}
//! → {"ask":"watch","filter":"arp"}     packets that a filter holds for, as they come (also `count`, `seconds`, `snap`, `steps`)
//! ← {"watching":true}                    at once, and while none comes each second
//! ← {"packet":{…}}                       each of them
//! ← {"watched":{…}}                      when it is over
//! → {"ask":"why","filter":"","last":10}  the last packets that were dropped or punted
//! ← {"why":[…]}
//! → {"ask":"tables","version":1}          tables, events and punted packets for other programs
//! ← {"tables":{…}}                        from here on in frames (docs/control.md)
//! → {"ask":"install","bytes":4711,"confirm_within":60}   a signed policy, whose bundle has as many bytes
//! ← {"send":true}                         they are to be sent now
//! ← {"done":"…"} or {"error":"…"}         and the connection is closed
//! → {"ask":"confirm","hash":"8a1f…"}      the policy with this hash stays
//! ← {"done":"…"} or {"error":"…"}
//! → {"ask":"stop"}                        ends the gateway
//! ← {"done":"stopping"}
//! ← {"signal":true}                       to this and to a reload, beside a confined core: whoever asks has to
//!                                         send SIGTERM or SIGHUP to the process that made the socket
//! ← {"error":"…","confined":true}         to what is not had beside a confined core
//! → anything else
//! ← {"error":"…"}                         and the connection is closed
//! ```

use crate::active::ActiveView;
use crate::leases::LeasesView;
use crate::limits::{INSTALLED, PATIENCE, QUESTION, RELOADED, SILENCE};
use crate::names::{NameWish, NamesView, WhyNameView, WhyNameWish};
use crate::policies::{PolicyCounts, PolicyView};
use crate::review::ReloadWish;
use crate::routing::{HostView, NeighboursView, RoutesView};
use crate::seeing::{PacketView, WatchWish, Watched};
use crate::signalled;
use client::ProgramSchema;
use engine::Report;
use engine::live::{Measurement, PortLosses};
use ports::live::tunnel::TunnelView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A question of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Asked {
    /// Everything there is to see.
    Picture,
    /// Read program and tables again.
    Reload(ReloadWish),
    /// Measure where the time of the packet loop goes.
    Measure {
        /// The duration of the measurement, 0.01 to 60 s.
        seconds: f64,
    },
    /// Which program runs.
    Active,
    /// The policies as the tables of their hooks hold them now.
    Policies,
    /// What the rules of the policies have counted.
    PolicyCounts,
    /// The routes there are.
    Routes,
    /// The neighbours there are.
    Neighbours,
    /// What the name server does.
    Names,
    /// What becomes of a first packet to an address of a waypoint.
    WhyName(WhyNameWish),
    /// Add a name that leads to a host.
    AddName(NameWish),
    /// Remove a name that leads to a host.
    RemoveName {
        /// The name, as in the file.
        name: String,
    },
    /// Watch packets as they come.
    Watch(WatchWish),
    /// The last packets that were dropped or punted.
    Why {
        /// The filter that the packets match.
        #[serde(default)]
        filter: String,
        /// The largest number of packets.
        last: u64,
    },
    /// Go on in the binary protocol of tables.
    Tables {
        /// The version of that protocol.
        version: u32,
    },
    /// Have a signed policy take over, whose bundle follows.
    Install(InstallWish),
    /// Confirm the signed policy that runs.
    Confirm {
        /// SHA-256 of the payload of its bundle, in hexadecimal digits.
        hash: String,
    },
    /// End the gateway.
    Stop,
}

/// A signed policy that is to take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallWish {
    /// How many bytes its bundle has; they follow the line.
    pub bytes: u64,
    /// Within how many seconds it has to be confirmed; without a number it need not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u32>,
}

/// An answer of the gateway.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlAnswer {
    /// Everything there is to see.
    Picture(Box<GatewayView>),
    /// A measurement of where the time of the packet loop went.
    Measure(Box<Measurement>),
    /// Which program runs.
    Active(Box<ActiveView>),
    /// The policies as the tables of their hooks hold them now.
    Policies(Vec<PolicyView>),
    /// What the rules of the policies have counted.
    PolicyCounts(Vec<PolicyCounts>),
    /// The routes there are.
    Routes(Box<RoutesView>),
    /// The neighbours there are.
    Neighbours(Box<NeighboursView>),
    /// What the name server does.
    Names(Box<NamesView>),
    /// What becomes of a first packet to an address of a waypoint.
    WhyName(Box<WhyNameView>),
    /// A sign that the watch goes on, while no packet comes.
    Watching(bool),
    /// A packet of a watch.
    Packet(Box<PacketView>),
    /// The end of a watch.
    Watched(Watched),
    /// Packets that were dropped or punted, oldest first.
    Why(Vec<PacketView>),
    /// The tables, events and reasons; the binary protocol follows.
    Tables(Box<ProgramSchema>),
    /// The bytes that were announced are to be sent.
    Send(bool),
    /// The process that made the socket does it at a signal, which is to be sent.
    Signal(bool),
    /// What changes between the policies of two programs.
    Review(Box<serde_json::Value>),
    /// The request was carried out; the text describes the result.
    Done(String),
    /// The request failed or was not understood; the text says why.
    Error(String),
    /// What was asked for is not had beside a confined core.
    #[serde(untagged)]
    Confined {
        /// What is missed, and the way to it.
        error: String,
        /// Always so.
        confined: bool,
    },
}

/// A running gateway at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayView {
    /// Seconds since the program took over.
    pub seconds: f64,
    /// How many programs have taken over, this one included.
    pub generation: u64,
    /// What happened to the program's packets.
    pub report: Report,
    /// The help text of each reason for drops and punts.
    pub reasons: BTreeMap<String, String>,
    /// The lines of the program where packets are dropped or punted for each reason.
    pub places: BTreeMap<String, Vec<String>>,
    /// The number of workers.
    pub workers: u64,
    /// The number of punted packets that found no room in the queue to the control plane, or had no share
    /// while others waited.
    pub punt_queue_full: u64,
    /// The same number by reason, for reasons with lost packets.
    pub punts_lost: BTreeMap<String, u64>,
    /// The number of packets that left with the checksum that their sender had left open.
    pub checksums_left_open: u64,
    /// The number of segments that the program got whole; every other figure counts their packets.
    pub segments_whole: u64,
    /// The number of routes of the Linux kernel that the gateway cannot follow.
    pub kernel_routes_unmeant: u64,
    /// Registrations of names over tunnels.
    pub leases: LeasesView,
    /// The ports of the gateway.
    pub ports: Vec<PortView>,
}

/// A port of a running gateway.
#[derive(Clone, Debug, Serialize)]
pub struct PortView {
    /// The number of the port.
    pub port: u16,
    /// The interface.
    pub interface: String,
    /// How the port is attached, as a text.
    pub mode: String,
    /// For how many seconds the interface has been missing; `None` while it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_seconds: Option<f64>,
    /// Why the last attempt to use the interface again failed, while it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_because: Option<String>,
    /// Why the trace cannot be written at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untraced_because: Option<String>,
    /// How often the interface has disappeared.
    pub vanished: u64,
    /// The host interface, if the machine is a host at the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    /// The tunnel, if the port is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<TunnelView>,
    /// The losses at this port since the program took over.
    #[serde(flatten)]
    pub losses: PortLosses,
    /// The losses at this port since it was attached, under all programs together.
    pub since_attached: PortLosses,
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
    /// somebody may listen, but not to this user
    #[error(
        "the socket {path} cannot be used: {source}; a gateway answers only the user that started it, so run this as that user, as with sudo"
    )]
    Permission {
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
    /// it says nothing
    #[error(
        "the gateway at {path} has said nothing for {seconds} s: it hangs or was stopped, or the machine has no time for it; what was asked may still be done"
    )]
    Silent {
        /// The socket.
        path: String,
        /// How long the client waited.
        seconds: f64,
    },
    /// it said no
    #[error("{0}")]
    Refused(String),
    /// a confined core does not have it
    #[error("{0}")]
    Confined(String),
    /// the process that made the socket is to be sent a signal, and cannot be
    #[error(
        "`ravelin-launch` is not sent SIG{signal}: {source}; where the gateway runs, root sends it by `kill -{signal}`"
    )]
    Signal {
        /// The signal, without SIG.
        signal: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Sends a question to the gateway at `path` and returns its answer.
///
/// # Errors
/// Nobody answers, or not in time, or the answer is an error.
pub fn ask(path: &Path, asked: Asked) -> Result<serde_json::Value, ControlError> {
    let mut answer = serde_json::Value::Null;
    listen_to(path, &asked, &mut |said| -> Result<bool, ControlError> {
        answer = said;
        Ok(false)
    })?;
    Ok(answer)
}

/// Sends a question to the gateway at `path` and passes every line of the answer to `see`, until `see` or the
/// gateway ends the conversation.
///
/// # Errors
/// Nobody answers, or not in time, or the answer is an error.
pub fn listen_to<E: From<ControlError>>(
    path: &Path,
    asked: &Asked,
    see: &mut dyn FnMut(serde_json::Value) -> Result<bool, E>,
) -> Result<(), E> {
    Line { path, patience: patience(asked) }.hear(asked, see)
}

/// How long a working gateway may need for an answer.
fn patience(asked: &Asked) -> Duration {
    match asked {
        // Whoever asks for policies waits until a reload is over.
        Asked::Reload(_) | Asked::Policies | Asked::PolicyCounts => RELOADED,
        Asked::Install(_) | Asked::Confirm { .. } => INSTALLED,
        Asked::Measure { seconds } => {
            Duration::try_from_secs_f64(*seconds).map_or(PATIENCE, |measured| PATIENCE + measured)
        }
        _ => PATIENCE,
    }
}

/// A gateway's socket, and how long an answer may take.
struct Line<'a> {
    path: &'a Path,
    patience: Duration,
}

/// Sends a bundle with a signed policy to the gateway at `path` and returns its answer. With
/// `confirm_within`, in seconds, the policy has to be confirmed.
///
/// # Errors
/// As with [`ask`].
pub fn install(
    path: &Path,
    bundle: &[u8],
    confirm_within: Option<u32>,
) -> Result<serde_json::Value, ControlError> {
    let wish = InstallWish { bytes: bundle.len() as u64, confirm_within };
    let mut answer = serde_json::Value::Null;
    let asked = Asked::Install(wish);
    let line = Line { path, patience: patience(&asked) };
    line.hear_on(&asked, &mut |said, stream| -> Result<bool, ControlError> {
        let sends = said["send"] == true;
        if sends {
            (&mut &*stream).write_all(bundle).map_err(|error| line.broken(error))?;
        }
        answer = said;
        Ok(sends)
    })?;
    Ok(answer)
}

impl Line<'_> {
    /// As [`listen_to`].
    fn hear<E: From<ControlError>>(
        &self,
        asked: &Asked,
        see: &mut dyn FnMut(serde_json::Value) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.hear_on(asked, &mut |said, _| see(said))
    }

    /// The same; `see` may send more.
    fn hear_on<E: From<ControlError>>(
        &self,
        asked: &Asked,
        see: &mut dyn FnMut(serde_json::Value, &UnixStream) -> Result<bool, E>,
    ) -> Result<(), E> {
        let stream = self.connect()?;
        let mut question = serde_json::to_string(asked).map_err(|error| self.broken(error.into()))?;
        question.push('\n');
        (&stream).write_all(question.as_bytes()).map_err(|error| self.broken(error))?;
        for said in BufReader::new(&stream).lines() {
            let said = said.map_err(|error| self.broken(error))?;
            let said: serde_json::Value =
                serde_json::from_str(&said).map_err(|error| self.broken(error.into()))?;
            if let Some(error) = said.get("error").and_then(|error| error.as_str()) {
                let error = error.to_owned();
                return Err(match said["confined"] == true {
                    true => ControlError::Confined(error),
                    false => ControlError::Refused(error),
                }
                .into());
            }
            let said = match said["signal"] == true {
                true => serde_json::json!({ "done": signalled::send(&stream, asked)?, "signal": true }),
                false => said,
            };
            if !see(said, &stream)? {
                return Ok(());
            }
        }
        Err(self.broken(io::ErrorKind::UnexpectedEof.into()).into())
    }

    /// Connects to the gateway, within the time that an answer may take.
    fn connect(&self) -> Result<UnixStream, ControlError> {
        client::connect(self.path, self.patience).map_err(|source| self.refused(source))
    }

    /// The error for a failed connection.
    fn refused(&self, source: io::Error) -> ControlError {
        let path = self.path.display().to_string();
        match source.kind() {
            io::ErrorKind::WouldBlock => self.broken(source),
            io::ErrorKind::PermissionDenied => ControlError::Permission { path, source },
            _ => ControlError::Connect { path, source },
        }
    }

    fn broken(&self, source: io::Error) -> ControlError {
        let path = self.path.display().to_string();
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlError::Silent { path, seconds: self.patience.as_secs_f64() }
            }
            _ => ControlError::Broken { path, source },
        }
    }
}

/// Answers a question. The function that is passed sends lines before the answer.
pub(crate) type Answering<'a> =
    dyn FnMut(Asked, &mut dyn FnMut(&ControlAnswer) -> io::Result<()>) -> ControlAnswer + 'a;

/// How a conversation in JSON ends.
pub(crate) enum Conversation<'a> {
    /// The client is disconnected.
    Over,
    /// The client hands in a signed policy, whose bytes follow.
    Install(InstallWish, BufReader<&'a UnixStream>),
    /// The gateway is to end.
    Stop,
    /// The client goes on in the binary protocol; it may have begun already.
    Tables(BufReader<&'a UnixStream>),
}

/// Answers one client until it disconnects or sends something that is not understood. `turn` is told when it
/// is the client's turn to send something, and when it is not any more.
pub(crate) fn converse<'a>(
    stream: &'a UnixStream,
    turn: &dyn Fn(bool),
    answer: &mut Answering<'_>,
) -> io::Result<Conversation<'a>> {
    let mut reader = BufReader::new(stream);
    loop {
        turn(true);
        let line = question(stream, &mut reader)?;
        turn(false);
        if line.is_empty() {
            return Ok(Conversation::Over);
        }
        let asked = match serde_json::from_slice(&line) {
            Ok(asked) => asked,
            Err(error) => {
                let text = format!("not a question that a gateway understands: {error}");
                say(stream, &ControlAnswer::Error(text))?;
                return Ok(Conversation::Over);
            }
        };
        let ends = asked == Asked::Stop;
        let handed_in = match &asked {
            Asked::Install(wish) => Some(wish.clone()),
            _ => None,
        };
        let said = answer(asked, &mut |meanwhile| say(stream, meanwhile));
        say(stream, &said)?;
        if ends {
            return Ok(Conversation::Stop);
        }
        if let (ControlAnswer::Send(_), Some(wish)) = (&said, handed_in) {
            return Ok(Conversation::Install(wish, reader));
        }
        if let ControlAnswer::Tables(_) = said {
            return Ok(Conversation::Tables(reader));
        }
    }
}

/// Reads the next question, up to the longest allowed length. Once a question has begun, it must end within a
/// time limit, even if it comes byte by byte.
fn question(stream: &UnixStream, reader: &mut BufReader<&UnixStream>) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(SILENCE))?;
    reader.fill_buf()?;
    let end = Instant::now() + PATIENCE;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && (line.len() as u64) < QUESTION {
        stream.set_read_timeout(Some(left(end)?))?;
        let part = reader.fill_buf()?;
        let whole = part.iter().position(|byte| *byte == b'\n').map_or(part.len(), |end| end + 1);
        let taken = whole.min(QUESTION as usize - line.len());
        line.extend_from_slice(&part[..taken]);
        reader.consume(taken);
        if taken == 0 {
            break;
        }
    }
    Ok(line)
}

/// Reads so many bytes that follow a question, and waits for each part of them as for a question.
pub(crate) fn bytes_behind(
    stream: &UnixStream,
    reader: &mut BufReader<&UnixStream>,
    count: u64,
) -> io::Result<Vec<u8>> {
    let end = Instant::now() + INSTALLED;
    let mut bytes = Vec::new();
    // Memory is taken as bytes come, whatever number was announced.
    while (bytes.len() as u64) < count {
        stream.set_read_timeout(Some(left(end)?.min(PATIENCE)))?;
        let part = reader.fill_buf()?;
        let taken = part.len().min((count - bytes.len() as u64) as usize);
        if taken == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..taken]);
        reader.consume(taken);
    }
    Ok(bytes)
}

/// Sends an answer to a client, which must read all of it within a time limit.
pub(crate) fn say(mut stream: &UnixStream, answer: &ControlAnswer) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer).map_err(io::Error::from)?;
    text.push(b'\n');
    let (end, mut rest) = (Instant::now() + PATIENCE, &text[..]);
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time that is left until `end`; an error if it is over.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messages::limits::WAITING_CLIENTS;
    use messages::listening::{Listening, listen};
    use std::io::Read;
    use std::path::PathBuf;

    fn listener(directory: &tempfile::TempDir) -> (Listening, PathBuf) {
        let path = directory.path().join("control.sock");
        (listen(&path).expect("nothing is there"), path)
    }

    #[test]
    fn a_gateway_that_hangs_is_waited_for_no_longer_than_it_may() {
        let directory = tempfile::tempdir().expect("a directory");
        let (listener, path) = listener(&directory);
        let patience = Duration::from_millis(200);
        let mut see = |_| Ok(true);
        let silent =
            |error: &ControlError| matches!(error, ControlError::Silent { seconds, .. } if *seconds == 0.2);
        let begun = Instant::now();
        // Linux accepts the connection for this listener, which never reads.
        let line = Line { path: &path, patience };
        let error = line.hear(&Asked::Picture, &mut see).expect_err("nothing is said");
        assert!(silent(&error), "{error}");
        assert!(error.to_string().contains("has said nothing for 0.2 s"), "{error}");
        // Its queue of connections is full.
        let mut waiting = Vec::new();
        let full = loop {
            match line.connect() {
                Ok(stream) if waiting.len() < 2 * WAITING_CLIENTS as usize => waiting.push(stream),
                Ok(_) => panic!("the queue has no end"),
                Err(error) => break error,
            }
        };
        assert!(silent(&full), "{full}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        drop(listener);
        let error = ask(&path, Asked::Picture).expect_err("nobody is there");
        assert!(matches!(error, ControlError::Connect { .. }), "{error}");
    }

    #[test]
    fn a_question_that_comes_byte_by_byte_has_an_end() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"{\"ask\":\"stop\"}\nand more").expect("there is room");
        let mut reader = BufReader::new(&ours);
        assert_eq!(question(&ours, &mut reader).expect("is whole"), b"{\"ask\":\"stop\"}\n");
        theirs.write_all(&vec![b' '; QUESTION as usize]).expect("there is room");
        assert_eq!(question(&ours, &mut reader).expect("as much as there may be").len() as u64, QUESTION);
        // After the end there is no time left, even if bytes arrive.
        assert!(left(Instant::now()).is_err());
        drop(theirs);
        assert_eq!(question(&ours, &mut reader).expect("the rest").len(), b"and more".len());
        assert!(question(&ours, &mut reader).expect("the end").is_empty());
    }

    #[test]
    fn bytes_behind_a_question_come_whole_or_not_at_all() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"{\"ask\":\"install\",\"bytes\":4}\nfournext").expect("there is room");
        let answer = &mut |asked, _: &mut dyn FnMut(&ControlAnswer) -> io::Result<()>| {
            assert_eq!(asked, Asked::Install(InstallWish { bytes: 4, confirm_within: None }));
            ControlAnswer::Send(true)
        };
        let conversation = converse(&ours, &|_| {}, answer).expect("it is understood");
        let Conversation::Install(wish, mut reader) = conversation else { panic!("it is something else") };
        assert_eq!(bytes_behind(&ours, &mut reader, wish.bytes).expect("they are there"), b"four");
        let mut said = [0; 14];
        theirs.read_exact(&mut said).expect("it is said first");
        assert_eq!(&said, b"{\"send\":true}\n");
        drop(theirs);
        let error = bytes_behind(&ours, &mut reader, u64::MAX).expect_err("they are fewer");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_socket_of_another_user_is_not_said_to_have_no_gateway() {
        let line = Line { path: Path::new("/run/x.sock"), patience: PATIENCE };
        let said = line.refused(io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(
            said.contains("/run/x.sock cannot be used: permission denied") && said.contains("sudo"),
            "{said}"
        );
        let said = line.refused(io::ErrorKind::NotFound.into()).to_string();
        assert!(said.starts_with("no gateway answers at /run/x.sock"), "{said}");
    }

    #[test]
    fn who_measures_for_long_is_waited_for_longer() {
        assert_eq!(patience(&Asked::Picture), PATIENCE);
        assert_eq!(patience(&Asked::Measure { seconds: 30.0 }), PATIENCE + Duration::from_secs(30));
        assert_eq!(patience(&Asked::Measure { seconds: f64::NAN }), PATIENCE);
        assert!(patience(&Asked::Reload(ReloadWish::default())) > PATIENCE);
    }
}
