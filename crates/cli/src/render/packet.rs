//! Bytes of packets for people: in hexadecimal with offsets, and as differences.

/// Sixteen bytes a line with offsets and letters, each line indented.
pub(crate) fn dump(bytes: &[u8], indent: &str) -> String {
    if bytes.is_empty() {
        return format!("{indent}(no bytes)\n");
    }
    let mut text = String::new();
    for (number, chunk) in bytes.chunks(16).enumerate() {
        let digits: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let letters: String = chunk
            .iter()
            .map(|&byte| if byte.is_ascii_graphic() || byte == b' ' { byte as char } else { '.' })
            .collect();
        let row = format!("{indent}{:04x}  {:<47}  {letters}", 16 * number, digits.join(" "));
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// In which bytes two packets differ, in words; none if they are the same.
pub(crate) fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let different: Vec<usize> =
        (0..expected.len().min(found.len())).filter(|&at| expected[at] != found[at]).collect();
    let mut parts: Vec<String> = different
        .iter()
        .take(4)
        .map(|&at| format!("byte {at} is {:02x} instead of {:02x}", found[at], expected[at]))
        .collect();
    if different.len() > 4 {
        parts.push(format!("{} more bytes differ", different.len() - 4));
    }
    if expected.len() != found.len() {
        parts.push(format!("it has {} bytes instead of {}", found.len(), expected.len()));
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_has_offsets_and_letters() {
        let text = dump(b"\x00\x01ABCDEFGHIJKLMNO", "  ");
        assert_eq!(
            text,
            "  0000  00 01 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e  ..ABCDEFGHIJKLMN\n  0010  4f                                               O\n"
        );
        assert_eq!(dump(&[], ""), "(no bytes)\n");
    }

    #[test]
    fn differences_name_bytes_and_length() {
        assert_eq!(difference(&[1, 2], &[1, 2]), None);
        assert_eq!(
            difference(&[1, 2], &[1, 3, 4]).as_deref(),
            Some("byte 1 is 03 instead of 02, it has 3 bytes instead of 2")
        );
    }
}
