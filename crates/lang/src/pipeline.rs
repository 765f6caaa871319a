//! The stages of the compiler in order: files → tokens and syntax trees → checked program → stage graph → IR.

use crate::ast::{self, Item};
use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{FileId, Sources};
use crate::testcase::TestCase;
use crate::{check, flow, ir, lower, parser, standard};
use std::collections::{BTreeMap, HashSet};

/// When fields are decoded; it changes the generated code, never the meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decode {
    /// A field is read where it is used.
    #[default]
    Lazy,
    /// Fields named by `extract` are read there, others where they are used.
    Declared,
    /// Every field of every header is read when the header is decoded.
    Full,
}

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
    /// The tests of the main file, if nothing is wrong.
    pub tests: Vec<TestCase>,
    /// Everything that was found, errors first, in order of the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Compiles a program. `name` is what the main file is called, `load` fetches the text of a module by its path beside the main file, for example
/// `mylib/tunnels.rav`; the standard library is built in.
pub fn compile(name: &str, text: &str, load: &dyn Fn(&str) -> Option<String>, options: &Options) -> Compiled {
    let mut sources = Sources::default();
    let main = sources.add(name, text);
    let (file, mut diagnostics) = parser::parse(main, text);
    let files = modules(file, &mut sources, load, &mut diagnostics);
    let fatal = |diagnostics: &[Diagnostic]| {
        diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    };
    let broken = fatal(&diagnostics);
    let (checked, tests, found, kinds) = check::check(&files, &test_layouts(&files[0], &mut sources));
    // What a broken declaration would have declared is missing everywhere it is named.
    diagnostics.extend(found.into_iter().filter(|diagnostic| !broken || diagnostic.code != "E0100"));
    if checked.start.is_none() && !broken {
        let end = crate::source::Span::new(main, 0, 0);
        let diagnostic = Diagnostic::error(
            "E0401",
            "the program has no start",
            end,
            "no decoder or stage is marked `start`",
        );
        diagnostics
            .push(diagnostic.help("write `start` before the decoder or stage that packets come to first"));
    }
    let mut program = None;
    if !fatal(&diagnostics) {
        let (flow, found) = flow::analyse(&checked);
        diagnostics.extend(found);
        let short = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rav");
        let (lowered, found) = lower::lower(short, &checked, &kinds, &flow, options.decode, &sources);
        diagnostics.extend(found);
        if !fatal(&diagnostics) {
            program = Some(lowered);
        }
    }
    diagnostics.sort_by_key(|diagnostic| {
        (std::cmp::Reverse(diagnostic.severity == Severity::Error), diagnostic.primary.span)
    });
    let tests = if program.is_some() { tests } else { Vec::new() };
    Compiled { sources, program, tests, diagnostics }
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
    let mut queue: Vec<ast::Import> = main.imports.clone();
    let mut missing: HashSet<String> = HashSet::new();
    while let Some(import) = queue.pop() {
        let path: Vec<&str> = import.path.iter().map(|name| name.text.as_str()).collect();
        let path = path.join("/");
        if !loaded.contains_key(&path) {
            match module(&path, sources, load, diagnostics) {
                Some(file) => {
                    queue.extend(file.imports.iter().cloned());
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
        for name in &import.names {
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

/// The standard layouts, which tests use without importing them; nothing if there are no tests.
fn test_layouts(main: &ast::File, sources: &mut Sources) -> ast::File {
    if !main.items.iter().any(|item| matches!(item, Item::Test(_))) {
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
        Item::Reason(item) => Some(&item.name.text),
        Item::Function(item) => Some(&item.name.text),
        Item::Stage(item) => Some(&item.name.text),
        Item::Event(item) => Some(&item.name.text),
        Item::Every(_) | Item::Test(_) => None,
    }
}
