//! Pictures of the experiment as SVG, in the colour of the text around them: bars that are cut into parts,
//! and ladders.

use crate::page::escaped;
use std::fmt::Write;

/// A bar that is cut into parts.
pub(super) struct Stack {
    /// Whether it begins a group.
    pub(super) is_apart: bool,
    pub(super) label: String,
    /// Behind the bar.
    pub(super) note: String,
    /// Colour and size of each part.
    pub(super) parts: Vec<(&'static str, f64)>,
}

/// A step of a ladder.
pub(super) struct Step {
    pub(super) label: String,
    /// Whether it belongs to the setting from which the others are varied.
    pub(super) is_base: bool,
    /// Median, lowest and highest; or why there is none.
    pub(super) value: Result<[f64; 3], String>,
}

const WIDE: f64 = 1000.0;
const LABELS: f64 = 250.0;
const NOTES: f64 = 190.0;
/// Before a group of bars.
const GAP: f64 = 10.0;

/// The picture of bars that are cut into parts; each is as long as all others, so that shares show.
pub(super) fn stacks(bars: &[Stack]) -> String {
    let line = 22.0;
    let gaps = bars.iter().filter(|bar| bar.is_apart).count();
    let mut svg = begin(WIDE, bars.len() as f64 * line + gaps as f64 * GAP + 8.0);
    let room = WIDE - LABELS - NOTES;
    let mut next = 4.0;
    for bar in bars {
        let top = next + if bar.is_apart { GAP } else { 0.0 };
        next = top + line;
        text(&mut svg, LABELS - 8.0, top + 13.0, "end", 13, &bar.label);
        let sum: f64 = bar.parts.iter().map(|(_, size)| size).sum();
        let mut left = LABELS;
        for (colour, size) in &bar.parts {
            let wide = if sum > 0.0 { size / sum * room } else { 0.0 };
            let _ = write!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"17\" fill=\"{colour}\"/>"
            );
            // Only where it has room.
            if wide > 34.0 {
                let share = format!("{:.0} %", size / sum * 100.0);
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#fff\">{share}</text>",
                    left + wide / 2.0,
                    top + 12.5
                );
            }
            left += wide;
        }
        text(&mut svg, WIDE - NOTES + 8.0, top + 13.0, "start", 12, &bar.note);
    }
    svg + "</svg>"
}

/// The picture of a ladder: groups of steps with their heading.
pub(super) fn ladder(groups: &[(String, Vec<Step>)], unit: &str) -> String {
    let line = 20.0;
    let lines: usize = groups.iter().map(|(_, steps)| steps.len() + 1).sum();
    let mut svg = begin(WIDE, lines as f64 * line + 10.0 + groups.len() as f64 * 6.0);
    let values = groups.iter().flat_map(|(_, steps)| steps).filter_map(|step| step.value.as_ref().ok());
    let highest = values.map(|value| value[2]).fold(0.0, f64::max);
    let room = WIDE - LABELS - NOTES;
    let x = |value: f64| LABELS + if highest > 0.0 { value / highest * room } else { 0.0 };
    let mut top = 4.0;
    for (heading, steps) in groups {
        top += 6.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"13\" font-weight=\"600\">{}</text>",
            LABELS - 8.0,
            top + 13.0,
            escaped(heading)
        );
        top += line;
        for step in steps {
            text(&mut svg, LABELS - 8.0, top + 12.0, "end", 13, &step.label);
            match &step.value {
                Ok([median, low, high]) => {
                    let colour = if step.is_base { "#2f81d6" } else { "#8fb7e3" };
                    let _ = write!(
                        svg,
                        "<rect x=\"{LABELS}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"14\" fill=\"{colour}\"/>\
                         <path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"currentColor\"/>",
                        x(*median) - LABELS,
                        x(*low),
                        top + 7.0,
                        x(*high)
                    );
                    let told = format!("{} {unit}", short(*median));
                    text(&mut svg, x(*high) + 8.0, top + 12.0, "start", 12, &told);
                }
                Err(why) => {
                    let _ = write!(
                        svg,
                        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" font-style=\"italic\" fill-opacity=\".7\">{}</text>",
                        LABELS + 4.0,
                        top + 11.0,
                        escaped(why)
                    );
                }
            }
            top += line;
        }
    }
    svg + "</svg>"
}

fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" width=\"100%\" role=\"img\" font-family=\"sans-serif\" fill=\"currentColor\">"
    )
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: u32, words: &str) {
    let words = escaped(words);
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

/// A value as short as it can be read.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        thousands if thousands >= 1e6 => format!("{:.0} M", value / 1e6),
        thousands if thousands >= 10_000.0 => format!("{:.0} k", value / 1e3),
        hundreds if hundreds >= 100.0 => format!("{value:.0}"),
        tens if tens >= 10.0 => trimmed(format!("{value:.1}")),
        ones if ones >= 0.1 => trimmed(format!("{value:.2}")),
        _ => trimmed(format!("{value:.4}")),
    }
}

fn trimmed(number: String) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        let values = [65536.0, 8192.0, 512.0, 16.04, 1.0, 0.25, 0.0123, 0.0];
        let told = values.map(short);
        assert_eq!(told, ["66 k", "8192", "512", "16", "1", "0.25", "0.0123", "0"]);
    }

    #[test]
    fn parts_of_a_bar_fill_it() {
        let bar = Stack {
            is_apart: true,
            label: "l".into(),
            note: "n".into(),
            parts: vec![("#111", 1.0), ("#222", 3.0)],
        };
        let svg = stacks(&[bar]);
        let widths: f64 = svg
            .split("width=\"")
            .skip(2)
            .filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok())
            .sum();
        assert!((widths - (WIDE - LABELS - NOTES)).abs() < 0.2, "{svg}");
        assert!(svg.contains("75 %"));
    }
}
