//! How many bits of memory the mechanism needs in hardware, counted as the publication does and completely.

use super::HermesSettings;

/// Bytes by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Of the task FIFO.
    pub fifo: u64,
    /// Of the commit queue.
    pub commits: u64,
    /// Of the table from warps to places in it.
    pub table: u64,
    /// Of what the publication leaves out: a done bit and the packets of every entry of the commit queue, and
    /// the positions of both.
    pub rest: u64,
}

impl Storage {
    /// As the publication counts.
    pub fn published(&self) -> u64 {
        self.fifo + self.commits + self.table
    }

    /// All of it.
    pub fn complete(&self) -> u64 {
        self.published() + self.rest
    }
}

/// What settings need. A task takes 32 bits, a warp's name as many as there are names need and at least 8, a
/// place in the queue 16.
pub fn storage(settings: &HermesSettings) -> Storage {
    let names = u64::from(settings.cores) * u64::from(settings.warps);
    let name_bits = u64::from(names.max(2).next_power_of_two().ilog2().max(8));
    let (tasks, commits) = (u64::from(settings.tasks), u64::from(settings.commits));
    // A whole warp has 2^n packets: none of them at all cannot be, so that n bits say how many.
    let packet_bits = u64::from(settings.warp.max(2).next_power_of_two().ilog2());
    let positions = 2 * u64::from(tasks.ilog2() + commits.ilog2());
    Storage {
        fifo: 4 * tasks,
        commits: (commits * name_bits).div_ceil(8),
        table: 2 * names,
        rest: (commits * (1 + packet_bits) + positions).div_ceil(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_publication_counts_five_and_a_half_kibibytes_for_eight_cores() {
        let usual = storage(&HermesSettings::default());
        assert_eq!((usual.fifo, usual.commits, usual.table), (4096, 1024, 512));
        assert_eq!(usual.published(), 5632);
        // 1,024 done bits, 1,024 counts of 5 bits, four positions of 10 bits.
        assert_eq!(usual.complete(), 5632 + 128 + 640 + 5);
    }

    #[test]
    fn more_cores_need_longer_names() {
        let of = |cores| storage(&HermesSettings { cores, ..HermesSettings::default() }).published();
        assert_eq!(of(17), 4096 + 1280 + 1088);
        assert_eq!(of(28), 4096 + 1280 + 1792);
    }
}
