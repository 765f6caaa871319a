//! The packets that experiments run: made to the published shape of the thesis' captures, read from files, or
//! made for one purpose.

use captures::generate::{Generator, Profile};
use packet::Frames;
use ports::{CaptureLinks, CaptureSource, Ingress, IngressPolicy, OpenError, ReceiveError};

/// The seed of all made traffic.
const SEED: u64 = 1;
/// With `--quick`, made captures have at most this many packets.
const QUICK: u64 = 14_261;

/// Why an experiment cannot be done at all.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A capture cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A capture cannot be read to its end.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// A capture holds nothing to measure.
    #[error("{0} holds no packets; name a capture that does")]
    Empty(String),
    /// Tables cannot be measured: data that cannot be read, or a library that does not work.
    #[error("{0}")]
    Tables(String),
    /// There is no device to measure, or it fails.
    #[error("{0}")]
    Device(String),
    /// A program of the lab itself is wrong.
    #[error("{0}; please report this as a bug")]
    Program(String),
}

/// Where packets come from.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficCapture {
    /// Made to the shape of the thesis' sample with this number, 1 to 3.
    Generated(usize),
    /// Read from a file, which may be one of the thesis' samples.
    File {
        /// Its path.
        path: String,
        /// Which sample it is, if it is one.
        sample: Option<usize>,
    },
}

/// Packets in memory and what they are.
pub struct Traffic {
    /// What to call them in a table.
    pub name: String,
    /// Which sample of the thesis they are, or stand for.
    pub sample: Option<usize>,
    /// The packets.
    pub frames: Frames,
}

impl TrafficCapture {
    /// The captures that stand for the thesis' three.
    pub fn defaults() -> Vec<TrafficCapture> {
        (1..=3).map(TrafficCapture::Generated).collect()
    }

    /// Reads `FILE`, or `sample2=FILE` for a file that is that sample of the thesis.
    pub fn parse(text: &str) -> TrafficCapture {
        let sample = |name: &str| (1..=3).find(|number| name == format!("sample{number}"));
        match text.split_once('=').map(|(name, path)| (sample(name), path)) {
            Some((Some(number), path)) => {
                TrafficCapture::File { path: path.to_owned(), sample: Some(number) }
            }
            _ => TrafficCapture::File { path: text.to_owned(), sample: None },
        }
    }

    /// Brings the packets into memory. With `quick`, made captures are shortened, which their name says.
    ///
    /// # Errors
    /// If a file cannot be read, or holds nothing.
    pub fn load(&self, quick: bool) -> Result<Traffic, LabError> {
        match self {
            TrafficCapture::Generated(number) => {
                let mut profile = match number {
                    1 => Profile::sample1(),
                    2 => Profile::sample2(),
                    _ => Profile::sample3(),
                };
                let mut name = format!("sample{number} (generated)");
                if quick && profile.packets > QUICK {
                    profile.flows = profile.flows * QUICK / profile.packets;
                    profile.packets = QUICK;
                    name = format!("sample{number} (generated and shortened)");
                }
                Ok(Traffic { name, sample: Some(*number), frames: made(&profile)? })
            }
            TrafficCapture::File { path, sample } => {
                let ingress = Ingress::new(IngressPolicy::RoundRobin, 1);
                let mut source = CaptureSource::open(path, CaptureLinks::Ethernet, ingress)?;
                let (frames, error) = ports::collect(&mut source);
                if let Some(error) = error {
                    return Err(error.into());
                }
                if frames.is_empty() {
                    return Err(LabError::Empty(path.clone()));
                }
                let name = match sample {
                    Some(number) => format!("sample{number} ({path})"),
                    None => path.clone(),
                };
                // Commas separate the parts of a case.
                Ok(Traffic { name: name.replace(',', "_"), sample: *sample, frames })
            }
        }
    }
}

/// The first packets of some.
pub(crate) fn first(frames: &Frames, count: usize) -> Frames {
    let mut some = Frames::new();
    frames.iter().take(count).for_each(|frame| some.push(frame.bytes, frame.wire, frame.time));
    some
}

/// Frames of 60 bytes between so many hosts, both ends drawn at random, after one frame from each host.
pub(crate) fn random_hosts(hosts: u64, packets: u64) -> Frames {
    let mut random = 1_u64;
    let mut draw = move || {
        // The multiplier and increment of Knuth's MMIX generator.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % hosts
    };
    let mut frames = Frames::new();
    for number in 0..hosts + packets {
        let src = if number < hosts { number } else { draw() };
        let mut bytes = [0; 60];
        bytes[..6].copy_from_slice(&(0x0200_0000_0000 + draw()).to_be_bytes()[2..]);
        bytes[6..12].copy_from_slice(&(0x0200_0000_0000 + src).to_be_bytes()[2..]);
        bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        frames.push(&bytes, 60, 1_000_000_000 + number);
    }
    frames
}

/// Whole TCP segments in IPv4, each from an address that is a multiple of 16.
pub(crate) fn segments(count: u32) -> Frames {
    let mut frames = Frames::new();
    for number in 0..count {
        let mut bytes = [0; 60];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 1, 0, 0, 64, 6]);
        bytes[26..30].copy_from_slice(&(0x0a00_0000 + number * 16).to_be_bytes());
        bytes[30..34].copy_from_slice(&[10, 200, 0, 1]);
        bytes[34..38].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        bytes[46] = 0x50;
        frames.push(&bytes, 60, 1_000_000_000 + u64::from(number));
    }
    frames
}

fn made(profile: &Profile) -> Result<Frames, LabError> {
    let mut generator =
        Generator::new(profile, SEED).map_err(|error| LabError::Program(error.to_string()))?;
    let (mut frames, mut bytes) = (Frames::new(), Vec::new());
    while let Some(stamp) = generator.next(&mut bytes) {
        frames.push(&bytes, stamp.wire, stamp.time);
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_a_sample_of_the_thesis() {
        let file = |path: &str, sample| TrafficCapture::File { path: path.into(), sample };
        assert_eq!(TrafficCapture::parse("sample2=a=b.pcap"), file("a=b.pcap", Some(2)));
        assert_eq!(TrafficCapture::parse("sample4=x.pcap"), file("sample4=x.pcap", None));
        assert_eq!(TrafficCapture::parse("x.pcap"), file("x.pcap", None));
    }

    #[test]
    fn quick_traffic_says_that_it_is_shortened() {
        let traffic = TrafficCapture::Generated(3).load(true).expect("can be made");
        assert_eq!(traffic.frames.len() as u64, QUICK);
        assert!(traffic.name.contains("shortened"));
    }
}
