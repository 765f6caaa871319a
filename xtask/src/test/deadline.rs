//! A limit of time for each command: one that hangs is ended with all that it started, and named.

use anyhow::{Context as _, bail};
use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command of a step may take. The longest takes half of this on two cores, and all steps together
/// end before CI does.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);

/// From one look at a running command to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started, or has not ended after `limit`: then it is killed, and every process that it started
/// and that is still below it.
pub(super) fn run(command: &mut Command, limit: Duration) -> anyhow::Result<ExitStatus> {
    let mut child = command.spawn().context("it cannot be started")?;
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
    end(&mut child)?;
    bail!("it had not ended after {} s and was killed", limit.as_secs())
}

/// Kills a process and all below it.
fn end(child: &mut Child) -> anyhow::Result<()> {
    let below = descendants(child.id());
    child.kill()?;
    child.wait()?;
    for process in below {
        // It may have ended with the one above it.
        let _ = Command::new("kill").args(["-KILL", &process.to_string()]).output();
    }
    Ok(())
}

/// All processes below one.
fn descendants(process: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = (fs::read_dir("/proc").into_iter().flatten().flatten())
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((number, parent(&text)?))
        })
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(number, _)| number));
        next += 1;
    }
    found.split_off(1)
}

/// The parent in a line of `/proc/PID/stat`: the second word behind the name, which stands in parentheses and
/// may hold any others (proc(5)).
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_ended_with_all_below_it() {
        let folder = std::env::temp_dir().join(format!("ravelin-deadline-{}", std::process::id()));
        let script = "sleep 1000 & echo $! > \"$0\"; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&folder);
        let error = run(&mut command, Duration::from_secs(2)).expect_err("hangs").to_string();
        assert!(error.contains("2 s and was killed"), "{error}");
        let below = fs::read_to_string(&folder).expect("was started");
        fs::remove_file(&folder).expect("is there");
        // Who is killed ends when it is scheduled next, and stays a zombie until its new parent takes note.
        let state = || fs::read_to_string(format!("/proc/{}/stat", below.trim())).unwrap_or_default();
        let is_gone = || state().is_empty() || state().contains(") Z ");
        let begin = Instant::now();
        while !is_gone() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", state());
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_command_that_ends_says_how() {
        assert!(run(&mut Command::new("true"), LONGEST).expect("ends").success());
        assert!(!run(&mut Command::new("false"), LONGEST).expect("ends").success());
        assert!(run(&mut Command::new("/no/such/program"), LONGEST).is_err());
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("17 (a) b) 3) S 4 17 17"), Some(4));
        assert_eq!(parent("17 (a"), None);
    }
}
