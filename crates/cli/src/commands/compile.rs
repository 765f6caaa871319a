//! `ravelin compile`: the forms a program takes on its way to machine code.

use crate::arguments::{CompileArguments, Show};
use crate::failure::Failure;
use crate::{program, render};
use exec::kernel::{self, Dialect, Kernel};
use ir::print;
use ir::source::FileId;
use lang::{cost, graph};
use serde_json::json;

/// Runs the command.
pub(crate) fn run(arguments: &CompileArguments, json: bool) -> Result<(), Failure> {
    let path = &arguments.program;
    let text = match arguments.show {
        Show::Tokens => lang::tree::show_tokens(&program::read(path)?),
        Show::Tree => {
            let text = program::read(path)?;
            lang::tree::show_tree(&lang::parser::parse(FileId::default(), &text).0)
        }
        form => {
            let ready = program::ready(path, &arguments.set.options(arguments.decode)?, json)?;
            match form {
                Show::Native => exec::native::listing(&ready.program)
                    .map_err(|error| Failure::Finding(format!("{}: {error}", ready.name)))?,
                Show::Graph => graph::dot(&ready.program),
                Show::Cost => cost::cost(&ready.program).to_string(),
                Show::Opencl | Show::Cuda | Show::HeaderBytes => {
                    let options = kernel::KernelOptions {
                        over: arguments.over,
                        back: arguments.back,
                        ..kernel::KernelOptions::default()
                    };
                    let kernel = Kernel::new(&ready.program, arguments.ports, &options)
                        .map_err(|error| Failure::Finding(format!("{}: {error}", ready.name)))?;
                    match form {
                        Show::HeaderBytes => {
                            let plan = render::kernel::plan(&kernel, &ready.program, &ready.sources);
                            plan + &render::kernel::forms(&ready.program, arguments.ports)
                        }
                        Show::Cuda => kernel.text(Dialect::Cuda),
                        _ => kernel.text(Dialect::OpenCl),
                    }
                }
                Show::Ir | Show::Tokens | Show::Tree => print::print(&ready.program),
            }
        }
    };
    if json {
        let form = clap::ValueEnum::to_possible_value(&arguments.show);
        let form = form.map(|value| value.get_name().to_owned());
        render::json(&json!({ "program": path.display().to_string(), "show": form, "text": text }))?;
    } else {
        render::text(text.trim_end_matches('\n'))?;
        render::text("\n")?;
    }
    Ok(())
}
