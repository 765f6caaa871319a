//! Stops a process for a while.

use crate::sys;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take until all threads of a process are stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process of ours, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub u32);

/// A process that is stopped; it goes on when this is dropped.
#[derive(Debug)]
pub struct Stopped(Process);

impl Process {
    /// Stops it, and returns when all of its threads have stopped.
    ///
    /// # Errors
    /// There is no such process, it is somebody else's, or it does not stop.
    pub fn stop(self) -> io::Result<Stopped> {
        sys::signal(self.0, libc::SIGSTOP)?;
        let stopped = Stopped(self);
        let end = Instant::now() + PATIENCE;
        while !self.stands()? {
            if Instant::now() > end {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(stopped)
    }

    /// Whether all of its threads are stopped (proc_pid_stat(5): the state follows the name, which is in
    /// parentheses).
    fn stands(self) -> io::Result<bool> {
        for thread in fs::read_dir(format!("/proc/{}/task", self.0))? {
            let state = fs::read_to_string(thread?.path().join("stat"))?;
            if !state.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T')) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have been ended meanwhile.
        let _ = sys::signal(self.0.0, libc::SIGCONT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_stopped_process_does_nothing_until_it_goes_on() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat runs");
        let stopped = Process(child.id()).stop().expect("it stops");
        child.stdin.take().expect("a pipe").write_all(b"packet").expect("the pipe takes it");
        assert!(Process(child.id()).stands().expect("it is there"));
        assert!(child.try_wait().expect("it is there").is_none());
        drop(stopped);
        let mut text = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("it writes");
        assert_eq!(text, "packet");
        child.wait().expect("it ends");
        assert!(Process(child.id()).stop().is_err());
    }
}
