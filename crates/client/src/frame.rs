//! Frames of the control socket: how requests and answers follow each other in a stream of bytes.
//!
//! ```text
//!  0         4         8    9
//! ┌─────────┬─────────┬────┬──────────────┐
//! │ length  │ number  │kind│ body …       │
//! └─────────┴─────────┴────┴──────────────┘
//!            └──────── length ───────────┘
//! ```
//!
//! All numbers are big-endian. `length` counts the bytes behind it, so it is at least 5. An answer has the
//! number of its request.

/// Bytes of the length.
const LENGTH: usize = 4;
/// Bytes between the length and the body.
const HEAD: usize = 5;

/// The largest length of a request.
pub const LONGEST_REQUEST: usize = 256 << 10;
/// The largest length of an answer.
pub const LONGEST_ANSWER: usize = 16 << 20;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFrame<'a> {
    /// The number that the client chose for the request.
    pub number: u32,
    /// What the frame is, as in [`message`](crate::message).
    pub kind: u8,
    /// What the kind says.
    pub body: &'a [u8],
}

/// The length of a frame is impossible. Nothing behind it can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame states a length of {length} bytes; between 5 and {most} are possible")]
pub struct FrameError {
    /// The stated length.
    pub length: usize,
    /// The largest length.
    pub most: usize,
}

impl<'a> TableFrame<'a> {
    /// The first frame of these bytes and how many bytes it takes; `None` if it is not whole yet. `most` is
    /// the largest length.
    ///
    /// # Errors
    /// The stated length is impossible.
    pub fn first(bytes: &'a [u8], most: usize) -> Result<Option<(TableFrame<'a>, usize)>, FrameError> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(HEAD..=most).contains(&length) {
            return Err(FrameError { length, most });
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let Some((number, rest)) = frame.split_first_chunk::<4>() else { return Ok(None) };
        let Some((kind, body)) = rest.split_first() else { return Ok(None) };
        let frame = TableFrame { number: u32::from_be_bytes(*number), kind: *kind, body };
        Ok(Some((frame, LENGTH + length)))
    }
}

/// Appends a frame, whose body `write` appends.
pub fn push(into: &mut Vec<u8>, number: u32, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = into.len();
    into.extend([0; LENGTH]);
    into.extend(number.to_be_bytes());
    into.push(kind);
    write(into);
    let length = (into.len() - begin - LENGTH) as u32;
    into[begin..begin + LENGTH].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_that_cannot_be_is_refused_before_its_bytes_are_waited_for() {
        for length in [0_u32, 4, 11, u32::MAX] {
            let error = TableFrame::first(&length.to_be_bytes(), 10).expect_err("is refused");
            assert_eq!((error.length, error.most), (length as usize, 10));
        }
        assert_eq!(TableFrame::first(&[0, 0, 0, 10, 1, 2], 10), Ok(None));
    }

    proptest! {
        #[test]
        fn frames_come_back_as_they_were_however_the_stream_is_cut(
            frames in prop::collection::vec((any::<u32>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            cut in 0_usize..200,
        ) {
            let mut stream = Vec::new();
            for (number, kind, body) in &frames {
                push(&mut stream, *number, *kind, |into| into.extend(body));
            }
            let cut = cut.min(stream.len());
            let (mut seen, mut held) = (Vec::new(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                held.extend(part);
                while let Some((frame, taken)) = TableFrame::first(&held, 45).expect("lengths are right") {
                    seen.push((frame.number, frame.kind, frame.body.to_vec()));
                    held.drain(..taken);
                }
            }
            prop_assert_eq!(seen, frames);
            prop_assert!(held.is_empty());
        }

        #[test]
        fn garbage_is_refused_or_waited_for_and_never_more(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((frame, taken))) = TableFrame::first(&bytes, 40) {
                prop_assert!(taken <= bytes.len() && frame.body.len() + 9 == taken);
            }
        }
    }
}
