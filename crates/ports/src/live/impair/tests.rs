//! What happens to frames is what was asked for, by fixed seeds.

use super::*;
use crate::live::middleware::tests::Collected;
use proptest::prelude::*;

fn frame(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Passes so many frames, a microsecond apart, and waits for the last; when each copy left.
fn pass(impair: Impair, frames: u32) -> (Vec<(u64, Vec<u8>)>, SendLosses) {
    let mut line = Impairer::new(impair, false);
    let mut left = Vec::new();
    let mut release = |line: &mut Impairer, now: u64, number: Option<u32>| {
        let mut out = Collected::default();
        line.release(now, &mut out);
        if let Some(number) = number {
            line.pass(now, &frame(number), VirtioHeader::NONE, &mut out);
        }
        left.extend(out.frames.into_iter().map(|(bytes, _)| (now, bytes)));
    };
    let mut now = 0;
    for number in 0..frames {
        now = u64::from(number) * 1_000;
        while let Some(due) = line.due().filter(|&due| due < now) {
            release(&mut line, due, None);
        }
        release(&mut line, now, Some(number));
    }
    while let Some(due) = line.due() {
        now = now.max(due);
        release(&mut line, now, None);
    }
    let mut losses = SendLosses::default();
    line.count(&mut losses);
    (left, losses)
}

/// How far a share of `n` chances may be from `share`: five deviations.
fn near(found: f64, share: f64, n: f64) -> bool {
    (found - share).abs() <= 5.0 * (share * (1.0 - share) / n).sqrt() + 1e-9
}

const MANY: u32 = 100_000;

#[test]
fn nothing_asked_for_changes_nothing() {
    let (left, losses) = pass(Impair::default(), 100);
    let wanted: Vec<_> = (0..100).map(|number| (u64::from(number) * 1_000, frame(number))).collect();
    assert_eq!((left, losses), (wanted, SendLosses::default()));
}

#[test]
fn a_delay_is_kept_to_the_nanosecond() {
    let (left, losses) = pass(Impair { delay: 12_345, ..Impair::default() }, 100);
    let wanted: Vec<_> = (0..100).map(|number| (u64::from(number) * 1_000 + 12_345, frame(number))).collect();
    assert_eq!((left, losses), (wanted, SendLosses::default()));
}

#[test]
fn shares_are_those_asked_for() {
    for seed in 1..4 {
        let n = f64::from(MANY);
        let impair = Impair { loss: 0.03, duplicate: 0.02, corrupt: 0.05, seed, ..Impair::default() };
        let (left, losses) = pass(impair, MANY);
        assert!(near(losses.impaired as f64 / n, 0.03, n), "{losses:?}");
        assert!(near(losses.doubled as f64 / n, 0.02, n), "{losses:?}");
        assert!(near(losses.damaged as f64 / left.len() as f64, 0.05, n), "{losses:?}");
        assert_eq!(left.len() as u64, u64::from(MANY) - losses.impaired + losses.doubled);
        // The bytes behind the number are zero, so a changed bit shows wherever it is not in the number.
        let wrong = left.iter().filter(|(_, bytes)| bytes[4..].iter().any(|&byte| byte != 0)).count() as f64;
        assert!(near(wrong / left.len() as f64, 0.05 * 56.0 / 60.0, n), "{wrong}");
        assert!(
            left.iter().all(|(_, bytes)| bytes[4..].iter().map(|byte| byte.count_ones()).sum::<u32>() <= 1)
        );
    }
}

#[test]
fn bursts_are_as_long_and_as_frequent_as_asked_for() {
    let bursts = Bursts { to_bad: 0.01, to_good: 0.2, loss_bad: 1.0, loss_good: 0.0 };
    let (left, losses) = pass(Impair { bursts: Some(bursts), ..Impair::default() }, 10 * MANY);
    let n = 10.0 * f64::from(MANY);
    let lost = losses.impaired as f64;
    // A line is bad p / (p + r) of the time, each time for 1 / r frames on average. Neighbours depend on each
    // other, so there are about n · r / 2 independent chances.
    assert!(near(lost / n, 0.01 / 0.21, n * 0.1), "{lost}");
    let numbers: Vec<u32> = left.iter().map(|(_, bytes)| number(bytes)).collect();
    let runs = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() as f64;
    assert!((lost / runs - 5.0).abs() < 0.2, "{}", lost / runs);
}

#[test]
fn a_line_may_lose_some_while_good_and_keep_some_while_bad() {
    let bursts = Bursts { to_bad: 0.1, to_good: 0.3, loss_bad: 0.5, loss_good: 0.1 };
    let (_, losses) = pass(Impair { bursts: Some(bursts), ..Impair::default() }, MANY);
    let n = f64::from(MANY);
    assert!(near(losses.impaired as f64 / n, 0.25 * 0.5 + 0.75 * 0.1, n * 0.2), "{losses:?}");
}

fn delays(impair: Impair) -> Vec<f64> {
    let mut dice = Dice::new(impair);
    (0..MANY).map(|_| dice.delay() as f64).collect()
}

/// Mean, deviation, and correlation of neighbours.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let together = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
    (mean, variance.sqrt(), together / variance)
}

