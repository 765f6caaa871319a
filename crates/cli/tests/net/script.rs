//! A program on whose input a test writes lines, and which answers each by one.

use super::Running;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Script {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    running: Running,
}

impl Script {
    pub(crate) fn start(command: &mut Command) -> Script {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program starts");
        let to = child.stdin.take().expect("is piped");
        let from = BufReader::new(child.stdout.take().expect("is piped"));
        Script { to, from, running: Running::of(child) }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it says something");
        line.trim().to_owned()
    }

    /// Writes a line, and gives the answer.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.to, "{line}").expect("it listens");
        self.line()
    }

    /// Lets it end, since nothing more comes; whether it has ended well.
    pub(crate) fn ends(self) -> bool {
        let Script { to, from: _from, mut running } = self;
        drop(to);
        running.0.wait().expect("it ends").success()
    }
}
