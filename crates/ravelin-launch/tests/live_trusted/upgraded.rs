//! Another core takes over from the one that runs, and no datagram is lost.

use super::{A, B, LIMIT, Trusted};
use rig::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many cores take over while datagrams pass.
const UPGRADES: usize = 5;

/// Numbered datagrams from one host to the other, as long as `work` lasts: how many were sent, and which came.
fn numbered(trusted: &Trusted, work: impl FnOnce()) -> (u64, Vec<u64>) {
    let socket =
        |host: &Namespace, address| host.inside(|| UdpSocket::bind(address)).expect("in the namespace");
    let (from, to) = (socket(&trusted.a, (A, 0)), socket(&trusted.b, (B, 7)));
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 64 << 20).expect("root may");
    // Both know each other before the first one counts.
    assert_eq!(trusted.passes_by(&from, &to), 0);
    to.set_nonblocking(false).expect("so");
    to.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
    let mut bytes = [0; 8];
    let (ends, mut sent) = (AtomicBool::new(false), 0);
    let came = thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let mut came = Vec::new();
            while let Ok(length) = to.recv(&mut bytes) {
                // Of those before, one may still come.
                came.extend((length == bytes.len()).then(|| u64::from_be_bytes(bytes)));
            }
            came
        });
        let sends = scope.spawn(|| {
            let (mut number, begun) = (0u64, Instant::now());
            while !ends.load(Ordering::Relaxed) {
                while number < begun.elapsed().as_micros() as u64 / 200 {
                    from.send_to(&number.to_be_bytes(), (B, 7)).expect("sent");
                    number += 1;
                }
                thread::sleep(Duration::from_micros(100));
            }
            number
        });
        work();
        ends.store(true, Ordering::Relaxed);
        sent = sends.join().expect("it ends");
        receives.join().expect("it ends")
    });
    (sent, came)
}

fn upgrade(trusted: &Trusted) {
    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    kill_process(launch, Signal::USR2).expect("it runs");
}

#[test]
fn another_core_takes_over_again_and_again_and_no_datagram_is_lost() {
    let test = "another_core_takes_over_again_and_again_and_no_datagram_is_lost";
    let Some(trusted) = Trusted::new(test, &[]) else { return };
    let ran = trusted.hears("core: program 2 runs, sha256 ");
    let mut cores = vec![trusted.process("ravelin-core")];
    let (sent, came) = numbered(&trusted, || {
        for _ in 0..UPGRADES {
            upgrade(&trusted);
            trusted.hears("core: another core runs, which took over after ");
            assert!(trusted.hears("core: program 2 runs").starts_with(&ran), "the same");
            let end = Instant::now() + LIMIT;
            while trusted.processes("ravelin-core").len() > 1 {
                assert!(Instant::now() < end, "the one before does not end");
            }
            cores.push(trusted.process("ravelin-core"));
        }
    });
    assert!(sent > 0);
    assert!(came.iter().copied().eq(0..sent), "{} of {sent} came", came.len());
    cores.sort_by_key(|core| core.as_raw_pid());
    cores.dedup();
    assert_eq!(cores.len(), UPGRADES + 1, "each is another process");
    assert_eq!(trusted.passes(), 0);
    assert!(trusted.shown()["dropped"]["closed"].as_u64() > Some(0));
}
