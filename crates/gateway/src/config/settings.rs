//! `[set]` of the configuration file: values for what the program declares as settable. The compiler reads
//! them at their places in the file, so it shows there what is wrong with one.
//!
//! ```toml
//! [set]
//! LIMIT = 500                                            # a number, `true` or `false` may stand without quotes
//! IDLE = "5min"                                          # what stands between quotes is an expression of the language
//! INSIDE = "10.0.0.0/8"
//! outside = ["198.51.100.1..198.51.100.4", "1024..65535"]  # the parts of a pool
//! ```

use lang::settings::{SetValue, Settings};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place in the text and what is wrong there.
type Fault = (Range<usize>, String);

/// The values of the table `set`, with their places in the text. The text is TOML.
pub(super) fn read(text: &str) -> Result<Settings, Fault> {
    let Ok(file) = DeTable::parse(text) else { return Ok(Settings::default()) };
    let Some(set) = file.get_ref().get("set") else { return Ok(Settings::default()) };
    let DeValue::Table(table) = set.get_ref() else {
        return Err((set.span(), "`set` is a table: write `[set]`, and below it `NAME = value`".to_owned()));
    };
    let mut values = Vec::with_capacity(table.len());
    for (name, value) in table {
        let parts = match value.get_ref() {
            DeValue::Array(array) if array.is_empty() => {
                return Err((value.span(), format!("`{}` has no value", name.get_ref())));
            }
            DeValue::Array(array) => array.iter().map(|part| written(text, part)).collect(),
            _ => written(text, value).map(|part| vec![part]),
        };
        values.push(SetValue { name: name.get_ref().to_string(), place: name.span(), parts: parts? });
    }
    // In the order of the text, so that the first error is the first in the file.
    values.sort_by_key(|setting| setting.place.start);
    Ok(Settings { name: String::new(), text: text.to_owned(), values })
}

/// Where the text of a value stands: between its quotes, if it has any.
fn written(text: &str, value: &Spanned<DeValue<'_>>) -> Result<Range<usize>, Fault> {
    let span = value.span();
    let raw = text.get(span.clone()).unwrap_or_default();
    match value.get_ref() {
        DeValue::String(string) => {
            let within = span.start + 1..span.end.saturating_sub(1);
            // A place in the value is a place in the file only where both have the same bytes.
            if text.get(within.clone()) == Some(&**string) && !raw.contains('\n') {
                return Ok(within);
            }
            let message = "write the value on one line between single quotation marks, without escapes";
            Err((span, message.to_owned()))
        }
        DeValue::Integer(_) | DeValue::Boolean(_) => Ok(span),
        _ => {
            let message = "a value is a number, `true`, `false`, or a text in the language of programs such as \"5min\"";
            Err((span, message.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Result<Vec<(String, Vec<&str>)>, Fault> {
        let settings = read(text)?;
        let of = |setting: SetValue| {
            assert_eq!(&text[setting.place.clone()].trim_matches('"'), &setting.name);
            (setting.name, setting.parts.into_iter().map(|part| &text[part]).collect())
        };
        Ok(settings.values.into_iter().map(of).collect())
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let text = "a = 1\n[set]\nZ = 1_000\nB = true\n\"C\" = '10.0.0.0/8'\nA = [\"1..5\", # one\n 'x', 7]\nD = \"\"\n[[port]]\n";
        let found = parts(text).expect("it is right");
        let wanted = [
            ("Z", vec!["1_000"]),
            ("B", vec!["true"]),
            ("C", vec!["10.0.0.0/8"]),
            ("A", vec!["1..5", "x", "7"]),
            ("D", vec![""]),
        ];
        assert_eq!(found, wanted.map(|(name, parts)| (name.to_owned(), parts)));
        assert_eq!(parts("a = 1\n"), Ok(Vec::new()));
        assert_eq!(parts("set = { A = 1 }\n"), Ok(vec![("A".to_owned(), vec!["1"])]));
    }

    #[test]
    fn what_is_no_value_is_refused_at_its_place() {
        for (text, place, message) in [
            ("set = 5\n", 6, "`set` is a table"),
            ("[set]\nA = 1.5\n", 10, "a value is a number"),
            ("[set]\nA = { b = 1 }\n", 10, "a value is a number"),
            ("[set]\nA.b = 1\n", 6, "a value is a number"),
            ("[set]\nA = [1, [2]]\n", 14, "a value is a number"),
            ("[set]\nA = []\n", 10, "`A` has no value"),
            ("[set]\nA = \"\\u0035\"\n", 10, "write the value on one line"),
            ("[set]\nA = '''5'''\n", 10, "write the value on one line"),
        ] {
            let (span, told) = read(text).expect_err(text);
            assert!(told.starts_with(message) && span.start == place, "{text:?}: {span:?} {told}");
        }
    }
}
