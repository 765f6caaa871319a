//! Finds modules that import each other in a circle.
//!
//! The search first removes modules that import no remaining module, until there is none. Then it removes
//! modules that no remaining module imports. The modules that remain lie on circles or between circles. For
//! each of them the search looks for the shortest path back to the module itself.

use super::modules::Module;
use crate::ast;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use ir::source::Span;
use std::collections::{BTreeMap, HashSet};

/// At most so many circles are reported.
const MOST_CIRCLES: usize = 16;

/// By module: the modules that it imports, and where.
type Imports = Vec<Vec<(usize, Span)>>;

/// Reports modules that import each other, each circle once.
pub(super) fn report(loaded: &BTreeMap<String, Module>, diagnostics: &mut Findings) {
    let numbers: BTreeMap<&str, usize> = loaded.keys().map(String::as_str).zip(0..).collect();
    let path_of = |import: &ast::Import| {
        import.path.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join("/")
    };
    let imports: Imports = loaded
        .values()
        .map(|module| {
            let imports = module.file.imports.iter();
            imports
                .filter_map(|import| Some((*numbers.get(path_of(import).as_str())?, import.span)))
                .collect()
        })
        .collect();
    let left = on_circles(&imports);
    let (mut told, mut circles) = (HashSet::new(), 0);
    for (name, start) in numbers {
        if !left[start] || told.contains(&start) || circles == MOST_CIRCLES {
            continue;
        }
        let Some((way, seen)) = way_back(&imports, &left, start) else { continue };
        circles += 1;
        told.extend(seen);
        told.insert(start);
        let mut diagnostic = Diagnostic::error(
            "E0104",
            format!("the module `{}` imports itself", name.replace('/', ".")),
            way[0],
            "the circle begins here",
        )
        .help("put what both need into a third module")
        .of_kind(DiagnosticKind::Import);
        for span in &way[1..] {
            diagnostic = diagnostic.place(*span, "and goes on here");
        }
        diagnostics.report(diagnostic);
    }
}

/// Whether each module is left when those that lead to no circle, and then those that no circle leads to, are
/// taken away.
fn on_circles(imports: &[Vec<(usize, Span)>]) -> Vec<bool> {
    let forward: Vec<Vec<usize>> =
        imports.iter().map(|next| next.iter().map(|(module, _)| *module).collect()).collect();
    let mut backward = vec![Vec::new(); forward.len()];
    for (module, next) in forward.iter().enumerate() {
        next.iter().for_each(|next| backward[*next].push(module));
    }
    let mut left = vec![true; forward.len()];
    for (from, to) in [(&forward, &backward), (&backward, &forward)] {
        let mut open: Vec<usize> =
            from.iter().map(|next| next.iter().filter(|next| left[**next]).count()).collect();
        let mut ends: Vec<usize> =
            (0..open.len()).filter(|module| left[*module] && open[*module] == 0).collect();
        while let Some(module) = ends.pop() {
            left[module] = false;
            for &before in to[module].iter().filter(|before| left[**before]) {
                open[before] -= 1;
                if open[before] == 0 {
                    ends.push(before);
                }
            }
        }
    }
    left
}

/// The imports of the shortest way from a module back to itself, and the modules that were looked at.
fn way_back(imports: &[Vec<(usize, Span)>], left: &[bool], start: usize) -> Option<(Vec<Span>, Vec<usize>)> {
    let mut came: BTreeMap<usize, (usize, Span)> = BTreeMap::new();
    let mut seen = vec![start];
    let mut at = 0;
    while let Some(&module) = seen.get(at) {
        at += 1;
        for &(next, span) in imports[module].iter().filter(|(next, _)| left[*next]) {
            if next == start {
                let (mut way, mut step) = (vec![span], module);
                while step != start {
                    let (before, span) = came[&step];
                    way.push(span);
                    step = before;
                }
                way.reverse();
                return Some((way, seen));
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = came.entry(next) {
                entry.insert((module, span));
                seen.push(next);
            }
        }
    }
    None
}
