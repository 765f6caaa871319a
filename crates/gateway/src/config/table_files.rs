//! `[[table]]`: files that tables of the program are filled from.

use ir::FileOptions;
use lang::check::entries::WITH_CHAINS;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A file with entries for a table of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The table's name.
    pub table: String,
    /// The path of the file, relative to the working directory or absolute.
    pub file: PathBuf,
    /// Its format; empty for the language's own entries.
    pub format: String,
    /// What to read of it, if it has chains.
    pub options: FileOptions,
    /// Line and column of the table's name.
    pub place: (usize, usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTable {
    name: Spanned<String>,
    from: Spanned<String>,
    #[serde(default, rename = "as")]
    format: String,
    family: Option<Spanned<String>>,
    table: Option<Spanned<String>>,
    chain: Option<Spanned<String>>,
    first_packets: Option<Spanned<bool>>,
    interfaces: Option<Spanned<BTreeMap<String, Spanned<u16>>>>,
}

/// The files of entries for tables, relative to `directory`; `place` is the line and column of an
/// offset, and `ports` are the names of the interfaces of the ports.
pub(super) fn read(
    files: Vec<FileTable>,
    ports: &[&str],
    directory: &Path,
    place: impl Fn(usize) -> (usize, usize),
) -> Result<Vec<TableFile>, (Range<usize>, String)> {
    let mut tables = Vec::with_capacity(files.len());
    for table in files {
        let (name, from) = (table.name.get_ref(), table.from.get_ref());
        if tables.iter().any(|known: &TableFile| known.table == *name) {
            let message = format!("table `{name}` is filled above already; a table has one file");
            return Err((table.name.span(), message));
        }
        if from.is_empty() {
            return Err((table.from.span(), "`from` names no file".to_owned()));
        }
        let interfaces_at = table.interfaces.as_ref().map(|option| (option.span(), "interfaces"));
        let interfaces = match table.interfaces.map(Spanned::into_inner) {
            None => {
                let named = (1..).zip(ports).filter(|(_, own)| !own.is_empty());
                named.map(|(port, own)| ((*own).to_owned(), port)).collect()
            }
            Some(bound) => {
                let count = ports.len();
                if let Some(none) =
                    bound.values().find(|port| !(1..=count).contains(&usize::from(*port.get_ref())))
                {
                    let message = format!("there is no port {}: the file has {count}", none.get_ref());
                    return Err((none.span(), message));
                }
                bound.into_iter().map(|(name, port)| (name, port.into_inner())).collect()
            }
        };
        let options = [
            table.family.as_ref().map(|option| (option.span(), "family")),
            table.table.as_ref().map(|option| (option.span(), "table")),
            table.chain.as_ref().map(|option| (option.span(), "chain")),
            table.first_packets.as_ref().map(|option| (option.span(), "first_packets")),
            interfaces_at,
        ];
        if let Some((span, word)) = options.into_iter().flatten().next()
            && !WITH_CHAINS.contains(&table.format.as_str())
        {
            return Err((span, format!("`{word}` is for files of {}", WITH_CHAINS.join(" and "))));
        }
        let family = match table.family.as_ref().map(|family| (family.get_ref().as_str(), family.span())) {
            None => None,
            Some(("ip4", _)) => Some(4),
            Some(("ip6", _)) => Some(6),
            Some((other, span)) => {
                return Err((span, format!("`{other}` is no family; write `ip4` or `ip6`")));
            }
        };
        let options = FileOptions {
            family,
            table: table.table.map(Spanned::into_inner),
            chain: table.chain.map(Spanned::into_inner),
            first_packets: table.first_packets.is_some_and(Spanned::into_inner),
            interfaces,
        };
        tables.push(TableFile {
            options,
            file: directory.join(from),
            format: table.format,
            place: place(table.name.span().start),
            table: table.name.into_inner(),
        });
    }
    Ok(tables)
}
