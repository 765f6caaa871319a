//! Confirms the places that passed the first filter, and reports occurrences in order.
//!
//! A segment of a packet is sifted, what passed is looked up and compared, and what matched is told in order:
//! what ends behind the segment waits, since the next segment may find an earlier end. Runs of one byte wait
//! apart as (begin, end) and are told byte by byte, so a long run costs no more than the occurrences it
//! holds.

use super::image::{Entry, PatternsImage, WINDOW, hash, short_bit, u32_in, u64_in};
use super::sift::{Passed, SEGMENT};
use super::{PatternMatch, searched};
use std::cell::Cell;
use std::collections::VecDeque;

/// The room that a search works in; a thread keeps one and uses it again, so a search allocates nothing once
/// warm.
struct Room {
    passed: Passed,
    /// Occurrences not yet told: the end in the high half, the pattern in the low one.
    waiting: Vec<u64>,
    spare: Vec<u64>,
    runs: VecDeque<Run>,
}

/// A run of one byte: all of it is known when its first place is found.
#[derive(Clone, Copy, Debug)]
struct Run {
    begin: u32,
    /// The next end to tell.
    next: u32,
    end: u32,
    byte: u8,
}

thread_local! {
    static ROOM: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

fn with_room<T>(work: impl FnOnce(&mut Room) -> T) -> T {
    // A search within a search finds no room left, and makes one for itself.
    let mut room = ROOM.take().unwrap_or_else(|| {
        Box::new(Room {
            passed: Passed::new(),
            waiting: Vec::with_capacity(4096),
            spare: Vec::with_capacity(4096),
            runs: VecDeque::with_capacity(1024),
        })
    });
    room.waiting.clear();
    room.runs.clear();
    let answer = work(&mut room);
    ROOM.set(Some(room));
    answer
}

impl PatternsImage<'_> {
    /// Tells every occurrence, in ascending order of (end, pattern).
    pub fn each(&self, haystack: &[u8], found: &mut impl FnMut(PatternMatch)) {
        self.each_from(haystack, 0, found);
    }

    /// As [`PatternsImage::each`] where no window and no run begins before `from`.
    pub(super) fn each_from(&self, haystack: &[u8], from: usize, found: &mut impl FnMut(PatternMatch)) {
        self.tell_until(haystack, from, SEGMENT, |occurrence| {
            found(occurrence);
            true
        });
    }

    /// The occurrence with the smallest end, and of those the one of the smallest pattern.
    pub fn first(&self, haystack: &[u8]) -> Option<PatternMatch> {
        self.first_from(haystack, 0)
    }

    /// As [`PatternsImage::first`] where no window and no run begins before `from`.
    pub(super) fn first_from(&self, haystack: &[u8], from: usize) -> Option<PatternMatch> {
        let mut first = None;
        self.tell_until(haystack, from, SEGMENT / 2, |occurrence| {
            first = Some(occurrence);
            false
        });
        first
    }

    /// How many occurrences there are.
    pub fn count(&self, haystack: &[u8]) -> u64 {
        let mut count = 0;
        self.unordered(haystack, |_| count += 1);
        count
    }

    /// Appends to `patterns` those that occur, each once, ascending.
    pub fn set(&self, haystack: &[u8], patterns: &mut Vec<u32>) {
        let before = patterns.len();
        let mut last = u32::MAX;
        self.unordered(haystack, |pattern| {
            if pattern != last {
                last = pattern;
                patterns.push(pattern);
                // Few patterns occur often: what is known already is dropped before it piles up.
                if patterns.len() - before >= 4096 && patterns.len() == patterns.capacity() {
                    settle(patterns, before);
                }
            }
        });
        settle(patterns, before);
    }

    /// Tells occurrences in order until `found` answers false, looking at `step` places at a time. No window
    /// and no run begins before `from`.
    fn tell_until(
        &self,
        haystack: &[u8],
        from: usize,
        step: usize,
        mut found: impl FnMut(PatternMatch) -> bool,
    ) {
        if self.is_empty() {
            return;
        }
        let haystack = searched(haystack);
        with_room(|room| {
            for from in (from..haystack.len()).step_by(step) {
                let to = haystack.len().min(from + step);
                self.sift(haystack, from, to, &mut room.passed);
                if room.passed.is_empty() && room.waiting.is_empty() && room.runs.is_empty() {
                    continue;
                }
                self.confirm_long(haystack, from, &mut room.passed, |key| room.waiting.push(key));
                settle_order(&mut room.waiting, 0);
                for class in self.short_classes() {
                    let before = room.waiting.len();
                    self.confirm_short(class, haystack, from, &mut room.passed, |key| room.waiting.push(key));
                    settle_order(&mut room.waiting, before);
                    merge(&mut room.waiting, before, &mut room.spare);
                }
                self.find_runs(haystack, from, &room.passed, &mut room.runs);
                if room.waiting.is_empty() && room.runs.is_empty() {
                    continue;
                }
                // Windows that begin at `to` or behind it end behind it.
                let told = if to == haystack.len() { u32::MAX } else { to as u32 };
                if !self.tell(told, room, &mut found) {
                    return;
                }
            }
        });
    }

    /// Tells all that ends at `last` or before it.
    #[inline(always)]
    fn tell(&self, last: u32, room: &mut Room, found: &mut impl FnMut(PatternMatch) -> bool) -> bool {
        let mut told = 0;
        while let Some(run) = room.runs.front_mut().filter(|run| run.next <= last) {
            let patterns = self.run_patterns(run.byte);
            while run.next <= run.end.min(last) {
                let end = run.next;
                while told < room.waiting.len() && room.waiting[told] >> 32 < u64::from(end) {
                    if !found(self.occurrence(room.waiting[told])) {
                        return false;
                    }
                    told += 1;
                }
                for pattern in patterns {
                    if !run_ends(pattern, run.begin, end) {
                        continue;
                    }
                    let key = u64::from(end) << 32 | u64::from(u32_in(pattern, 0));
                    while told < room.waiting.len() && room.waiting[told] < key {
                        if !found(self.occurrence(room.waiting[told])) {
                            return false;
                        }
                        told += 1;
                    }
                    let [index, length] = [0, 1].map(|field| u32_in(pattern, field));
                    if !found(PatternMatch { pattern: index, start: end - length, end }) {
                        return false;
                    }
                }
                run.next += 1;
            }
            if run.next <= run.end {
                break;
            }
            room.runs.pop_front();
        }
        while told < room.waiting.len() && room.waiting[told] >> 32 <= u64::from(last) {
            if !found(self.occurrence(room.waiting[told])) {
                return false;
            }
            told += 1;
        }
        room.waiting.drain(..told);
        true
    }

    fn unordered(&self, haystack: &[u8], mut found: impl FnMut(u32)) {
        if self.is_empty() {
            return;
        }
        let haystack = searched(haystack);
        with_room(|room| {
            for from in (0..haystack.len()).step_by(SEGMENT) {
                self.sift(haystack, from, haystack.len().min(from + SEGMENT), &mut room.passed);
                self.confirm_long(haystack, from, &mut room.passed, |key| found(key as u32));
                for class in self.short_classes() {
                    self.confirm_short(class, haystack, from, &mut room.passed, |key| found(key as u32));
                }
                self.find_runs(haystack, from, &room.passed, &mut room.runs);
                for run in room.runs.drain(..) {
                    for pattern in self.run_patterns(run.byte) {
                        let ends = (run.next..=run.end).filter(|&end| run_ends(pattern, run.begin, end));
                        ends.for_each(|_| found(u32_in(pattern, 0)));
                    }
                }
            }
        });
    }

    /// Looks up the places that passed, and hands over what matches as (end, pattern).
    #[inline(always)]
    fn confirm_long(&self, haystack: &[u8], from: usize, passed: &mut Passed, mut matched: impl FnMut(u64)) {
        let kept = self.keep_in_bitmap(haystack, from, &mut passed.long.at[..passed.long.count]);
        for place in &passed.long.at[..kept] {
            let place = from + usize::from(*place);
            self.compare(haystack, place, window_at(haystack, place), WINDOW, &mut matched);
        }
    }

    /// As [`PatternsImage::confirm_long`] for the strings of `class` bytes; what matches is all but in order.
    #[inline(always)]
    fn confirm_short(
        &self,
        class: usize,
        haystack: &[u8],
        from: usize,
        passed: &mut Passed,
        mut matched: impl FnMut(u64),
    ) {
        let places = &mut passed.short[class - 1];
        let kept = self.keep_short(haystack, from, class, &mut places.at[..places.count]);
        for place in &places.at[..kept] {
            let place = from + usize::from(*place);
            let window = short_window(haystack, place) & (u32::MAX >> (32 - 8 * class));
            self.compare(haystack, place, window, class, &mut matched);
        }
    }

    /// Moves the places that may begin a string of `class` bytes to the front, and answers how many they are.
    fn keep_short(&self, haystack: &[u8], from: usize, class: usize, places: &mut [u16]) -> usize {
        if class == 1 {
            // The only bucket of this class passes nothing too much.
            return places.len();
        }
        let shorts = self.shorts;
        let mut kept = 0;
        for at in 0..places.len() {
            let place = places[at];
            let bit = short_bit(short_window(haystack, from + usize::from(place)), class);
            places[kept] = place;
            kept += usize::from(shorts[bit >> 3] >> (bit & 7) & 1);
        }
        kept
    }

    /// Moves the places whose window the bitmap has to the front, and answers how many they are.
    fn keep_in_bitmap(&self, haystack: &[u8], from: usize, places: &mut [u16]) -> usize {
        // Copies that no store can change stay in registers.
        let (bitmap, shift, haystack) = (self.bitmap, 32 - self.counts.bitmap_log2, &haystack[from..]);
        let mut kept = 0;
        for at in 0..places.len() {
            let place = places[at];
            let bit = hash(window_at(haystack, usize::from(place)), WINDOW) >> shift;
            places[kept] = place;
            kept += usize::from(bitmap[bit as usize >> 3] >> (bit & 7) & 1);
        }
        kept
    }

    /// Compares the strings whose window hashes as the one at `place`.
    #[inline(always)]
    fn compare(
        &self,
        haystack: &[u8],
        place: usize,
        window: u32,
        class: usize,
        matched: &mut impl FnMut(u64),
    ) {
        let slot = (hash(window, class) >> (32 - self.counts.directory_log2)) as usize;
        let (first, end) =
            (u32_in(&self.directory[slot], 0) as usize, u32_in(&self.directory[slot + 1], 0) as usize);
        for entry in &self.entries[first..end] {
            let entry = Entry::read(entry);
            let (before, length) = (entry.before as usize, entry.length as usize);
            if before > place || length > haystack.len() + before - place {
                continue;
            }
            let start = place - before;
            let eight = eight_at(haystack, place - usize::from(entry.lead));
            if eight & entry.mask != entry.value || usize::from(entry.class) != class {
                continue;
            }
            if length <= 8 || self.whole(&haystack[start..start + length], entry.string) {
                self.uses(entry.string, start, length, matched);
            }
        }
    }

    #[inline(never)]
    fn whole(&self, bytes: &[u8], string: u32) -> bool {
        let first = u32_in(&self.strings[string as usize], 0) as usize;
        let pairs = &self.pairs[first..first + bytes.len().div_ceil(8)];
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().zip(pairs).all(|(word, pair)| u64_in(word, 0) & u64_in(pair, 1) == u64_in(pair, 0))
            && pairs
                .get(words.len())
                .is_none_or(|pair| eight_at(rest, 0) & u64_in(pair, 1) == u64_in(pair, 0))
    }

    #[inline(always)]
    fn uses(&self, string: u32, start: usize, length: usize, matched: &mut impl FnMut(u64)) {
        let string = &self.strings[string as usize];
        let (first, count) = (u32_in(string, 2) as usize, u32_in(string, 3) as usize);
        for pattern in &self.uses[first..first + count] {
            let pattern = u32_in(pattern, 0);
            let [offset, limit] = [1, 2].map(|field| u32_in(&self.patterns[pattern as usize], field));
            if start as u32 >= offset && (start + length) as u32 <= limit {
                matched(((start + length) as u64) << 32 | u64::from(pattern));
            }
        }
    }

    fn find_runs(&self, haystack: &[u8], from: usize, passed: &Passed, runs: &mut VecDeque<Run>) {
        for place in passed.runs.list() {
            let begin = from + usize::from(*place);
            let byte = haystack[begin];
            if self.run_patterns(byte).is_empty() {
                continue;
            }
            let end = begin + length_of_run(&haystack[begin..]);
            runs.push_back(Run { begin: begin as u32, next: (begin + WINDOW) as u32, end: end as u32, byte });
        }
    }

    fn run_patterns(&self, byte: u8) -> &[[u8; 16]] {
        let [first, end] = [0, 1].map(|next| u32_in(&self.runs[usize::from(byte) + next], 0) as usize);
        &self.list[first..end]
    }

    #[inline(always)]
    fn occurrence(&self, key: u64) -> PatternMatch {
        let (end, pattern) = ((key >> 32) as u32, key as u32);
        PatternMatch { pattern, start: end - u32_in(&self.patterns[pattern as usize], 0), end }
    }
}

