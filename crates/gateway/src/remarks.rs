//! Remarks: messages of a running gateway to the operator, printed by a thread of their own.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// The largest number of remarks that wait for a slow reader; further ones are dropped.
const UNREAD: usize = 16;

/// The queue for remarks. Nobody waits until a remark is read.
#[derive(Clone, Debug)]
pub struct Remarks(SyncSender<String>);

impl Remarks {
    /// Makes the queue; a thread of its own passes each remark to `told`.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(crate) fn to(told: fn(&str)) -> io::Result<Remarks> {
        let (words, read) = sync_channel::<String>(UNREAD);
        let name = "remarks".to_owned();
        thread::Builder::new().name(name).spawn(move || read.iter().for_each(|words| told(&words)))?;
        Ok(Remarks(words))
    }

    /// Queues a remark, if there is room for it.
    pub(crate) fn say(&self, words: String) {
        // Packets may be waiting for this thread, so it does not wait for room.
        let _ = self.0.try_send(words);
    }
}
