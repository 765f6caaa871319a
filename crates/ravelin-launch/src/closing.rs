//! Closes the sockets of a core that has died, while the next one starts.

use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

/// The thread that closes them, or did.
#[derive(Default)]
pub(crate) struct Closing(Option<JoinHandle<()>>);

impl Closing {
    /// Closes these, once all before them are closed: a core that dies again and again makes nothing grow.
    pub(crate) fn close(&mut self, sockets: Vec<OwnedFd>) {
        if let Some(before) = self.0.take() {
            let _ = before.join();
        }
        // Linux waits for all processors, some 20 ms, before it closes the last descriptor of a socket of
        // AF_PACKET; the next core need not wait for that. If Linux gives no thread, they are closed here.
        self.0 = thread::Builder::new().name("closes".to_owned()).spawn(move || drop(sockets)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{ioctl_fionbio, read};

    #[test]
    fn no_more_is_open_than_what_was_given_last() {
        let mut closing = Closing::default();
        let mut before = None;
        for _ in 0..100 {
            let (ours, theirs) = std::io::pipe().expect("a pipe");
            ioctl_fionbio(&ours, true).expect("it does not wait");
            closing.close(vec![theirs.into()]);
            if let Some(before) = before.replace(ours) {
                // It would block if the other end were open.
                assert_eq!(read(before, &mut [0]), Ok(0));
            }
        }
    }
}
