//! Import circles: files of one crate that use each other in a ring are few, so that each can be read before
//! those that use it.
//!
//! The idea: each path that begins with `crate`, `super`, `self` or a module below the file leads to the file
//! that defines what it names; `pub use` only passes a name on, and is followed. Files that reach each other
//! by such arrows form a circle (R. Tarjan, "Depth-first search and linear graph algorithms", 1972, finds
//! them in one pass; the graphs are so small here that each file is simply asked what it reaches).

use super::{Finding, Tree, rust};
use std::collections::{BTreeMap, BTreeSet};

/// The most files of a circle: a module with its parts.
const LARGEST: usize = 4;

/// How often `pub use` may pass a name on.
const PASSES: usize = 8;

/// A path in a crate, from its root.
type ModulePath = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
struct Modules<'a> {
    /// Where each module stands.
    files: BTreeMap<ModulePath, &'a str>,
    /// What a module passes on with `pub use`: its path and the name, and what the name stands for.
    passed_on: BTreeMap<(ModulePath, String), ModulePath>,
}

/// Looks for circles of more than [`LARGEST`] files in each crate.
pub(super) fn small(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut crates: BTreeMap<&str, Vec<(&str, ModulePath, String)>> = BTreeMap::new();
    for (path, text) in tree.ending("rs").filter(|(path, _)| !rust::is_test_file(path)) {
        let Some((name, inside)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if !inside.starts_with("bin/") {
            let code = rust::code_only(rust::without_tests(text));
            crates.entry(name).or_default().push((path, module(inside), code));
        }
    }
    for files in crates.into_values() {
        let arrows = arrows(&files);
        for circle in circles(&arrows).into_iter().filter(|circle| circle.len() > LARGEST) {
            let names: Vec<&str> =
                circle.iter().map(|path| path.rsplit("src/").next().unwrap_or(path)).collect();
            let text = format!(
                "{} files use each other in a circle, at most {LARGEST} may: {}",
                circle.len(),
                names.join(", ")
            );
            findings.push(Finding::new(circle[0], 0, "circle", text));
        }
    }
}

/// Which files each file uses.
fn arrows<'a>(files: &[(&'a str, ModulePath, String)]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut modules = Modules::default();
    for (path, module, _) in files {
        modules.files.insert(module.clone(), path);
    }
    let mut used = Vec::new();
    for (path, module, code) in files {
        let (imports, rest) = imports(code);
        for import in imports {
            for (target, name) in leaves(import.tree) {
                let target = modules.absolute(module, &target);
                match target {
                    Some(target) if import.is_passed_on => {
                        modules.passed_on.insert((module.clone(), name), target);
                    }
                    Some(target) => used.push((*path, target)),
                    None => {}
                }
            }
        }
        used.extend(inline(&rest).filter_map(|target| Some((*path, modules.absolute(module, &target)?))));
    }
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> =
        files.iter().map(|file| (file.0, BTreeSet::new())).collect();
    for (path, target) in used {
        if let Some(file) = modules.defining(&target, PASSES).filter(|file| *file != path) {
            arrows.entry(path).or_default().insert(file);
        }
    }
    arrows
}

impl<'a> Modules<'a> {
    /// A path as it is written in a module, from the root of its crate; nothing if it leads out of the crate.
    fn absolute(&self, module: &[String], written: &[String]) -> Option<ModulePath> {
        let first = written.first()?;
        let mut from = module.to_vec();
        let rest = match first.as_str() {
            "crate" => {
                from.clear();
                &written[1..]
            }
            "self" => &written[1..],
            "super" => {
                let ups = written.iter().take_while(|part| *part == "super").count();
                from.truncate(module.len().checked_sub(ups)?);
                &written[ups..]
            }
            _ => {
                let mut below = from.clone();
                below.push(first.clone());
                self.files.contains_key(&below).then_some(written)?
            }
        };
        from.extend_from_slice(rest);
        Some(from)
    }

    /// The file that defines what a path names.
    fn defining(&self, path: &[String], passes: usize) -> Option<&'a str> {
        let mut module = ModulePath::new();
        for (at, part) in path.iter().enumerate() {
            let mut below = module.clone();
            below.push(part.clone());
            if self.files.contains_key(&below) {
                module = below;
                continue;
            }
            let passed_on = self.passed_on.get(&(module.clone(), part.clone()));
            if let Some(target) = passed_on.filter(|_| passes > 0) {
                let whole: ModulePath = target.iter().chain(&path[at + 1..]).cloned().collect();
                return self.defining(&whole, passes - 1);
            }
            break;
        }
        self.files.get(&module).copied()
    }
}

/// The module that a file below `src` holds.
fn module(inside: &str) -> ModulePath {
    let stem = inside.trim_end_matches(".rs");
    let parts = stem.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
    parts.map(str::to_owned).collect()
}

/// A `use` declaration.
struct Import<'a> {
    tree: &'a str,
    /// It is `pub`: the name belongs to this module as well.
    is_passed_on: bool,
}

/// All `use` declarations of code, and the code without them.
fn imports(code: &str) -> (Vec<Import<'_>>, String) {
    let (mut found, mut rest, mut from) = (Vec::new(), String::new(), 0);
    for at in rust::words(code, "use") {
        let before = &code[..at];
        let line = before.rsplit('\n').next().unwrap_or("").trim();
        let is_declaration = line.is_empty() || line == "pub" || line.starts_with("pub(");
        let Some(end) = code[at..].find(';').filter(|_| is_declaration && at >= from) else { continue };
        rest.push_str(&code[from..at]);
        from = at + end;
        found.push(Import { tree: code[at + "use".len()..from].trim(), is_passed_on: !line.is_empty() });
    }
    rest.push_str(&code[from..]);
    (found, rest)
}

/// The single paths of a `use` tree, each with the name that it gets.
fn leaves(tree: &str) -> Vec<(ModulePath, String)> {
    let tree = tree.trim();
    let Some((prefix, group)) = tree.split_once('{') else {
        let (path, name) =
            tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or(tree)));
        let mut path: ModulePath = path.split("::").map(|part| part.trim().to_owned()).collect();
        path.retain(|part| part != "*");
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        return vec![(path, name.trim().to_owned())];
    };
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    for (at, character) in group.char_indices().chain([(group.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = group[start..at].trim();
                start = (at + 1).min(group.len());
                if !part.is_empty() {
                    all.extend(leaves(&format!("{prefix}{part}")));
                }
            }
            _ => {}
        }
    }
    all
}

/// Paths in code outside `use`.
fn inline(code: &str) -> impl Iterator<Item = ModulePath> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':');
    code.split(move |character| !is_part(character))
        .filter(|word| word.contains("::") && !word.starts_with(':'))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

/// Files that reach each other, by circle, each at least two.
fn circles<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (*file, reached(arrows, file))).collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, targets) in &reached {
        if targets.contains(file) {
            circles.insert(targets.iter().copied().filter(|other| reached[other].contains(file)).collect());
        }
    }
    circles.into_iter().collect()
}

/// All files that a file uses, by however many others.
fn reached<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = arrows.get(file).into_iter().flatten().copied().collect();
    while let Some(next) = waiting.pop() {
        if found.insert(next) {
            waiting.extend(arrows.get(next).into_iter().flatten().copied());
        }
    }
    found
}
