//! All workers of a gateway: each runs on its own thread, which may be pinned to a core. When one worker
//! ends, all end.

use super::{Generation, LiveWorker, Remote};
use lang::limits::LARGEST_FRAME;
use ports::live::pin;
use std::io;
use std::panic::resume_unwind;
use std::thread;

/// The number of a core, as Linux counts them.
pub type Core = u16;

/// Bytes of stack of every worker, whatever the environment says: enough for the largest stack frame of a
/// program, its callers, and host functions.
const STACK: usize = 2 << 20;
const _: () = assert!(STACK >= 4 * LARGEST_FRAME as usize);

/// Stops all workers when this is dropped, for whatever reason.
struct EndAll<'a>(&'a Remote);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs workers until they are told to stop; returns the last generations. With `cores`, the first worker is
/// pinned to the first core, and so on.
///
/// # Errors
/// A core does not exist, or Linux refuses to wait for packets; then all workers have ended.
pub fn run(
    workers: Vec<LiveWorker>,
    generations: Vec<Generation>,
    remote: &Remote,
    cores: &[Core],
) -> io::Result<Vec<Generation>> {
    thread::scope(|scope| {
        let parts = workers.into_iter().zip(generations).zip(1..);
        let threads: Vec<_> = parts
            .map(|((worker, generation), number)| {
                let core = cores.get(number - 1).copied();
                let run = move || {
                    let _end = EndAll(remote);
                    core.map_or(Ok(()), |core| stay(number, core))?;
                    worker.run(generation)
                };
                let thread = thread::Builder::new().name(format!("worker {number}")).stack_size(STACK);
                thread.spawn_scoped(scope, run)
            })
            .collect();
        if threads.iter().any(Result::is_err) {
            remote.stop();
        }
        let ended = threads.into_iter().map(|thread| Ok(thread?.join()));
        let ended: Vec<io::Result<_>> = ended.collect();
        ended.into_iter().map(|ended| ended?.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Pins the calling thread to a core.
fn stay(worker: usize, core: Core) -> io::Result<()> {
    pin(core).map_err(|error| {
        let text = format!("worker {worker} cannot stay on core {core}: {error}; `cores` in the file names those that this process may use");
        io::Error::new(error.kind(), text)
    })
}
