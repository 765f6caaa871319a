//! A diagnostic as plain data: code, headline, places, packet witness, suggestion. Rendering lives elsewhere.

use crate::limits::MOST_FAULTS;
use ir::source::{Sources, Span};
use std::collections::HashSet;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program runs, but something in it is probably not meant.
    Warning,
}

/// What a diagnostic is about, as far as a later stage of the compiler decides by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DiagnosticKind {
    /// No other stage looks at it.
    #[default]
    Other,
    /// A text that cannot be read: what it would have declared or used is missing elsewhere.
    Syntax,
    /// An import that cannot be followed: any name may be missing.
    Import,
    /// A name that nothing has. The declaration of the name may stand where the text cannot be read.
    UnknownName,
    /// The same of a layout, which the standard library may have.
    UnknownLayout,
    /// A declaration that nothing uses, in what is left of a program where faults were found.
    Unused,
    /// An error that depends on the path a packet takes: the program can be followed up to this error.
    Path,
}

/// A place with a remark.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be seen there.
    pub text: String,
}

/// An edit that mends the program: replace `span` by `replacement`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Suggestion {
    /// What the edit does, in the user's words.
    pub text: String,
    /// The range that is replaced; empty to insert.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// The smallest packet found that leads to the fault.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PacketWitness {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The same bytes in words, one header after the other.
    pub decoded: String,
}

/// One root cause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Stable code such as `E0412`; the number is the key of `ravelin explain`.
    pub code: &'static str,
    /// What other stages of the compiler decide by.
    pub kind: DiagnosticKind,
    /// Error or warning.
    pub severity: Severity,
    /// One line in the user's words.
    pub headline: String,
    /// The place of the fault and what is wrong there.
    pub primary: Label,
    /// Further places; along a path they are in the order in which a packet passes them.
    pub path: Vec<Label>,
    /// A packet that triggers the fault, where one can be made.
    pub witness: Option<PacketWitness>,
    /// Advice in words.
    pub help: Option<String>,
    /// An edit that `ravelin fix` can apply.
    pub suggestion: Option<Suggestion>,
}

impl Diagnostic {
    /// An error with its primary place.
    pub fn error(
        code: &'static str,
        headline: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Self {
        Self {
            code,
            kind: DiagnosticKind::Other,
            severity: Severity::Error,
            headline: headline.into(),
            primary: Label { span, text: label.into() },
            path: Vec::new(),
            witness: None,
            help: None,
            suggestion: None,
        }
    }

    /// A warning with its primary place.
    pub fn warning(
        code: &'static str,
        headline: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, headline, span, label) }
    }

    /// The same diagnostic of another kind.
    pub fn of_kind(self, kind: DiagnosticKind) -> Self {
        Self { kind, ..self }
    }

    /// Adds a further place.
    pub fn place(mut self, span: Span, text: impl Into<String>) -> Self {
        self.path.push(Label { span, text: text.into() });
        self
    }

    /// Adds advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds an edit that mends the program.
    pub fn suggest(mut self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.suggestion = Some(Suggestion { text: text.into(), span, replacement: replacement.into() });
        self
    }
}

/// Stands in a replacement for the text that is replaced.
pub(crate) const REPLACED: char = '\u{0}';

impl Suggestion {
    /// Puts in the text that is replaced.
    pub(crate) fn fill(&mut self, sources: &Sources) {
        if self.replacement.contains(REPLACED) {
            self.replacement = self.replacement.replace(REPLACED, sources.text(self.span));
        }
    }
}

/// What was found so far: each finding once, and of errors and of warnings one more than [`MOST_FAULTS`], so
/// that it can be seen that there are more.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    known: HashSet<Diagnostic>,
    /// Errors and warnings in the list.
    kept: [usize; 2],
    reported: usize,
}

impl Findings {
    /// Notes a finding, unless it was noted before or there are too many.
    pub fn report(&mut self, found: Diagnostic) {
        self.reported += 1;
        let kept = &mut self.kept[usize::from(found.severity == Severity::Warning)];
        if *kept > MOST_FAULTS || self.known.contains(&found) {
            return;
        }
        *kept += 1;
        self.known.insert(found.clone());
        self.list.push(found);
    }

    /// Notes an error.
    pub fn error(
        &mut self,
        code: &'static str,
        headline: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.report(Diagnostic::error(code, headline, span, label));
    }

    /// Whether a further error would not be kept.
    pub fn is_full(&self) -> bool {
        self.kept[0] > MOST_FAULTS
    }

    /// How many findings were reported, repeated ones and those that were not kept among them.
    pub fn reported(&self) -> usize {
        self.reported
    }

    /// Whether an error is among them.
    pub fn failed(&self) -> bool {
        self.kept[0] > 0
    }

    /// In the order in which they came.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The same, to keep.
    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }
}

impl Extend<Diagnostic> for Findings {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, found: T) {
        found.into_iter().for_each(|found| self.report(found));
    }
}
