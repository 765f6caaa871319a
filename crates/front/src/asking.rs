//! The client's end of a connection: it waits until the front knows it, and then asks.

use crate::key::{IdentityKey, KeyError, public_of_digits};
use crate::limits::{ANSWERED_WITHIN, CONNECTED_WITHIN};
use crate::tls;
use crate::welcome::Welcome;
use messages::control::{ControlQuestion, CoreAnswer};
use messages::limits::LONGEST_MESSAGE;
use messages::{MessageError, frame};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error, StreamOwned};
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Why a front did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// nobody there
    #[error("no front answers at {at}: {source}")]
    Connect {
        /// Where.
        at: String,
        /// What the system said.
        source: io::Error,
    },
    /// the other end has another key
    #[error(
        "who answers there has another key than the one that was given as that of the front: compare it with `ravelin front key show` on the gateway"
    )]
    OtherFront,
    /// the front does not know the key
    #[error(
        "the front does not know this key: `[front.clients]` in the gateway's file has to name it, and the gateway has to be started again"
    )]
    UnknownClient,
    /// no key
    #[error(transparent)]
    Key(#[from] KeyError),
    /// TLS
    #[error("TLS: {0}")]
    Tls(Error),
    /// other software, or another version
    #[error("who answers there is no front that speaks as this program does")]
    Protocol,
    /// broken off
    #[error("the front broke off: {0}; what was asked may be done nevertheless")]
    Broken(io::Error),
    /// it says nothing
    #[error("the front has said nothing for too long; what was asked may be done nevertheless")]
    Silent,
    /// an answer that is none
    #[error("the front says what is not understood: {0}")]
    NotUnderstood(#[from] MessageError),
    /// too long
    #[error("the front says {length} bytes, of which at most {most} are taken")]
    TooLong {
        /// How many.
        length: usize,
        /// How many are taken.
        most: usize,
    },
}

/// A connection to a front that knows the client.
pub struct Session {
    stream: StreamOwned<ClientConnection, TcpStream>,
    welcome: Welcome,
}

impl Session {
    /// Connects to the front at `at`, a host and a port, whose public key has these digits.
    ///
    /// # Errors
    /// Nobody answers there, it has another key, or it does not know the client.
    pub fn connect(at: &str, client: &IdentityKey, front: &str) -> Result<Session, AskError> {
        let config = tls::of_client(client, public_of_digits(front)?).map_err(AskError::Tls)?;
        let failed = |source| AskError::Connect { at: at.to_owned(), source };
        let socket = reached(at).map_err(failed)?;
        socket.set_read_timeout(Some(CONNECTED_WITHIN)).map_err(failed)?;
        socket.set_write_timeout(Some(CONNECTED_WITHIN)).map_err(failed)?;
        // It is not sent: the key says which front it is.
        let name = ServerName::try_from("front").map_err(|_| AskError::Protocol)?;
        let tls = ClientConnection::new(config, name).map_err(AskError::Tls)?;
        let mut stream = StreamOwned::new(tls, socket);
        // The front says whether it knows the client only after the client's last word of the handshake.
        let welcome = receive(&mut stream, 1024)?;
        if !tls::is_own(stream.conn.alpn_protocol()) {
            return Err(AskError::Protocol);
        }
        Ok(Session { stream, welcome })
    }

    /// As whom the front knows the client.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The front breaks off, or its answer is none.
    pub fn ask(&mut self, question: &ControlQuestion) -> Result<CoreAnswer, AskError> {
        let bytes = frame::written(question).map_err(AskError::Broken)?;
        self.stream.write_all(&bytes).and_then(|()| self.stream.flush()).map_err(broken)?;
        self.wait(ANSWERED_WITHIN + CONNECTED_WITHIN)?;
        receive(&mut self.stream, LONGEST_MESSAGE)
    }

    fn wait(&self, time: Duration) -> Result<(), AskError> {
        self.stream.sock.set_read_timeout(Some(time)).map_err(AskError::Broken)
    }
}

/// A connection to the first address of `at` that can be reached.
fn reached(at: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "it has no address");
    for address in at.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTED_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Waits for a message.
fn receive<M: DeserializeOwned>(from: &mut impl Read, most: usize) -> Result<M, AskError> {
    let mut length = [0; 4];
    from.read_exact(&mut length).map_err(broken)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(AskError::TooLong { length, most });
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).map_err(broken)?;
    Ok(frame::read(&bytes)?)
}

/// What an error of a stream says of the other end.
fn broken(error: io::Error) -> AskError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => {
            AskError::OtherFront
        }
        Some(Error::AlertReceived(AlertDescription::AccessDenied | AlertDescription::BadCertificate)) => {
            AskError::UnknownClient
        }
        Some(tls) => AskError::Tls(tls.clone()),
        None if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            AskError::Silent
        }
        None => AskError::Broken(error),
    }
}
