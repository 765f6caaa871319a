//! Reads a filter and compiles its programs.

mod error;
mod expression;
mod pcap;
mod program;
mod words;

pub use error::FilterError;
use error::UNDERSTOOD;

use super::Filter;
use exec::{Backend, BackendKind, LoadError, Outputs};
use expression::{Expression, Piece};
use lang::diagnostic::Severity;
use lang::pipeline::{CompileOptions, compile};
use packet::Batch;

/// The longest filter, in bytes.
const LONGEST: usize = 4096;

impl Filter {
    /// Reads and compiles a filter; an empty one chooses everything.
    ///
    /// # Errors
    /// It is not understood.
    pub fn new(text: &str) -> Result<Filter, FilterError> {
        if text.len() > LONGEST {
            let message = format!("it has {} bytes, and {LONGEST} are possible", text.len());
            return Err(FilterError::new("", 0..0, message, "say less"));
        }
        let expression = expression::parse(text)?;
        let (mut reasons, mut outcome) = (Vec::new(), false);
        expression.each(&mut |leaf| {
            outcome |= leaf.needs.contains(&expression::Header::Outcome);
            for piece in &leaf.pieces {
                if let Piece::Reason(name) = piece
                    && !reasons.contains(name)
                {
                    reasons.push(name.clone());
                }
            }
        });
        let (first, refused) = loaded(text, &expression, false, &reasons)?;
        let second = if outcome { Some(loaded(text, &expression, true, &reasons)?.0) } else { None };
        Ok(Filter {
            text: text.to_owned(),
            first,
            second,
            reasons,
            refused,
            outputs: Outputs::default(),
            batch: Box::new(Batch::new()),
            memory: Vec::new(),
        })
    }
}

/// The program of a filter, loaded, and the number of the reason by which it refuses.
fn loaded(
    text: &str,
    expression: &Expression,
    decided: bool,
    reasons: &[String],
) -> Result<(Box<dyn Backend>, u16), FilterError> {
    let written = program::program(expression, decided, reasons);
    let compiled = compile("filter", &written.text, &|_| None, &CompileOptions::default());
    let whole = 0..text.len();
    let Some(program) = compiled.program else {
        let wrong = compiled.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
        let Some(wrong) = wrong else {
            return Err(FilterError::new(text, whole, "it cannot be compiled", UNDERSTOOD));
        };
        let at = wrong.primary.span.start as usize..wrong.primary.span.end as usize;
        let within = written.places.iter().filter(|(place, _)| place.start < at.end && at.start < place.end);
        let (start, end) = within
            .fold((usize::MAX, 0), |(start, end), (_, from)| (start.min(from.start), end.max(from.end)));
        let span = if start < end { start..end } else { whole };
        let help = wrong.help.clone().unwrap_or_else(|| UNDERSTOOD.to_owned());
        let message = format!("{} [{}]: {}", wrong.headline, wrong.code, wrong.primary.text);
        return Err(FilterError::new(text, span, message, help));
    };
    let refused = program.reasons.iter().position(|reason| reason.name == program::NOT_CHOSEN);
    let load = |back_end| exec::load(&program, back_end, u16::MAX, 0);
    let backend = match load(BackendKind::Native) {
        // Where there is no code generator, filters are as slow as programs are.
        Err(LoadError::Machine(_)) => load(BackendKind::Interpreter),
        loaded => loaded,
    };
    let backend = backend.map_err(|error| FilterError::new(text, whole, error.to_string(), UNDERSTOOD))?;
    Ok((backend, refused.unwrap_or(0) as u16))
}
