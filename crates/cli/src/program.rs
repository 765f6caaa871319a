//! Compiles a program from its path to the IR that back ends run, and prints its diagnostics.

use crate::allowance::Allowance;
use crate::arguments::DiagnosticFormat;
use crate::failure::Failure;
use crate::imported::{self, Imported, Origin};
use crate::render;
use gateway::config::TableFile;
use import::entries::Contents;
use import::policies::RULES_READER;
use ir::source::Sources;
use ir::{Match, Program, TableKind};
use lang::diagnostic::Severity;
use lang::limits::LONGEST_TEXT;
use lang::pipeline::{CompileOptions, Compiled};
use lang::policy_model::PolicyModel;
use ports::files;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A program that is right.
pub(crate) struct Ready {
    /// The name it was given.
    pub(crate) name: String,
    /// Its files.
    pub(crate) sources: Sources,
    /// What the back ends run.
    pub(crate) program: Program,
    /// The policies that it declares.
    pub(crate) policies: Vec<PolicyModel>,
    /// How long the compiler took.
    pub(crate) compile: Duration,
}

/// The text of a file that the command line names.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let bytes = files::read(path, LONGEST_TEXT as u64).map_err(|error| match error.kind() {
        Some(ErrorKind::NotFound) => Failure::Usage(match similar(path) {
            Some(meant) => format!("there is no file {name}; did you mean {}?", meant.display()),
            None => format!("there is no file {name}"),
        }),
        Some(ErrorKind::IsADirectory) => {
            Failure::Usage(format!("{name} is a directory; name a file in it, such as {name}/firewall.rav"))
        }
        _ => Failure::Usage(format!("cannot read {name}: {error}")),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::Finding(format!(
            "{name} is not text: the byte at offset {offset} is not UTF-8; is it a program?"
        ))
    })
}

/// Compiles the program at `path`, and fills its tables; modules are looked for beside it.
pub(crate) fn compile(path: &Path, options: &CompileOptions) -> Result<Compiled, Failure> {
    let mut compiled = unfilled(path, options)?;
    fill(compiled.program.as_mut(), path, &mut Allowance::to_load())?;
    Ok(compiled)
}

/// The same without what its tables and groups are filled from.
pub(crate) fn unfilled(path: &Path, options: &CompileOptions) -> Result<Compiled, Failure> {
    let text = read(path)?;
    Ok(compile_text(&path.display().to_string(), &text, path.parent(), options))
}

/// Adds the entries and members of the files that tables and groups are filled from, which lie beside the
/// program at `path`.
pub(crate) fn fill(
    program: Option<&mut Program>,
    path: &Path,
    allowance: &mut Allowance,
) -> Result<Vec<Imported>, Failure> {
    let mut imported = Vec::new();
    let Some(program) = program else { return Ok(imported) };
    for group in &mut program.groups {
        let Some(file) = &group.file else { continue };
        let (name, bytes) = filled_from(
            path,
            file,
            allowance,
            &format!("group `{}`", group.name),
            group.capacity.saturating_mul(group.size),
        )?;
        let members = import::entries::read_members(&bytes, group)
            .map_err(|error| Failure::Finding(format!("{name}: {error}; nothing is loaded")))?;
        group.members.extend(members);
    }
    for (index, table) in program.tables.iter_mut().enumerate() {
        let Some(file) = &table.file else { continue };
        let (name, bytes) =
            filled_from(path, &file.path, allowance, &format!("table `{}`", table.name), table.capacity)?;
        let Contents { entries, lines, default } =
            import::entries::read(&bytes, &file.format, &file.options, table)
                .map_err(|error| Failure::Finding(format!("{name}: {error}; nothing is loaded")))?;
        let (all, room) = (table.entries.len() + entries.len(), table.capacity);
        if all > room as usize {
            let table = &table.name;
            return Err(Failure::Finding(format!(
                "{name}: table `{table}` would hold {all} entries and has room for {room}: raise its capacity"
            )));
        }
        let own: HashSet<&[Match]> = match table.kind {
            // Equal rules are no contradiction, and a text may be searched for under several numbers.
            TableKind::Rules { .. } | TableKind::Patterns(_) => HashSet::new(),
            _ => table.entries.iter().map(|entry| entry.key.as_slice()).collect(),
        };
        if let Some(twice) = entries.iter().position(|entry| own.contains(entry.key.as_slice())) {
            return Err(Failure::Finding(format!(
                "{name}: entry {} has a key for which the program has an entry of table `{}` as well: remove one of the two; nothing is loaded",
                twice + 1,
                table.name
            )));
        }
        let default = imported::agreed_default(table, default)
            .map_err(|error| Failure::Finding(format!("{name}: {error}; nothing is loaded")))?;
        let default = default.map(|policy| Origin { file: name.clone(), policy });
        let own = table.entries.len();
        table.entries.extend(entries);
        let text = allowance.keeps_texts.then_some(bytes);
        imported.push(Imported { table: index, file: name, text, lines, own, default });
    }
    Ok(imported)
}

