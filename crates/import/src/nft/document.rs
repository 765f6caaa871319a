//! The objects of a ruleset as JSON has them, and the place of each part in the text.

use crate::ImportError;
use crate::text::Lines;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
pub(crate) struct Document<'a> {
    #[serde(borrow)]
    pub(crate) nftables: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct TableObject {
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) flags: Option<Value>,
}

/// What stands in an object besides, and changes nothing about what becomes of a packet.
type Besides = Option<IgnoredAny>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainObject {
    pub(crate) family: String,
    pub(crate) table: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) hook: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) prio: Option<Value>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "dev")]
    _dev: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetObject {
    pub(crate) family: String,
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) flags: Option<Value>,
    pub(crate) elem: Option<Value>,
    /// How long an element stays that does not say it itself.
    pub(crate) timeout: Option<Value>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "type")]
    _kind: Besides,
    #[serde(rename = "map")]
    _map: Besides,
    #[serde(rename = "policy")]
    _policy: Besides,
    #[serde(rename = "size")]
    _size: Besides,
    #[serde(rename = "gc-interval")]
    _interval: Besides,
    #[serde(rename = "auto-merge")]
    _merge: Besides,
    #[serde(rename = "stmt")]
    _statements: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleObject<'a> {
    pub(crate) family: String,
    pub(crate) table: String,
    pub(crate) chain: String,
    #[serde(borrow)]
    pub(crate) expr: Vec<&'a RawValue>,
    #[serde(rename = "handle")]
    _handle: Besides,
    #[serde(rename = "comment")]
    _comment: Besides,
}

/// The text, to find the place of a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    text: &'a str,
    lines: &'a Lines,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str, lines: &'a Lines) -> Self {
        Self { text, lines }
    }

    /// An error at a part of the text.
    pub(crate) fn error(
        self,
        part: &RawValue,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> ImportError {
        let offset = (part.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (line, column) = self.lines.place(offset.min(self.text.len()));
        ImportError::new(line, column, what, advice)
    }

    pub(crate) fn object<'b, T: Deserialize<'b>>(
        self,
        part: &'b RawValue,
        what: &str,
    ) -> Result<T, ImportError> {
        serde_json::from_str(part.get()).map_err(|error| {
            let what = format!("this is no {what}: {}", reason(&error));
            self.error(part, what, "print the ruleset again with `nft -j list ruleset`")
        })
    }

    /// The one member that an object must have.
    pub(crate) fn only<T>(
        self,
        part: &RawValue,
        object: BTreeMap<String, T>,
        what: &str,
    ) -> Result<(String, T), ImportError> {
        let mut members = object.into_iter();
        match (members.next(), members.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let what = format!("this is no {what}: it has not one member");
                Err(self.error(part, what, "print the ruleset again with `nft -j list ruleset`"))
            }
        }
    }
}

/// What the reader of JSON says, without the place, which is one within the part.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Reads the text as a ruleset, whose objects are looked at one by one.
pub(crate) fn document(text: &str) -> Result<Document<'_>, ImportError> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u32, error.column() as u32);
        let advice = "a ruleset is what `nft -j list ruleset` prints, whole";
        ImportError::new(
            line.max(1),
            column.max(1),
            format!("this is no ruleset: {}", reason(&error)),
            advice,
        )
    })
}

/// The elements of a list, or the one value.
pub(crate) fn flatten(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), |values| values).iter()
}
