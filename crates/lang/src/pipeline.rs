//! The stages of the compiler in order: files → tokens and syntax trees → checked program → stage graph → IR.

use crate::ast::{self, Item};
use crate::diagnostic::{Diagnostic, Severity, Suggestion};
use crate::source::{FileId, Sources, Span};
use crate::testcase::TestCase;
use crate::{check, flow, ir, lower, parser, standard};

pub use crate::explain::{Explanation, explain};
pub use lower::Decode;
use std::collections::{BTreeMap, HashSet};

/// How to compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// When fields are decoded.
    pub decode: Decode,
}

/// What came of it. With errors there is no program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// All files: the main file first, then modules.
    pub sources: Sources,
    /// The program, if nothing is wrong.
    pub program: Option<ir::Program>,
    /// A refused program whose only faults depend on the path a packet takes: good for following a packet to the fault, and for nothing else. Where
    /// it reads a header that is not decoded it drops the packet as `undecoded(…)`.
    pub refused: Option<ir::Program>,
    /// The tests of the main file, if nothing is wrong.
    pub tests: Vec<TestCase>,
    /// Everything that was found, errors first, in order of the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes of stack for walking over expressions: the tallest take a tenth of it in builds without optimisation.
const STACK: usize = 64 << 20;

/// Compiles a program. `name` is what the main file is called, `load` fetches the text of a module by its path beside the main file, for example
/// `mylib/tunnels.rav`; the standard library is built in.
pub fn compile(name: &str, text: &str, load: &dyn Fn(&str) -> Option<String>, options: &Options) -> Compiled {
    let mut sources = Sources::default();
    let main = sources.add(name, text);
    let (file, mut diagnostics) = parser::parse(main, text);
    let files = modules(file, &mut sources, load, &mut diagnostics);
    // Expressions nest deeply, so what walks over them gets a stack of its own; a thread that cannot be had is done without.
    std::thread::scope(|scope| {
        let work = || compiled(name, &files, &sources, &diagnostics, options);
        match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => work(),
        }
    })
}

/// Everything behind reading the files.
fn compiled(
    name: &str,
    files: &[ast::File],
    sources: &Sources,
    found: &[Diagnostic],
    options: &Options,
) -> Compiled {
    let (mut sources, mut diagnostics) = (sources.clone(), found.to_vec());
    let main = FileId::default();
    let fatal = |diagnostics: &[Diagnostic]| {
        diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    };
    let broken = fatal(&diagnostics);
    let unread = unread(files, &diagnostics);
    let (checked, tests, mut found, kinds) = check::check(files, &test_layouts(files, &mut sources));
    // What a declaration that could not be read would have declared or used is missing elsewhere.
    let lost = lost_words(&unread, &diagnostics, &sources);
    found.retain(|diagnostic| {
        let span = diagnostic.primary.span;
        let follows = match diagnostic.code {
            "E0100" => lost.as_ref().is_none_or(|lost| lost.contains(sources.text(span))),
            "W0406" | "W0408" => true,
            _ => false,
        };
        !broken || !follows && !unread.iter().any(|range| contains(*range, span))
    });
    found.iter_mut().for_each(|diagnostic| suggest_import(diagnostic, &files[0], &sources));
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
    // Statements that were wrong are missing, so more may be unreachable than is; what is reached without them is certain.
    diagnostics.extend(found.into_iter().filter(|diagnostic| !failed || diagnostic.code != "W0406"));
    let depends_on_path = |diagnostic: &Diagnostic| {
        diagnostic.severity != Severity::Error || matches!(diagnostic.code, "E0412" | "E0413")
    };
    // A fault within a stage or handler leaves the others whole, so what must be proven there is looked at all the same.
    let bodies = bodies(files);
    let body_of = |diagnostic: &Diagnostic| {
        bodies.iter().find(|body| contains(**body, diagnostic.primary.span)).copied()
    };
    let faults: Vec<Option<Span>> =
        diagnostics.iter().filter(|diagnostic| !depends_on_path(diagnostic)).map(body_of).collect();
    if faults.iter().all(Option::is_some) {
        let short = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rav");
        let (lowered, found) = lower::lower(short, &checked, &kinds, &flow, options.decode, &sources);
        diagnostics.extend(found.into_iter().filter(|diagnostic| {
            let body = body_of(diagnostic);
            body.is_none() || !faults.contains(&body)
        }));
        diagnostics.extend(unknown_reasons(&files[0], &lowered));
        if !fatal(&diagnostics) {
            program = Some(lowered);
        } else if diagnostics.iter().all(depends_on_path) {
            refused = Some(lowered);
        }
    }
    diagnostics.sort_by_key(|diagnostic| {
        (std::cmp::Reverse(diagnostic.severity == Severity::Error), diagnostic.primary.span)
    });
    let tests = if program.is_some() { tests } else { Vec::new() };
    Compiled { sources, program, refused, tests, diagnostics }
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

/// Declarations in which something could not be read.
fn unread(files: &[ast::File], diagnostics: &[Diagnostic]) -> Vec<Span> {
    let ranges = files.iter().flat_map(|file| &file.ranges);
    ranges
        .filter(|range| diagnostics.iter().any(|diagnostic| contains(**range, diagnostic.primary.span)))
        .copied()
        .collect()
}

/// The words of every declaration that could not be read: names among them may be declared there. `None` if a fault lies in an import
/// or outside of every declaration, so that anything may be missing.
fn lost_words(unread: &[Span], diagnostics: &[Diagnostic], sources: &Sources) -> Option<HashSet<String>> {
    let mut lost = HashSet::new();
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
        let span = diagnostic.primary.span;
        let within: Vec<Span> = unread.iter().copied().filter(|range| contains(*range, span)).collect();
        if within.is_empty() || diagnostic.code.starts_with("E010") {
            return None;
        }
        let words = within
            .into_iter()
            .flat_map(|span| sources.text(span).split(|c: char| !c.is_alphanumeric() && c != '_'));
        lost.extend(words.map(str::to_string));
    }
    Some(lost)
}

