//! The stages of the compiler in order: files → tokens and syntax trees → checked program → stage graph → IR.

mod circles;
mod externs;
mod modules;
mod policies;
mod reached;
mod steering;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod work;

use crate::ast::{self, Item};
use crate::check::likeness::Likeness;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings, Severity, Suggestion};
use crate::limits::MOST_FAULTS;
use crate::policy_model::{self, PolicyModel};
use crate::rules_file::RulesFileReader;
use crate::settings::{self, Settable, Settings};
use crate::testcase::TestCase;
use crate::{check, flow, lower, parser};
use ir::footprint::{footprint, total};
use ir::limits::{LARGEST_FRAME, LARGEST_MEMORY};
use ir::source::{FileId, Sources, Span};
use modules::{module, modules};

pub use crate::explain::{Explanation, explain};
pub use lower::Decode;
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet};

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// When fields are decoded.
    pub decode: Decode,
    /// Values for what the program declares as settable.
    pub settings: Settings,
    /// Who reads the files that policies take their rules from; without one such a policy is refused.
    pub rules_reader: Option<RulesFileReader>,
}

/// The result of a compilation. If there is an error, there is no program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// All files: the main file first, then modules.
    pub sources: Sources,
    /// The program, if nothing is wrong.
    pub program: Option<ir::Program>,
    /// A refused program, if all of its errors depend on the path that a packet takes. It serves only to
    /// follow a packet up to the error: where the program reads a header that is not decoded, it drops the
    /// packet for the reason `undecoded(…)`.
    pub refused: Option<ir::Program>,
    /// The tests of the main file, if nothing is wrong.
    pub tests: Vec<TestCase>,
    /// What the program declares as settable, in order of its files.
    pub settables: Vec<Settable>,
    /// The policies that the program declares, if nothing is wrong.
    pub policies: Vec<PolicyModel>,
    /// All diagnostics, errors first, then by their place in the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes of stack for walking over expressions: the tallest take a tenth of it in builds without
/// optimisation.
const STACK: usize = 64 << 20;

/// Compiles a program. `name` is the name of the main file. `load` returns the text of a module by its path
/// relative to the main file, for example `mylib/tunnels.rav`. The standard library is built in.
pub fn compile(
    name: &str,
    text: &str,
    load: &dyn Fn(&str) -> Option<String>,
    options: &CompileOptions,
) -> Compiled {
    let mut sources = Sources::default();
    let main = sources.add(name, text);
    let (file, found) = parser::parse(main, text);
    let mut diagnostics = Findings::default();
    diagnostics.extend(found);
    let mut files = modules(file, &mut sources, load, options.rules_reader, &mut diagnostics);
    let (applied, settables) = settings::apply(&mut files, &options.settings, &mut sources, &mut diagnostics);
    let steering = steering::split(&mut files);
    let diagnostics = diagnostics.into_list();
    // Expressions nest deeply, so the compiler runs on a thread with a large stack. If no thread can be
    // started, the compiler runs on the stack of the caller.
    let mut compiled = std::thread::scope(|scope| {
        let work = || {
            let mut whole = compiled(name, &files, &sources, &diagnostics, options);
            if let Some(steering) = &steering {
                steering::join(&mut whole, name, steering, &sources, options);
            }
            whole
        };
        match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => work(),
        }
    });
    applied.remark(&compiled.sources, &mut compiled.diagnostics);
    Compiled { settables, ..compiled }
}

