//! A source of packets with a progress line on standard error, where that is a terminal, and an end where the
//! user asks for it.

use crate::interruption;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use packet::Batch;
use ports::{Receive, ReceiveError};
use std::fmt::Write;
use std::io::IsTerminal;

/// A source whose progress is shown, and that ends early when the user asks for it.
pub(crate) struct Watched<'a> {
    source: &'a mut dyn Receive,
    bar: Option<ProgressBar>,
}

impl<'a> Watched<'a> {
    /// Shows how many packets of `source` have run, and of how many if that is known; shows nothing if nobody
    /// would see it.
    pub(crate) fn new(source: &'a mut dyn Receive, total: Option<u64>) -> Watched<'a> {
        Watched { source, bar: std::io::stderr().is_terminal().then(|| bar(total)) }
    }
}

impl Receive for Watched<'_> {
    fn receive<'b>(&'b mut self, batch: &mut Batch) -> Result<&'b mut [u8], ReceiveError> {
        if interruption::is_asked() {
            batch.clear();
            return Ok(&mut []);
        }
        let memory = self.source.receive(batch);
        if let Some(bar) = &self.bar {
            bar.inc(batch.len as u64);
        }
        memory
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar for work of `total` packets, or one without end.
pub(crate) fn bar(total: Option<u64>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(total, target);
    let template = match total {
        Some(_) => "  {bar:30} {percent:>3} %  {human_pos} packets  {rate}  {eta} left",
        None => "  {spinner} {human_pos} packets  {rate}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // The rate that indicatif offers has four decimals.
    bar.with_style(style.with_key("rate", |state: &ProgressState, line: &mut dyn Write| {
        let _ = write!(line, "{}/s", HumanCount(state.per_sec() as u64));
    }))
}
