//! Another core takes over from the one that runs, and no datagram is lost.

use super::{A, B, PROGRAM, Trusted, status};
use rig::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many cores take over while datagrams pass.
pub(super) const UPGRADES: usize = 5;

/// Says so when it goes, also by a panic: who waits for it is to end, too.
pub(super) struct SaysOver<'a>(pub(super) &'a AtomicBool);

impl Drop for SaysOver<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Numbered datagrams from host to host as long as `work` lasts: how many were sent, and which came.
pub(super) fn numbered(trusted: &Trusted, work: impl FnOnce()) -> (u64, Vec<u64>) {
    let socket =
        |host: &Namespace, address| host.inside(|| UdpSocket::bind(address)).expect("in the namespace");
    let (from, to) = (socket(&trusted.a, (A, 0)), socket(&trusted.b, (B, 7)));
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 64 << 20).expect("root may");
    // Both know each other before the first one counts.
    assert_eq!(trusted.passes_by(&from, &to), 0);
    to.set_nonblocking(false).expect("so");
    to.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
    let mut bytes = [0; 8];
    let (is_over, all_sent, mut sent) = (AtomicBool::new(false), AtomicBool::new(false), 0);
    let came = thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let mut came = Vec::new();
            loop {
                // Who sends may wait for a processor meanwhile.
                let is_last = all_sent.load(Ordering::SeqCst);
                match to.recv(&mut bytes) {
                    // Of those before, one may still come.
                    Ok(length) => came.extend((length == bytes.len()).then(|| u64::from_be_bytes(bytes))),
                    Err(_) if is_last => return came,
                    Err(_) => {}
                }
            }
        });
        let sends = scope.spawn(|| {
            let (_sent, mut number, begun) = (SaysOver(&all_sent), 0u64, Instant::now());
            while !is_over.load(Ordering::SeqCst) {
                while number < begun.elapsed().as_micros() as u64 / 200 {
                    from.send_to(&number.to_be_bytes(), (B, 7)).expect("sent");
                    number += 1;
                }
                thread::sleep(Duration::from_micros(100));
            }
            number
        });
        let over = SaysOver(&is_over);
        work();
        drop(over);
        sent = sends.join().expect("it ends");
        receives.join().expect("it ends")
    });
    (sent, came)
}

pub(super) fn signal(trusted: &Trusted, signal: Signal) {
    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    kill_process(launch, signal).expect("it runs");
}

#[test]
fn another_core_takes_over_again_and_again_and_no_datagram_is_lost() {
    let test = "another_core_takes_over_again_and_again_and_no_datagram_is_lost";
    let Some(trusted) = Trusted::new(test, &[]) else { return };
    let ran = trusted.hears("core: program 2 runs, sha256 ");
    let mut cores = vec![trusted.process("ravelin-core")];
    let (sent, came) = numbered(&trusted, || {
        for _ in 0..UPGRADES {
            signal(&trusted, Signal::USR2);
            trusted.hears("core: another core runs, which took over after ");
            assert!(trusted.hears("core: program 2 runs").starts_with(&ran), "the same");
            cores.push(trusted.core());
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

#[test]
fn machine_code_is_made_by_another_core_before_it_locks_itself_in_and_no_datagram_is_lost() {
    let test = "machine_code_is_made_by_another_core_before_it_locks_itself_in_and_no_datagram_is_lost";
    let Some(trusted) = Trusted::new(test, &["--native"]) else { return };
    trusted.hears("Cranelift, a compiler, is within the trusted part");
    trusted.hears("core: program 2 runs");
    let mut cores = vec![trusted.core()];
    let (sent, came) = numbered(&trusted, || {
        for number in 3..6 {
            let program = PROGRAM.replace("nothing goes there", &format!("as program {number} says"));
            fs::write(trusted.folder.path().join("filter.rav"), program).expect("written");
            signal(&trusted, Signal::HUP);
            trusted.hears(&format!("core: program {number} runs"));
            cores.push(trusted.core());
        }
        fs::write(trusted.folder.path().join("filter.rav"), "start stage all() { flood").expect("written");
        signal(&trusted, Signal::HUP);
        trusted.hears("core: what ran goes on: ");
        assert_eq!(trusted.core(), cores[3]);
        signal(&trusted, Signal::USR2);
        trusted.hears("core: program 5 runs");
        cores.push(trusted.core());
    });
    assert!(sent > 0);
    assert!(came.iter().copied().eq(0..sent), "{} of {sent} came", came.len());
    cores.sort_by_key(|core| core.as_raw_pid());
    cores.dedup();
    assert_eq!(cores.len(), 5, "each is another process");
    let core = trusted.core();
    assert_eq!((status(core, "NoNewPrivs"), status(core, "Seccomp")), ("1".to_owned(), "2".to_owned()));
    assert_eq!(status(core, "CapEff").trim_matches('0'), "");
    let maps = fs::read_to_string(format!("/proc/{}/maps", core.as_raw_pid())).expect("root may");
    let rights = |line: &str| line.split_whitespace().nth(1).map(str::to_owned).unwrap_or_default();
    assert!(maps.lines().all(|line| !(rights(line).contains('w') && rights(line).contains('x'))), "{maps}");
    let own = |line: &str| rights(line).contains('x') && line.split_whitespace().count() == 5;
    assert!(maps.lines().any(own), "its machine code is there: {maps}");
    assert_eq!(trusted.passes(), 0);
    fs::write(trusted.folder.path().join("filter.rav"), PROGRAM).expect("written");
    trusted.kill("ravelin-core");
    trusted.hears("core was ended by signal 9");
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
}