/// Gives a table the entries of a file that a gateway's own file names, in place of those of the program's
/// text; and where the file says what becomes of packets that no entry fits, that as the table's default, in
/// place of the program's.
///
/// # Errors
/// There is no such table, or the file cannot be read, does not suit it, or has more entries than it has room
/// for; in words.
pub(crate) fn refill(
    program: &mut Program,
    filled: &TableFile,
    allowance: &mut Allowance,
) -> Result<Imported, String> {
    let names: Vec<&str> = program.tables.iter().map(|table| table.name.as_str()).collect();
    let Some(index) = names.iter().position(|name| *name == filled.table) else {
        return Err(format!("the program has no table `{}`; it has {}", filled.table, names.join(", ")));
    };
    let (table, name) = (&mut program.tables[index], filled.file.display());
    let bytes = allowance
        .read(room(table.capacity), |most| files::read_unpacked(&filled.file, most))
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    let Contents { entries, lines, default } =
        import::entries::read(&bytes, &filled.format, &filled.options, table)
            .map_err(|error| format!("{name}: {error}"))?;
    if entries.len() > table.capacity as usize {
        let (all, room) = (entries.len(), table.capacity);
        return Err(format!("{name} has {all} entries and the table room for {room}: raise its capacity"));
    }
    table.entries = entries;
    let file = name.to_string();
    let default = default.map(|default| {
        table.default = Some(default.value);
        Origin { file: file.clone(), policy: default.policy }
    });
    let text = allowance.keeps_texts.then_some(bytes);
    Ok(Imported { table: index, file, text, lines, own: 0, default })
}

/// The path and the bytes of a file beside the program at `path` that something is filled from.
fn filled_from(
    path: &Path,
    file: &str,
    allowance: &mut Allowance,
    what: &str,
    capacity: u32,
) -> Result<(String, Vec<u8>), Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = folder.join(file).display().to_string();
    match allowance.read(room(capacity), |most| files::read_beside(folder, Path::new(file), most)) {
        Ok(bytes) => Ok((name, bytes)),
        Err(error) => {
            Err(Failure::Usage(format!("cannot read {name}, which {what} is filled from: {error}")))
        }
    }
}

/// How many bytes of a file are read for so many entries: 4 MiB and 4 KiB for each, which is more than rules
/// in JSON take, so that no small table makes much of a file.
fn room(capacity: u32) -> u64 {
    ((4 << 20) + 4096 * u64::from(capacity)).min(files::LARGEST)
}

/// Compiles a text; modules are looked for in `directory`.
pub(crate) fn compile_text(
    name: &str,
    text: &str,
    directory: Option<&Path>,
    options: &CompileOptions,
) -> Compiled {
    let load = |module: &str| {
        let bytes = files::read_beside(directory?, Path::new(module), LONGEST_TEXT as u64).ok()?;
        String::from_utf8(bytes).ok()
    };
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..options.clone() };
    lang::pipeline::compile(name, text, &load, &options)
}

/// Compiles the program at `path` and tells its diagnostics; a program with errors is a failure.
pub(crate) fn ready(path: &Path, options: &CompileOptions, json: bool) -> Result<Ready, Failure> {
    let text = read(path)?;
    let begin = Instant::now();
    let mut compiled = compile_text(&path.display().to_string(), &text, path.parent(), options);
    fill(compiled.program.as_mut(), path, &mut Allowance::to_load())?;
    accepted(path.display().to_string(), compiled, begin.elapsed(), json)
}

/// Tells the diagnostics of a compiled program; one with errors is a failure.
pub(crate) fn accepted(
    name: String,
    compiled: Compiled,
    compile: Duration,
    json: bool,
) -> Result<Ready, Failure> {
    let Compiled { sources, program, policies, diagnostics, .. } = compiled;
    let wrong = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    match program {
        Some(program) if !wrong => {
            if !json {
                render::diagnostic::to_stderr(&sources, &diagnostics, DiagnosticFormat::Human);
            }
            Ok(Ready { name, sources, program, policies, compile })
        }
        _ => {
            if json {
                let found = render::diagnostic::as_json(&sources, &diagnostics);
                render::json(&serde_json::json!({
                    "error": { "message": format!("{name} is not a right program") },
                    "diagnostics": found,
                }))?;
            }
            render::diagnostic::to_stderr(&sources, &diagnostics, DiagnosticFormat::Human);
            Err(Failure::Told)
        }
    }
}

/// Compiles the program at `path` for following a packet: a program whose only faults depend on the path of a
/// packet is told and followed all the same. The second part says whether it was refused.
pub(crate) fn traceable(path: &Path, options: &CompileOptions, json: bool) -> Result<(Ready, bool), Failure> {
    let text = read(path)?;
    let begin = Instant::now();
    let mut compiled = compile_text(&path.display().to_string(), &text, path.parent(), options);
    let Some(mut program) = compiled.refused.take() else {
        fill(compiled.program.as_mut(), path, &mut Allowance::to_load())?;
        return accepted(path.display().to_string(), compiled, begin.elapsed(), json)
            .map(|ready| (ready, false));
    };
    fill(Some(&mut program), path, &mut Allowance::to_load())?;
    render::diagnostic::to_stderr(&compiled.sources, &compiled.diagnostics, DiagnosticFormat::Short);
    let name = path.display().to_string();
    let Compiled { sources, policies, .. } = compiled;
    Ok((Ready { name, sources, program, policies, compile: begin.elapsed() }, true))
}

/// A file that somebody who wrote `path` may have meant.
pub(crate) fn similar(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_string_lossy().into_owned();
    let beside = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    [beside, PathBuf::from("programs")]
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let likeness = strsim::jaro_winkler(&name, &wanted)
                .max(strsim::jaro_winkler(&stem.unwrap_or_default(), &wanted));
            (likeness, entry.path())
        })
        .filter(|(likeness, _)| *likeness > 0.85)
        .max_by(|(a, left), (b, right)| a.total_cmp(b).then_with(|| right.cmp(left)))
        .map(|(_, path)| path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path))
}
