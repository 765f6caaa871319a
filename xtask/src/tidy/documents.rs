//! Rules about the documents: links resolve, the packet walk leads to real functions, the changelog has a
//! heading to write under.

use super::rust::{code_only, defines_function};
use super::{Finding, Tree};

/// The eight stops of a packet, in order.
const STOPS: [&str; 8] = ["receive", "batch", "decode", "lookup", "act", "verdict", "commit", "transmit"];
const WALK: &str = "docs/packet-walk.md";

/// Every relative link leads to a file, and to a heading where it names one.
pub(super) fn links(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("md") {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let place = if file.is_empty() { Some(path.to_owned()) } else { resolve(path, file) };
            let Some(place) = place.filter(|place| tree.exists(place)) else {
                findings.push(Finding::new(path, line, "link", format!("`{target}` leads nowhere")));
                continue;
            };
            if place.ends_with(".md")
                && !fragment.is_empty()
                && !headings(tree, &place).any(|slug| slug == fragment)
            {
                findings.push(Finding::new(
                    path,
                    line,
                    "link",
                    format!("`{place}` has no heading `#{fragment}`"),
                ));
            }
        }
    }
}

/// The walk has its eight stops in order, and each leads to at least one function that exists.
pub(super) fn packet_walk(tree: &Tree, findings: &mut Vec<Finding>) {
    const RULE: &str = "packet-walk";
    let Some(text) = tree.text(WALK) else {
        findings.push(Finding::new(WALK, 0, RULE, "is missing"));
        return;
    };
    for (number, stop) in (1..).zip(STOPS) {
        let heading = format!("## {number}. {stop}");
        let stops: Vec<(usize, &str)> = section(text, &heading).collect();
        if stops.is_empty() {
            findings.push(Finding::new(WALK, 0, RULE, format!("the stop `{heading}` is missing")));
        } else if !stops.iter().flat_map(|(_, line)| targets(line)).any(|(_, target)| target.contains(".rs#"))
        {
            findings.push(Finding::new(
                WALK,
                stops[0].0,
                RULE,
                format!("`{stop}` links to no function (`path.rs#function`)"),
            ));
        }
    }
    for (line, target) in targets(text) {
        let Some((file, function)) = target.split_once('#').filter(|(file, _)| file.ends_with(".rs")) else {
            continue;
        };
        // A file that is missing is reported with the links.
        let Some(source) = resolve(WALK, file).and_then(|place| tree.text(&place)) else { continue };
        if !defines_function(&code_only(source), function) {
            findings.push(Finding::new(
                WALK,
                line,
                RULE,
                format!("`{file}` defines no function `{function}`"),
            ));
        }
    }
}

/// A block that begins with "```rav PATH" is a piece of that file, word for word.
pub(super) fn excerpts(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("md") {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("```rav ") {
            let (file, body) = after.split_once('\n').unwrap_or((after, ""));
            let (excerpt, next) = body.split_once("```").unwrap_or((body, ""));
            // Other words behind `rav` say how the compiler's tests take the block.
            let is_path = file.trim().ends_with(".rav") && !file.trim().contains(' ');
            if is_path && !tree.text(file.trim()).is_some_and(|source| source.contains(excerpt)) {
                let line = text[..text.len() - rest.len() + before.len()].lines().count() + 1;
                findings.push(Finding::new(
                    path,
                    line,
                    "excerpt",
                    format!("this is not a piece of `{}`", file.trim()),
                ));
            }
            rest = next;
        }
    }
}

/// The changelog has a heading for what is being built or was released.
pub(super) fn changelog(tree: &Tree, findings: &mut Vec<Finding>) {
    const PAGE: &str = "CHANGELOG.md";
    let is_version = |line: &str| {
        let name = line.strip_prefix("## ").unwrap_or("").trim_start_matches('[');
        name.starts_with("Unreleased") || name.split('.').next().is_some_and(|n| n.parse::<u32>().is_ok())
    };
    if !tree.text(PAGE).unwrap_or("").lines().any(is_version) {
        findings.push(Finding::new(
            PAGE,
            0,
            "changelog",
            "needs a heading `## [Unreleased]` or `## [1.2.3]`",
        ));
    }
}

/// The lines under a heading, with their numbers, the heading's own line included, up to the next heading of
/// the same or a higher level.
pub(super) fn section<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let level = |line: &str| line.bytes().take_while(|&b| b == b'#').count();
    let own = level(heading);
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        if line.trim_end() == heading {
            inside = true;
        } else if (1..=own).contains(&level(line)) {
            inside = false;
        }
        inside
    })
}

/// The first and the last cell of each row of the tables under a heading.
pub(super) fn rows<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    section(text, heading).filter_map(|(_, line)| {
        let (first, others) = line.trim().strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
        Some((first.trim(), others.rsplit('|').next()?.trim()))
    })
}

/// Targets of Markdown links outside code, with their line.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).flat_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let prose = if fenced { "" } else { line };
        prose
            .split("](")
            .skip(1)
            .filter_map(|piece| piece.split(')').next())
            .map(move |target| (number, target))
    })
}

/// `target` as seen from the folder of `from`; none if it leads out of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Headings of a page in the form in which links name them.
fn headings<'a>(tree: &'a Tree, page: &str) -> impl Iterator<Item = String> + use<'a> {
    let lines = tree.text(page).unwrap_or("").lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .collect::<String>()
            .replace(' ', "-")
    })
}
