//! Passes on to a core what `compile` gives, and remembers it as bytes into which nobody looks here: a core
//! that is started again has at once what ran in the one before.

use messages::limits::{LONGEST_BUNDLE_MESSAGE, READY_WITHIN};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much is written at once.
const PART: usize = 1 << 16;

/// A message of `compile`, with its length before it.
pub(crate) type Compiled = Arc<Vec<u8>>;

/// How many of those of which a core has not reported are remembered.
const REMEMBERED: usize = 3;

/// What a core is to be given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToHandIn {
    /// What `compile` gave before.
    Before(Compiled),
    /// What `compile` gives.
    Anew {
        /// Whether the tests of policies are run before: where somebody has the file read anew, and not at a
        /// start, after which packets are to pass.
        tested: bool,
    },
}

/// What a core was handed of `compile`. It reports once of each, in order.
#[derive(Debug, Default)]
pub(crate) struct HandedIn {
    /// How many it has reported of.
    reported: u64,
    /// Those that it has not reported of, once they have come.
    waiting: VecDeque<Option<Compiled>>,
}

impl HandedIn {
    /// One more is handed in. Returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.waiting.push_back(None);
        // A core that does not report makes nothing grow.
        if let Some(old) = self.waiting.len().checked_sub(REMEMBERED + 1) {
            self.waiting[old] = None;
        }
        self.reported + self.waiting.len() as u64
    }

    /// The one of this number has come.
    pub(crate) fn arrived(&mut self, number: u64, compiled: Compiled) {
        let place = number.checked_sub(self.reported + 1).map(|place| place as usize);
        if let Some(waits) = place.and_then(|place| self.waiting.get_mut(place)) {
            *waits = Some(compiled);
        }
    }

    /// The core reports of one. Returns it, where it is remembered.
    fn take_report(&mut self) -> Option<Compiled> {
        let first = self.waiting.pop_front()?;
        self.reported += 1;
        first
    }

    /// Whether the core has reported of all.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// What runs, or ran last.
#[derive(Debug, Default)]
pub(crate) struct LastProgram {
    compiled: Option<Compiled>,
    /// Whether the file is to be read anew.
    is_stale: bool,
}

impl LastProgram {
    /// The file is to be read anew.
    pub(crate) fn read_anew(&mut self) {
        self.is_stale = true;
    }

    /// What a core is to be given.
    pub(crate) fn to_hand_in(&self) -> ToHandIn {
        match &self.compiled {
            Some(before) if !self.is_stale => ToHandIn::Before(before.clone()),
            _ => ToHandIn::Anew { tested: self.is_stale },
        }
    }

    /// A core reports of what it was handed in: it `runs`, or is refused by a core that is `active` with
    /// another program or not. Where something `is_asked` for that is not handed in yet, that is to come of
    /// the file as it is then. Returns whether the core is to be given something else.
    pub(crate) fn reported(
        &mut self,
        handed_in: &mut HandedIn,
        runs: bool,
        (active, is_asked): (bool, bool),
    ) -> bool {
        let compiled = handed_in.take_report();
        let was_stale = self.is_stale;
        self.is_stale &= is_asked || !handed_in.is_idle();
        if runs {
            self.compiled = compiled;
            return false;
        }
        // What is still on its way is to be heard of first: to hand in another one would end it.
        let waits = !active && self.compiled.is_some() && handed_in.is_idle();
        // What ran before goes on; if it is itself what was refused, it is compiled anew.
        if waits && !was_stale {
            self.compiled = None;
        }
        waits
    }
}

/// Reads what `compile` gives, which is once. What is missing of it or too long is for the core to refuse.
pub(crate) fn read(from: UnixStream) -> Compiled {
    let mut message = Vec::new();
    // What came before a fault is passed on.
    let _ = from.take(LONGEST_BUNDLE_MESSAGE as u64 + 8).read_to_end(&mut message);
    Arc::new(message)
}

