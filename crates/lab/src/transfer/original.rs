//! What the original measured: bandwidths read off its plots, whose axis says Gbit/s and whose numbers are
//! millions of bytes a second; and delays of its first iteration, from the data that it published beside.
//!
//! Its program prints packets · 64 / 10⁶ as "Gbps": 125 times as much as it moved. Its figures are those of
//! 100 rules on one laptop of 2012; that they belong to the firewall follows from what it prints of other
//! numbers of rules (2.83 ns a rule and packet on the processor).

/// The batches of the tables below.
pub(super) const BATCHES: [usize; 11] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536];

/// Millions of bytes a second on the GPU, by iteration.
const DEVICE: [[f64; 11]; 4] = [
    [1.18, 2.21, 3.85, 6.18, 8.18, 5.31, 5.47, 5.17, 4.63, 4.52, 3.50],
    [1.34, 2.60, 4.77, 8.35, 10.34, 9.82, 7.71, 6.76, 5.74, 5.65, 5.16],
    [1.45, 2.85, 5.32, 9.01, 10.26, 9.89, 8.06, 7.07, 6.18, 5.80, 5.71],
    [19.0, 34.6, 73.1, 150.0, 300.0, 507.0, 541.0, 540.0, 565.0, 566.0, 607.0],
];

/// The same on one processor; in the last iteration it does nothing besides.
const PROCESSOR: [[f64; 11]; 4] = [
    [1.41, 2.58, 4.16, 5.72, 7.04, 7.68, 7.67, 6.85, 5.76, 5.53, 4.96],
    [1.39, 2.53, 4.13, 6.06, 7.23, 7.62, 7.68, 6.68, 5.90, 5.65, 5.16],
    [1.36, 2.39, 4.19, 6.07, 7.33, 7.83, 7.92, 6.95, 6.03, 5.72, 5.28],
    [171.0, 182.0, 187.0, 183.0, 186.0, 180.0, 171.0, 177.0, 172.0, 176.0, 174.0],
];

/// Delays of the first iteration for its batches from 128 on, in milliseconds: of the first packet of a batch
/// and of the last, on the GPU and on one processor (`batch_size_vs_runtime.data`).
const DELAYS: [[[f64; 2]; 2]; 6] = [
    [[2.773, 1.743], [2.006, 0.753]],
    [[4.094, 2.892], [2.820, 1.516]],
    [[6.770, 5.054], [4.553, 2.972]],
    [[12.456, 9.631], [8.339, 5.856]],
    [[23.734, 18.715], [16.367, 11.806]],
    [[50.984, 36.725], [37.673, 23.756]],
];
const DELAYED: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];

/// Where a figure of the original is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Its GPU, in an iteration from 1 on.
    Device(usize),
    /// Its processor, one core, beside that iteration.
    Host(usize),
}

/// What it measured at a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Printed {
    /// Millions of bytes a second.
    pub(super) megabytes: Option<f64>,
    /// Microseconds of the first packet of a batch, and of its last.
    pub(super) first: Option<f64>,
    pub(super) last: Option<f64>,
}

impl Printed {
    /// What belongs to a figure's place at a batch.
    pub(super) fn at(of: Of, batch: usize) -> Printed {
        let delays = DELAYED.iter().position(|known| *known == batch).map(|place| DELAYS[place]);
        let delays = match of {
            Of::Device(1) => delays.map(|delays| delays[0]),
            Of::Host(1) => delays.map(|delays| delays[1]),
            _ => None,
        };
        let [first, last] = [0, 1].map(|end| delays.map(|delays| delays[end] * 1e3));
        Printed { megabytes: megabytes(of, batch), first, last }
    }
}

/// The original's millions of bytes a second at a batch.
pub(super) fn megabytes(of: Of, batch: usize) -> Option<f64> {
    let place = BATCHES.iter().position(|known| *known == batch)?;
    let (rows, iteration) = match of {
        Of::Device(iteration) => (&DEVICE, iteration),
        Of::Host(iteration) => (&PROCESSOR, iteration),
    };
    rows.get(iteration.checked_sub(1)?).map(|row| row[place])
}

/// Millions of packets a second that a number of millions of bytes a second was made of.
pub(super) fn packets(megabytes: f64) -> f64 {
    megabytes / 64.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_peaks_at_nine_million_packets_and_not_at_six_hundred_gigabits() {
        let most = megabytes(Of::Device(4), 65536).expect("it measured that");
        assert!((packets(most) - 9.48).abs() < 0.01, "millions of packets a second");
        assert!(most * 8.0 / 1000.0 < 5.0, "Gbit/s");
        assert_eq!(megabytes(Of::Device(1), 8), None);
        assert_eq!(megabytes(Of::Device(0), 32), None);
        assert_eq!(Printed::at(Of::Host(1), 1024).first, Some(8339.0));
        assert_eq!(Printed::at(Of::Host(2), 1024).first, None);
        assert_eq!(Printed::at(Of::Device(1), 8), Printed::default());
        assert!(megabytes(Of::Host(4), 1024).is_some_and(|rate| rate < 200.0));
    }
}