/// The stages behind reading the files: checking, stage graph, lowering.
fn compiled(
    name: &str,
    files: &[ast::File],
    sources: &Sources,
    found: &[Diagnostic],
    options: &CompileOptions,
) -> Compiled {
    let (mut sources, mut diagnostics) = (sources.clone(), found.to_vec());
    let main = FileId::default();
    let fatal = |diagnostics: &[Diagnostic]| {
        diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    };
    let broken = fatal(&diagnostics);
    let (checked, tests, mut found, kinds) =
        check::check(files, &test_layouts(files, &mut sources), options.rules_reader);
    if broken {
        retain_independent(&mut found, files, &diagnostics, &sources);
    }
    suggest_imports(&mut found, &files[0], &sources);
    diagnostics.extend(found);
    if checked.start.is_none() && !broken {
        let end = Span::new(main, 0, 0);
        let diagnostic = Diagnostic::error(
            "E0401",
            "the program has no start",
            end,
            "no decoder or stage is marked `start`",
        );
        diagnostics
            .push(diagnostic.help("write `start` before the decoder or stage that packets come to first"));
    }
    let (mut program, mut refused) = (None, None);
    let failed = fatal(&diagnostics);
    let (flow, found) = flow::analyse(&checked);
    // A wrong statement is missing from the checked program, so a stage may look unreachable that is not.
    diagnostics
        .extend(found.into_iter().filter(|diagnostic| !failed || diagnostic.kind != DiagnosticKind::Unused));
    let depends_on_path = |diagnostic: &Diagnostic| {
        diagnostic.severity != Severity::Error || diagnostic.kind == DiagnosticKind::Path
    };
    // An error within one stage or handler leaves the others complete, so the others are still lowered and
    // their proofs are checked.
    let bodies = Places::of(bodies(files));
    let body_of = |diagnostic: &Diagnostic| bodies.around(diagnostic.primary.span);
    let faults: Vec<Option<Span>> =
        diagnostics.iter().filter(|diagnostic| !depends_on_path(diagnostic)).map(body_of).collect();
    if faults.iter().all(Option::is_some) {
        let short = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rav");
        let (mut lowered, found) = lower::lower(short, &checked, &kinds, &flow, options.decode, &sources);
        diagnostics.extend(found.into_iter().filter(|diagnostic| {
            let body = body_of(diagnostic);
            body.is_none() || !faults.contains(&body)
        }));
        let mut items = files.iter().flat_map(|file| &file.items);
        lowered.orders_fragments = items.any(|item| matches!(item, Item::Order(_)));
        diagnostics.extend(unknown_reasons(&files[0], &lowered));
        // After an error the lowered program need not be well formed.
        if !fatal(&diagnostics) {
            // If a statement is missing, the lowered functions need not be consistent.
            if diagnostics.iter().all(depends_on_path) {
                diagnostics.extend(large_frame(&lowered));
            }
            diagnostics.extend(too_much_memory(files, &lowered));
        }
        if !fatal(&diagnostics) {
            program = Some(lowered);
        } else if diagnostics.iter().all(depends_on_path) {
            refused = Some(lowered);
        }
    }
    diagnostics.iter_mut().filter_map(|found| found.suggestion.as_mut()).for_each(|edit| edit.fill(&sources));
    diagnostics.sort_by_key(|diagnostic| {
        (std::cmp::Reverse(diagnostic.severity == Severity::Error), diagnostic.primary.span)
    });
    limit(&mut diagnostics);
    let tests = if program.is_some() { tests } else { Vec::new() };
    let policies =
        if program.is_some() { policy_model::located(&checked.policies, &sources) } else { Vec::new() };
    Compiled { sources, program, refused, tests, settables: Vec::new(), policies, diagnostics }
}

/// Drops what only follows from declarations that could not be read: what they would have declared or used is
/// missing elsewhere. `syntax` are the diagnostics of reading.
fn retain_independent(
    found: &mut Vec<Diagnostic>,
    files: &[ast::File],
    syntax: &[Diagnostic],
    sources: &Sources,
) {
    let unread = Places::of(unread(files, syntax));
    let lost = lost_words(&unread, syntax, sources);
    found.retain(|diagnostic| {
        let span = diagnostic.primary.span;
        let follows = match diagnostic.kind {
            DiagnosticKind::UnknownName | DiagnosticKind::UnknownLayout => {
                lost.as_ref().is_none_or(|lost| lost.contains(sources.text(span)))
            }
            DiagnosticKind::Unused => true,
            _ => false,
        };
        !follows && unread.around(span).is_none()
    });
}

