//! The part of CBOR (RFC 8949) that bundles use, in its deterministic form only (section 4.2.1): unsigned
//! numbers, byte strings, texts, arrays and maps, each with the shortest head and a definite length.

use crate::refusal::BundleRefusal;

/// The major types of the items that bundles use (RFC 8949, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Number = 0,
    Bytes = 2,
    Text = 3,
    Array = 4,
    Map = 5,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Number => "an unsigned number",
            Kind::Bytes => "a byte string",
            Kind::Text => "a text",
            Kind::Array => "an array",
            Kind::Map => "a map",
        }
    }
}

/// Writes the head of an item: its kind, and its value or length in the fewest bytes.
pub(crate) fn head(kind: Kind, value: u64, out: &mut Vec<u8>) {
    let major = (kind as u8) << 5;
    let bytes = value.to_be_bytes();
    match value {
        0..24 => out.push(major | bytes[7]),
        24..0x100 => out.extend([major | 24, bytes[7]]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend(&bytes[6..]);
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend(&bytes[4..]);
        }
        _ => {
            out.push(major | 27);
            out.extend(bytes);
        }
    }
}

/// Writes a byte string or a text.
pub(crate) fn string(kind: Kind, bytes: &[u8], out: &mut Vec<u8>) {
    head(kind, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Reads items one after the other. Positions in refusals count from `start`.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, whose first one stands at `start` in the bundle.
    pub(crate) fn new(bytes: &'a [u8], start: usize) -> Self {
        Self { rest: bytes, at: start }
    }

    /// Where the next byte stands in the bundle.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn refuse<T>(&self, what: &'static str) -> Result<T, BundleRefusal> {
        Err(BundleRefusal::Malformed { at: self.at, what })
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], BundleRefusal> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(BundleRefusal::Malformed { at: self.at + self.rest.len(), what: "more bytes" });
        };
        self.rest = rest;
        self.at += count;
        Ok(taken)
    }

    /// Exactly these bytes, which are `what`.
    pub(crate) fn exactly(&mut self, bytes: &[u8], what: &'static str) -> Result<(), BundleRefusal> {
        if !self.rest.starts_with(bytes) {
            return self.refuse(what);
        }
        self.take(bytes.len()).map(|_| ())
    }

    /// Refuses bytes behind the last item.
    pub(crate) fn end(&self) -> Result<(), BundleRefusal> {
        if self.rest.is_empty() { Ok(()) } else { self.refuse("the end") }
    }

    /// The value or length in the head of an item of this kind.
    fn head(&mut self, kind: Kind) -> Result<u64, BundleRefusal> {
        let start = Self { rest: self.rest, at: self.at };
        let first = self.take(1)?[0];
        if first >> 5 != kind as u8 {
            return start.refuse(kind.name());
        }
        let (value, least) = match first & 31 {
            short @ 0..24 => return Ok(u64::from(short)),
            24 => (self.number(1)?, 24),
            25 => (self.number(2)?, 0x100),
            26 => (self.number(4)?, 0x1_0000),
            27 => (self.number(8)?, 0x1_0000_0000),
            _ => return start.refuse("an item of definite length"),
        };
        if value < least { start.refuse("the shortest form of a number or length") } else { Ok(value) }
    }

    fn number(&mut self, bytes: usize) -> Result<u64, BundleRefusal> {
        Ok(self.take(bytes)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// An unsigned number of at most `most`.
    pub(crate) fn unsigned(&mut self, what: &'static str, most: u64) -> Result<u64, BundleRefusal> {
        self.limited(Kind::Number, what, most)
    }

    /// A length of at most `most`: it is refused before anything of that length is read.
    fn length(&mut self, kind: Kind, what: &'static str, most: usize) -> Result<usize, BundleRefusal> {
        // Lossless: the length is at most `most`.
        self.limited(kind, what, most as u64).map(|length| length as usize)
    }

    fn limited(&mut self, kind: Kind, what: &'static str, most: u64) -> Result<u64, BundleRefusal> {
        let at = self.at;
        let value = self.head(kind)?;
        if value > most { Err(BundleRefusal::TooLarge { at, what, value, most }) } else { Ok(value) }
    }

    /// A byte string of at most `most` bytes.
    pub(crate) fn bytes(&mut self, what: &'static str, most: usize) -> Result<&'a [u8], BundleRefusal> {
        let length = self.length(Kind::Bytes, what, most)?;
        self.take(length)
    }

    /// A text in UTF-8 of at most `most` bytes.
    pub(crate) fn text(&mut self, what: &'static str, most: usize) -> Result<&'a str, BundleRefusal> {
        let length = self.length(Kind::Text, what, most)?;
        let at = self.at;
        std::str::from_utf8(self.take(length)?).map_err(|error| BundleRefusal::Malformed {
            at: at + error.valid_up_to(),
            what: "a text in UTF-8",
        })
    }

    /// The number of items of an array, at most `most`.
    pub(crate) fn array(&mut self, what: &'static str, most: usize) -> Result<usize, BundleRefusal> {
        self.length(Kind::Array, what, most)
    }

    /// The head of an array of exactly `count` items.
    pub(crate) fn array_of(&mut self, count: u64, what: &'static str) -> Result<(), BundleRefusal> {
        self.counted(Kind::Array, count, what)
    }

    /// The head of a map of exactly `count` pairs.
    pub(crate) fn map_of(&mut self, count: u64, what: &'static str) -> Result<(), BundleRefusal> {
        self.counted(Kind::Map, count, what)
    }

    fn counted(&mut self, kind: Kind, count: u64, what: &'static str) -> Result<(), BundleRefusal> {
        let at = self.at;
        if self.head(kind)? == count { Ok(()) } else { Err(BundleRefusal::Malformed { at, what }) }
    }

    /// The key of the next field of a map. Each field is there once, and they come in the order of their
    /// keys.
    pub(crate) fn field(&mut self, key: u64) -> Result<(), BundleRefusal> {
        let at = self.at;
        if self.head(Kind::Number)? == key {
            Ok(())
        } else {
            Err(BundleRefusal::Malformed { at, what: "each known field once, in the order of their keys" })
        }
    }
}
