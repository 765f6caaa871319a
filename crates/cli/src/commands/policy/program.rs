//! The policies of programs, and of programs that run.

use super::source::Source;
use crate::arguments::policy::PolicySource;
use crate::failure::Failure;
use crate::program::ready;
use lang::pipeline::CompileOptions;
use lang::policy_model::PolicyModel;
use std::path::Path;

/// Reads the policies that a command names: those of a program, or that of a file. `number` says which file
/// of the command it is, from 0.
pub(super) fn sources(file: &str, source: &PolicySource, number: usize) -> Result<Vec<Source>, Failure> {
    if file.ends_with(".rav") {
        return of_program(file, source);
    }
    if let Some(name) = &source.policy {
        return Err(Failure::Usage(format!("--policy {name}: {file} is no program, and has one policy")));
    }
    Ok(vec![Source::load(file, source, number)?])
}

/// The policies of the program in a file.
fn of_program(file: &str, source: &PolicySource) -> Result<Vec<Source>, Failure> {
    let ready = ready(Path::new(file), &CompileOptions::default(), false)?;
    chosen(file, &ready.policies, source)
}

/// The policies that `--policy` names, or all of them.
fn chosen(file: &str, models: &[PolicyModel], source: &PolicySource) -> Result<Vec<Source>, Failure> {
    let wanted = |model: &&PolicyModel| source.policy.as_ref().is_none_or(|name| *name == model.name);
    let found: Vec<Source> = models
        .iter()
        .filter(wanted)
        .map(|model| of_model(model).map(|own| own.with_interfaces(&source.interfaces)))
        .collect::<Result<_, _>>()?;
    if !found.is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    Err(Failure::Finding(match &source.policy {
        Some(name) if !names.is_empty() => {
            format!("{file}: the program has no policy `{name}`; it has {}", names.join(", "))
        }
        _ => format!("{file}: the program declares no policy"),
    }))
}

/// A policy of a program, if it can be analysed.
pub(super) fn of_model(model: &PolicyModel) -> Result<Source, Failure> {
    let PolicyModel { name, file, policy, expectations, .. } = model;
    let policy = policy.clone().map_err(|sentence| {
        Failure::Finding(format!("{file}: policy {name} cannot be analysed: {sentence}"))
    })?;
    Ok(Source { file: file.clone(), name: Some(name.clone()), comments: expectations.clone(), policy })
}
