//! Impairs the packets of a port as a bad line does: delay, loss, damage, duplicates, another order. A seed
//! alone decides what happens to each frame.
//!
//! The words mean what they mean in Linux' netem, with two differences. Jitter alone does not change the
//! order: a frame leaves no earlier than the one before it; only `reorder` lets frames pass others. And
//! correlation keeps the delay of the frame before with that probability, so that jitter has the distribution
//! asked for whatever the correlation is, where netem's gets narrower.

use super::held::{Frame, Held};
use super::middleware::Stage;
use super::{SendLosses, Sender};
use packet::VirtioHeader;
use rand_distr::{Distribution as _, StandardNormal};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// How a port is impaired. Shares are from 0 to 1, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impair {
    /// How long every frame is held back.
    pub delay: u64,
    /// By how much the delay varies: half the width of a uniform distribution, the standard deviation of a
    /// normal one.
    pub jitter: u64,
    /// How the jitter is distributed.
    pub distribution: Distribution,
    /// The share of frames that have the delay of the frame before.
    pub correlation: f64,
    /// The share of frames that are lost, independently of each other.
    pub loss: f64,
    /// Loss in bursts, in addition to `loss`.
    pub bursts: Option<Bursts>,
    /// The share of frames that leave at once, before those that are held back.
    pub reorder: f64,
    /// Of so many consecutive frames at most one may leave at once; at least 1.
    pub gap: u32,
    /// The share of frames that leave twice.
    pub duplicate: f64,
    /// The share of frames in which a bit is changed.
    pub corrupt: f64,
    /// The seed of all random choices.
    pub seed: u64,
    /// The bytes of frames that may be held back at once; further frames are lost and counted.
    pub queue: usize,
}

impl Default for Impair {
    /// Changes nothing.
    fn default() -> Impair {
        Impair {
            delay: 0,
            jitter: 0,
            distribution: Distribution::Uniform,
            correlation: 0.0,
            loss: 0.0,
            bursts: None,
            reorder: 0.0,
            gap: 1,
            duplicate: 0.0,
            corrupt: 0.0,
            seed: 1,
            queue: 16 << 20,
        }
    }
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Every value between the two ends is equally likely.
    Uniform,
    /// The normal distribution; a delay below zero counts as zero.
    Normal,
}

/// A line that is good or bad for a while (E. N. Gilbert, Bell System Technical Journal 39, 1960; E. O.
/// Elliott, ibid. 42, 1963).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The probability that a good line turns bad after a frame.
    pub to_bad: f64,
    /// The probability that a bad line turns good after a frame.
    pub to_good: f64,
    /// The share of frames that are lost while the line is bad.
    pub loss_bad: f64,
    /// The share of frames that are lost while the line is good.
    pub loss_good: f64,
}

/// The random numbers for one kind of impairment. Each kind has its own, so that a changed share of one kind
/// does not change the others.
struct Chances(Pcg64Mcg);

impl Chances {
    fn new(seed: u64, kind: u64) -> Chances {
        let mut random = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(kind) << 8 | 1);
        // The first random numbers of neighbouring seeds are similar, so they are skipped.
        for _ in 0..16 {
            random.next_u64();
        }
        Chances(random)
    }

    /// A number from 0 up to but without 1.
    fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn happens(&mut self, share: f64) -> bool {
        self.fraction() < share
    }
}

/// What happens to one copy of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    /// The bit that changes, counted from the start of the frame.
    damaged: Option<u64>,
    /// How long it is held back; `None` if it leaves at once, before those that are.
    delay: Option<u64>,
}

/// Chooses what happens to frames.
struct Dice {
    impair: Impair,
    loss: Chances,
    bursts: Chances,
    duplicate: Chances,
    corrupt: Chances,
    jitter: Chances,
    reorder: Chances,
    bad: bool,
    last_delay: Option<u64>,
    since_reordered: u32,
}

impl Dice {
    fn new(impair: Impair) -> Dice {
        let chances = |kind| Chances::new(impair.seed, kind);
        Dice {
            impair,
            loss: chances(1),
            bursts: chances(2),
            duplicate: chances(3),
            corrupt: chances(4),
            jitter: chances(5),
            reorder: chances(6),
            bad: false,
            last_delay: None,
            since_reordered: 0,
        }
    }

    fn lost(&mut self) -> bool {
        let alone = self.loss.happens(self.impair.loss);
        let Some(bursts) = self.impair.bursts else { return alone };
        let (turns, loses) = match self.bad {
            true => (bursts.to_good, bursts.loss_bad),
            false => (bursts.to_bad, bursts.loss_good),
        };
        self.bad ^= self.bursts.happens(turns);
        self.bursts.happens(loses) || alone
    }

