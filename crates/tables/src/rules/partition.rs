//! Builds the trees of a table: tries a few ways to divide the rules among trees, and keeps the one with the
//! fastest lookups.
//!
//! The idea: a rule that leaves open what most rules fix would have to stand in most leaves of their tree;
//! two such kinds of rules in one tree multiply. So the two columns with the most different values are found,
//! and rules are shared out by which of the two they fix. What that costs lookups, one walk more for each
//! tree, is weighed against what it saves.

use super::encode::{Encoded, Layout};
use super::image::RulesImage;
use super::leaves::{Exhausted, Leaves};
use super::tree::{Grower, Region, Spread};
use std::collections::HashSet;

/// What one more tree costs a lookup, in blocks compared.
const TREE_WORK: f64 = 1.5;
/// The largest image, in bytes, that is assumed to stay in the caches near the core.
const NEAR_BYTES: f64 = 1024.0 * 1024.0;
/// How often the size must double beyond that for lookups to cost as much again.
const FAR_DOUBLINGS: f64 = 6.0;

/// Which rules share a tree.
#[derive(Clone, Copy, Debug)]
enum Sharing {
    One,
    /// Rules that fix this column, and the others.
    Two(usize),
    /// Rules that fix the first column, of the others those that fix the second, and the rest.
    Three(usize, usize),
}

/// Grows trees for all rules of `encoded`, whose numbers are in order, into `image`, which has none yet, with
/// `growth` as a bound of its bytes that only leaves which cannot be split exceed, and `limit` as one that
/// nothing exceeds. Notes in `homes` which tree each rule is in, and answers where the leaves stand.
pub(super) fn grow(
    encoded: &Encoded,
    image: &mut RulesImage,
    homes: &mut [u32],
    growth: usize,
    limit: usize,
) -> Result<Leaves, Exhausted> {
    if encoded.len() == 0 {
        return Ok(Leaves::new(limit));
    }
    let mut sharings = vec![Sharing::One];
    if encoded.len() > 64 {
        let columns = telling(encoded, &image.layout);
        if let [first, second, ..] = columns[..] {
            sharings.extend([Sharing::Two(first), Sharing::Two(second)]);
            sharings.extend([Sharing::Three(first, second), Sharing::Three(second, first)]);
        }
    }
    let mut best: Option<(f64, Sharing, RulesImage, Leaves)> = None;
    let mut refused = Exhausted { bytes: image.bytes() };
    for sharing in sharings {
        let (mut grown, mut leaves) = (image.clone(), Leaves::new(limit));
        let work = match trees(encoded, &mut grown, &mut leaves, sharing, growth) {
            Ok(work) => work,
            Err(exhausted) => {
                refused = exhausted;
                continue;
            }
        };
        let far = (grown.bytes() as f64 / NEAR_BYTES).max(1.0).log2() / FAR_DOUBLINGS;
        let cost = work * (1.0 + far);
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, sharing, grown, leaves));
        }
    }
    let (_, sharing, grown, leaves) = best.ok_or(refused)?;
    *image = grown;
    for (tree, rules) in share(encoded, &image.layout, sharing).into_iter().enumerate() {
        rules.iter().for_each(|&(id, _)| homes[id as usize] = tree as u32);
    }
    Ok(leaves)
}

/// Grows the trees of one way to share the rules, and answers what they cost lookups.
fn trees(
    encoded: &Encoded,
    image: &mut RulesImage,
    leaves: &mut Leaves,
    sharing: Sharing,
    growth: usize,
) -> Result<f64, Exhausted> {
    let mut work = 0.0;
    let whole = Region::whole(image.layout.words());
    for rules in share(encoded, &image.layout, sharing) {
        let count = rules.len() as f64;
        let mut grower = Grower::new(encoded, image, leaves, growth, Spread::BUILD);
        let root = grower.grow(rules, &whole)?;
        work += TREE_WORK + grower.work / count;
        image.roots.push(root);
        leaves.name(root);
    }
    Ok(work)
}

/// The rules of each tree, each with one packet.
fn share(encoded: &Encoded, layout: &Layout, sharing: Sharing) -> Vec<Vec<(u32, f32)>> {
    let mut shares = vec![Vec::new(); 3];
    for id in 0..encoded.len() as u32 {
        let share = match sharing {
            Sharing::One => 0,
            Sharing::Two(column) => usize::from(!fixes(encoded, layout, id, column)),
            Sharing::Three(first, _) if fixes(encoded, layout, id, first) => 0,
            Sharing::Three(_, second) => 1 + usize::from(!fixes(encoded, layout, id, second)),
        };
        shares[share].push((id, 1.0));
    }
    shares.retain(|rules| !rules.is_empty());
    shares
}

/// Whether a rule fixes at least a fifth of a column's bits.
fn fixes(encoded: &Encoded, layout: &Layout, id: u32, column: usize) -> bool {
    5 * fixed_bits(encoded, layout, id, column).0.count_ones() >= u32::from(layout.widths[column])
}

/// Which bits of a column a rule fixes and to what.
fn fixed_bits(encoded: &Encoded, layout: &Layout, id: u32, column: usize) -> (u128, u128) {
    (layout.column(encoded.care(id), column), layout.column(encoded.fixed(id), column))
}

/// The columns, those first in which the rules that fix them differ most.
fn telling(encoded: &Encoded, layout: &Layout) -> Vec<usize> {
    let mut columns: Vec<(usize, usize)> = (0..layout.widths.len())
        .map(|column| {
            let fixing = (0..encoded.len() as u32).filter(|&id| fixes(encoded, layout, id, column));
            let different: HashSet<_> = fixing.map(|id| fixed_bits(encoded, layout, id, column)).collect();
            (different.len(), column)
        })
        .collect();
    columns.sort_by_key(|&(different, column)| (usize::MAX - different, column));
    columns.into_iter().map(|(_, column)| column).collect()
}
