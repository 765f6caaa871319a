//! Lanes with something between look like lanes, and lose nothing that is not counted.

use super::*;
use crate::live::impair::Distribution;
use packet::{Region, region::SLACK};
use std::sync::Mutex;

/// What left.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) frames: Vec<(Vec<u8>, VirtioHeader)>,
}

impl Sender for Collected {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        self.frames.push((frame.to_vec(), virtio));
    }

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

/// A port whose packets the test makes and gets.
#[derive(Clone, Default)]
struct Line {
    left: Arc<Mutex<Vec<Vec<u8>>>>,
    coming: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct Near(Line, Region);

impl Receiver for Near {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        let mut coming = self.0.coming.lock().expect("no thread panicked");
        let count = coming.len().min(packet::BATCH);
        for (index, bytes) in coming.drain(..count).enumerate() {
            self.1.reserve((index + 1) * 2048 + SLACK);
            self.1.bytes_mut()[index * 2048..][..bytes.len()].copy_from_slice(&bytes);
            batch.push(index as u64 * 2048, bytes.len() as u32, bytes.len() as u32, 3, now.program);
        }
        self.1.bytes_mut()
    }

    fn descriptor(&self) -> RawFd {
        -1
    }

    fn has_more(&self) -> bool {
        !self.0.coming.lock().expect("no thread panicked").is_empty()
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

impl Sender for Line {
    fn send(&mut self, frame: &[u8], _: VirtioHeader) {
        self.left.lock().expect("no thread panicked").push(frame.to_vec());
    }

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

fn port(line: &Line) -> Attached {
    let receive = Box::new(Near(line.clone(), Region::zeroed(0)));
    let lanes = vec![Lane { receive, send: Box::new(line.clone()) }];
    Attached {
        name: "line".to_owned(),
        mode: "line".to_owned(),
        lanes,
        presence: Arc::default(),
        divided: None,
        tunnel: None,
    }
}

fn now() -> u64 {
    program_time(Instant::now(), 0)
}

/// Waits until something is due, or says that nothing is.
fn wait(due: Option<u64>) -> bool {
    let Some(due) = due else { return false };
    std::thread::sleep(Duration::from_nanos(due.saturating_sub(now())));
    true
}

fn impair() -> Impair {
    Impair {
        delay: 2_000_000,
        jitter: 1_000_000,
        loss: 0.1,
        duplicate: 0.1,
        distribution: Distribution::Normal,
        ..Impair::default()
    }
}

#[test]
fn what_is_sent_leaves_waits_or_is_counted() {
    let line = Line::default();
    let shape = Some(ShapeSettings { rate: 80_000_000, burst: 5_000, queue: 30_000 });
    let wrapped = Middleware { shape, impair_out: Some(impair()), ..Middleware::default() }.wrap(port(&line));
    let mut lane = wrapped.expect("nothing to go wrong").lanes.remove(0);
    let account = |send: &dyn Sender| {
        let losses = send.losses();
        (
            line.left.lock().expect("no thread panicked").len() as u64
                + losses.shaped
                + losses.impaired
                + losses.waiting,
            losses,
        )
    };
    for sent in 1..=200u64 {
        lane.send.send(&[1; 500], VirtioHeader::NONE);
        if sent % 10 == 0 {
            lane.send.flush();
        }
        let (sum, losses) = account(lane.send.as_ref());
        assert_eq!(sum, sent + losses.doubled);
    }
    let (_, losses) = account(lane.send.as_ref());
    assert!(losses.shaped > 0 && losses.waiting > 0, "{losses:?}");
    while wait(lane.send.due()) {
        lane.send.flush();
    }
    let (sum, losses) = account(lane.send.as_ref());
    assert_eq!((sum, losses.waiting), (200 + losses.doubled, 0));
    assert!(losses.impaired > 0 && losses.doubled > 0, "{losses:?}");
}

#[test]
fn what_comes_in_comes_waits_or_is_counted() {
    let line = Line::default();
    let wrapped = Middleware { impair_in: Some(impair()), ..Middleware::default() }.wrap(port(&line));
    let mut lane = wrapped.expect("nothing to go wrong").lanes.remove(0);
    let mut batch = Batch::new();
    let mut got: Vec<u16> = Vec::new();
    for round in 0..3u16 {
        let frames = (0..300u16).map(|number| (300 * round + number).to_be_bytes().repeat(40));
        line.coming.lock().expect("no thread panicked").extend(frames);
        // Once more than there is to receive, and then as often as something is due.
        for turn in 0.. {
            if turn > 2 && !wait(lane.receive.due()) {
                break;
            }
            let memory = lane.receive.receive(&mut batch, MachineClock.now());
            for index in 0..batch.len {
                let bytes = batch.bytes(memory, index).expect("inside");
                assert_eq!((bytes.len(), batch.port[index]), (80, 3));
                assert!(bytes.chunks(2).all(|pair| pair == &bytes[..2]));
                got.push(u16::from_be_bytes([bytes[0], bytes[1]]));
            }
        }
        let losses = lane.receive.losses();
        assert_eq!(got.len() as u64 + losses.impaired, 300 * (u64::from(round) + 1) + losses.doubled);
        assert_eq!(losses.waiting, 0);
    }
    assert!(got.is_sorted(), "nothing was to be reordered");
    let losses = lane.receive.losses();
    assert!(losses.impaired > 0 && losses.doubled > 0, "{losses:?}");
}

#[test]
fn that_more_waits_is_told_through_a_trace_and_an_impairment() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = Some(PortTrace { file: directory.path().join("trace.pcapng"), size: 1 << 20 });
    let none = Middleware::default();
    for with in [Middleware { trace, ..none.clone() }, Middleware { impair_in: Some(impair()), ..none }] {
        let line = Line::default();
        let mut lane = with.wrap(port(&line)).expect("can be written").lanes.remove(0);
        let come = vec![vec![1; 80]; packet::BATCH + 1];
        line.coming.lock().expect("no thread panicked").extend(come);
        lane.receive.receive(&mut Batch::new(), MachineClock.now());
        assert!(lane.receive.has_more(), "{with:?}");
        line.coming.lock().expect("no thread panicked").clear();
        assert_eq!(lane.receive.has_more(), lane.receive.due() == Some(0), "{with:?}");
    }
}

#[test]
fn what_was_obtained_is_said() {
    let shape = Some(ShapeSettings { rate: 1_000, burst: 1, queue: 1 });
    let both = Middleware { shape, impair_out: Some(impair()), impair_in: Some(impair()), trace: None };
    let mode = both.wrap(port(&Line::default())).expect("nothing to go wrong").mode;
    assert_eq!(mode, "line, shaped to 1000 bit/s, impaired in both directions");
}

#[test]
fn what_finds_no_room_on_the_way_to_the_program_is_counted() {
    let mut ready = Ready { frames: Held::new(100), lost: 0 };
    for _ in 0..3 {
        ready.send(&[7; 60], VirtioHeader::NONE);
    }
    assert_eq!((ready.frames.len(), ready.lost), (1, 2));
}
