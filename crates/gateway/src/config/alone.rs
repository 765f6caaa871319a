//! A file without ports and program: the process answers for names and does nothing else.
//!
//! ```toml
//! [names]                         # `names.rs`
//! waypoints = ["w1"]
//!
//! [tunnel]                        # for control messages; packets of its peers go nowhere
//! listen = "0.0.0.0:5282"
//! key = "ns1.key"
//!
//! [[tunnel.peer]]                 # as that of a port (`tunnel.rs`)
//! name = "w1"
//! number = 1
//! key = "BASE64"
//! endpoint = "198.51.100.1:5282"
//! ```

use super::names::{self, FileNames, NamesConfig};
use super::tunnel::{FilePeer, FileTunnel, OneOrMany};
use super::{At, CONTROL, Config, ConfigError, metrics_at, place};
use ports::live::TunnelWishes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The file of a process: with ports, or for names alone.
#[derive(Clone, Debug)]
pub enum ProcessConfig {
    /// It has ports.
    Gateway(Box<Config>),
    /// It has none.
    Names(Box<AloneConfig>),
}

/// What a process without ports does.
#[derive(Clone, Debug)]
pub struct AloneConfig {
    /// The path of the control socket.
    pub control: PathBuf,
    /// The address for Prometheus, if the file gives one.
    pub metrics: Option<SocketAddr>,
    /// The names.
    pub names: NamesConfig,
    /// The tunnel for control messages, if there is one.
    pub tunnel: Option<TunnelWishes>,
}

/// What tells the two kinds of files apart.
#[derive(Deserialize)]
struct Kind {
    program: Option<IgnoredAny>,
    port: Option<IgnoredAny>,
    names: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAlone {
    control: Option<PathBuf>,
    metrics: Option<Spanned<String>>,
    #[serde(default)]
    metrics_anywhere: bool,
    names: FileNames,
    tunnel: Option<FileLoneTunnel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLoneTunnel {
    listen: Option<Spanned<String>>,
    key: Option<Spanned<OneOrMany>>,
    #[serde(default, rename = "peer")]
    peers: Vec<Spanned<FilePeer>>,
}

impl FileLoneTunnel {
    fn read(&self, directory: &Path, at: &At<'_>) -> Result<TunnelWishes, ConfigError> {
        let tunnel = FileTunnel { listen: &self.listen, key: &self.key, mtu: &None, peers: &self.peers };
        tunnel.read(directory).map_err(|(span, message)| at(span, message))
    }
}

impl ProcessConfig {
    /// Reads the text of a file in `directory`.
    ///
    /// # Errors
    /// The first error in the text.
    pub fn read(text: &str, directory: &Path) -> Result<ProcessConfig, ConfigError> {
        // What is no TOML at all is told by whoever reads the whole.
        let kind = toml::from_str::<Kind>(text);
        if !kind.is_ok_and(|kind| kind.names.is_some() && kind.program.is_none() && kind.port.is_none()) {
            return Ok(ProcessConfig::Gateway(Box::new(Config::read(text, directory)?)));
        }
        let at = |span: Option<Range<usize>>, message: String| {
            place(text, span.map_or(0, |span| span.start), message)
        };
        let file: FileAlone =
            toml::from_str(text).map_err(|error| at(error.span(), error.message().to_owned()))?;
        let metrics = match &file.metrics {
            Some(metrics) => Some(
                metrics_at(metrics.get_ref(), file.metrics_anywhere)
                    .map_err(|message| at(Some(metrics.span()), message))?,
            ),
            None => None,
        };
        let tunnel = file.tunnel.map(|tunnel| tunnel.read(directory, &at)).transpose()?;
        let peers = tunnel.iter().flat_map(|tunnel| &tunnel.peers);
        let peers: Vec<&str> = peers.map(|peer| peer.name.as_str()).collect();
        let names = names::read(file.names, None, &peers, &at)?.in_directory(directory);
        let control = file.control.unwrap_or_else(|| PathBuf::from(CONTROL));
        Ok(ProcessConfig::Names(Box::new(AloneConfig { control, metrics, names, tunnel })))
    }
}
