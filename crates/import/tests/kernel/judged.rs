//! What the kernel has judged in a test, as a line of JSON that `cargo xtask kernel` adds up.

use serde_json::json;
use std::thread;

/// The line begins so.
const BEGINS: &str = "judged ";

/// What the kernel was asked in a test, up to the first packet about which it said something else.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Rulesets that were loaded.
    pub(crate) rulesets: usize,
    /// The rules in them.
    pub(crate) rules: usize,
    /// Packets that stand for themselves. One that was sent again counts once.
    pub(crate) packets: usize,
    /// Those of them that the policy drops and Linux lets pass: later fragments, whose payload Linux compares
    /// as if it were a header.
    pub(crate) stricter: usize,
    /// Packets of conversations that went through as was wanted. A conversation in which a frame was lost
    /// does not count.
    pub(crate) in_conversations: usize,
}

impl Drop for Judged {
    fn drop(&mut self) {
        let thread = thread::current();
        let line = json!({
            "test": thread.name().unwrap_or_default(),
            "rulesets": self.rulesets,
            "rules": self.rules,
            "packets": self.packets,
            "stricter": self.stricter,
            "in_conversations": self.in_conversations,
            "failed": thread::panicking(),
        });
        println!("{BEGINS}{line}");
    }
}
