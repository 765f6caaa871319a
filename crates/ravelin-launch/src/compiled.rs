//! Passes on to a core what `compile` gives, and remembers it as bytes into which nobody looks here: a core
//! that is started again has at once what ran in the one before.

use messages::limits::{LONGEST_BUNDLE_MESSAGE, READY_WITHIN};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A message of `compile`, with its length before it.
pub(crate) type Compiled = Arc<Vec<u8>>;

/// What a core was handed of `compile`. It reports once of each, in order.
#[derive(Debug, Default)]
pub(crate) struct HandedIn {
    /// How many.
    count: u64,
    /// Of how many it has reported.
    reported: u64,
    /// The last one, once it is there.
    last: Option<Compiled>,
}

impl HandedIn {
    /// One more is handed in. Returns its number.
    pub(crate) fn next(&mut self) -> u64 {
        (self.count, self.last) = (self.count + 1, None);
        self.count
    }

    /// The one of this number is there.
    pub(crate) fn is_there(&mut self, number: u64, compiled: Compiled) {
        if number == self.count {
            self.last = Some(compiled);
        }
    }

    /// The core reports of one. Returns it if it is the last one.
    pub(crate) fn reported(&mut self) -> Option<Compiled> {
        self.reported += 1;
        self.last.clone().filter(|_| self.reported == self.count)
    }

    /// Whether the core has reported of all.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported >= self.count
    }
}

/// Reads what `compile` gives, which is once. What is missing of it or too long is for the core to refuse.
pub(crate) fn read(from: UnixStream) -> Compiled {
    let mut message = Vec::new();
    // What came before a fault is passed on.
    let _ = from.take(LONGEST_BUNDLE_MESSAGE as u64 + 8).read_to_end(&mut message);
    Arc::new(message)
}

/// Writes it to a core, which has as long for it as it has for its start.
///
/// # Errors
/// The core is gone, or does not read.
pub(crate) fn write(mut to: UnixStream, compiled: &Compiled) -> io::Result<()> {
    to.set_write_timeout(Some(READY_WITHIN))?;
    to.write_all(compiled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn only_the_last_one_is_remembered_and_only_once_it_is_reported_of() {
        let text = |text: &str| Compiled::new(text.as_bytes().to_vec());
        let mut handed_in = HandedIn::default();
        let first = handed_in.next();
        handed_in.is_there(first, text("one"));
        assert!(!handed_in.is_reported());
        assert_eq!(handed_in.reported(), Some(text("one")));
        assert!(handed_in.is_reported());
        let (second, third) = (handed_in.next(), handed_in.next());
        handed_in.is_there(third, text("three"));
        handed_in.is_there(second, text("two"));
        assert_eq!(handed_in.reported(), None, "of the second, which is not the last one");
        assert!(!handed_in.is_reported());
        assert_eq!(handed_in.reported(), Some(text("three")));
        let never = handed_in.next();
        assert_eq!((never, handed_in.reported()), (4, None), "it never came");
        assert_eq!(handed_in.reported(), None, "a core that reports too often");
        assert!(handed_in.is_reported());
    }

    #[test]
    fn no_more_is_read_than_a_core_may_be_told() {
        let (mut compile, from) = UnixStream::pair().expect("a pair");
        let floods = thread::spawn(move || {
            let part = vec![7; 1 << 20];
            while compile.write_all(&part).is_ok() {}
        });
        assert_eq!(read(from).len(), LONGEST_BUNDLE_MESSAGE + 8);
        floods.join().expect("it is not read any more");
        let (compile, from) = UnixStream::pair().expect("a pair");
        drop(compile);
        assert!(read(from).is_empty(), "one that ends without a word");
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let ((mut compile, from), (to, mut core)) =
            (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"));
        compile.write_all(b"\x03\0\0\0one").expect("written");
        drop(compile);
        let compiled = read(from);
        write(to, &compiled).expect("written");
        let mut came = Vec::new();
        core.read_to_end(&mut came).expect("read");
        assert_eq!(came, b"\x03\0\0\0one");
        drop(core);
        let (to, core) = UnixStream::pair().expect("a pair");
        drop(core);
        assert!(write(to, &compiled).is_err(), "a core that is gone");
    }
}
