//! What a program reads the files of its policies with.

use super::{PolicyOptions, read};
use crate::ImportError;
use crate::address::AddressFamily;
use lang::rules_file::{RulesFileOptions, RulesFileReader, RulesRead, UnreadableLine};

/// Reads the files that policies of a program take their rules from; a file with a line that means what no
/// policy can say is refused.
pub const RULES_READER: RulesFileReader = RulesFileReader(read_rules);

fn read_rules(text: &str, wanted: &RulesFileOptions) -> Result<RulesRead, Vec<UnreadableLine>> {
    let options = PolicyOptions {
        family: if wanted.family == Some(6) { AddressFamily::V6 } else { AddressFamily::V4 },
        interfaces: wanted.interfaces.clone(),
        tables: wanted.tables.clone(),
        skip_first_line: wanted.skip_title,
        skip_nat: wanted.skip_nat,
        skip_marks: wanted.skip_marks,
    };
    let line = |error: ImportError| UnreadableLine {
        line: error.line,
        column: error.column,
        what: error.what,
        advice: error.advice,
    };
    let imported = read(text.as_bytes(), &wanted.format, &options).map_err(|error| vec![line(error)])?;
    if imported.refused.is_empty() {
        Ok(RulesRead { policy: imported.policy, skipped_title: imported.skipped.is_some() })
    } else {
        Err(imported.refused.into_iter().map(line).collect())
    }
}
