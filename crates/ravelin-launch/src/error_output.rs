//! Passes on what a process tells as errors, as much as somebody reads: a process that is taken over may fill
//! no disk with it.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// So many bytes are passed on in this time.
const MOST: usize = 64 << 10;
const TIME: Duration = Duration::from_secs(60);

/// Passes on what comes until its end.
pub(crate) fn pass_on(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 4096];
    let (mut begun, mut passed, mut lost) = (Instant::now(), 0, 0);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if begun.elapsed() >= TIME {
            (begun, passed) = (Instant::now(), 0);
        }
        if passed == 0 && lost > 0 {
            // Nobody may be there to read it.
            let _ = writeln!(to, "ravelin-launch: {lost} bytes of errors were not passed on");
            lost = 0;
        }
        let fits = length.min(MOST - passed);
        let _ = to.write_all(&buffer[..fits]);
        passed += fits;
        lost += length - fits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_passed_on_in_a_minute_than_somebody_reads() {
        let mut told = Vec::new();
        pass_on(&b"what is wrong\n"[..], &mut told);
        assert_eq!(told, b"what is wrong\n");
        told.clear();
        pass_on(&vec![b'x'; MOST + 10_000][..], &mut told);
        assert_eq!(told.len(), MOST);
    }
}
