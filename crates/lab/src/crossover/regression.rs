//! What a batch costs by its size, as two formulas, and where one place becomes faster than another.
//!
//! The idea: a fixed part and one that grows with the batch either add up, T = T0 + B · slope, or overlap,
//! T = max(T0, B · slope). Both are fitted with the smallest squares of relative errors, so that small
//! batches count as much as large ones.

/// How the two parts go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// T0 + B · slope.
    Sum,
    /// max(T0, B · slope).
    Max,
}

/// A formula for times of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Regression {
    /// Its form.
    pub(crate) form: Form,
    /// Its fixed part, in the unit of the times.
    pub(crate) fixed: f64,
    /// What a packet adds.
    pub(crate) slope: f64,
    /// The root of the mean square of its relative errors.
    pub(crate) error: f64,
}

impl Regression {
    /// Fits a form to batches and their times, all of them above 0; none where there are fewer than two.
    pub(crate) fn of(form: Form, points: &[(f64, f64)]) -> Option<Regression> {
        if points.len() < 2 {
            return None;
        }
        match form {
            Form::Sum => Some(sum(points)),
            Form::Max => {
                let cuts = 0..=points.len();
                cuts.map(|cut| max(points, cut)).min_by(|one, other| one.error.total_cmp(&other.error))
            }
        }
    }

    /// The form that fits better.
    pub(crate) fn better(points: &[(f64, f64)]) -> Option<Regression> {
        let (sum, max) = (Regression::of(Form::Sum, points)?, Regression::of(Form::Max, points)?);
        Some(if max.error < sum.error { max } else { sum })
    }

    /// The time of a batch.
    pub(crate) fn time(&self, packets: f64) -> f64 {
        match self.form {
            Form::Sum => self.fixed + self.slope * packets,
            Form::Max => self.fixed.max(self.slope * packets),
        }
    }

    fn judged(self, points: &[(f64, f64)]) -> Regression {
        let square = |(packets, time): &(f64, f64)| (self.time(*packets) / time - 1.0).powi(2);
        Regression { error: (points.iter().map(square).sum::<f64>() / points.len() as f64).sqrt(), ..self }
    }
}

fn sum(points: &[(f64, f64)]) -> Regression {
    // Relative errors: of T0/t + slope·b/t - 1.
    let total =
        |term: &dyn Fn(f64, f64) -> f64| points.iter().map(|(b, t)| term(1.0 / t, b / t)).sum::<f64>();
    let (aa, ab, bb) = (total(&|a, _| a * a), total(&|a, b| a * b), total(&|_, b| b * b));
    let (a, b) = (total(&|a, _| a), total(&|_, b| b));
    let determinant = aa * bb - ab * ab;
    let fit =
        |fixed: f64, slope: f64| Regression { form: Form::Sum, fixed, slope, error: 0.0 }.judged(points);
    let (fixed, slope) = ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
    match (fixed >= 0.0, slope >= 0.0) {
        (true, true) => fit(fixed, slope),
        (false, _) => fit(0.0, b / bb),
        // All batches have one size, or larger ones take less time.
        _ => fit(a / aa, 0.0),
    }
}

/// The best maximum of which the first so many points are on the fixed part.
fn max(points: &[(f64, f64)], cut: usize) -> Regression {
    let (flat, sloping) = points.split_at(cut);
    let ratio = |points: &[(f64, f64)], term: &dyn Fn(f64, f64) -> f64| {
        let (one, square) = points
            .iter()
            .map(|(b, t)| term(*b, *t))
            .fold((0.0, 0.0), |(one, square), term| (one + term, square + term * term));
        if square > 0.0 { one / square } else { 0.0 }
    };
    let fixed = ratio(flat, &|_, t| 1.0 / t);
    let slope = ratio(sloping, &|b, t| b / t);
    Regression { form: Form::Max, fixed, slope, error: 0.0 }.judged(points)
}

/// From which batch on the second time is the smaller one: between the largest batch for which it is not and
/// the next one, on straight lines of logarithms. The points are batches with both times, in order of size;
/// none where the second time is larger for the largest.
pub(crate) fn crossing(points: &[(f64, f64, f64)]) -> Option<f64> {
    let gain = |(_, one, other): &(f64, f64, f64)| (one / other).ln();
    let slower = points.iter().rposition(|point| gain(point) < 0.0);
    let Some(slower) = slower else { return points.first().map(|point| point.0) };
    let (before, after) = (points[slower], points.get(slower + 1)?);
    let share = gain(&before) / (gain(&before) - gain(after));
    Some((before.0.ln() + share * (after.0.ln() - before.0.ln())).exp())
}

