//! The work of a core in small: frames come by a descriptor, a thread changes them, and they leave.

use crate::calls;
use confinement::{Role, enter};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The descriptor by which frames come and leave.
const FRAMES: i32 = 3;

/// Answers so many frames with their first byte raised by one, and says so.
pub(crate) fn work(count: u64) -> Result<Infallible, Box<dyn std::error::Error>> {
    let entered = enter(Role::Core, &[])?;
    let (to_worker, from_main) = mpsc::channel::<Vec<u8>>();
    let (to_main, from_worker) = mpsc::channel();
    let begun = Arc::new(Barrier::new(2));
    let worker_begun = Arc::clone(&begun);
    thread::spawn(move || {
        worker_begun.wait();
        for mut frame in from_main {
            // Makes and frees memory, large pieces too, as the tables of a core do.
            let large = vec![frame[0]; 1 << 20];
            frame[0] = large[large.len() - 1].wrapping_add(1);
            if to_main.send(frame).is_err() {
                break;
            }
        }
    });
    begun.wait();
    let mut frames = calls::descriptor(FRAMES);
    entered.lock()?;
    println!("ready");
    let begin = Instant::now();
    let mut lengths: HashMap<usize, u64> = HashMap::new();
    let mut room = vec![0; 2048];
    for _ in 0..count {
        calls::wait_to_read(FRAMES);
        let length = frames.read(&mut room)?;
        *lengths.entry(length).or_default() += 1;
        to_worker.send(room[..length].to_vec())?;
        frames.write_all(&from_worker.recv()?)?;
        room.reserve(room.len() / 16);
    }
    thread::park_timeout(Duration::from_millis(1));
    thread::yield_now();
    let lengths = lengths.len();
    println!("answered {count} frames of {lengths} lengths, {}", begin.elapsed() >= Duration::from_millis(1));
    // The threads of a core do not end before it: the end of a thread takes calls that it does not have.
    std::process::exit(0)
}
