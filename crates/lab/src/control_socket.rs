//! What a gateway that runs tells at its control socket (docs/control.md).

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a gateway's control socket.
pub(crate) struct ControlSocket(BufReader<UnixStream>);

impl ControlSocket {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub(crate) fn connect(path: &Path) -> io::Result<ControlSocket> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(ControlSocket(BufReader::new(stream)))
    }

    /// Asks a question of one word.
    ///
    /// # Errors
    /// No answer comes.
    pub(crate) fn ask(&mut self, word: &str) -> io::Result<Value> {
        self.0.get_mut().write_all(format!("{{\"ask\":\"{word}\"}}\n").as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// The same, and takes what stands under this word in the answer.
    ///
    /// # Errors
    /// No answer comes, or another one.
    pub(crate) fn told(&mut self, word: &str) -> io::Result<Value> {
        let mut answer = self.ask(word)?;
        let told = answer.get_mut(word).map(Value::take);
        told.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, answer.to_string()))
    }
}
