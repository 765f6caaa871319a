//! `--set NAME=VALUE`: values for what a program declares as settable.

use crate::failure::Failure;
use clap::Args;
use lang::pipeline::{CompileOptions, Decode};
use lang::settings::{SetValue, Settings};

/// The values on the command line.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SetArguments {
    /// Gives a constant or pool that the program declares as `settable` this value; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
}

impl SetArguments {
    /// How to compile with these values. Diagnostics show them as a text with one of them a line.
    pub(crate) fn options(&self, decode: Decode) -> Result<CompileOptions, Failure> {
        let (mut text, mut values) = (String::new(), Vec::new());
        for set in &self.set {
            let Some((name, value)) = set.split_once('=') else {
                return Err(Failure::Usage(format!("`--set {set}` gives no value: write --set NAME=VALUE")));
            };
            let begin = text.len();
            text += set;
            let part = text.len() - value.len()..text.len();
            let place = begin..begin + name.len();
            values.push(SetValue { name: name.trim().to_string(), place, parts: vec![part] });
            text.push('\n');
        }
        Ok(CompileOptions {
            decode,
            settings: Settings { name: "--set".to_string(), text, values },
            ..CompileOptions::default()
        })
    }
}
