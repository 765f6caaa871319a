//! What the original measured: figures read off its plots, whose axis says Gbit/s and whose numbers are
//! millions of bytes a second.
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

/// The same on one processor, in the last iteration, where it does nothing besides.
const PROCESSOR: [f64; 11] = [171.0, 182.0, 187.0, 183.0, 186.0, 180.0, 171.0, 177.0, 172.0, 176.0, 174.0];

/// Where a figure of the original is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Its GPU, in an iteration from 1 on.
    Device(usize),
    /// Its processor, one core.
    Host,
}

/// The original's millions of bytes a second at a batch.
pub(super) fn megabytes(of: Of, batch: usize) -> Option<f64> {
    let place = BATCHES.iter().position(|known| *known == batch)?;
    match of {
        Of::Device(iteration) => DEVICE.get(iteration.checked_sub(1)?).map(|row| row[place]),
        Of::Host => Some(PROCESSOR[place]),
    }
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
        assert!(megabytes(Of::Host, 1024).is_some_and(|rate| rate < 200.0));
    }
}
