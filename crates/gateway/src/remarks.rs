//! What a running gateway has to say by itself, on its way to whoever reads it.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// So many words wait for somebody who reads slowly; further ones are not said.
const UNREAD: usize = 16;

/// Where something can be said; nobody waits for it to be read.
#[derive(Clone, Debug)]
pub struct Remarks(SyncSender<String>);

impl Remarks {
    /// Says everything to `told`, on a thread of its own.
    ///
    /// # Errors
    /// No further thread can be had.
    pub(crate) fn to(told: fn(&str)) -> io::Result<Remarks> {
        let (words, read) = sync_channel::<String>(UNREAD);
        let name = "remarks".to_owned();
        thread::Builder::new().name(name).spawn(move || read.iter().for_each(|words| told(&words)))?;
        Ok(Remarks(words))
    }

    /// Says something, if there is room for it.
    pub(crate) fn say(&self, words: String) {
        // Packets may wait for this thread.
        let _ = self.0.try_send(words);
    }
}
