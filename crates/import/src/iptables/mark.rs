//! Targets that mark packets and connections for others: routing, queues, other machines. No mark decides
//! anything here, since no rule that asks for one is kept.

use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::text::shown;

/// A target, whether Linux follows connections for it, and its options with the number of values behind each.
struct MarkTarget {
    name: &'static str,
    follows_connections: bool,
    options: &'static [(&'static str, usize)],
}

const TARGETS: [MarkTarget; 5] = [
    MarkTarget {
        name: "MARK",
        follows_connections: false,
        options: &[
            ("--set-xmark", 1),
            ("--set-mark", 1),
            ("--and-mark", 1),
            ("--or-mark", 1),
            ("--xor-mark", 1),
        ],
    },
    MarkTarget {
        name: "CONNMARK",
        follows_connections: true,
        options: &[
            ("--set-xmark", 1),
            ("--set-mark", 1),
            ("--and-mark", 1),
            ("--or-mark", 1),
            ("--xor-mark", 1),
            ("--save-mark", 0),
            ("--restore-mark", 0),
            ("--nfmask", 1),
            ("--ctmask", 1),
            ("--mask", 1),
        ],
    },
    MarkTarget { name: "CLASSIFY", follows_connections: false, options: &[("--set-class", 1)] },
    MarkTarget { name: "SECMARK", follows_connections: false, options: &[("--selctx", 1)] },
    MarkTarget {
        name: "CONNSECMARK",
        follows_connections: true,
        options: &[("--save", 0), ("--restore", 0)],
    },
];

fn found(name: &str) -> Option<&'static MarkTarget> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Whether the word behind `-j` is such a target, and no chain of this name.
pub(super) fn is_target(arguments: &Arguments<'_>, chain: &dyn Fn(&str) -> Option<usize>) -> bool {
    let name = arguments.ahead().first().map(|word| &*word.text);
    name.is_some_and(|name| chain(name).is_none() && found(name).is_some())
}

/// Reads the target behind `-j` and its options. True if Linux follows connections for it.
pub(super) fn read(option: &Argument<'_>, arguments: &mut Arguments<'_>) -> Result<bool, ImportError> {
    let name = arguments.value(option)?;
    let Some(target) = found(&name.text) else { return Ok(false) };
    let known = |word: &Argument<'_>| target.options.iter().find(|(own, _)| *own == word.text);
    let mut seen = Vec::new();
    while let Some((own, values)) = arguments.ahead().first().and_then(known) {
        let Some(option) = arguments.next() else { break };
        if seen.contains(own) {
            return Err(option.error(format!("`{own}` is there twice"), "write it once"));
        }
        seen.push(*own);
        for _ in 0..*values {
            arguments.value(&option)?;
        }
    }
    if !seen.is_empty() {
        return Ok(target.follows_connections);
    }
    let words: Vec<&str> = target.options.iter().map(|(own, _)| *own).collect();
    let what = format!("the target {} does not say what it marks", shown(&name.text));
    Err(name.error(what, format!("its options are {}", words.join(", "))))
}
