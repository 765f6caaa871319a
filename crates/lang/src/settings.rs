//! Values from outside for what a program declares as `settable`: which there are, and how they take the
//! place of the values in the text.
//!
//! A value takes its place in the syntax tree, before anything is checked. So it passes the same checks as a
//! value in the text, and gives the same program.

use crate::ast::{self, Item, Name};
use crate::diagnostic::{Diagnostic, Findings, Label, Severity};
use crate::limits::SETTABLE_TOLD;
use crate::parser::{parse_pool, parse_value};
use ir::source::{FileId, Sources, Span};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Values from outside, and the text in which they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The name under which diagnostics show the text.
    pub name: String,
    /// The text.
    pub text: String,
    /// The values that are set in it.
    pub values: Vec<SetValue>,
}

impl Settings {
    /// The name and the parts of each value.
    pub fn values(&self) -> Vec<(&str, Vec<&str>)> {
        let part = |part: &Range<usize>| self.text.get(part.clone()).unwrap_or_default();
        self.values
            .iter()
            .map(|value| (value.name.as_str(), value.parts.iter().map(part).collect()))
            .collect()
    }

    /// The text of a value that has one part; none if it is not set.
    pub fn value(&self, name: &str) -> Option<&str> {
        let value = self.values.iter().find(|value| value.name == name)?;
        let [part] = &value.parts[..] else { return None };
        self.text.get(part.clone())
    }
}

/// A value for something that a program declares as settable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetValue {
    /// Its name.
    pub name: String,
    /// Where the name stands in the text, in bytes.
    pub place: Range<usize>,
    /// Where its value stands. A constant has one part; the values of a pool may be in several, and each of
    /// these parts may list several.
    pub parts: Vec<Range<usize>>,
}

/// Something that a program declares as settable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settable {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub declared: Span,
    /// Its value in the program's text.
    pub default: Span,
    /// The parts of its value from outside; empty if it has none.
    pub set: Vec<Span>,
}

/// What was set, for remarks on diagnostics.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The file of the values.
    file: Option<FileId>,
    /// By the name of what is set: where it is declared, and the parts of its value.
    set: BTreeMap<String, (Span, Vec<Span>)>,
}

/// Puts the values in the place of those in the text, and lists what can be set. A value that cannot be read,
/// or that belongs to nothing, is reported and leaves the text as it is.
pub(crate) fn apply(
    files: &mut [ast::File],
    settings: &Settings,
    sources: &mut Sources,
    diagnostics: &mut Findings,
) -> (Applied, Vec<Settable>) {
    let mut settables: Vec<Settable> =
        files.iter().flat_map(|file| &file.items).filter_map(settable).collect();
    let mut applied = Applied::default();
    if settings.values.is_empty() {
        return (applied, settables);
    }
    let file = sources.add(&settings.name, &settings.text);
    applied.file = Some(file);
    let end = settings.text.len();
    let span = |part: &Range<usize>| Span::new(file, part.start.min(end) as u32, part.end.min(end) as u32);
    let declared = declared(files);
    for setting in &settings.values {
        let (name, place) = (setting.name.as_str(), span(&setting.place));
        let named = declared.get(name).map(Vec::as_slice).unwrap_or_default();
        let target = match one_settable(named, name, place, &settables) {
            Ok(target) => target,
            Err(fault) => {
                diagnostics.report(*fault);
                continue;
            }
        };
        let parts: Vec<Span> = setting.parts.iter().map(span).collect();
        if applied.set.insert(name.to_string(), (target.span, parts.clone())).is_some() {
            diagnostics.error("E0101", format!("`{name}` is set twice"), place, "set again here");
            continue;
        }
        let found = set(&mut files[target.file].items[target.item], file, settings, setting, place);
        let settable = settables.iter_mut().find(|known| known.declared == target.span);
        if let Some(settable) = settable.filter(|_| found.is_empty()) {
            settable.set = parts;
        }
        diagnostics.extend(found);
    }
    (applied, settables)
}

/// Where something with a name is declared.
#[derive(Clone, Copy)]
struct Declared {
    file: usize,
    item: usize,
    kind: &'static str,
    settable: bool,
    span: Span,
}

/// All that is declared, by name.
fn declared(files: &[ast::File]) -> HashMap<String, Vec<Declared>> {
    let mut by_name: HashMap<String, Vec<Declared>> = HashMap::new();
    for (file, tree) in files.iter().enumerate() {
        for (item, declaration) in tree.items.iter().enumerate() {
            if let Some((kind, name)) = declaration.declared() {
                let settable = settable(declaration).is_some();
                let found = Declared { file, item, kind, settable, span: name.span };
                by_name.entry(name.text.clone()).or_default().push(found);
            }
        }
    }
    by_name
}

/// What a declaration declares as settable.
fn settable(item: &Item) -> Option<Settable> {
    let of = |name: &Name, default| Settable {
        name: name.text.clone(),
        declared: name.span,
        default,
        set: Vec::new(),
    };
    match item {
        Item::Const(item) if item.settable => Some(of(&item.name, item.value.span)),
        Item::Pool(item) if item.settable => {
            let spans = item.ranges.iter().map(ast::EntryKey::span);
            Some(of(&item.name, spans.reduce(Span::to).unwrap_or(item.name.span)))
        }
        _ => None,
    }
}

