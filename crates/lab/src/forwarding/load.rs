//! Load on a gateway, and what came of it: as many UDP packets as one processor can send, one TCP stream,
//! pings.

use super::DISCARD;
use super::delay::AFTER;
use super::net::{B, FloodEnds, Net};
use crate::needed::IPERF3;
use rig::{BurstSender, FrameSender, Namespace, hold};
use serde_json::Value;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Frames that are handed over at a call.
const AT_ONCE: usize = 64;

/// Which processors are used for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// That which sends.
    pub sender: usize,
    /// That of the gateway.
    pub gateway: usize,
}

/// Packets a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadRates {
    /// That were sent.
    pub offered: f64,
    /// That arrived at the other host.
    pub arrived: f64,
}

/// How frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentAs {
    /// One by one, flow by flow.
    Singly,
    /// In bursts of a flow, which the kernel cuts: host a's interface must not.
    InBursts,
}

/// Whether the kernel cuts bursts before they leave host a, when its interface makes no checksums. Then it
/// does not, from now on.
///
/// # Errors
/// What the kernel says.
pub fn cuts_bursts(net: &Net) -> io::Result<bool> {
    net.a.links()?.checksums("eth0", false)?;
    let sender = BurstSender::new(&net.a, "eth0", &net.frames(64, 1, DISCARD))?;
    let passed = || net.gateway.links()?.counters("to-a").map(|counters| counters.received);
    let before = passed()?;
    // A kernel that does not know them refuses them.
    let Ok(sent) = sender.send(0) else { return Ok(false) };
    thread::sleep(Duration::from_millis(20));
    Ok(passed()? - before == sent as u64)
}

/// Sends frames as fast as one processor can and counts those that arrive, after a time in which it is not
/// counted.
///
/// # Errors
/// What the kernel says.
pub fn flood(
    ends: FloodEnds<'_>,
    frames: &[Vec<u8>],
    how: SentAs,
    processor: usize,
    before: Duration,
    time: Duration,
) -> io::Result<LoadRates> {
    let FloodEnds { from: (from, interface), to: (to, counting) } = ends;
    let arrived = || to.links()?.counters(counting);
    let sender = FrameSender::new(from, interface)?;
    let bursts = match how {
        SentAs::Singly => None,
        SentAs::InBursts => Some(BurstSender::new(from, interface, frames)?),
    };
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    thread::scope(|scope| {
        let work = scope.spawn(|| -> io::Result<()> {
            hold(processor)?;
            let mut volleys = frames.chunks(AT_ONCE).cycle().enumerate();
            while !stop.load(Ordering::Relaxed)
                && let Some((turn, volley)) = volleys.next()
            {
                let taken = match &bursts {
                    Some(bursts) => bursts.send(turn),
                    None => sender.send(volley),
                };
                // Where there is no room for more, it goes on with the next ones.
                sent.fetch_add(taken.unwrap_or(0) as u64, Ordering::Relaxed);
            }
            Ok(())
        });
        let none = arrived()?.received;
        let counted = || {
            thread::sleep(before);
            // A gateway that the system has not let run yet is given a little longer.
            let end = Instant::now() + AFTER;
            while arrived()?.received == none && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
            let first = (Instant::now(), sent.load(Ordering::Relaxed), arrived()?.received);
            thread::sleep(time);
            let last = (Instant::now(), sent.load(Ordering::Relaxed), arrived()?.received);
            let seconds = (last.0 - first.0).as_secs_f64();
            let offered = (last.1 - first.1) as f64 / seconds;
            Ok(LoadRates { offered, arrived: (last.2 - first.2) as f64 / seconds })
        };
        let rates = counted();
        stop.store(true, Ordering::Relaxed);
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        rates
    })
}

/// Which host of a TCP stream sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficDirection {
    /// Host a, which began.
    There,
    /// Host b.
    Back,
}

/// What a host serves streams with.
pub(crate) const SERVER: [&str; 3] = ["--server", "--port", "5201"];

/// Who answers streams.
pub trait StreamServer: Sync {
    /// The command of iperf3 there; `None` where it serves already, for as long as the host is there.
    fn server(&self) -> Option<Command>;
}

impl StreamServer for Namespace {
    fn server(&self) -> Option<Command> {
        Some(self.command(IPERF3.program, None))
    }
}

/// Between whom a TCP stream is.
#[derive(Clone, Copy)]
pub struct StreamEnds<'a> {
    /// The host that begins.
    pub client: &'a Namespace,
    /// The other one.
    pub server: &'a dyn StreamServer,
    /// By which address it is reached.
    pub address: Ipv4Addr,
}

/// Bits a second that arrive in one TCP stream of iperf3 of so many seconds, before which there are others
/// that do not count.
///
/// # Errors
/// It is not installed, or the hosts do not reach each other.
pub fn tcp(
    ends: StreamEnds<'_>,
    direction: TrafficDirection,
    before: u64,
    seconds: u64,
) -> Result<f64, String> {
    let mut more = Vec::new();
    let omitted = before.to_string();
    if before > 0 {
        more.extend(["--omit", &omitted]);
    }
    if direction == TrafficDirection::Back {
        more.push("--reverse");
    }
    stream(ends, &more, before + seconds, seconds)
}

