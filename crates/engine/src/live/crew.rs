//! All workers of a gateway: each runs on its own thread, which may be pinned to a core. When one worker
//! ends, all end.

use super::{Generation, LiveWorker, Remote};
use ir::limits::LARGEST_FRAME;
use ports::live::pin;
use std::io;
use std::panic::resume_unwind;
use std::sync::RwLock;
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

/// How workers ended.
pub struct Ended {
    /// What each worker ran last, in their order; a worker whose thread could not be made has none.
    pub generations: Vec<Generation>,
    /// Why they ended, unless they were told to: a core does not exist, or Linux refuses to make a thread or
    /// to wait for packets.
    pub failure: Option<io::Error>,
}

/// Runs workers until they are told to stop, or one of them fails. With `cores`, the first worker is pinned
/// to the first core, and so on.
pub fn run(workers: Vec<LiveWorker>, generations: Vec<Generation>, remote: &Remote, cores: &[Core]) -> Ended {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        // A worker begins when this thread has made all of them: whoever hears of all workers knows that
        // nobody makes a thread any more, as a process that is locked in may not.
        let closed = gate.write();
        let parts = workers.into_iter().zip(generations).zip(1..);
        let threads: Vec<_> = parts
            .map(|((mut worker, mut generation), number)| {
                let core = cores.get(number - 1).copied();
                let gate = &gate;
                let run = move || {
                    drop(gate.read());
                    let _end = EndAll(remote);
                    let pinned = core.map_or(Ok(()), |core| stay(number, core));
                    let result = pinned.and_then(|()| worker.run(&mut generation));
                    (generation, result, worker.leave())
                };
                let thread = thread::Builder::new().name(format!("worker {number}")).stack_size(STACK);
                thread.spawn_scoped(scope, run)
            })
            .collect();
        drop(closed);
        if threads.iter().any(Result::is_err) {
            remote.stop();
        }
        // All have ended before a panic goes on.
        let parts: Vec<_> = threads.into_iter().map(|thread| Ok(thread?.join())).collect();
        let mut ended = Ended { generations: Vec::new(), failure: None };
        for part in parts {
            let result = part.map(|joined| joined.unwrap_or_else(|panic| resume_unwind(panic)));
            let error = match result {
                Ok((mut generation, result, mut crossing)) => {
                    crossing.drop_untaken(&mut generation);
                    ended.generations.push(generation);
                    result.err()
                }
                Err(error) => Some(error),
            };
            ended.failure = ended.failure.or(error);
        }
        ended
    })
}

/// Pins the calling thread to a core.
fn stay(worker: usize, core: Core) -> io::Result<()> {
    pin(core).map_err(|error| {
        let text = format!("worker {worker} cannot stay on core {core}: {error}; `cores` in the file names those that this process may use");
        io::Error::new(error.kind(), text)
    })
}