    fn doubled(&mut self) -> bool {
        self.duplicate.happens(self.impair.duplicate)
    }

    /// The fate of a copy of a frame of so many bytes.
    fn fate(&mut self, bytes: usize) -> Fate {
        let corrupt = self.corrupt.happens(self.impair.corrupt);
        let bit = (self.corrupt.fraction() * (bytes as f64 * 8.0)) as u64;
        let delay = self.delay();
        self.since_reordered = self.since_reordered.saturating_add(1);
        let jumps =
            self.reorder.happens(self.impair.reorder) && self.since_reordered >= self.impair.gap.max(1);
        if jumps {
            self.since_reordered = 0;
        }
        Fate { damaged: (corrupt && bytes > 0).then_some(bit), delay: (!jumps).then_some(delay) }
    }

    fn delay(&mut self) -> u64 {
        let Impair { delay, jitter, distribution, correlation, .. } = self.impair;
        if jitter == 0 {
            return delay;
        }
        let (kept, drawn) = (self.jitter.happens(correlation), self.draw(distribution));
        let fresh = (delay as f64 + jitter as f64 * drawn).max(0.0) as u64;
        let chosen = self.last_delay.filter(|_| kept).unwrap_or(fresh);
        self.last_delay = Some(chosen);
        chosen
    }

    /// A number around 0: between -1 and 1, or with deviation 1.
    fn draw(&mut self, distribution: Distribution) -> f64 {
        match distribution {
            Distribution::Uniform => 2.0 * self.jitter.fraction() - 1.0,
            Distribution::Normal => StandardNormal.sample(&mut self.jitter.0),
        }
    }
}

/// An impaired line with what is on its way.
pub(crate) struct Impairer {
    dice: Dice,
    queue: Held,
    /// Where a frame is damaged.
    copy: Vec<u8>,
    lost: u64,
    doubled: u64,
    damaged: u64,
    /// A segment that is damaged is lost: whoever gets it here would not notice.
    whole_only: bool,
}

impl Impairer {
    /// A line on which nothing is yet. A segment that is to be damaged is lost where it is on its way to the
    /// program, which has no checksum of it to look at; otherwise all pieces that it is cut into have a wrong
    /// checksum.
    pub(crate) fn new(impair: Impair, to_program: bool) -> Impairer {
        Impairer {
            dice: Dice::new(impair),
            queue: Held::new(impair.queue),
            copy: Vec::new(),
            lost: 0,
            doubled: 0,
            damaged: 0,
            whole_only: to_program,
        }
    }

    fn one(&mut self, now: u64, frame: &[u8], virtio: VirtioHeader, out: &mut dyn Sender) {
        let fate = self.dice.fate(frame.len());
        let mut copy = std::mem::take(&mut self.copy);
        let frame = match fate.damaged {
            None => frame,
            Some(_) if virtio.segments() && self.whole_only => {
                self.lost += 1;
                self.copy = copy;
                return;
            }
            Some(bit) => {
                copy.clear();
                copy.extend_from_slice(frame);
                if !virtio.spoil(&mut copy) {
                    copy[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
                self.damaged += 1;
                &copy
            }
        };
        match fate.delay {
            // Nothing that is held back is passed by what merely has no delay.
            Some(delay) if delay > 0 || !self.queue.is_empty() => {
                let due = (now + delay).max(self.queue.last_mark().unwrap_or(0));
                if !self.queue.push(Frame { bytes: frame, virtio, mark: due }) {
                    self.lost += 1;
                }
            }
            _ => out.send(frame, virtio),
        }
        self.copy = copy;
    }
}

impl Stage for Impairer {
    fn pass(&mut self, now: u64, frame: &[u8], virtio: VirtioHeader, out: &mut dyn Sender) {
        let (lost, doubled) = (self.dice.lost(), self.dice.doubled());
        self.lost += u64::from(lost);
        self.doubled += u64::from(doubled);
        for _ in 0..1 + u32::from(doubled) - u32::from(lost) {
            self.one(now, frame, virtio, out);
        }
    }

    fn release(&mut self, now: u64, out: &mut dyn Sender) {
        while let Some(frame) = self.queue.first().filter(|frame| frame.mark <= now) {
            out.send(frame.bytes, frame.virtio);
            self.queue.pop();
        }
    }

    fn due(&self) -> Option<u64> {
        self.queue.first().map(|frame| frame.mark)
    }

    fn count(&self, losses: &mut SendLosses) {
        losses.impaired += self.lost;
        losses.doubled += self.doubled;
        losses.damaged += self.damaged;
        losses.waiting += self.queue.len() as u64;
    }
}

#[cfg(test)]
mod tests;
