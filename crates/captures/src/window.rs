//! A sliding window over a byte stream: look ahead, take, skip, and always know the offset.

use super::{CaptureError, Damage, damaged};
use std::io::{self, Read};

/// The most bytes that are held at once.
pub(super) const LARGEST: usize = 16 << 20;

/// How many bytes are held as a rule.
const USUAL: usize = 512 << 10;

pub(super) struct Window<R> {
    read: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The place in the buffer of the bytes put aside by `take`.
    taken: usize,
    /// The offset of `start` in the stream.
    offset: u64,
    at_end: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(read: R) -> Window<R> {
        Window { read, buffer: vec![0; USUAL], start: 0, end: 0, taken: 0, offset: 0, at_end: false }
    }

    /// The offset in the stream of the next byte.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that are already there.
    #[inline]
    pub(super) fn peek(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads until `n` bytes are there or the stream ends; returns how many are there. `n` is at most
    /// [`LARGEST`].
    #[inline]
    pub(super) fn fill(&mut self, n: usize) -> Result<usize, CaptureError> {
        if self.end - self.start < n {
            self.read_more(n)?;
        }
        Ok(self.end - self.start)
    }

    /// Reads until `n` bytes of `part` are there; that they are not is damage.
    #[inline]
    pub(super) fn need(&mut self, n: usize, part: &'static str) -> Result<(), CaptureError> {
        let have = self.fill(n)?;
        if have < n {
            return Err(damaged(self.offset, Damage::Ends { part, missing: (n - have) as u64 }));
        }
        Ok(())
    }

    /// Goes `n` bytes on, which are there, and puts those from `from` on aside for [`Window::taken`].
    #[inline]
    pub(super) fn take(&mut self, n: usize, from: usize) {
        self.taken = self.start + from;
        self.start = (self.start + n).min(self.end);
        self.offset += n as u64;
    }

    /// The first `n` bytes put aside.
    #[inline]
    pub(super) fn taken(&self, n: usize) -> &[u8] {
        &self.buffer[self.taken..self.taken + n]
    }

    /// Goes `n` bytes on, however many that are; the damage of their lack is said to be at `origin`.
    pub(super) fn skip(&mut self, mut n: u64, origin: u64, part: &'static str) -> Result<(), CaptureError> {
        while n > 0 {
            let have = match self.fill(1) {
                Err(CaptureError::Read { source, .. }) => {
                    return Err(CaptureError::Read { offset: origin, source });
                }
                have => have? as u64,
            };
            if have == 0 {
                return Err(damaged(origin, Damage::Ends { part, missing: n }));
            }
            let step = have.min(n);
            self.start += step as usize;
            self.offset += step;
            n -= step;
        }
        Ok(())
    }

    #[cold]
    fn read_more(&mut self, n: usize) -> Result<(), CaptureError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < n && !self.at_end {
            if self.end == self.buffer.len() {
                // Only as bytes really arrive: a length field alone makes nothing grow.
                let grown = (self.buffer.len() * 2).min(LARGEST);
                self.buffer.resize(grown.max(self.end + 1), 0);
            }
            match self.read.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                // A reader that claims more than it was given room for is not believed.
                Ok(more) => self.end = (self.end + more).min(self.buffer.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(CaptureError::Read { offset: self.offset, source }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
impl<R> Window<R> {
    /// How many bytes the buffer has.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }
}
