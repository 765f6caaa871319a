//! The memory of a virtual machine, as far as its monitor shares it: the machine reads and writes it at any
//! moment, so that each byte is read once and judged as it was read.

#![allow(unsafe_code)]

use super::limits::{MOST_GUEST_MEMORY, MOST_REGIONS};
use super::shared::GuestRegion;
use super::virtqueue::{SharedMemory, SharedPart};
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// The boundary that regions begin at, at the machine and in their files, in bytes: the smallest page.
const PAGE: u64 = 4096;
/// Bytes of the words that frames are copied by.
const WORD: usize = size_of::<AtomicU64>();

/// The memory that the machine shares.
pub(super) struct GuestMemory {
    regions: Vec<Region>,
}

/// A region that is mapped here.
struct Region {
    /// Its first address at the machine.
    start: u64,
    length: usize,
    map: MmapRaw,
}

/// A word that another process may change at any moment, without bytes of padding, of which every value is
/// valid.
trait SharedWord {}

impl SharedWord for AtomicU8 {}
impl SharedWord for AtomicU32 {}
impl SharedWord for AtomicU64 {}

impl GuestMemory {
    /// Maps regions, each from its file. Whoever opened the files has made sure that they are as long as is
    /// said and cannot shrink.
    ///
    /// # Errors
    /// There are none, too many, or together too long ones; a region does not lie at pages, reaches beyond
    /// the last address or into another one; or Linux refuses.
    pub(super) fn map(regions: &[GuestRegion], files: &[OwnedFd]) -> io::Result<GuestMemory> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if regions.is_empty() || regions.len() > MOST_REGIONS || regions.len() != files.len() {
            return Err(wrong("the machine has no memory, too many regions, or not a file for each"));
        }
        let mut all = 0u64;
        for (at, region) in regions.iter().enumerate() {
            let at_pages = [region.start, region.length, region.offset].iter().all(|at| at % PAGE == 0);
            if !at_pages || region.length == 0 || region.offset.checked_add(region.length).is_none() {
                return Err(wrong("a region of the machine's memory does not lie at pages"));
            }
            let end = region.start.checked_add(region.length);
            let end = end.ok_or_else(|| wrong("a region of the machine's memory has no end"))?;
            if regions[..at]
                .iter()
                .any(|other| other.start < end && region.start < other.start + other.length)
            {
                return Err(wrong("regions of the machine's memory overlap"));
            }
            all = all.saturating_add(region.length);
        }
        if all > MOST_GUEST_MEMORY {
            return Err(wrong("the machine has more memory than a machine may have"));
        }
        let map = |(region, file): (&GuestRegion, &OwnedFd)| {
            let length = usize::try_from(region.length).map_err(io::Error::other)?;
            let map = MmapOptions::new().offset(region.offset).len(length).map_raw(file)?;
            Ok(Region { start: region.start, length, map })
        };
        Ok(GuestMemory { regions: regions.iter().zip(files).map(map).collect::<io::Result<_>>()? })
    }
}

impl SharedMemory for GuestMemory {
    type Part<'m> = Part<'m>;

    /// They lie in one region.
    fn part(&self, address: u64, length: u32) -> Option<Part<'_>> {
        let length = length as usize;
        self.regions.iter().find_map(|region| {
            let at = usize::try_from(address.checked_sub(region.start)?).ok()?;
            (at < region.length && length <= region.length - at).then_some(Part { region, at, length })
        })
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl Region {
    fn words<T: SharedWord>(&self) -> &[T] {
        // SAFETY: as many bytes are mapped, at a page, as long as this is borrowed; each of their values is
        // one of the words, which may be changed by others while they are shared.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast::<T>(), self.length / size_of::<T>()) }
    }
}

/// Bytes of one region.
#[derive(Clone, Copy)]
pub(super) struct Part<'m> {
    region: &'m Region,
    at: usize,
    length: usize,
}

impl SharedPart for Part<'_> {
    fn half(&self, offset: usize) -> u16 {
        let at = self.at + offset;
        let word = self.region.words::<AtomicU32>().get(at / 4);
        // Where there is none, nobody has made sure that the part is long enough.
        let word = word.map_or(0, |word| u32::from_le(word.load(Ordering::Acquire)));
        (word >> (at % 4 * 8)) as u16
    }

    fn set_word(&self, offset: usize, word: u32) {
        if let Some(place) = self.region.words::<AtomicU32>().get((self.at + offset) / 4) {
            place.store(word.to_le(), Ordering::Release);
        }
    }

    fn skip(&self, bytes: usize) -> Self {
        let bytes = bytes.min(self.length);
        Part { at: self.at + bytes, length: self.length - bytes, ..*self }
    }

    fn read(&self, to: &mut [u8]) {
        let length = self.length.min(to.len());
        let (first, words, last) = self.divided(length);
        let (bytes, all) = (self.region.words::<AtomicU8>(), self.region.words::<AtomicU64>());
        let (to_first, rest) = to[..length].split_at_mut(first);
        let (to_words, to_last) = rest.split_at_mut(words * WORD);
        let behind = self.at + first;
        copy_bytes(&bytes[self.at..behind], to_first);
        for (word, to) in all[behind / WORD..][..words].iter().zip(to_words.chunks_exact_mut(WORD)) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        copy_bytes(&bytes[behind + words * WORD..][..last], to_last);
    }
}

impl Part<'_> {
    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Copies bytes of `from` there, as many as both have.
    pub(super) fn write(&self, from: &[u8]) {
        let length = self.length.min(from.len());
        let (first, words, last) = self.divided(length);
        let (bytes, all) = (self.region.words::<AtomicU8>(), self.region.words::<AtomicU64>());
        let (from_first, rest) = from[..length].split_at(first);
        let (from_words, from_last) = rest.split_at(words * WORD);
        let behind = self.at + first;
        set_bytes(&bytes[self.at..behind], from_first);
        let (from_words, _) = from_words.as_chunks::<WORD>();
        for (word, from) in all[behind / WORD..][..words].iter().zip(from_words) {
            word.store(u64::from_ne_bytes(*from), Ordering::Relaxed);
        }
        set_bytes(&bytes[behind + words * WORD..][..last], from_last);
    }

    /// How so many bytes divide: bytes up to a word, words, and bytes behind them.
    fn divided(&self, length: usize) -> (usize, usize, usize) {
        let first = (self.at.next_multiple_of(WORD) - self.at).min(length);
        let words = (length - first) / WORD;
        (first, words, length - first - words * WORD)
    }
}

fn copy_bytes(from: &[AtomicU8], to: &mut [u8]) {
    from.iter().zip(to).for_each(|(from, to)| *to = from.load(Ordering::Relaxed));
}

fn set_bytes(to: &[AtomicU8], from: &[u8]) {
    to.iter().zip(from).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
}

#[cfg(test)]
mod tests;
