//! The policies of programs, and of programs that run.

use super::source::Source;
use crate::arguments::policy::PolicySource;
use crate::failure::Failure;
use crate::program::ready;
use crate::render::quantity;
use gateway::{Asked, PolicyView};
use lang::pipeline::CompileOptions;
use lang::policy_model::PolicyModel;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// What stands before the socket of a running gateway, where a file could be named.
const SOCKET: &str = "unix:";

/// Reads the policies that a command names: those of a program, or that of a file. `number` says which file
/// of the command it is, from 0.
pub(super) fn sources(file: &str, source: &PolicySource, number: usize) -> Result<Vec<Source>, Failure> {
    if let Some(socket) = file.strip_prefix(SOCKET) {
        return of_gateway(file, Path::new(socket), source);
    }
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
    let models = ready.policies.iter().map(|model| (model.name.as_str(), model)).collect::<Vec<_>>();
    chosen(file, &models, &|model| of_model(model), source)
}

/// The policies of a running gateway, as the tables of their hooks hold them now.
fn of_gateway(file: &str, socket: &Path, source: &PolicySource) -> Result<Vec<Source>, Failure> {
    let views: Vec<PolicyView> = answered(socket, Asked::Policies, "policies")?;
    let views = views.iter().map(|view| (view.name.as_str(), view)).collect::<Vec<_>>();
    chosen(file, &views, &|view| of_view(file, view), source)
}

/// What a gateway answers under a name.
pub(super) fn answered<T: DeserializeOwned>(socket: &Path, asked: Asked, name: &str) -> Result<T, Failure> {
    let mut answer = gateway::control::ask(socket, asked)?;
    let told = answer.get_mut(name).map(Value::take).unwrap_or_default();
    serde_json::from_value(told).map_err(|error| {
        Failure::Finding(format!(
            "{}: the answer is not understood, perhaps since the gateway is of another version: {error}",
            socket.display()
        ))
    })
}

/// A policy of a running gateway.
fn of_view(gateway: &str, view: &PolicyView) -> Result<Source, Failure> {
    let PolicyView { name, file, policy, expectations, rows_from_outside, rows_gone } = view;
    let policy = policy.clone().and_then(|policy| {
        policy.fits_together().map_err(|fault| format!("the gateway tells no policy: {fault}"))?;
        Ok(policy)
    });
    let policy = policy.map_err(|sentence| {
        Failure::Finding(format!("{gateway}: policy {name} cannot be analysed: {sentence}"))
    })?;
    if rows_from_outside + rows_gone > 0 {
        anstream::eprintln!(
            "{gateway}: policy {name}: {} from outside, {} of the program are gone",
            quantity::of(*rows_from_outside as u64, "row"),
            quantity::of(*rows_gone as u64, "row")
        );
    }
    Ok(Source::of_program(file, name, policy, expectations))
}

/// The policies that `--policy` names, or all of them.
fn chosen<T>(
    file: &str,
    policies: &[(&str, &T)],
    read: &dyn Fn(&T) -> Result<Source, Failure>,
    source: &PolicySource,
) -> Result<Vec<Source>, Failure> {
    let wanted = |(name, _): &&(&str, &T)| source.policy.as_ref().is_none_or(|wanted| wanted == name);
    let found: Vec<Source> = policies
        .iter()
        .filter(wanted)
        .map(|(_, policy)| read(policy).map(|own| own.with_interfaces(&source.interfaces)))
        .collect::<Result<_, _>>()?;
    if !found.is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = policies.iter().map(|(name, _)| *name).collect();
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
    Ok(Source::of_program(file, name, policy, expectations))
}
