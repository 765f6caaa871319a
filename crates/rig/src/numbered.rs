//! A flow of numbered UDP packets between two namespaces, of which each that does not arrive is known by its
//! number: for traffic that nothing may happen to while something else does.

use crate::namespace::Namespace;
use ports::live::sys::set_buffer;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes that may wait at the receiver, which may not get to run for a while.
const BUFFER: usize = 64 << 20;
/// After so long without a packet none is to come any more.
const SILENCE: Duration = Duration::from_secs(2);

/// A flow at work.
#[derive(Debug)]
pub struct NumberedFlow {
    over: Arc<AtomicBool>,
    /// The sender has ended: all that was sent is counted.
    counted: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<Vec<u32>>>,
}

/// What became of the packets of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedFlowEnd {
    /// Packets that were sent.
    pub sent: u64,
    /// The numbers of those that did not arrive, counted from 0.
    pub missing: Vec<u64>,
    /// Packets that arrived once more.
    pub doubled: u64,
}

impl NumberedFlow {
    /// Sends a packet after every such time, until the flow is stopped.
    ///
    /// # Errors
    /// The address is not one of the receiver's, or what the kernel says.
    pub fn start(
        from: &Namespace,
        to: &Namespace,
        address: SocketAddr,
        every: Duration,
    ) -> io::Result<NumberedFlow> {
        let incoming = to.inside(|| UdpSocket::bind(address))?;
        set_buffer(&incoming, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, BUFFER)?;
        incoming.set_read_timeout(Some(Duration::from_millis(50)))?;
        let outgoing = from.inside(|| UdpSocket::bind(("0.0.0.0", 0)))?;
        let [over, counted] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let sent = Arc::new(AtomicU64::new(0));
        let (stop, count) = (over.clone(), sent.clone());
        let sender = thread::spawn(move || {
            let begun = Instant::now();
            while !stop.load(Ordering::Acquire) {
                let number = count.load(Ordering::Relaxed);
                let due = begun + every.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
                thread::sleep(due.saturating_duration_since(Instant::now()));
                outgoing.send_to(&number.to_be_bytes(), address)?;
                count.store(number + 1, Ordering::Release);
            }
            Ok(())
        });
        let (all_sent, count) = (counted.clone(), sent.clone());
        let receiver = thread::spawn(move || {
            let (mut arrived, mut all, mut last) = (Vec::<u32>::new(), 0, Instant::now());
            let mut bytes = [0; 8];
            loop {
                match incoming.recv(&mut bytes) {
                    Ok(8) => {
                        let number = u64::from_be_bytes(bytes) as usize;
                        if number >= arrived.len() {
                            arrived.resize(number + 1, 0);
                        }
                        all += u64::from(arrived[number] == 0);
                        arrived[number] += 1;
                        last = Instant::now();
                    }
                    Ok(_) => {}
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                        ) => {}
                    Err(error) => return Err(error),
                }
                let ended = all_sent.load(Ordering::Acquire);
                if ended && (all >= count.load(Ordering::Acquire) || last.elapsed() > SILENCE) {
                    return Ok(arrived);
                }
            }
        });
        Ok(NumberedFlow { over, counted, sent, sender, receiver })
    }

    /// How many packets have been sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Ends the flow, and waits for the packets that are on their way.
    ///
    /// # Errors
    /// What the kernel said while it ran.
    pub fn stop(self) -> io::Result<NumberedFlowEnd> {
        self.over.store(true, Ordering::Release);
        let sending = self.sender.join();
        self.counted.store(true, Ordering::Release);
        sending.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let sent = self.sent.load(Ordering::Acquire);
        let mut arrived = self.receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        arrived.resize(sent as usize, 0);
        let missing = (0..).zip(&arrived).filter(|(_, times)| **times == 0).map(|(number, _)| number);
        let doubled = arrived.iter().map(|times| u64::from(times.saturating_sub(1))).sum();
        Ok(NumberedFlowEnd { sent, missing: missing.collect(), doubled })
    }
}
