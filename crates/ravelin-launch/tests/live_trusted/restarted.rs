//! A core that has died is followed by another one with the program that ran, also where the file holds
//! another text by then; only SIGHUP has it read anew.

use super::{PROGRAM, Trusted};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// A text that is no program.
const DAMAGED: &str = "start stage all() { flood";

fn what_ran_runs_again(trusted: &Trusted) {
    let write = |text: &str| fs::write(trusted.folder.path().join("filter.rav"), text).expect("written");
    let read_anew = || {
        let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
        kill_process(launch, Signal::HUP).expect("it runs");
    };
    let runs = |number| {
        let line = trusted.hears(&format!("core: program {number} runs, sha256 "));
        line.rsplit(' ').next().expect("a hash").to_owned()
    };
    let kill = || kill_process(trusted.core(), Signal::KILL).expect("it runs");
    let first = runs(2);
    write(DAMAGED);
    kill();
    assert_eq!(runs(2), first, "the file was not read");
    assert_eq!(trusted.passes(), 0);
    read_anew();
    trusted.hears("core: what ran goes on: ");
    kill();
    assert_eq!(runs(2), first, "what was refused is no program for another core");
    kill();
    trusted.hears("core was ended by signal 9");
    read_anew();
    // The file is refused when there is no core, or one with a program, or one without.
    let (mut runs_again, mut is_refused) = (false, false);
    while !(runs_again && is_refused) {
        let line = trusted.hears("core: ");
        runs_again |= line.contains("core: program 2 runs") && line.ends_with(&first);
        is_refused |= line.contains("core: what ran goes on: ");
    }
    assert_eq!(trusted.passes(), 0);
    write(&PROGRAM.replace("7 => across", "7 | 9 => across"));
    read_anew();
    let second = runs(3);
    assert_ne!(second, first);
    kill();
    assert_eq!(runs(2), second);
    assert!(trusted.passes() > 0, "the other port is open now");
}

#[test]
fn another_core_has_the_program_that_ran_in_the_one_that_died() {
    let test = "another_core_has_the_program_that_ran_in_the_one_that_died";
    if let Some(trusted) = Trusted::new(test, &[]) {
        what_ran_runs_again(&trusted);
    }
}

#[test]
fn machine_code_is_made_anew_of_the_program_that_ran_in_the_core_that_died() {
    let test = "machine_code_is_made_anew_of_the_program_that_ran_in_the_core_that_died";
    if let Some(trusted) = Trusted::new(test, &["--native"]) {
        what_ran_runs_again(&trusted);
    }
}