/// The same to the host that did not begin, which is written to in pieces of so many bytes, each of which is
/// sent at once.
///
/// # Errors
/// It is not installed, or the hosts do not reach each other.
pub fn stream_with_writes(ends: StreamEnds<'_>, bytes: u16, seconds: u64) -> Result<f64, String> {
    stream(ends, &["--length", &bytes.to_string(), "--no-delay"], seconds, seconds)
}

/// Bits a second that arrive in so many TCP streams at a time, from the host that begins.
///
/// # Errors
/// It is not installed, or the hosts do not reach each other.
pub fn streams(ends: StreamEnds<'_>, count: u32, seconds: u64) -> Result<f64, String> {
    stream(ends, &["--parallel", &count.to_string()], seconds, seconds)
}

/// A stream with further arguments of iperf3, which takes so many seconds in all.
fn stream(ends: StreamEnds<'_>, more: &[&str], whole: u64, seconds: u64) -> Result<f64, String> {
    let start = |mut command: Command, arguments: &[&str]| -> Result<Child, String> {
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| format!("iperf3: {error}"))
    };
    let serves_once = [&SERVER[..], &["--one-off"]].concat();
    let server = ends.server.server().map(|command| start(command, &serves_once)).transpose()?;
    let (address, counted) = (ends.address.to_string(), seconds.to_string());
    let mut arguments = vec!["--client", &address, "--port", "5201", "--time", &counted, "--json"];
    arguments.extend(more);
    let mut result = Err("iperf3 does not reach the other host".to_owned());
    // The server may not listen yet.
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(50));
        let client = ends.client.command(IPERF3.program, None);
        let output = ended(start(client, &arguments)?, Duration::from_secs(whole + 4));
        let Ok(output) = output else {
            result = Err("a TCP stream does not get through".to_owned());
            break;
        };
        result = bits(&output);
        if result.is_ok() {
            break;
        }
    }
    if let Some(mut server) = server {
        // It may have ended by itself.
        let _ = server.kill();
        server.wait().map_err(|error| format!("iperf3: {error}"))?;
    }
    result
}

/// What a program said, once it has ended; it is ended where it takes too long.
fn ended(mut child: Child, limit: Duration) -> Result<Output, String> {
    let end = Instant::now() + limit;
    // A long report does not fit into a pipe that nobody empties.
    let [said, errors] = [child.stdout.take().map(read_all), child.stderr.take().map(read_all)];
    let whole = |read: Option<JoinHandle<Vec<u8>>>| {
        read.map_or_else(Vec::new, |read| {
            read.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Output { status, stdout: whole(said), stderr: whole(errors) }),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("took longer than {} s", limit.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Reads all that a program says, beside it.
fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut read = Vec::new();
        // What was read before it broke is the report then, and is refused where it is not whole.
        let _ = from.read_to_end(&mut read);
        read
    })
}

/// The rate in a report of iperf3.
fn bits(output: &Output) -> Result<f64, String> {
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("iperf3: {error}"))?;
    match report["end"]["sum_received"]["bits_per_second"].as_f64() {
        Some(rate) => Ok(rate),
        None => Err(format!("iperf3: {}", report["error"].as_str().unwrap_or("no rate in its report"))),
    }
}

/// The middle time in microseconds that some pings take from host a to host b and back.
///
/// # Errors
/// It is not installed, or one is not answered.
pub fn ping(net: &Net, count: u32) -> Result<f64, String> {
    let mut command = net.a.command("ping", None);
    command.args(["-n", "-c", &count.to_string(), "-i", "0.005", "-W", "2", "-w", "10", &B.1.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("ping: {error}"))?;
    let text = String::from_utf8_lossy(&ended(child, Duration::from_secs(15))?.stdout).into_owned();
    let times = text.lines().filter_map(|line| line.split_once("time=")?.1.split_once(" ms")?.0.parse().ok());
    let mut times: Vec<f64> = times.collect();
    if times.len() < count as usize {
        return Err(format!("{} of {count} pings are answered", times.len()));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2] * 1e3)
}

/// Waits until host b answers host a.
///
/// # Errors
/// It does not within a time.
pub fn reachable(net: &Net, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    loop {
        match ping(net, 1) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_says_more_than_fits_into_a_pipe_ends_and_is_heard_whole() {
        let mut command = Command::new("head");
        command.args(["-c", "1000000", "/dev/zero"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = ended(command.spawn().expect("it starts"), Duration::from_secs(60)).expect("it ends");
        assert!(output.status.success() && output.stdout.len() == 1_000_000);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let mut command = Command::new("sleep");
        let child = command.arg("600").stdout(Stdio::piped()).spawn().expect("it starts");
        assert!(ended(child, Duration::from_millis(50)).is_err());
    }
}
