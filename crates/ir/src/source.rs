//! Source text: files, spans, and where a byte stands (line and column).

/// A file of the program: index into [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u16);

/// A half-open range of bytes `start..end` in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file the range lies in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Self {
        Self { file, start, end }
    }

    /// The smallest range that covers both; `self` if they lie in different files.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// One file: the name it is shown under and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name diagnostics use, for example `programs/firewall.rav` or `std/net/ipv4.rav`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Where lines and characters begin.
    lines: Lines,
}

/// Where the lines of a text begin, and how many characters stand before every [`STRIDE`]th byte, so that no
/// question about a place reads the text again.
#[derive(Clone, Debug)]
struct Lines {
    begins: Vec<u32>,
    characters: Vec<u32>,
}

/// So many bytes lie between two places at which characters are counted.
const STRIDE: usize = 256;

impl Lines {
    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect();
        let mut count = 0;
        let characters = text.as_bytes().chunks(STRIDE).map(|part| {
            let before = count;
            count += characters_in(part);
            before
        });
        Lines { characters: characters.collect(), begins }
    }

    /// How many lines begin at or before a byte.
    fn line(&self, at: u32) -> usize {
        self.begins.partition_point(|&begin| begin <= at)
    }

    /// Characters of the text before a byte.
    fn before(&self, text: &str, at: usize) -> u32 {
        let part = (at / STRIDE).min(self.characters.len().saturating_sub(1));
        let rest = text.as_bytes().get(part * STRIDE..at).unwrap_or_default();
        self.characters.get(part).copied().unwrap_or(0) + characters_in(rest)
    }
}

/// How many characters begin in some bytes of a text.
fn characters_in(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u32
}

impl SourceFile {
    /// A range of whole lines around a range of bytes, `around` lines more on either side, and the number of
    /// its first line, from 1.
    pub fn excerpt(&self, bytes: std::ops::Range<usize>, around: usize) -> (std::ops::Range<usize>, usize) {
        let line = |at: usize| self.lines.line(u32::try_from(at).unwrap_or(u32::MAX)) - 1;
        let begins = &self.lines.begins;
        let first = line(bytes.start).saturating_sub(around);
        let end = begins.get(line(bytes.end) + around + 1).map_or(self.text.len(), |&begin| begin as usize);
        (begins[first] as usize..end, first + 1)
    }
}

/// All files of one program, the main file first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file and says which index it got.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        self.files.push(SourceFile { name: name.into(), lines: Lines::of(&text), text });
        FileId((self.files.len() - 1) as u16)
    }

    /// The file behind an index.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files with their indexes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(index, file)| (FileId(index as u16), file))
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }

    /// The text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of the start of a span, both from 1; the column counts characters.
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let SourceFile { text, lines, .. } = self.file(span.file);
        if !text.is_char_boundary(span.start as usize) {
            return (1, 1);
        }
        let line = lines.line(span.start);
        let begin = lines.begins[line - 1] as usize;
        let column = lines.before(text, span.start as usize) - lines.before(text, begin) + 1;
        (line as u32, column)
    }

    /// `file:line:column` of the start of a span.
    pub fn place(&self, span: Span) -> String {
        let (line, column) = self.line_column(span);
        format!("{}:{line}:{column}", self.file(span.file).name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and column as they are told by reading everything before.
    fn read_from_the_start(text: &str, at: usize) -> (u32, u32) {
        let before = &text[..at];
        let line = before.matches('\n').count() as u32 + 1;
        (line, before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1)
    }

    #[test]
    fn lines_and_columns_are_those_that_reading_finds() {
        let long = "añ€🦀".repeat(400);
        for text in ["", "\n", "a", "a\n", "a\nb\r\n\nç\n", &long, &format!("{long}\nx\n{long}\n\n{long}")] {
            let mut sources = Sources::default();
            let file = sources.add("a.rav", text);
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let span = Span::new(file, at as u32, at as u32);
                assert_eq!(sources.line_column(span), read_from_the_start(text, at), "{at} of {text:?}");
            }
        }
    }

    #[test]
    fn places_outside_of_a_text_are_its_first() {
        let mut sources = Sources::default();
        let file = sources.add("a.rav", "ab\né");
        assert_eq!(sources.line_column(Span::new(file, 9, 9)), (1, 1));
        assert_eq!(sources.line_column(Span::new(file, 4, 4)), (1, 1));
    }

    #[test]
    fn an_excerpt_is_whole_lines() {
        let mut sources = Sources::default();
        let file = sources.add("a.rav", "one\ntwo\nthree\nfour\nfive");
        let excerpt = |range, around| {
            let (bytes, line) = sources.file(file).excerpt(range, around);
            (&sources.file(file).text[bytes], line)
        };
        assert_eq!(excerpt(5..6, 0), ("two\n", 2));
        assert_eq!(excerpt(9..10, 1), ("two\nthree\nfour\n", 2));
        assert_eq!(excerpt(0..99, 3), ("one\ntwo\nthree\nfour\nfive", 1));
        assert_eq!(excerpt(19..23, 0), ("five", 5));
    }
}
