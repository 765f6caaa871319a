//! Other libraries, each in a small C program that is compiled where it is needed and spoken to in lines of
//! text.

use crate::tables::contest::{Contender, Timed, Way};
use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

/// What programs include.
const HEADERS: [(&str, &str); 5] = [
    ("peer.h", include_str!("../../peers/peer.h")),
    ("dpdk.h", include_str!("../../peers/dpdk.h")),
    ("lookup.h", include_str!("../../peers/lookup.h")),
    ("route.h", include_str!("../../peers/route.h")),
    ("dir24_8.h", include_str!("../../peers/dir24_8.h")),
];

/// A library in the form that it is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// DPDK's rte_fib.
    Fib,
    /// DPDK's rte_lpm.
    Lpm,
    /// DPDK's rte_fib6.
    Fib6,
    /// DPDK's rte_hash.
    Hash,
    /// DPDK's rte_acl.
    Acl,
    /// Hyperscan or Vectorscan.
    Hyperscan,
}

/// A directory of one measurement: the programs, and the data that they read.
pub(crate) struct Workshop {
    directory: tempfile::TempDir,
    absent: Vec<String>,
    present: Vec<String>,
}

/// A running program with its table built.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The ways to look up that it has.
    pub(crate) methods: Vec<String>,
    /// Seconds that it took to build the table.
    pub(crate) build: f64,
    /// Bytes that the table takes.
    pub(crate) bytes: u64,
    selected: String,
}

/// One way to look up of a running program.
pub(crate) struct Method {
    peer: Rc<RefCell<Peer>>,
    name: String,
    answers: PathBuf,
}

impl Library {
    fn program(self) -> &'static str {
        match self {
            Library::Fib => "fib",
            Library::Lpm => "lpm",
            Library::Fib6 => "fib6",
            Library::Hash => "hash",
            Library::Acl => "acl",
            Library::Hyperscan => "hyperscan",
        }
    }

    /// What it is called in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Library::Fib => "rte_fib",
            Library::Lpm => "rte_lpm",
            Library::Fib6 => "rte_fib6",
            Library::Hash => "rte_hash",
            Library::Acl => "rte_acl",
            Library::Hyperscan => "Hyperscan",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Library::Fib => include_str!("../../peers/fib.c"),
            Library::Lpm => include_str!("../../peers/lpm.c"),
            Library::Fib6 => include_str!("../../peers/fib6.c"),
            Library::Hash => include_str!("../../peers/hash.c"),
            Library::Acl => include_str!("../../peers/acl.c"),
            Library::Hyperscan => include_str!("../../peers/hyperscan.c"),
        }
    }

    /// The name under which pkg-config knows it.
    fn package(self) -> &'static str {
        if self == Library::Hyperscan { "libhs" } else { "libdpdk" }
    }
}

impl Workshop {
    /// An empty one, in the system's place for temporary files.
    pub(crate) fn new() -> Result<Workshop, String> {
        let directory = tempfile::Builder::new().prefix("ravelin-lab-").tempdir();
        let directory = directory.map_err(|error| format!("no directory for measurements: {error}"))?;
        Ok(Workshop { directory, absent: Vec::new(), present: Vec::new() })
    }

    /// Writes data that programs read; gives where it is.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }

    /// Starts a library on its data. None if it is not installed here, which is noted.
    ///
    /// # Errors
    /// If it is installed and does not do what it should.
    pub(crate) fn start(
        &mut self,
        library: Library,
        data: &Path,
        more: &[&str],
    ) -> Result<Option<Rc<RefCell<Peer>>>, String> {
        let program = match self.compiled(library) {
            Ok(program) => program,
            Err(why) => {
                let line = format!("{} ({why})", library.name());
                if !self.absent.contains(&line) {
                    self.absent.push(line);
                }
                return Ok(None);
            }
        };
        let mut why = String::new();
        // Where no huge pages are set aside, the smaller ones have to do.
        for pages in ["huge", "small"] {
            match Peer::start(&program, pages, data, more) {
                Ok((peer, version)) => {
                    let pages = match (library, pages) {
                        (Library::Hyperscan, _) => "",
                        (_, "huge") => ", pages of 2 MiB",
                        _ => ", pages of 4 KiB",
                    };
                    let line = format!("{} of {version}{pages}", library.name());
                    if !self.present.contains(&line) {
                        self.present.push(line);
                    }
                    return Ok(Some(Rc::new(RefCell::new(peer))));
                }
                Err(error) => why = error,
            }
        }
        Err(format!("{}: {why}", library.name()))
    }

    /// Which libraries took part, and which could not.
    pub(crate) fn roll(&self) -> String {
        let list = |lines: &[String]| if lines.is_empty() { "none".to_owned() } else { lines.join("; ") };
        format!("peers: {}; absent: {}", list(&self.present), list(&self.absent))
    }

