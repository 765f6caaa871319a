//! Reads the answers of a running gateway: their fields, and how fast its numbers grow. A field that is not
//! there reads as nothing.

use serde_json::Value;

/// A field that is text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A field that is a number.
pub(crate) fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(0.0)
}

/// A field that is a count.
pub(crate) fn whole(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

/// A field that is a list.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What a gateway did between two of its pictures.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// The picture at the beginning; null if the program took over since then: its account began at nothing.
    pub(crate) before: Value,
    /// The picture at the end.
    pub(crate) now: Value,
    /// The time between them, or since the program took over.
    pub(crate) seconds: f64,
}

impl Interval {
    /// Between two pictures; `before` is null for everything since the program took over.
    pub(crate) fn new(before: Value, now: Value) -> Interval {
        let before = if before["generation"] == now["generation"] { before } else { Value::Null };
        let seconds = number(&now, "seconds") - number(&before, "seconds");
        Interval { before, now, seconds }
    }

    /// By how much the number at this JSON pointer has grown.
    pub(crate) fn grown(&self, place: &str) -> u64 {
        let at = |view: &Value| view.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        at(&self.now).saturating_sub(at(&self.before))
    }

    /// By how much it grew in a second.
    pub(crate) fn per_second(&self, place: &str) -> f64 {
        if self.seconds > 0.0 { self.grown(place) as f64 / self.seconds } else { 0.0 }
    }

    /// The members of an object of the picture at the end, such as its tables, by name.
    pub(crate) fn members(&self, place: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.now.pointer(place).and_then(Value::as_object).into_iter().flatten()
    }

    /// How many ports there are.
    pub(crate) fn ports(&self) -> usize {
        list(&self.now, "ports").len()
    }

    /// The lines of the program that give this reason.
    pub(crate) fn places(&self, reason: &str) -> Vec<&str> {
        list(&self.now["places"], reason).iter().filter_map(Value::as_str).collect()
    }
}