/// Whether the run pattern occurs with its end at `end` in a run that began at `begin`.
#[inline(always)]
fn run_ends(pattern: &[u8; 16], begin: u32, end: u32) -> bool {
    let [length, offset, limit] = [1, 2, 3].map(|field| u32_in(pattern, field));
    length <= end - begin && end - length >= offset && end <= limit
}

/// Sorts what lies from `from` on; most of the time it is in order already.
fn settle_order(waiting: &mut [u64], from: usize) {
    if !waiting[from..].is_sorted() {
        waiting[from..].sort_unstable();
    }
}

/// Makes one ascending list of the two that lie before and behind `middle`.
fn merge(waiting: &mut [u64], middle: usize, spare: &mut Vec<u64>) {
    if middle == 0 || middle == waiting.len() || waiting[middle - 1] <= waiting[middle] {
        return;
    }
    spare.clear();
    spare.extend_from_slice(&waiting[middle..]);
    let mut left = middle;
    for at in (0..waiting.len()).rev() {
        let Some(&last) = spare.last() else { return };
        if left > 0 && waiting[left - 1] > last {
            left -= 1;
            waiting[at] = waiting[left];
        } else {
            waiting[at] = last;
            spare.pop();
        }
    }
}

/// Sorts what lies from `before` on, and leaves each pattern once.
fn settle(patterns: &mut Vec<u32>, before: usize) {
    patterns[before..].sort_unstable();
    let mut kept = before;
    for at in before..patterns.len() {
        if kept == before || patterns[kept - 1] != patterns[at] {
            patterns[kept] = patterns[at];
            kept += 1;
        }
    }
    patterns.truncate(kept);
}

fn length_of_run(bytes: &[u8]) -> usize {
    let eight = u64::from(bytes[0]) * 0x0101_0101_0101_0101;
    let same =
        bytes.as_chunks::<8>().0.iter().take_while(|word| u64::from_le_bytes(**word) == eight).count() * 8;
    same + bytes[same..].iter().take_while(|&&byte| byte == bytes[0]).count()
}

#[inline(always)]
fn window_at(haystack: &[u8], place: usize) -> u32 {
    u32_in(&haystack[place..place + WINDOW], 0)
}

/// Four bytes from `place`; zeros behind the end.
#[inline(always)]
fn short_window(haystack: &[u8], place: usize) -> u32 {
    match haystack.get(place..place + WINDOW) {
        Some(bytes) => u32_in(bytes, 0),
        None => eight_at(haystack, place) as u32,
    }
}

/// Eight bytes from `place`; zeros behind the end.
#[inline(always)]
fn eight_at(haystack: &[u8], place: usize) -> u64 {
    match haystack.get(place..place + 8) {
        Some(bytes) => u64_in(bytes, 0),
        None => {
            let rest = &haystack[place.min(haystack.len())..];
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}
