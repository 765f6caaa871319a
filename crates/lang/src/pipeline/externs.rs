//! Settles the stages that modules ask the program for (`extern stage`): each becomes a stage of the program.
//!
//! A declared stage of the same name must take the same types in the same order; it then also requires the
//! headers that the module promises. If there is none, the body that the module gives is the stage. What is
//! left of an `extern stage` after this is nothing: later parts of the compiler see stages only.

use crate::ast::{Extern, File, Item, Name, Param, Stage, TypeKind};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use ir::source::Span;

/// Puts a stage in the place of every `extern stage`. `imports` are the imports that led to the files behind
/// the first.
pub(super) fn settle(files: &mut [File], imports: &[Span], diagnostics: &mut Findings) {
    let mut all: Vec<(usize, Extern)> = Vec::new();
    for (at, file) in files.iter_mut().enumerate() {
        let (externs, kept) =
            std::mem::take(&mut file.items).into_iter().partition(|item| matches!(item, Item::Extern(_)));
        file.items = kept;
        all.extend(externs.into_iter().filter_map(|item| match item {
            Item::Extern(asked) => Some((at, asked)),
            _ => None,
        }));
    }
    let mut defaults = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for (at, asked) in all {
        if let Some(stage) = declared(files, &asked.name) {
            join(stage, &asked, diagnostics);
        } else if asked.body.is_some() {
            // Two defaults of one name are two stages of one name, which the checker reports.
            defaults.push((at, asked));
        } else if !missing.contains(&asked.name.text) {
            let import = at.checked_sub(1).and_then(|module| imports.get(module)).copied();
            report_missing(&asked, import, diagnostics);
            missing.push(asked.name.text);
        }
    }
    for (at, asked) in defaults {
        files[at].items.extend(default(asked).map(Item::Stage));
    }
}

/// The stage or decoder of this name.
fn declared<'f>(files: &'f mut [File], name: &Name) -> Option<&'f mut Stage> {
    files.iter_mut().flat_map(|file| &mut file.items).find_map(|item| match item {
        Item::Stage(stage) if stage.name.text == name.text => Some(stage),
        _ => None,
    })
}

/// Compares a stage with what a module asks for.
fn join(stage: &mut Stage, asked: &Extern, diagnostics: &mut Findings) {
    let kinds =
        |params: &[Param]| params.iter().map(|param| param.ty.kind.clone()).collect::<Vec<TypeKind>>();
    if kinds(&stage.params) != kinds(&asked.params) {
        let headline = format!("`{}` takes other values than a module hands to it", stage.name.text);
        let label = format!("it takes {}", shown(&stage.params));
        diagnostics.report(
            Diagnostic::error("E0111", headline, stage.name.span, label)
                .place(asked.span, format!("the module hands it {}", shown(&asked.params)))
                .help(format!("declare it as `{}`", signature(asked))),
        );
        // The module then hands over what the stage takes, so that no second fault follows from this one.
        let own = std::mem::replace(&mut stage.params, asked.params.clone());
        stage.params.iter_mut().zip(own).for_each(|(param, own)| param.name = own.name);
    }
    stage.requires.extend(asked.requires.iter().cloned());
}

/// The stage that a module declares for programs that have none.
fn default(asked: Extern) -> Option<Stage> {
    let Extern { name, params, requires, body, span } = asked;
    Some(Stage { requires, ..Stage::written(name, params, body?, span) })
}

fn report_missing(asked: &Extern, import: Option<Span>, diagnostics: &mut Findings) {
    let headline = format!("a module needs a stage `{}` of the program", asked.name.text);
    let fault = match import {
        Some(import) => Diagnostic::error("E0110", headline, import, "imported here")
            .place(asked.span, "the module goes to it, and nothing declares it"),
        None => Diagnostic::error("E0110", headline, asked.span, "nothing declares it"),
    };
    diagnostics.report(
        fault.of_kind(DiagnosticKind::Import).help(format!("declare `{} {{ … }}`", signature(asked))),
    );
}

/// The head of the stage that a program must declare.
fn signature(asked: &Extern) -> String {
    let params: Vec<String> =
        asked.params.iter().map(|param| format!("{}: {}", param.name.text, type_name(param))).collect();
    format!("stage {}({})", asked.name.text, params.join(", "))
}

/// The types of parameters, in brackets.
fn shown(params: &[Param]) -> String {
    let types: Vec<String> = params.iter().map(type_name).collect();
    format!("({})", types.join(", "))
}

fn type_name(param: &Param) -> String {
    match &param.ty.kind {
        TypeKind::Uint(width) => format!("u{width}"),
        TypeKind::Named(name) => name.clone(),
    }
}