/// The same for two formulas, up to so many packets, to a hundredth.
pub(crate) fn crossing_of(one: &Regression, other: &Regression, most: f64) -> Option<f64> {
    let mut packets = most;
    if other.time(packets) > one.time(packets) {
        return None;
    }
    while packets > 1.0 && other.time(packets / 1.01) <= one.time(packets / 1.01) {
        packets /= 1.01;
    }
    Some(packets.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCHES: [f64; 8] = [8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 16_384.0, 65_536.0];

    fn points(time: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        BATCHES.iter().map(|batch| (*batch, time(*batch))).collect()
    }

    #[test]
    fn the_form_that_made_the_times_is_found_with_its_numbers() {
        for (fixed, slope) in [(108.0, 0.11), (15.0, 0.02), (300.0, 1.0)] {
            let sum = Regression::better(&points(|batch| fixed + slope * batch)).expect("eight points");
            let max = Regression::better(&points(|batch| (slope * batch).max(fixed))).expect("eight points");
            assert_eq!((sum.form, max.form), (Form::Sum, Form::Max));
            for fit in [sum, max] {
                assert!(
                    (fit.fixed / fixed - 1.0).abs() < 1e-6 && (fit.slope / slope - 1.0).abs() < 1e-6,
                    "{fit:?}"
                );
                assert!(fit.error < 1e-6, "{fit:?}");
            }
        }
    }

    #[test]
    fn the_original_s_times_fit_a_maximum_with_a_crossing_at_300_packets() {
        // Millions of bytes a second of 64 bytes each, of the fourth iteration: the device's and one core's.
        let plotted = [
            (32.0, 19.0, 171.0),
            (64.0, 34.6, 182.0),
            (128.0, 73.1, 187.0),
            (256.0, 150.0, 183.0),
            (512.0, 300.0, 186.0),
            (1024.0, 507.0, 180.0),
            (2048.0, 541.0, 171.0),
            (4096.0, 540.0, 177.0),
            (8192.0, 565.0, 172.0),
            (16_384.0, 566.0, 176.0),
            (65_536.0, 607.0, 174.0),
        ];
        let micros = |batch: f64, rate: f64| batch * 64.0 / rate;
        let times: Vec<_> = plotted
            .iter()
            .map(|(batch, gpu, core)| (*batch, micros(*batch, *core), micros(*batch, *gpu)))
            .collect();
        let of = |time: &dyn Fn(&(f64, f64, f64)) -> f64| {
            Regression::better(&times.iter().map(|point| (point.0, time(point))).collect::<Vec<_>>())
                .expect("points")
        };
        let (core, gpu) = (of(&|point| point.1), of(&|point| point.2));
        assert_eq!(gpu.form, Form::Max);
        assert!((105.0..115.0).contains(&gpu.fixed) && (0.105..0.125).contains(&gpu.slope), "{gpu:?}");
        let measured = crossing(&times).expect("it crosses");
        assert!((300.0..325.0).contains(&measured), "{measured}");
        let modelled = crossing_of(&core, &gpu, 65_536.0).expect("it crosses");
        assert!((280.0..320.0).contains(&modelled), "{modelled}");
    }

    #[test]
    fn a_crossing_is_where_arithmetic_says_or_nowhere() {
        let times = |fixed: f64, slope: f64| -> Vec<_> {
            BATCHES.iter().map(|batch| (*batch, 100.0 * batch, fixed + slope * batch)).collect()
        };
        // 30,000 / (100 - 10).
        let found = crossing(&times(30_000.0, 10.0)).expect("it crosses");
        assert!((300.0..370.0).contains(&found), "{found}");
        assert_eq!(crossing(&times(30_000.0, 100.0)), None);
        assert_eq!(crossing(&times(1.0, 10.0)), Some(8.0));
        let fit = |fixed, slope| Regression { form: Form::Sum, fixed, slope, error: 0.0 };
        let exact = crossing_of(&fit(0.0, 100.0), &fit(30_000.0, 10.0), 65_536.0).expect("it crosses");
        assert!((exact / (30_000.0 / 90.0) - 1.0).abs() < 0.02, "{exact}");
        assert_eq!(crossing_of(&fit(0.0, 100.0), &fit(30_000.0, 100.0), 65_536.0), None);
        assert_eq!(Regression::of(Form::Sum, &[(8.0, 1.0)]), None);
    }
}
