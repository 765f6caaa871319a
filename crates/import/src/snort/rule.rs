//! Parses one rule: the options, and of them the contents with what modifies them.

use super::cursor::Cursor;
use super::header::header;
use super::value::{bytes, skip_quoted, skip_value};
use super::{SnortPatterns, SnortRule, Unmeant};
use crate::ImportError;
use crate::text::shown;
use tables::patterns::SearchPattern;

/// Options that say something about the rule and nothing about the packet, or only how to search faster.
const SILENT: [&str; 14] = [
    "msg",
    "sid",
    "rev",
    "gid",
    "classtype",
    "reference",
    "metadata",
    "priority",
    "rem",
    "target",
    "fast_pattern",
    "rawbytes",
    "noalert",
    "tag",
];

/// Options behind which contents are looked for in the packet's own payload again.
const PAYLOAD: [&str; 3] = ["pkt_data", "raw_data", "pkt.data"];

/// Prefixes of options that choose a decoded buffer, in which an offset is no place of the payload.
const BUFFERS: [&str; 22] = [
    "http_",
    "http.",
    "file_data",
    "file.",
    "dns_",
    "dns.",
    "tls_",
    "tls.",
    "ssl_",
    "ssh_",
    "ssh.",
    "smb.",
    "sip_",
    "sip.",
    "ja3",
    "base64_data",
    "js_data",
    "vba_data",
    "dce_stub_data",
    "ftp.",
    "uricontent",
    "krb5",
];

/// The longest distance that Snort takes for offset and depth.
const MOST: u32 = 65_535;

/// Reads a rule and appends it, its contents and what they do not mean.
pub(super) fn parse(cursor: &mut Cursor<'_>, set: &mut SnortPatterns) -> Result<(), ImportError> {
    cursor.skip_blanks();
    let begin = cursor.at();
    let (line, _) = cursor.place(begin);
    header(cursor)?;
    let (number, first) = (set.rules.len() as u32, set.patterns.len());
    let mut options = Options {
        set,
        rule: number,
        sid: None,
        buffer: false,
        commas: false,
        first,
        fixed: first,
        negated: Vec::new(),
    };
    loop {
        cursor.skip_blanks();
        if cursor.take(')') {
            break;
        }
        if cursor.rest().is_empty() {
            let advice =
                "end the options with `)`; a rule that goes on in the next line has `\\` at the line's end";
            return Err(cursor.error(cursor.at(), "the rule ends within its options", advice));
        }
        options.option(cursor)?;
    }
    cursor.skip_blanks();
    if !cursor.rest().is_empty() {
        let what = format!("`{}` stands behind the rule's end", shown(cursor.rest()));
        return Err(cursor.error(cursor.at(), what, "begin the next rule in a line of its own"));
    }
    let Some(sid) = options.sid else {
        return Err(cursor.error(begin, "the rule has no sid", "give it one: a rule is told by its number"));
    };
    // A negated content is kept until here, since its modifiers follow it.
    for at in options.negated.into_iter().rev() {
        set.patterns.remove(at);
    }
    set.rules.push(SnortRule { line, sid });
    Ok(())
}

/// The options read so far.
struct Options<'s> {
    set: &'s mut SnortPatterns,
    rule: u32,
    sid: Option<u32>,
    /// Contents that follow are looked for in a decoded buffer.
    buffer: bool,
    /// The rule's first content.
    first: usize,
    /// Contents from here on may still be moved into a buffer by an option that follows them (Snort 2).
    fixed: usize,
    /// A content had modifiers behind commas: the rule is of Snort 3, where buffers hold for what follows.
    commas: bool,
    /// Contents whose absence is asked for.
    negated: Vec<usize>,
}