/// The error of a packet function or handler that needs more stack than [`LARGEST_FRAME`].
fn large_frame(program: &ir::Program) -> Option<Diagnostic> {
    let (function, frame) = ir::frame::too_large(program)?;
    let what = if function == 0 {
        "the way of a packet".to_string()
    } else {
        format!("`{}`", program.functions[function].name)
    };
    let needed = frame.bytes.div_ceil(1024);
    let diagnostic = Diagnostic::error(
        "E0234",
        format!("{what} needs too much stack"),
        frame.span,
        format!("{needed} KiB are needed here, and {} KiB are possible", LARGEST_FRAME / 1024),
    );
    Some(
        diagnostic
            .help("compute values where they are needed instead of keeping them: fewer at once need less"),
    )
}

/// The places of all stages and handlers.
fn bodies(files: &[ast::File]) -> Vec<Span> {
    let items = files.iter().flat_map(|file| &file.items);
    items
        .filter_map(|item| match item {
            Item::Stage(item) => Some(item.span),
            Item::Event(item) => Some(item.body.span),
            Item::Every(item) => Some(item.span),
            _ => None,
        })
        .collect()
}

/// The error of a program that needs more memory than [`LARGEST_MEMORY`], at the declaration that needs most.
fn too_much_memory(files: &[ast::File], program: &ir::Program) -> Option<Diagnostic> {
    let footprint = footprint(program);
    let all = total(&footprint);
    let largest = footprint.iter().max_by_key(|part| part.bytes).filter(|_| all > LARGEST_MEMORY)?;
    let mut declared = files.iter().flat_map(|file| &file.items).filter_map(Item::declared);
    let named = declared.find(|(what, name)| *what == largest.what && name.text == largest.name);
    let span = named.map_or(Span::default(), |(_, name)| name.span);
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let label =
        format!("the {} of {} {} takes {}", largest.what, largest.count, largest.parts, gib(largest.bytes));
    let headline = format!("the program would take {} of memory", gib(all));
    let advice =
        format!("all that a program remembers may take {} together: make it smaller", gib(LARGEST_MEMORY));
    Some(Diagnostic::error("E0540", headline, span, label).help(advice))
}

/// Ranges of the text, sorted. No range lies within another.
struct Places(Vec<Span>);

impl Places {
    fn of(mut places: Vec<Span>) -> Places {
        places.sort_unstable();
        Places(places)
    }

    /// The range in which a span begins.
    fn around(&self, span: Span) -> Option<Span> {
        let behind = self.0.partition_point(|range| (range.file, range.start) <= (span.file, span.start));
        let range = *self.0.get(behind.checked_sub(1)?)?;
        (range.file == span.file && span.start <= range.end).then_some(range)
    }
}

/// Keeps the first [`MOST_FAULTS`] errors and warnings of a sorted list, and adds a note if there are more.
fn limit(diagnostics: &mut Vec<Diagnostic>) {
    let mut kept = [0; 2];
    let mut last = [None; 2];
    diagnostics.retain(|diagnostic| {
        let kind = usize::from(diagnostic.severity == Severity::Warning);
        kept[kind] += 1;
        if kept[kind] == MOST_FAULTS {
            last[kind] = Some(diagnostic.primary.span);
        }
        kept[kind] <= MOST_FAULTS
    });
    for (kind, what) in ["faults", "warnings"].into_iter().enumerate() {
        if let (Some(span), true) = (last[kind], kept[kind] > MOST_FAULTS) {
            let headline = format!("there are more {what} than the first {MOST_FAULTS}");
            let more = Diagnostic::error("E0109", headline, span, "those behind this are not told");
            let severity = if kind == 0 { Severity::Error } else { Severity::Warning };
            diagnostics.push(Diagnostic { severity, ..more });
        }
    }
}

