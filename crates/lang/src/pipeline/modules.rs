//! Loads the modules that a program imports, and selects the declarations of them that belong to the program.

use super::{circles, externs, policies, reached};
use crate::ast::{self, Item};
use crate::check::likeness::Likeness;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::limits::{LONGEST_PROGRAM, MOST_FILES};
use crate::rules_file::RulesFileReader;
use crate::{parser, standard};
use ir::source::{FileId, Sources, Span};
use std::collections::{BTreeMap, HashSet};

/// A file of a program that the main file imports, directly or through others.
pub(super) struct Module {
    pub(super) file: ast::File,
    /// The import that was followed to it.
    pub(super) import: Span,
    /// Names that it declares.
    declared: HashSet<String>,
    /// Names of it that are asked for.
    wanted: HashSet<String>,
}

/// The main file and all modules that it imports, directly or through other modules. A module brings the
/// imported names and its other declarations. If the main file declares a reason or settable constant that a
/// module declares too and that no import names, the declaration of the main file counts; of `std.net` also
/// another constant, an enum, a layout or a function. All others have one name in the whole program.
pub(super) fn modules(
    main: ast::File,
    sources: &mut Sources,
    load: &dyn Fn(&str) -> Option<String>,
    reader: Option<RulesFileReader>,
    diagnostics: &mut Findings,
) -> Vec<ast::File> {
    let mut loader = Loader {
        sources,
        load,
        diagnostics,
        loaded: BTreeMap::new(),
        queue: main.imports.iter().rev().cloned().collect(),
        asked: BTreeMap::new(),
        missing: HashSet::new(),
        likeness: Likeness::default(),
    };
    while let Some(import) = loader.queue.pop() {
        let path: Vec<&str> = import.path.iter().map(|name| name.text.as_str()).collect();
        let path = path.join("/");
        if !loader.loaded.contains_key(&path) {
            if is_full(loader.sources) {
                loader.diagnostics.report(one_too_many(import.span).of_kind(DiagnosticKind::Import));
                break;
            }
            if !loader.fetch(&path, &import) {
                continue;
            }
        }
        loader.take_names(&path, &import);
    }
    let Loader { loaded, sources, diagnostics, .. } = loader;
    circles::report(&loaded, diagnostics);
    let imports = loaded.values().map(|module| module.import).collect::<Vec<Span>>();
    let mut files = taken_in(main, loaded);
    policies::load_rules(&mut files, sources, load, reader, diagnostics);
    policies::write_out(&mut files);
    reached::leave_out_others(&mut files);
    externs::settle(&mut files, &imports, diagnostics);
    files
}

/// Follows the imports of a program.
struct Loader<'l> {
    sources: &'l mut Sources,
    load: &'l dyn Fn(&str) -> Option<String>,
    diagnostics: &'l mut Findings,
    /// By path, such as `std/net`.
    loaded: BTreeMap<String, Module>,
    /// Imports that were not followed yet, the next one last.
    queue: Vec<ast::Import>,
    /// By importing file, path and name: where the name was first asked for.
    asked: BTreeMap<(FileId, String, String), Span>,
    /// Paths that were reported for having no module.
    missing: HashSet<String>,
    likeness: Likeness,
}

/// Whether a program is made of as much as it may be.
pub(super) fn is_full(sources: &Sources) -> bool {
    sources.iter().len() >= MOST_FILES || sources.bytes() > LONGEST_PROGRAM
}

/// The fault of what names one file too many.
pub(super) fn one_too_many(span: Span) -> Diagnostic {
    let headline = "this is more than a program may be made of";
    let most = LONGEST_PROGRAM >> 20;
    Diagnostic::error("E0108", headline, span, "one file too many")
        .help(format!("a program has at most {MOST_FILES} files, of {most} MiB together"))
}

impl Loader<'_> {
    /// Reads a module; false if there is none.
    fn fetch(&mut self, path: &str, import: &ast::Import) -> bool {
        if let Some(file) = module(path, self.sources, self.load, self.diagnostics) {
            self.queue.extend(file.imports.iter().rev().cloned());
            let declared = file.items.iter().filter_map(|item| item.name().cloned()).collect();
            self.loaded.insert(
                path.to_string(),
                Module { file, import: import.span, declared, wanted: HashSet::new() },
            );
            return true;
        }
        if self.missing.insert(path.to_string()) {
            let headline = format!("there is no module `{}`", path.replace('/', "."));
            let built_in: Vec<String> = standard::modules().map(|name| format!("`{name}`")).collect();
            self.diagnostics.report(
                Diagnostic::error("E0102", headline, import.span, "not found")
                    .of_kind(DiagnosticKind::Import)
                    .help(format!(
                        "modules are {} and files beside the program: `{path}.rav`",
                        built_in.join(", ")
                    )),
            );
        }
        false
    }

    /// Notes the names that an import asks for, and reports those that the module does not declare.
    fn take_names(&mut self, path: &str, import: &ast::Import) {
        let Some(module) = self.loaded.get_mut(path) else { return };
        let importer = import.span.file;
        for name in &import.names {
            if let Some(first) = self.asked.insert((importer, path.to_string(), name.text.clone()), name.span)
            {
                let headline = format!("`{}` is imported twice", name.text);
                self.diagnostics.report(
                    Diagnostic::error("E0105", headline, name.span, "imported again here")
                        .of_kind(DiagnosticKind::Import)
                        .place(first, "imported first here"),
                );
                continue;
            }
            if !module.declared.contains(&name.text) {
                let headline = format!("`{}` has no `{}`", path.replace('/', "."), name.text);
                let mut diagnostic = Diagnostic::error("E0103", headline, name.span, "not declared there")
                    .of_kind(DiagnosticKind::Import);
                let left = if self.diagnostics.is_full() { 0 } else { self.likeness.left() };
                let known = module.declared.iter().map(String::as_str).take(left);
                if let Some(nearest) = self.likeness.nearest(&name.text, known) {
                    diagnostic = diagnostic.suggest(format!("did you mean `{nearest}`?"), name.span, nearest);
                }
                self.diagnostics.report(diagnostic);
            }
            module.wanted.insert(name.text.clone());
        }
    }
}

/// The main file, and of each module the declarations that belong to the program.
fn taken_in(main: ast::File, loaded: BTreeMap<String, Module>) -> Vec<ast::File> {
    let own: HashSet<(std::mem::Discriminant<Item>, String)> = main
        .items
        .iter()
        .filter_map(|item| Some((std::mem::discriminant(item), item.name()?.clone())))
        .collect();
    let mut files = vec![main];
    for (path, Module { mut file, wanted, .. }) in loaded {
        let standard = path == "std/net";
        file.items.retain(|item| {
            let Some(name) = item.name() else { return !matches!(item, Item::Test(_)) };
            if wanted.contains(name) {
                return true;
            }
            // The standard layouts have common names, so each is there only for those who ask for it.
            let hidden = standard && matches!(item, Item::Layout(_));
            let replaceable = match item {
                Item::Const(item) => standard || item.settable,
                Item::Enum(_) | Item::Layout(_) | Item::Function(_) => standard,
                item => matches!(item, Item::Reason(_)),
            };
            !(hidden || replaceable && own.contains(&(std::mem::discriminant(item), name.clone())))
        });
        files.push(file);
    }
    files
}

/// One module, of one file or of several of the standard library.
pub(super) fn module(
    path: &str,
    sources: &mut Sources,
    load: &dyn Fn(&str) -> Option<String>,
    diagnostics: &mut Findings,
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
