//! The shape that every experiment's result has, as JSON and as the source of tables and plots.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// The result of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name as on the command line.
    pub experiment: String,
    /// Where and how it was measured.
    pub machine: Machine,
    /// What was measured.
    pub rows: Vec<Row>,
}

/// One figure with what it is held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was run: parts separated by commas, the traffic first.
    pub case: String,
    /// What was measured; where there is no figure, also why.
    pub what: String,
    /// The unit of all figures of the row; none where there is nothing to measure on this machine.
    pub unit: String,
    /// What was measured of ours; none where the run did not do what the interpreter does, and in rows of
    /// something else alone.
    pub ours: Option<Figure>,
    /// What it is held against, measured in the same run.
    pub other: Option<Other>,
    /// How much better ours is than the other: above 1 is better, also where less is better.
    pub ratio: Option<f64>,
    /// The figure of the publication that the experiment repeats, if it has one: the thesis on the language
    /// Steve (2016), or for `transfer` the study of a router on a GPU (2012), or for `hermes` Hermes (DAC
    /// 2011), or for `naming` AVES (USENIX 2001).
    pub paper: Option<f64>,
}

/// The middle and the range of several values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The middle one, or the mean of the middle two; where `is_mean`, the mean of all.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The values in the order in which they were measured; empty where the figure is computed otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Whether the middle is the mean, as a publication has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_mean: bool,
}

/// Something else that was measured in the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Other {
    /// What it is.
    pub name: String,
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The values in the order in which they were measured; empty where the figure is computed otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

/// Which way a unit is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Rates.
    More,
    /// Times.
    Less,
}

impl Figure {
    /// The figure of some runs; none where there were none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Figure> {
        let values: Vec<f64> = values.into_iter().collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Figure { median, low, high, values, is_mean: false })
    }

    /// The mean and the range of some values; none where there are none.
    pub(crate) fn mean_of(values: Vec<f64>) -> Option<Figure> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Figure::of(values).map(|figure| Figure { median: mean, is_mean: true, ..figure })
    }

    /// A figure that is computed, or of a single run.
    pub fn exactly(value: f64) -> Figure {
        Figure { median: value, low: value, high: value, values: Vec::new(), is_mean: false }
    }
}

impl Other {
    /// A named figure.
    pub fn of(name: &str, figure: Figure) -> Other {
        let Figure { median, low, high, values, is_mean: _ } = figure;
        Other { name: name.to_owned(), median, low, high, values }
    }
}

impl Row {
    /// A figure that nothing is held against.
    pub(crate) fn alone(case: &str, what: &str, unit: &str, ours: Option<Figure>, paper: Option<f64>) -> Row {
        let (case, what, unit) = (case.to_owned(), what.to_owned(), unit.to_owned());
        Row { case, what, unit, ours, other: None, ratio: None, paper }
    }

    /// The same row, held against something.
    pub(crate) fn against(mut self, other: Option<Other>, better: Better) -> Row {
        self.ratio = match (&self.ours, &other) {
            (Some(ours), Some(other)) if ours.median > 0.0 && other.median > 0.0 => Some(match better {
                Better::More => ours.median / other.median,
                Better::Less => other.median / ours.median,
            }),
            _ => None,
        };
        self.other = other;
        self
    }

    /// A figure of something else alone, as of the kernel's routing.
    pub(crate) fn of_other(case: &str, what: &str, unit: &str, other: Option<Other>) -> Row {
        Row { other, ..Row::alone(case, what, unit, None, None) }
    }

    /// Whether it should have a figure and has none.
    pub fn is_missing(&self) -> bool {
        self.ours.is_none() && self.other.is_none() && !self.unit.is_empty()
    }

    /// Which way its unit is better, where that is known: by its ratio, or by the unit itself.
    pub(crate) fn better(&self) -> Option<Better> {
        if let (Some(ours), Some(other), Some(ratio)) = (&self.ours, &self.other, self.ratio)
            && ours.median != other.median
        {
            let more = (ours.median > other.median) == (ratio > 1.0);
            return Some(if more { Better::More } else { Better::Less });
        }
        match self.unit.split(' ').next().unwrap_or("") {
            "Mpps" | "Gbit/s" | "Gb/s" | "MB/s" | "M/s" | "k/s" => Some(Better::More),
            "ns" | "µs" | "ms" | "s" | "MiB" | "KiB" => Some(Better::Less),
            _ => None,
        }
    }

    /// A row for what cannot be had on this machine, and why. It has no unit.
    pub(crate) fn absent(case: &str, what: &str, why: &str) -> Row {
        Row::alone(case, &format!("{what}: not here, since {why}"), "", None, None)
    }

    /// A row without a figure, and why.
    pub(crate) fn refused(case: &str, what: &str, unit: &str, why: &str) -> Row {
        Row::alone(case, &format!("{what}: no figure, since {why}"), unit, None, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_middle_and_the_range() {
        let odd = Figure::of([3.0, 1.0, 2.0]).expect("three values");
        assert_eq!(
            odd,
            Figure { median: 2.0, low: 1.0, high: 3.0, values: vec![3.0, 1.0, 2.0], is_mean: false }
        );
        let even = Figure::of([4.0, 1.0, 2.0, 3.0]).expect("four values");
        assert_eq!(even.median, 2.5);
        assert_eq!(Figure::of([]), None);
        let mean = Figure::mean_of(vec![4.0, 1.0, 1.0]).expect("three values");
        assert!(mean.is_mean && mean.median == 2.0 && mean.values == [4.0, 1.0, 1.0]);
    }

    #[test]
    fn a_ratio_above_one_is_better_for_ours() {
        let figure = Figure::exactly;
        let row = |better| {
            let other = Some(Other::of("other", figure(5.0)));
            Row::alone("c", "w", "u", Some(figure(10.0)), None).against(other, better).ratio
        };
        assert_eq!(row(Better::More), Some(2.0));
        assert_eq!(row(Better::Less), Some(0.5));
    }
}