/// Declarations in which something could not be read.
fn unread(files: &[ast::File], diagnostics: &[Diagnostic]) -> Vec<Span> {
    let ranges = Places::of(files.iter().flat_map(|file| &file.ranges).copied().collect());
    let found: BTreeSet<Span> =
        diagnostics.iter().filter_map(|diagnostic| ranges.around(diagnostic.primary.span)).collect();
    found.into_iter().collect()
}

/// The words of all declarations that could not be read; any of these words may be a declared name. `None` if
/// an error lies in an import or outside of every declaration: then any name may be missing.
fn lost_words(unread: &Places, diagnostics: &[Diagnostic], sources: &Sources) -> Option<HashSet<String>> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut within = BTreeSet::new();
    for diagnostic in errors {
        if diagnostic.kind == DiagnosticKind::Import {
            return None;
        }
        within.insert(unread.around(diagnostic.primary.span)?);
    }
    let words = within
        .into_iter()
        .flat_map(|span| sources.text(span).split(|c: char| !c.is_alphanumeric() && c != '_'));
    Some(words.map(str::to_string).collect())
}

/// Where the main file uses an unknown layout that the standard library has, suggests the import.
fn suggest_imports(found: &mut [Diagnostic], main: &ast::File, sources: &Sources) {
    let standard = LazyCell::new(|| {
        let items = standard_layouts(&mut Sources::default()).items.into_iter();
        let names = items.filter_map(|item| match item {
            Item::Layout(layout) => Some(layout.name.text),
            _ => None,
        });
        names.collect::<HashSet<String>>()
    });
    for diagnostic in found {
        let span = diagnostic.primary.span;
        let name = sources.text(span);
        let unknown = diagnostic.kind == DiagnosticKind::UnknownLayout && span.file == FileId::default();
        if !unknown || !standard.contains(name) {
            continue;
        }
        let line = format!("import std.net.{name}");
        let (at, text) = match main.imports.last() {
            Some(last) => (last.span.end, format!("\n{line}")),
            None => (0, format!("{line}\n")),
        };
        diagnostic.help = None;
        diagnostic.suggestion = Some(Suggestion {
            text: "import it".to_string(),
            span: Span::new(FileId::default(), at, at),
            replacement: text,
        });
    }
}

/// The layouts of the standard library.
fn standard_layouts(sources: &mut Sources) -> ast::File {
    module("std/net", sources, &|_| None, &mut Findings::default()).unwrap_or_default()
}

/// Tests that expect a reason for which the program never drops or punts.
fn unknown_reasons(main: &ast::File, program: &ir::Program) -> Vec<Diagnostic> {
    let (mut found, mut likeness) = (Findings::default(), Likeness::default());
    let known: HashSet<&str> = program.reasons.iter().map(|reason| reason.name.as_str()).collect();
    for item in &main.items {
        let Item::Test(test) = item else { continue };
        for step in &test.steps {
            let ast::TestStep::Expect(ast::Expectation::Drop(name) | ast::Expectation::Punt(name), _) = step
            else {
                continue;
            };
            if known.contains(name.text.as_str()) {
                continue;
            }
            let diagnostic = Diagnostic::error(
                "E0624",
                format!("no packet is dropped for `{}`", name.text),
                name.span,
                "the program has no such reason",
            );
            let left = if found.is_full() { 0 } else { likeness.left() };
            found.report(likeness.suggest(diagnostic, &name.text, known.iter().copied().take(left)));
        }
    }
    found.into_list()
}

/// The standard layouts, if the program has tests or a layout with `pseudo`. Tests use these layouts without
/// an import; with `pseudo` the compiler looks in them for checksums that follow.
fn test_layouts(files: &[ast::File], sources: &mut Sources) -> ast::File {
    let tests = files[0].items.iter().any(|item| matches!(item, Item::Test(_)));
    let mut items = files.iter().flat_map(|file| &file.items);
    if !tests && !items.any(|item| matches!(item, Item::Layout(layout) if layout.pseudo.is_some())) {
        return ast::File::default();
    }
    standard_layouts(sources)
}
