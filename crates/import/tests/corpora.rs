//! What is kept of files from outside: `RAVELIN_CORPORA=DIRECTORY` names a folder with a folder for each
//! corpus, whose files end with the name of their format, as in `office.iptables`, `office.ip6tables` or
//! `office.nft` (JSON). Without it there is nothing to do.
//!
//! For each corpus the files, those that are kept whole, the lines kept and refused, and the causes are
//! printed; and of each file that is not whole without NAT and marks, what is refused of it. Names of
//! interfaces are bound to ports as they come.

use import::address::AddressFamily;
use import::policies::{FORMATS, ImportedPolicy, PolicyOptions, read};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Reads a file, without its rules of NAT and those that mark if these are to be skipped, with all names of
/// interfaces bound that it wants.
fn bound(
    text: &[u8],
    format: &str,
    (skip_nat, skip_marks): (bool, bool),
) -> Result<ImportedPolicy, import::ImportError> {
    let (format, family) = match format {
        "ip6tables" => ("iptables", AddressFamily::V6),
        other => (other, AddressFamily::V4),
    };
    let mut options = PolicyOptions { family, skip_nat, skip_marks, ..PolicyOptions::default() };
    loop {
        let imported = read(text, format, &options)?;
        let unbound = imported.refused.iter().find_map(|error| {
            let name = error.what.strip_prefix("the interface `")?.strip_suffix("` is bound to no port")?;
            let name = name.replace(['+', '*'], "0");
            options.interfaces.iter().all(|(known, _)| *known != name).then_some(name)
        });
        let Some(name) = unbound else { return Ok(imported) };
        let port = options.interfaces.len() as u16 + 1;
        options.interfaces.push((name, port));
    }
}

/// What a cause says without what it names.
fn kind(what: &str) -> String {
    what.split('`').enumerate().map(|(index, part)| if index % 2 == 1 { "…" } else { part }).collect()
}

#[test]
fn what_is_kept_of_files_from_outside_is_counted() {
    let Some(corpora) = std::env::var_os("RAVELIN_CORPORA").map(PathBuf::from) else {
        println!("RAVELIN_CORPORA names no folder of corpora: nothing was counted");
        return;
    };
    let mut all = 0;
    println!(
        "| corpus | files | whole | without NAT | and marks | lines kept | refused |\n|---|---|---|---|---|---|---|"
    );
    let mut told = String::new();
    for corpus in sorted(&corpora).iter().filter(|path| path.is_dir()) {
        let (mut files, mut whole, mut without, mut unmarked, mut kept, mut refused) = (0, 0, 0, 0, 0, 0);
        let mut left = String::new();
        let mut causes: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for file in sorted(corpus) {
            let format = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
            if !FORMATS.contains(&format) && format != "ip6tables" {
                continue;
            }
            let text = fs::read(&file).expect("the file can be read");
            let errors = match bound(&text, format, (false, false)) {
                Ok(imported) => {
                    kept += imported.kept;
                    imported.refused
                }
                Err(error) => vec![error],
            };
            files += 1;
            whole += usize::from(errors.is_empty());
            let is_whole =
                |skip| bound(&text, format, skip).is_ok_and(|imported| imported.refused.is_empty());
            without += usize::from(is_whole((true, false)));
            match bound(&text, format, (true, true)) {
                Ok(imported) if imported.refused.is_empty() => unmarked += 1,
                Ok(imported) => {
                    let more = imported.refused.len();
                    left += &format!("  {}: {more} refused, first {}\n", file.display(), imported.refused[0]);
                }
                Err(error) => left += &format!("  {}: {error}\n", file.display()),
            }
            refused += errors.len();
            for error in errors {
                let place = format!("{}:{}: {error}", file.display(), error.line);
                causes.entry(kind(&error.what)).or_insert((0, place)).0 += 1;
            }
        }
        let name = corpus.file_name().unwrap_or_default().display();
        println!("| {name} | {files} | {whole} | {without} | {unmarked} | {kept} | {refused} |");
        let mut causes: Vec<(String, (usize, String))> = causes.into_iter().collect();
        causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        told += &format!("{name}\n");
        for (cause, (count, place)) in causes {
            told += &format!("  {count} {cause} ({place})\n");
        }
        told += &format!("  not whole without NAT and marks:\n{left}");
        all += files;
    }
    println!("{told}");
    assert!(all > 0, "the folder holds no file of a policy");
}