    /// The path of a library's program, or why it cannot be had.
    fn compiled(&self, library: Library) -> Result<PathBuf, String> {
        let program = self.directory.path().join(library.program());
        if program.exists() {
            return Ok(program);
        }
        let package = library.package();
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", package]).output();
        let flags = flags.map_err(|error| format!("pkg-config: {error}"))?;
        if !flags.status.success() {
            return Err(format!("pkg-config knows no {package}"));
        }
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        for (name, text) in HEADERS {
            self.write(name, text.as_bytes())?;
        }
        let source = self.write(&format!("{}.c", library.program()), library.source().as_bytes())?;
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let output = Command::new(&compiler)
            .args(["-O3", "-march=native", "-std=gnu11", "-D_GNU_SOURCE", "-o"])
            .arg(&program)
            .arg(&source)
            .args(flags.split_whitespace())
            .output()
            .map_err(|error| format!("{compiler}: {error}"))?;
        if output.status.success() {
            return Ok(program);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("error")).unwrap_or("it says nothing");
        Err(format!("{compiler} cannot compile its program: {line}"))
    }
}

impl Peer {
    fn start(program: &Path, pages: &str, data: &Path, more: &[&str]) -> Result<(Peer, String), String> {
        let mut child = Command::new(program)
            .arg(pages)
            .arg(data)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("has no input or output".to_owned());
        };
        let output = BufReader::new(output);
        let (methods, selected) = (Vec::new(), String::new());
        let mut peer = Peer { child, input, output, methods, build: 0.0, bytes: 0, selected };
        // What a library says on its own comes first.
        let mut line = peer.line()?;
        while !line.starts_with("ready ") {
            if let Some(why) = line.strip_prefix("failed ") {
                return Err(why.to_owned());
            }
            line = peer.line()?;
        }
        let mut words = line.trim_start_matches("ready ").splitn(3, ' ');
        peer.build = number(words.next())? as f64 / 1e9;
        peer.bytes = number(words.next())?;
        let version = words.next().unwrap_or("an unknown version").to_owned();
        let methods = peer.line()?;
        peer.methods = methods.trim_start_matches("methods ").split('|').map(str::to_owned).collect();
        Ok((peer, version))
    }

    /// What is looked up from now on; gives how many queries there are.
    pub(crate) fn queries(&mut self, path: &Path) -> Result<u64, String> {
        let line = self.ask(&format!("queries {}", path.display()))?;
        number(line.strip_prefix("ok "))
    }

    /// Changes the table; gives how many changes there were, and the seconds that they took.
    pub(crate) fn update(&mut self, path: &Path) -> Result<(u64, f64), String> {
        let line = self.ask(&format!("update {}", path.display()))?;
        let mut words = line.split(' ');
        let nanoseconds = number(words.next())?;
        Ok((number(words.next())?, nanoseconds as f64 / 1e9))
    }

    fn select(&mut self, method: &str) -> Result<(), String> {
        if self.selected != method {
            let line = self.ask(&format!("select {method}"))?;
            if line != "ok" {
                return Err(line);
            }
            method.clone_into(&mut self.selected);
        }
        Ok(())
    }

    fn ask(&mut self, command: &str) -> Result<String, String> {
        writeln!(self.input, "{command}")
            .and_then(|()| self.input.flush())
            .map_err(|error| error.to_string())?;
        let line = self.line()?;
        match line.strip_prefix("failed ") {
            Some(why) => Err(why.to_owned()),
            None => Ok(line),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("ended without a word".to_owned());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended on its own, and then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Method {
    /// The ways of a running program that this machine has.
    pub(crate) fn all(peer: &Rc<RefCell<Peer>>, workshop: &Workshop) -> Vec<Method> {
        let names = peer.borrow().methods.clone();
        let answers = workshop.directory.path().join("answers");
        let method = |name| Method { peer: Rc::clone(peer), name, answers: answers.clone() };
        names.into_iter().filter(|name| peer.borrow_mut().select(name).is_ok()).map(method).collect()
    }

    /// How it looks up, which its name says.
    pub(crate) fn way(&self) -> Way {
        match &self.name {
            name if name.ends_with(" single") => Way::Single,
            name if name.ends_with(" block") => Way::Scan,
            _ => Way::Bulk,
        }
    }
}

impl Contender for Method {
    fn name(&self) -> &str {
        &self.name
    }

    fn answers(&mut self) -> Result<Vec<u32>, String> {
        let mut peer = self.peer.borrow_mut();
        peer.select(&self.name)?;
        peer.ask(&format!("answers {}", self.answers.display()))?;
        let bytes = fs::read(&self.answers).map_err(|error| error.to_string())?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn passes(&mut self, batch: usize, passes: u64) -> Result<Timed, String> {
        let mut peer = self.peer.borrow_mut();
        peer.select(&self.name)?;
        let line = peer.ask(&format!("pass {batch} {passes}"))?;
        let mut words = line.split(' ');
        let nanoseconds = number(words.next())?;
        Ok(Timed { seconds: nanoseconds as f64 / 1e9, sum: number(words.next())? })
    }
}

fn number(word: Option<&str>) -> Result<u64, String> {
    let word = word.ok_or("answered too little")?;
    word.parse().map_err(|_| format!("answered '{word}' where a number belongs"))
}