/// The one thing among those of a name that is settable; what is wrong if there is not exactly one.
fn one_settable(
    named: &[Declared],
    name: &str,
    place: Span,
    settables: &[Settable],
) -> Result<Declared, Box<Diagnostic>> {
    let mut settable = named.iter().filter(|declared| declared.settable);
    match (settable.next(), settable.next(), named) {
        (Some(one), None, _) => Ok(*one),
        (Some(first), Some(second), _) => {
            let headline = format!("there are two settable declarations of `{name}`");
            let fault = Diagnostic::error("E0112", headline, place, "which of them is meant?");
            Err(Box::new(fault.place(first.span, "declared here").place(second.span, "and here")))
        }
        (None, _, [declared, ..]) => {
            let headline = format!("the {} `{name}` is not settable", declared.kind);
            let fault = Diagnostic::error("E0113", headline, place, "the program decides its value alone");
            let fault = fault.place(declared.span, "declared here");
            Err(Box::new(match declared.kind {
                "constant" | "pool" => fault.help("write `settable` before its declaration"),
                _ => fault.help("constants and pools can be declared `settable`"),
            }))
        }
        (None, ..) => {
            let fault = Diagnostic::error(
                "E0112",
                format!("the program declares no `{name}`"),
                place,
                "nothing of this name can be set",
            );
            let names = settables.iter().map(|settable| format!("`{}`", settable.name));
            let names: Vec<String> = names.take(SETTABLE_TOLD).collect();
            Err(Box::new(fault.help(match settables.len() {
                0 => "it declares nothing as `settable`".to_string(),
                count if count > names.len() => {
                    format!("{count} can be set, among them {}", names.join(", "))
                }
                _ => format!("these can be set: {}", names.join(", ")),
            })))
        }
    }
}

/// Gives a declaration its value from outside, unless something is wrong with it.
fn set(
    item: &mut Item,
    file: FileId,
    settings: &Settings,
    setting: &SetValue,
    place: Span,
) -> Vec<Diagnostic> {
    match item {
        Item::Const(item) => {
            let [part] = setting.parts.as_slice() else {
                let headline = format!("`{}` has one value", item.name.text);
                return vec![Diagnostic::error("E0206", headline, place, "a list is given here")];
            };
            let (value, found) = parse_value(file, &settings.text, part.clone());
            item.value = value.unwrap_or_else(|| item.value.clone());
            found
        }
        Item::Pool(item) => {
            let (mut ranges, mut found) = (Vec::new(), Vec::new());
            for part in &setting.parts {
                let (values, faults) = parse_pool(file, &settings.text, part.clone());
                ranges.extend(values.into_iter().flatten());
                found.extend(faults);
            }
            if found.is_empty() {
                item.ranges = ranges;
            }
            found
        }
        _ => Vec::new(),
    }
}

impl Applied {
    /// Says at each diagnostic what it has to do with a value from outside: where it belongs if it is wrong
    /// itself, and where it comes from if the program uses it wrongly. Errors at values come first.
    pub(crate) fn remark(&self, sources: &Sources, diagnostics: &mut [Diagnostic]) {
        let Some(file) = self.file else { return };
        for diagnostic in diagnostics.iter_mut() {
            let span = diagnostic.primary.span;
            if span.file == file {
                let within =
                    |parts: &[Span]| parts.iter().any(|part| (part.start..=part.end).contains(&span.start));
                let belongs = self.set.values().find(|(_, parts)| within(parts));
                if let Some((declared, _)) = belongs {
                    diagnostic.path.push(Label { span: *declared, text: "declared here".to_string() });
                }
            } else {
                let spans = std::iter::once(span).chain(diagnostic.path.iter().map(|label| label.span));
                let words = spans
                    .filter(|span| span.file != file)
                    .flat_map(|span| sources.text(span).split(|c: char| !c.is_alphanumeric() && c != '_'));
                let mut used: Vec<&str> = words.filter(|word| self.set.contains_key(*word)).collect();
                used.sort_unstable();
                used.dedup();
                for (name, part) in used
                    .iter()
                    .take(SETTABLE_TOLD)
                    .filter_map(|name| Some((name, self.set[*name].1.first()?)))
                {
                    diagnostic.path.push(Label { span: *part, text: format!("`{name}` is set here") });
                }
            }
            // An edit mends the program's files alone.
            if let Some(edit) = diagnostic.suggestion.take_if(|edit| edit.span.file == file) {
                let advice = diagnostic.help.take();
                diagnostic.help =
                    Some(advice.map_or(edit.text.clone(), |advice| format!("{}; {advice}", edit.text)));
            }
        }
        // What a wrong value leads to in the program comes behind it.
        diagnostics.sort_by_key(|found| (found.severity != Severity::Error, found.primary.span.file != file));
    }
}

#[cfg(test)]
mod tests;
