//! The rows of the experiment by function, algorithm, way and batch, for tables and plots.

use crate::experiment::Row;

/// What the way of a step of the ladder begins with.
pub(super) const LADDER: &str = "ladder: ";

/// What the case of a rate begins with that is to be reached.
pub(super) const WANTED: &str = "wanted: ";

/// A row, and what its case says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) function: &'a str,
    pub(super) algorithm: &'a str,
    pub(super) way: &'a str,
    pub(super) batch: usize,
    pub(super) row: &'a Row,
}

impl<'a> Placed<'a> {
    /// A row whose case is `function, algorithm, way, batch N`.
    pub(super) fn of(row: &'a Row) -> Option<Placed<'a>> {
        let (case, batch) = row.case.rsplit_once(", batch ")?;
        let mut parts = case.splitn(3, ", ");
        let (function, algorithm, way) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Placed { function, algorithm, way, batch: batch.parse().ok()?, row })
    }

    /// Function and algorithm.
    pub(super) fn title(&self) -> String {
        format!("{}, {}", self.function, self.algorithm)
    }

    /// Whether it is a step of the ladder.
    pub(super) fn is_step(&self) -> bool {
        self.way.starts_with(LADDER)
    }
}

/// One measure of all ways of a function by an algorithm, with a column for each batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot<'a> {
    /// The function and the algorithm.
    pub title: String,
    /// The batches, smallest first.
    pub batches: Vec<usize>,
    /// Each way with its rows, in the order of the batches.
    pub ways: Vec<(&'a str, Vec<Option<&'a Row>>)>,
    /// Whether the ways are steps of the ladder.
    pub is_ladder: bool,
}

/// A measure, by function and algorithm, of the rows of the experiment `transfer`. Rows without a figure say
/// why in what they measured, and are among those of every measure.
pub fn pivots<'a>(rows: &'a [Row], what: &str) -> Vec<Pivot<'a>> {
    let mut pivots: Vec<Pivot<'a>> = Vec::new();
    let wanted = |row: &&Row| row.what == what || row.ours.is_none();
    for placed in rows.iter().filter(wanted).filter_map(Placed::of) {
        let (title, is_ladder) = (placed.title(), placed.is_step());
        let known = pivots.iter().position(|pivot| pivot.title == title && pivot.is_ladder == is_ladder);
        let place = known.unwrap_or_else(|| {
            pivots.push(Pivot { title, batches: Vec::new(), ways: Vec::new(), is_ladder });
            pivots.len() - 1
        });
        let pivot = &mut pivots[place];
        if let Err(place) = pivot.batches.binary_search(&placed.batch) {
            pivot.batches.insert(place, placed.batch);
            pivot.ways.iter_mut().for_each(|(_, rows)| rows.insert(place, None));
        }
        let Ok(column) = pivot.batches.binary_search(&placed.batch) else { continue };
        let width = pivot.batches.len();
        let way = match pivot.ways.iter_mut().position(|(way, _)| *way == placed.way) {
            Some(way) => way,
            None => {
                pivot.ways.push((placed.way, vec![None; width]));
                pivot.ways.len() - 1
            }
        };
        pivot.ways[way].1[column] = Some(placed.row);
    }
    pivots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Figure;

    #[test]
    fn every_row_is_at_its_place_whatever_the_order() {
        let figure = |median| Some(Figure::exactly(median));
        let case = |way: &str, batch: usize| format!("LPM, our tables, {way}, batch {batch}");
        let rows = [
            Row::alone(&case("one core", 512), "rate", "Mpps", figure(1.0), None),
            Row::alone(&case("2 headers only", 8), "rate", "Mpps", figure(2.0), None),
            Row::alone(&case("2 headers only", 8), "delay", "µs", figure(3.0), None),
            Row::refused(&case("2 headers only", 512), "rate", "Mpps", "it lied"),
            Row::alone(&case("ladder: memory = mapped", 64), "rate", "Mpps", figure(4.0), None),
            Row::alone("something else", "rate", "Mpps", figure(5.0), None),
        ];
        let pivots = pivots(&rows, "rate");
        assert_eq!(pivots.len(), 2);
        assert_eq!((&pivots[0].title[..], &pivots[0].batches[..]), ("LPM, our tables", &[8, 512][..]));
        assert_eq!(pivots[0].ways[0], ("one core", vec![None, Some(&rows[0])]));
        assert_eq!(pivots[0].ways[1], ("2 headers only", vec![Some(&rows[1]), Some(&rows[3])]));
        assert!(pivots[1].is_ladder && pivots[1].ways[0].1 == [Some(&rows[4])]);
    }
}