#[test]
fn jitter_has_its_distribution_whatever_the_correlation() {
    let base = Impair { delay: 10_000_000, jitter: 2_000_000, ..Impair::default() };
    for correlation in [0.0, 0.3] {
        let uniform = delays(Impair { correlation, ..base });
        let (mean, deviation, together) = moments(&uniform);
        assert!((mean / 1e7 - 1.0).abs() < 0.003, "{mean}");
        assert!((deviation / (2e6 / 3f64.sqrt()) - 1.0).abs() < 0.02, "{deviation}");
        assert!((together - correlation).abs() < 0.02, "{together}");
        assert!(uniform.iter().all(|delay| (8e6..=12e6).contains(delay)));
        let below = uniform.iter().filter(|&&delay| delay < 9e6).count() as f64 / f64::from(MANY);
        assert!(near(below, 0.25, f64::from(MANY) * 0.5), "{below}");
        let normal = delays(Impair { correlation, distribution: Distribution::Normal, ..base });
        let (mean, deviation, together) = moments(&normal);
        assert!((mean / 1e7 - 1.0).abs() < 0.005, "{mean}");
        assert!((deviation / 2e6 - 1.0).abs() < 0.02, "{deviation}");
        assert!((together - correlation).abs() < 0.02, "{together}");
        // One deviation above the mean: 15.87 % of Gauss' curve lie beyond.
        let above = normal.iter().filter(|&&delay| delay > 12e6).count() as f64 / f64::from(MANY);
        assert!(near(above, 0.1587, f64::from(MANY) * 0.5), "{above}");
    }
}

#[test]
fn what_is_reordered_leaves_at_once_and_the_rest_keeps_its_order() {
    let impair = Impair { delay: 50_000, reorder: 0.25, gap: 3, ..Impair::default() };
    let (left, losses) = pass(impair, MANY);
    assert_eq!((left.len(), losses), (MANY as usize, SendLosses::default()));
    let at_once: Vec<u32> = left
        .iter()
        .map(|(now, bytes)| (*now, number(bytes)))
        .filter(|&(now, number)| now == u64::from(number) * 1_000)
        .map(|(_, number)| number)
        .collect();
    // After two that may not, each may by a chance of a quarter: every sixth on average.
    assert!(near(at_once.len() as f64 / f64::from(MANY), 1.0 / 6.0, f64::from(MANY)), "{}", at_once.len());
    assert!(at_once.windows(2).all(|pair| pair[1] - pair[0] >= 3));
    let others: Vec<u32> = left
        .iter()
        .map(|(_, bytes)| number(bytes))
        .filter(|number| at_once.binary_search(number).is_err())
        .collect();
    assert!(others.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn another_share_of_one_kind_changes_nothing_of_the_others() {
    let base = Impair { loss: 0.1, jitter: 4_000, delay: 9_000, ..Impair::default() };
    let lost = |impair| {
        let left: Vec<u32> = pass(impair, 2_000).0.iter().map(|(_, bytes)| number(bytes)).collect();
        (0..2_000).filter(|number| !left.contains(number)).collect::<Vec<_>>()
    };
    assert_eq!(lost(base), lost(Impair { jitter: 0, reorder: 0.3, ..base }));
    assert_ne!(lost(base), lost(Impair { seed: 2, ..base }));
}

#[test]
fn segments_are_damaged_so_that_it_is_noticed() {
    let mut header = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    header[4..6].copy_from_slice(&1_000u16.to_ne_bytes());
    header[6..8].copy_from_slice(&34u16.to_ne_bytes());
    header[8..10].copy_from_slice(&16u16.to_ne_bytes());
    let virtio = VirtioHeader::read(&header);
    let impair = Impair { corrupt: 1.0, ..Impair::default() };
    let mut out = Collected::default();
    Impairer::new(impair, false).pass(0, &[0; 3_000], virtio, &mut out);
    let wrong: Vec<usize> = (0..3_000).filter(|&at| out.frames[0].0[at] != 0).collect();
    assert_eq!(wrong, [50], "the sum that the pieces' checksums begin with");
    let mut line = Impairer::new(impair, true);
    line.pass(0, &[0; 3_000], virtio, &mut out);
    let mut losses = SendLosses::default();
    line.count(&mut losses);
    assert_eq!((out.frames.len(), losses.impaired), (1, 1));
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..0.5]
}

proptest! {
    #[test]
    fn every_frame_is_somewhere_and_the_same_seed_is_the_same_fate(
        (loss, duplicate, corrupt, reorder) in (share(), share(), share(), share()),
        (delay, jitter, correlation, normal) in (0u64..20_000, 0u64..20_000, share(), any::<bool>()),
        (seed, queue, gap) in (any::<u64>(), 0usize..6_000, 0u32..5),
        bursts in prop::option::of((share(), share(), share(), share())),
    ) {
        let distribution = if normal { Distribution::Normal } else { Distribution::Uniform };
        let bursts = bursts.map(|(to_bad, to_good, loss_bad, loss_good)| Bursts { to_bad, to_good, loss_bad, loss_good });
        let impair = Impair { delay, jitter, distribution, correlation, loss, bursts, reorder, gap, duplicate, corrupt, seed, queue };
        let (left, losses) = pass(impair, 300);
        prop_assert_eq!(left.len() as u64 + losses.impaired, 300 + losses.doubled);
        prop_assert_eq!(losses.waiting, 0);
        if reorder == 0.0 && corrupt == 0.0 {
            prop_assert!(left.windows(2).all(|pair| number(&pair[0].1) <= number(&pair[1].1)));
        }
        prop_assert_eq!(pass(impair, 300), (left, losses));
    }
}