/// Writes it to a core, which has as long for all of it as it has for its start. Nothing comes behind it.
///
/// # Errors
/// The core is gone, or does not read in time.
pub(crate) fn write(mut to: UnixStream, compiled: &Compiled) -> io::Result<()> {
    let until = Instant::now() + READY_WITHIN;
    let written = compiled.chunks(PART).try_for_each(|part| {
        let left = until.saturating_duration_since(Instant::now());
        to.set_write_timeout(Some(left.max(Duration::from_millis(1))))?;
        to.write_all(part)
    });
    // Others may have the same end.
    let _ = to.shutdown(Shutdown::Write);
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn text(text: &str) -> Compiled {
        Compiled::new(text.as_bytes().to_vec())
    }

    #[test]
    fn reports_are_of_what_was_handed_in_in_its_order_and_little_is_remembered() {
        let mut handed_in = HandedIn::default();
        let first = handed_in.begin();
        handed_in.arrived(first, text("one"));
        assert!(!handed_in.is_idle());
        assert_eq!(handed_in.take_report(), Some(text("one")));
        assert!(handed_in.is_idle());
        let (second, third) = (handed_in.begin(), handed_in.begin());
        handed_in.arrived(third, text("three"));
        handed_in.arrived(second, text("two"));
        handed_in.arrived(first, text("late"));
        assert_eq!(handed_in.take_report(), Some(text("two")));
        assert!(!handed_in.is_idle());
        assert_eq!(handed_in.take_report(), Some(text("three")));
        assert_eq!((handed_in.begin(), handed_in.take_report()), (4, None), "it never came");
        assert_eq!(handed_in.take_report(), None, "a core that reports too often");
        assert!(handed_in.is_idle());
        let many: Vec<u64> = (0..REMEMBERED + 2)
            .map(|_| {
                let number = handed_in.begin();
                handed_in.arrived(number, text("x"));
                number
            })
            .collect();
        assert_eq!((many[0], handed_in.waiting.iter().flatten().count()), (5, REMEMBERED));
    }

    #[test]
    fn what_ran_is_handed_in_again_until_it_is_refused_and_a_refused_file_leaves_it() {
        let hand_in = |compiled: Compiled| {
            let mut handed_in = HandedIn::default();
            let number = handed_in.begin();
            handed_in.arrived(number, compiled);
            handed_in
        };
        let mut last = LastProgram::default();
        assert!(
            !last.reported(&mut hand_in(text("bad")), false, (false, false)),
            "there is nothing else to give"
        );
        assert_eq!(last.to_hand_in(), ToHandIn::Anew { tested: false });
        assert!(!last.reported(&mut hand_in(text("one")), true, (true, false)));
        assert_eq!(last.to_hand_in(), ToHandIn::Before(text("one")));
        last.read_anew();
        assert_eq!(last.to_hand_in(), ToHandIn::Anew { tested: true });
        // The file is refused: by a core that runs, and by one that has no program yet.
        for active in [true, false] {
            last.read_anew();
            assert_eq!(last.reported(&mut hand_in(text("bad")), false, (active, false)), !active);
            assert_eq!(last.to_hand_in(), ToHandIn::Before(text("one")));
        }
        assert!(
            last.reported(&mut hand_in(text("one")), false, (false, false)),
            "another core refuses what ran"
        );
        assert_eq!(last.to_hand_in(), ToHandIn::Anew { tested: false }, "it is compiled anew");
        assert!(
            !last.reported(&mut hand_in(text("one")), false, (false, false)),
            "and there is nothing else"
        );
        // While another one is on its way, a core without a program is given nothing else.
        let mut both = hand_in(text("ended"));
        let newest = both.begin();
        assert!(!LastProgram { compiled: Some(text("one")), is_stale: true }.reported(
            &mut both,
            false,
            (false, false)
        ));
        both.arrived(newest, text("bad"));
        let mut before = LastProgram { compiled: Some(text("one")), is_stale: true };
        assert!(before.reported(&mut both, false, (false, false)), "and it is refused, too");
        assert_eq!(before.to_hand_in(), ToHandIn::Before(text("one")));
        // The file is to be read anew as soon as the one before is through.
        let mut last_but_one = LastProgram { compiled: Some(text("one")), is_stale: true };
        assert!(!last_but_one.reported(&mut hand_in(text("bad")), false, (true, true)));
        assert_eq!(last_but_one.to_hand_in(), ToHandIn::Anew { tested: true });
        // While two are on their way, the report of the first one says nothing of the file as it is now.
        let mut handed_in = hand_in(text("two"));
        let newest = handed_in.begin();
        last.read_anew();
        assert!(!last.reported(&mut handed_in, true, (true, false)));
        assert_eq!(last.to_hand_in(), ToHandIn::Anew { tested: true });
        handed_in.arrived(newest, text("bad"));
        assert!(!last.reported(&mut handed_in, false, (true, false)));
        assert_eq!(
            last.to_hand_in(),
            ToHandIn::Before(text("two")),
            "the first one runs, and the second is refused"
        );
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