fn contains(range: Span, span: Span) -> bool {
    range.file == span.file && (range.start..=range.end).contains(&span.start)
}

/// Adds to an unknown layout that the standard library has how to import it.
fn suggest_import(diagnostic: &mut Diagnostic, main: &ast::File, sources: &Sources) {
    let span = diagnostic.primary.span;
    let name = sources.text(span);
    let unknown = diagnostic.code == "E0100" && span.file == FileId::default();
    if !unknown || diagnostic.headline != format!("there is no layout `{name}`") {
        return;
    }
    let declared = format!("layout {name} {{");
    if !standard::module("std/net").iter().any(|(_, text)| text.contains(&declared)) {
        return;
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

/// Tests that expect a reason for which the program never drops or punts.
fn unknown_reasons(main: &ast::File, program: &ir::Program) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for item in &main.items {
        let Item::Test(test) = item else { continue };
        for step in &test.steps {
            let ast::TestStep::Expect(ast::Expectation::Drop(name) | ast::Expectation::Punt(name), _) = step
            else {
                continue;
            };
            let known = program.reasons.iter().map(|reason| reason.name.as_str());
            if known.clone().any(|reason| reason == name.text) {
                continue;
            }
            let diagnostic = Diagnostic::error(
                "E0624",
                format!("no packet is dropped for `{}`", name.text),
                name.span,
                "the program has no such reason",
            );
            found.push(match check::nearest(&name.text, known.clone()) {
                Some(nearest) => diagnostic.suggest(format!("did you mean `{nearest}`?"), name.span, nearest),
                None => diagnostic.help(format!("there are: {}", known.collect::<Vec<_>>().join(", "))),
            });
        }
    }
    found
}

/// The main file and everything it imports, directly or through others. A module brings the names that are asked for and what stands beside them
/// in it; declarations of the main file go before those that nobody asked for.
fn modules(
    main: ast::File,
    sources: &mut Sources,
    load: &dyn Fn(&str) -> Option<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<ast::File> {
    let mut loaded: BTreeMap<String, (ast::File, HashSet<String>)> = BTreeMap::new();
    let mut queue: Vec<ast::Import> = main.imports.iter().rev().cloned().collect();
    let mut asked: BTreeMap<(FileId, String, String), Span> = BTreeMap::new();
    let mut missing: HashSet<String> = HashSet::new();
    while let Some(import) = queue.pop() {
        let path: Vec<&str> = import.path.iter().map(|name| name.text.as_str()).collect();
        let path = path.join("/");
        if !loaded.contains_key(&path) {
            match module(&path, sources, load, diagnostics) {
                Some(file) => {
                    queue.extend(file.imports.iter().rev().cloned());
                    loaded.insert(path.clone(), (file, HashSet::new()));
                }
                None => {
                    if missing.insert(path.clone()) {
                        diagnostics.push(
                            Diagnostic::error(
                                "E0102",
                                format!("there is no module `{}`", path.replace('/', ".")),
                                import.span,
                                "not found",
                            )
                            .help(format!(
                                "modules are `std.net` and files beside the program: `{path}.rav`"
                            )),
                        );
                    }
                    continue;
                }
            }
        }
        let Some((file, wanted)) = loaded.get_mut(&path) else { continue };
        let importer = import.span.file;
        for name in &import.names {
            if let Some(first) = asked.insert((importer, path.clone(), name.text.clone()), name.span) {
                diagnostics.push(
                    Diagnostic::error(
                        "E0105",
                        format!("`{}` is imported twice", name.text),
                        name.span,
                        "imported again here",
                    )
                    .place(first, "imported first here"),
                );
                continue;
            }
            if !file.items.iter().any(|item| item_name(item) == Some(&name.text)) {
                let known: Vec<&str> =
                    file.items.iter().filter_map(|item| item_name(item).map(String::as_str)).collect();
                let mut diagnostic = Diagnostic::error(
                    "E0103",
                    format!("`{}` has no `{}`", path.replace('/', "."), name.text),
                    name.span,
                    "not declared there",
                );
                if let Some(nearest) = check::nearest(&name.text, known.into_iter()) {
                    diagnostic = diagnostic.suggest(format!("did you mean `{nearest}`?"), name.span, nearest);
                }
                diagnostics.push(diagnostic);
            }
            wanted.insert(name.text.clone());
        }
    }
    import_cycles(&loaded, diagnostics);
    let own: HashSet<(std::mem::Discriminant<Item>, String)> = main
        .items
        .iter()
        .filter_map(|item| Some((std::mem::discriminant(item), item_name(item)?.clone())))
        .collect();
    let mut files = vec![main];
    for (path, (mut file, wanted)) in loaded {
        let standard = path.starts_with("std/");
        file.items.retain(|item| {
            let Some(name) = item_name(item) else { return !matches!(item, Item::Test(_)) };
            if wanted.contains(name) {
                return true;
            }
            // The standard layouts have common names, so each is there only for those who ask for it.
            let hidden = standard && matches!(item, Item::Layout(_));
            !hidden && !own.contains(&(std::mem::discriminant(item), name.clone()))
        });
        files.push(file);
    }
    files
}

/// Reports modules that import each other, each circle once.
fn import_cycles(loaded: &BTreeMap<String, (ast::File, HashSet<String>)>, diagnostics: &mut Vec<Diagnostic>) {
    let path_of = |import: &ast::Import| {
        import.path.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join("/")
    };
    let mut told: HashSet<String> = HashSet::new();
    for start in loaded.keys() {
        let mut seen = HashSet::new();
        let mut queue: Vec<(String, Vec<Span>)> = vec![(start.clone(), Vec::new())];
        while let Some((path, way)) = queue.pop() {
            let Some((file, _)) = loaded.get(&path) else { continue };
            for import in &file.imports {
                let next = path_of(import);
                let way: Vec<Span> = way.iter().copied().chain([import.span]).collect();
                if next == *start && !told.contains(start) {
                    let mut diagnostic = Diagnostic::error(
                        "E0104",
                        format!("the module `{}` imports itself", start.replace('/', ".")),
                        way[0],
                        "the circle begins here",
                    )
                    .help("put what both need into a third module");
                    for span in &way[1..] {
                        diagnostic = diagnostic.place(*span, "and goes on here");
                    }
                    diagnostics.push(diagnostic);
                    told.extend(seen.iter().cloned());
                    told.insert(start.clone());
                } else if seen.insert(next.clone()) {
                    queue.push((next, way));
                }
            }
        }
    }
}

fn module(
    path: &str,
    sources: &mut Sources,
    load: &dyn Fn(&str) -> Option<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ast::File> {
    let mut whole = ast::File::default();
    let mut add = |file: FileId, text: &str| {
        let (parsed, found) = parser::parse(file, text);
        whole.imports.extend(parsed.imports);
        whole.items.extend(parsed.items);
        whole.ranges.extend(parsed.ranges);
        diagnostics.extend(found);
    };
    let built_in = standard::module(path);
    if built_in.is_empty() {
        let name = format!("{path}.rav");
        let text = load(&name)?;
        let file = sources.add(name, text.clone());
        add(file, &text);
    } else {
        for (name, text) in built_in {
            let file = sources.add(*name, *text);
            add(file, text);
        }
    }
    Some(whole)
}

/// The standard layouts, which tests use without importing them, and in which checksums are found behind a header with `pseudo`; nothing if
/// there are neither.
fn test_layouts(files: &[ast::File], sources: &mut Sources) -> ast::File {
    let tests = files[0].items.iter().any(|item| matches!(item, Item::Test(_)));
    let mut items = files.iter().flat_map(|file| &file.items);
    if !tests && !items.any(|item| matches!(item, Item::Layout(layout) if layout.pseudo.is_some())) {
        return ast::File::default();
    }
    module("std/net", sources, &|_| None, &mut Vec::new()).unwrap_or_default()
}

fn item_name(item: &Item) -> Option<&String> {
    match item {
        Item::Const(item) => Some(&item.name.text),
        Item::Enum(item) => Some(&item.name.text),
        Item::Layout(item) => Some(&item.name.text),
        Item::Table(item) => Some(&item.name.text),
        Item::Counter(item) => Some(&item.name.text),
        Item::Meter(item) => Some(&item.name.text),
        Item::Register(item) => Some(&item.name.text),
        Item::Pool(item) => Some(&item.name.text),
        Item::Group(item) => Some(&item.name.text),
        Item::Reason(item) => Some(&item.name.text),
        Item::Function(item) => Some(&item.name.text),
        Item::Stage(item) => Some(&item.name.text),
        Item::Event(item) => Some(&item.name.text),
        Item::Every(_) | Item::Test(_) => None,
    }
}
