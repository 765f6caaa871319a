//! Tables of rules on a device: the trees of the host's image, and rules that are tried one after the other.
//!
//! An image of trees is what [`LpmImage::to_bytes`](crate::rules::RulesImage::to_bytes) writes, in words:
//!
//! ```text
//! byte 0   "RVRULES2"
//!      8   number of columns, 32 bits          12  elements of a packed key, 32 bits
//!     16   seven times: where a section begins, 64 bits | how many items it has, 64 bits
//!          (roots, nodes, children, lines of blocks, ids, rules, checks)
//!    128   widths of the columns, a byte each
//!  then    the sections in that order, each from a multiple of 64 bytes on
//! ```
//!
//! [`linear`](super::linear) makes the image of rules in order of trial. [`TEXT`] has a function for each
//! that learns the columns from the image, for packed keys of at most 2,048 bits; [`text`] prints functions
//! that know the columns of one table, have no such bound and are faster.

mod twin;

use super::linear::{CHUNK, Shape};
use crate::rules::RulesSpec;
use crate::rules::encode::MOST_FLAGS;
use std::fmt::Write;
pub use twin::{find, find_linear};

/// `u32 rules_find(GLOBAL const u32 *image, const u64 *key)` over an image of trees and
/// `u32 rules_find_linear(GLOBAL const u32 *image, const u64 *key)` over one of rules in order: the value of
/// the first rule that fits, or [`NONE`](super::NONE). The key has the words that
/// [`Rules::find`](crate::rules::Rules::find) takes.
pub const TEXT: &str = include_str!("rules.h");

/// The image of trees of a table's [`LpmImage`](crate::rules::RulesImage).
pub fn image(image: &crate::rules::RulesImage) -> Vec<u32> {
    super::words(&image.to_bytes())
}

/// Functions for the columns of one table, to stand behind [`TEXT`]: `NAME` does as `rules_find`, and
/// `NAME_linear` as `rules_find_linear`.
pub fn text(name: &str, spec: &RulesSpec) -> String {
    let shape = Shape::of(spec);
    let words = shape.layout.words();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_text(&mut text, name, &shape, &pack(&shape), words);
    text
}

fn write_text(
    text: &mut String,
    name: &str,
    shape: &Shape,
    pack: &str,
    words: usize,
) -> Result<(), std::fmt::Error> {
    let elements = shape.layout.elements();
    let flags = shape.layout.flags_at().map_or("RULES_NO_FLAGS".to_string(), |at| at.to_string());
    writeln!(
        text,
        "INLINE u32 {name}(GLOBAL const u32 *image, const u64 *key)\n{{\n    u64 packed[{words}];"
    )?;
    writeln!(text, "{pack}    return rules_find_packed(image, packed, {words}, {elements}, {flags});\n}}\n")?;
    writeln!(text, "INLINE u32 {name}_linear(GLOBAL const u32 *image, const u64 *key)\n{{")?;
    writeln!(text, "    u64 packed[{words}];\n    u32 chunks = image[4], chunk, rule;")?;
    for pair in &shape.pairs {
        writeln!(text, "    u32 pair_{pair};")?;
    }
    for element in &shape.ranges {
        writeln!(text, "    u32 element_{element};")?;
    }
    writeln!(text, "    GLOBAL const u32 *rules = image + image[5];\n{pack}")?;
    for pair in &shape.pairs {
        writeln!(text, "    pair_{pair} = rules_pair(packed, {pair});")?;
    }
    for element in &shape.ranges {
        writeln!(text, "    element_{element} = rules_element(packed, {element});")?;
    }
    writeln!(text, "    for (chunk = 0; chunk < chunks; chunk++) {{\n        u32 hits = 0;")?;
    writeln!(text, "        for (rule = 0; rule < {CHUNK}; rule++) {{\n            u32 fits, differs = 0;")?;
    for (place, pair) in shape.pairs.iter().enumerate() {
        let (value, mask) = (2 * place * CHUNK, (2 * place + 1) * CHUNK);
        writeln!(
            text,
            "            differs |= (pair_{pair} ^ rules[{value} + rule]) & rules[{mask} + rule];"
        )?;
    }
    writeln!(text, "            fits = (u32)(differs == 0);")?;
    for (place, element) in shape.ranges.iter().enumerate() {
        let bounds = format!("rules[{} + rule]", (2 * shape.pairs.len() + place) * CHUNK);
        writeln!(
            text,
            "            fits &= (u32)(element_{element} - ({bounds} & 0xffff) <= {bounds} >> 16);"
        )?;
    }
    writeln!(text, "            hits |= fits << rule;\n        }}\n        rules += {};", shape.compared())?;
    writeln!(text, "        if (hits != 0) {{")?;
    writeln!(text, "            u32 at = rules_settle(image, rules, hits, packed);")?;
    writeln!(
        text,
        "            if (at < {CHUNK}) {{\n                return rules[at];\n            }}\n        }}"
    )?;
    writeln!(text, "        rules += {};\n    }}\n    return RULES_NONE;\n}}", 2 * CHUNK)
}

/// The statements that pack a key.
fn pack(shape: &Shape) -> String {
    let mut text = String::new();
    for word in 0..shape.layout.words() {
        let mut terms = Vec::new();
        let elements = shape.layout.sources.iter().skip(4 * word).take(4);
        for (place, &(from, shift, keep)) in elements.enumerate() {
            terms.push(format!("(key[{from}] >> {shift} & {keep:#x}) << {}", 16 * place));
        }
        if let Some(at) = shape.layout.flags_at().filter(|at| at / 4 == word) {
            for (flag, from) in shape.layout.flags.iter().enumerate() {
                let set = 16 * (at % 4) + flag;
                terms.push(format!("(key[{from}] & 1) << {set}"));
                terms.push(format!("(~key[{from}] & 1) << {}", set + MOST_FLAGS));
            }
        }
        let sum = if terms.is_empty() { "0".to_string() } else { terms.join(" | ") };
        let _ = writeln!(text, "    packed[{word}] = {sum};");
    }
    text
}

#[cfg(test)]
mod tests;
