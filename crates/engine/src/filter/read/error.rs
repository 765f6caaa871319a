//! Why a text is no filter: what is wrong, where, and what to write instead.

use std::fmt;
use std::ops::Range;

/// What there is to write, for whoever wrote something else.
pub(super) const UNDERSTOOD: &str = "a filter is an expression such as `ipv4.src in 10.0.0.0/8 && tcp.dst == 80`, `port == 2`, `verdict == drop` or `reason == no_route`, or of pcap-filter such as `host 10.0.0.1 and tcp port 80`";

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The filter.
    pub text: String,
    /// Which bytes of it are wrong.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl FilterError {
    pub(super) fn new(
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> FilterError {
        FilterError { text: text.to_owned(), span, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chars = |text: Option<&str>| text.unwrap_or_default().chars().count();
        let before = chars(self.text.get(..self.span.start));
        let marks = chars(self.text.get(self.span.clone())).max(1);
        let line = self.text.replace(['\n', '\t', '\r'], " ");
        let (space, marks) = (" ".repeat(before), "^".repeat(marks));
        write!(
            f,
            "the filter is not understood: {}\n  {line}\n  {space}{marks}\n  {}",
            self.message, self.help
        )
    }
}

impl std::error::Error for FilterError {}
