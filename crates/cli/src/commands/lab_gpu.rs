//! `ravelin lab gpu`: all about one device in a given time, as files.

use super::lab::{cannot_write, machine};
use crate::arguments::LabArguments;
use crate::failure::Failure;
use crate::render::quantity::of;
use crate::{program, render};
use lab::{LabError, SurveyPlan};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Runs the command.
pub(crate) fn run(arguments: &LabArguments, json: bool) -> Result<(), Failure> {
    let (Some(out), [_]) = (&arguments.out, &arguments.experiments[..]) else {
        return Err(Failure::Usage(
            "`gpu` is run by itself, and writes into the folder of `--out`".to_owned(),
        ));
    };
    // Before anything is measured, since that takes minutes.
    fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))?;
    let programs = arguments.programs.as_deref().map(programs).transpose()?.unwrap_or_default();
    let plan = SurveyPlan {
        device: arguments.device.unwrap_or_default(),
        programs,
        time: Duration::from_secs_f64(arguments.budget),
        quick: arguments.quick,
    };
    let mut progress = |what: &str| anstream::eprintln!("{what}");
    let survey = lab::survey(&plan, &machine(None), &mut progress).map_err(|error| match error {
        LabError::Device(_) | LabError::Tables(_) => Failure::Usage(error.to_string()),
        error => Failure::Finding(error.to_string()),
    })?;
    let stem = survey.stem();
    let summary = survey.summary();
    let write = |ending: &str, content: String| {
        let path = out.join(format!("{stem}.{ending}"));
        fs::write(&path, content).map_err(|error| cannot_write(&path, &error))
    };
    let written = serde_json::to_string(&survey);
    write("json", written.map_err(|error| Failure::Finding(error.to_string()))? + "\n")?;
    write("html", lab::page(&survey.experiments))?;
    write("txt", summary.clone())?;
    if json {
        render::json(&survey)?;
    } else {
        render::text(&format!(
            "{summary}\nwritten: {}\n",
            out.join(format!("{stem}.json, .html, .txt")).display()
        ))?;
    }
    match survey.wrong {
        0 => Ok(()),
        wrong => {
            let what = of(wrong as u64, "program");
            Err(Failure::Documented(format!(
                "{what} with another answer on the device than the interpreter's"
            )))
        }
    }
}

/// The programs of a folder, by name.
fn programs(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let cannot = |error: std::io::Error| Failure::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|ending| ending == "rav") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, program::read(&path)?));
        }
    }
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "{} holds no programs; their names end in .rav",
            folder.display()
        )));
    }
    found.sort();
    Ok(found)
}
