//! Places in the text of a program, as people read them: `firewall.rav:12`.

use ir::source::{Sources, Span};
use ir::{Program, Terminator};
use std::collections::BTreeSet;

/// The name of the file without its directories, and the line.
pub fn place(sources: &Sources, span: Span) -> String {
    let (line, _) = sources.line_column(span);
    let name = &sources.file(span.file).name;
    format!("{}:{line}", name.rsplit('/').next().unwrap_or(name))
}

/// Where packets are dropped or punted, for each reason of the program: files and lines, ascending.
pub fn of_reasons(program: &Program, sources: &Sources) -> Vec<Vec<String>> {
    let mut places = vec![BTreeSet::new(); program.reasons.len()];
    for block in program.functions.iter().flat_map(|function| &function.blocks) {
        let (Terminator::Drop(reason) | Terminator::Punt(reason)) = block.terminator else { continue };
        if let Some(places) = places.get_mut(usize::from(reason)) {
            let (line, _) = sources.line_column(block.span);
            places.insert((block.span.file.0, line, place(sources, block.span)));
        }
    }
    places.into_iter().map(|places| places.into_iter().map(|(_, _, place)| place).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::pipeline::{CompileOptions, compile};

    #[test]
    fn every_line_that_gives_a_reason_is_named_once_in_order() {
        let text = "import std.net.{ethernet}\nreason odd \"odd\"\nreason never \"not given\"\nstart decoder frame(eth: ethernet) {\n    if eth.type == 1 { drop odd }\n    if eth.type == 3 { punt odd }\n    flood\n}\n";
        let compiled = compile("dir/odd.rav", text, &|_| None, &CompileOptions::default());
        let program = compiled.program.expect("right");
        let places = of_reasons(&program, &compiled.sources);
        let of = |name: &str| {
            let index = program.reasons.iter().position(|reason| reason.name == name).expect(name);
            places[index].clone()
        };
        assert_eq!(of("odd"), ["odd.rav:5", "odd.rav:6"]);
        assert!(of("short(ethernet)").len() == 1, "{places:?}");
    }
}
