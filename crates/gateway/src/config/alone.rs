//! A file without ports and program: the process answers for names and does nothing else.

use super::names::{self, FileNames, NamesConfig};
use super::{CONTROL, Config, ConfigError, metrics_at, place};
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
        let names = names::read(file.names, None, &at)?.in_directory(directory);
        let control = file.control.unwrap_or_else(|| PathBuf::from(CONTROL));
        Ok(ProcessConfig::Names(Box::new(AloneConfig { control, metrics, names })))
    }
}
