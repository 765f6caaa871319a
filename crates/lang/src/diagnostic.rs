//! A diagnostic as plain data: code, headline, places, packet witness, suggestion. Rendering lives elsewhere.

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program runs, but something in it is probably not meant.
    Warning,
}

/// A place with a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be seen there.
    pub text: String,
}

/// An edit that mends the program: replace `span` by `replacement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What the edit does, in the user's words.
    pub text: String,
    /// The range that is replaced; empty to insert.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// The smallest packet found that leads to the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketWitness {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The same bytes in words, one header after the other.
    pub decoded: String,
}

/// One root cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code such as `E0412`; the number is the key of `ravelin explain`.
    pub code: &'static str,
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