impl Options<'_> {
    fn option(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
        let at = cursor.at();
        let name = cursor
            .take_until(|character| matches!(character, ':' | ';' | ')' | '"') || character.is_whitespace());
        if name.is_empty() {
            let what = format!("`{}` is no option", shown(cursor.rest()));
            return Err(cursor.error(at, what, "write `name:value;` or `name;`"));
        }
        cursor.skip_blanks();
        if cursor.take(':') {
            cursor.skip_blanks();
        }
        match name {
            "content" | "uricontent" => self.content(cursor, at, name)?,
            "sid" => self.sid = Some(self.number_of(cursor, at, "sid")?),
            "msg" => skip_quoted(cursor)?,
            "nocase" => self.last(cursor, at, name)?.nocase = true,
            "depth" | "offset" => {
                self.last(cursor, at, name)?;
                let value_at = cursor.at();
                let value = cursor.take_until(|character| character == ';').trim_end();
                self.position(cursor, value_at, name, value)?;
            }
            "startswith" if self.buffer => {
                self.last(cursor, at, name)?;
                self.unmeant(
                    cursor,
                    at,
                    "`startswith` is about the beginning of a decoded part, not of the payload".into(),
                );
            }
            "startswith" => {
                let content = self.last(cursor, at, name)?;
                (content.offset, content.depth) = (0, Some(content.bytes.len() as u32));
            }
            "distance" | "within" | "endswith" => {
                self.last(cursor, at, name)?;
                cursor.take_until(|character| character == ';');
                self.unmeant(
                    cursor,
                    at,
                    format!("`{name}` counts from what another condition found or from the end"),
                );
            }
            _ => self.other(cursor, at, name)?,
        }
        cursor.skip_blanks();
        if cursor.take(';') {
            return Ok(());
        }
        let what = match cursor.rest() {
            "" => format!("the option `{name}` does not end: the rule may be cut off here"),
            rest => format!("`{}` stands where the option `{name}` ends", shown(rest)),
        };
        Err(cursor.error(cursor.at(), what, "end each option with `;`"))
    }

    /// An option that is no content and none of its modifiers.
    fn other(&mut self, cursor: &mut Cursor<'_>, at: usize, name: &str) -> Result<(), ImportError> {
        skip_value(cursor)?;
        if PAYLOAD.contains(&name) {
            self.buffer = false;
            self.fixed = self.set.patterns.len();
        } else if BUFFERS.iter().any(|buffer| name.starts_with(buffer)) {
            self.unmeant(
                cursor,
                at,
                format!("`{name}` asks for a decoded part of the stream; the payload is searched as it is"),
            );
            // In Snort 2 these, and only these, are about the content before them; elsewhere about what
            // follows.
            if name.starts_with("http_") && !self.commas {
                for content in &mut self.set.patterns[self.fixed..] {
                    (content.offset, content.depth) = (0, None);
                }
            }
            self.fixed = self.set.patterns.len();
            self.buffer = true;
        } else if !SILENT.contains(&name) {
            self.unmeant(cursor, at, format!("`{name}` asks for more than strings in the payload"));
        }
        Ok(())
    }

    fn content(&mut self, cursor: &mut Cursor<'_>, at: usize, name: &str) -> Result<(), ImportError> {
        let negated = cursor.take('!');
        cursor.skip_blanks();
        let begin = cursor.at();
        let bytes = bytes(cursor)?;
        if bytes.is_empty() {
            return Err(cursor.error(begin, "the content is empty", "name at least one byte to look for"));
        }
        self.set.patterns.push(SearchPattern { value: self.rule, ..SearchPattern::anywhere(bytes) });
        self.fixed = self.set.patterns.len() - 1;
        self.modifiers(cursor)?;
        if name == "uricontent" {
            self.unmeant(
                cursor,
                at,
                "`uricontent` asks for a decoded part of the stream; the payload is searched as it is".into(),
            );
        }
        if negated {
            self.unmeant(cursor, at, "a negated content asks that a string is absent; it is left out".into());
            self.negated.push(self.set.patterns.len() - 1);
        }
        Ok(())
    }

    /// The modifiers that stand behind a content's comma (Snort 3).
    fn modifiers(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
        loop {
            cursor.skip_blanks();
            if !cursor.take(',') {
                return Ok(());
            }
            self.commas = true;
            cursor.skip_blanks();
            let at = cursor.at();
            let text = cursor.take_until(|character| matches!(character, ',' | ';')).trim_end();
            let (name, value) =
                text.split_once(char::is_whitespace).map_or((text, ""), |(name, value)| (name, value.trim()));
            match name {
                "nocase" if value.is_empty() => self.last(cursor, at, name)?.nocase = true,
                "depth" | "offset" => {
                    self.position(cursor, at + text.len() - value.len(), name, value)?;
                }
                "distance" | "within" => {
                    self.unmeant(cursor, at, format!("`{name}` counts from what another condition found"));
                }
                "fast_pattern" | "fast_pattern_offset" | "fast_pattern_length" => {}
                _ => {
                    let what = format!("`{}` is no modifier of a content", shown(text));
                    return Err(cursor.error(
                        at,
                        what,
                        "write nocase, offset, depth, distance, within or fast_pattern",
                    ));
                }
            }
        }
    }

    /// Sets offset or depth of the last content, if it is a place of the payload.
    fn position(
        &mut self,
        cursor: &Cursor<'_>,
        at: usize,
        name: &str,
        value: &str,
    ) -> Result<(), ImportError> {
        let digits = value.strip_prefix('-').unwrap_or(value);
        if digits.is_empty() {
            return Err(cursor.error(
                at,
                format!("`{name}` has no value"),
                format!("write `{name}` and a number"),
            ));
        }
        if value.starts_with('-') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let names = !digits.starts_with(|first: char| first.is_ascii_digit())
                && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let number = digits.bytes().all(|byte| byte.is_ascii_digit());
            if !names && !number {
                let what = format!("`{}` is no {name}", shown(value));
                return Err(cursor.error(at, what, format!("write a number from 0 to {MOST}")));
            }
            self.unmeant(
                cursor,
                at,
                format!("`{name} {}` is known only from another condition or counts backwards", shown(value)),
            );
            return Ok(());
        }
        let number = digits.parse::<u32>().ok().filter(|number| *number <= MOST).ok_or_else(|| {
            cursor.error(
                at,
                format!("`{}` is no {name}", shown(value)),
                format!("write a number from 0 to {MOST}"),
            )
        })?;
        if self.buffer {
            self.unmeant(
                cursor,
                at,
                format!("`{name} {number}` counts from the beginning of a decoded part, not of the payload"),
            );
            return Ok(());
        }
        let Some(content) = self.set.patterns.last_mut() else { return Ok(()) };
        if name == "offset" {
            content.offset = number;
        } else if (number as usize) < content.bytes.len() {
            let what =
                format!("the depth {number} is less than the {} bytes of its content", content.bytes.len());
            return Err(cursor.error(
                at,
                what,
                "a content that cannot fit never matches: write at least its length",
            ));
        } else {
            content.depth = Some(number);
        }
        Ok(())
    }

    fn number_of(&mut self, cursor: &mut Cursor<'_>, at: usize, name: &str) -> Result<u32, ImportError> {
        let value = cursor.take_until(|character| character == ';').trim();
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| value.parse().ok()).flatten().ok_or_else(|| {
            cursor.error(at, format!("`{}` is no {name}", shown(value)), "write a number of at most 32 bits")
        })
    }

    /// The content that a modifier of its own is about.
    fn last(
        &mut self,
        cursor: &Cursor<'_>,
        at: usize,
        name: &str,
    ) -> Result<&mut SearchPattern, ImportError> {
        match self.set.patterns[self.first..].last_mut() {
            Some(content) => Ok(content),
            None => Err(cursor.error(
                at,
                format!("`{name}` has no content before it"),
                "write it behind the content it is about",
            )),
        }
    }

    fn unmeant(&mut self, cursor: &Cursor<'_>, at: usize, what: String) {
        let (line, column) = cursor.place(at);
        self.set.unmeant.push(Unmeant { line, column, what });
    }
}
