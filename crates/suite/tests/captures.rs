//! Captures from outside: `RAVELIN_DATA=DIRECTORY` names a folder with `malformed/` and `captures/`; without
//! it there is nothing to do.

use captures::{Capture, CaptureError};
use ir::Program;
use lang::pipeline::Decode;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use suite::corpus::{compile_file, files, root};
use suite::outcome::see;
use suite::packet_generator::Arrivals;

const PORTS: u16 = 5;

/// So many packets of a capture are run at a time, each part from an empty state.
const PART: usize = 20_000;

#[derive(Default)]
struct Figures {
    files: u64,
    unreadable: u64,
    packets: u64,
}

#[test]
fn real_captures_mean_the_same_on_both_back_ends() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    let programs = programs();
    let mut figures = Figures::default();
    for ending in ["pcap", "pcapng", "gz"] {
        for path in files(&data.join("malformed"), ending).expect("malformed/ is there") {
            let file = std::fs::File::open(&path).expect("a capture can be opened");
            capture(&programs, &path.display().to_string(), Box::new(file), &mut figures);
        }
    }
    for path in files(&data.join("captures"), "zst").expect("captures/ is there") {
        let name = path.display().to_string();
        let file = BufReader::new(std::fs::File::open(&path).expect("a capture can be opened"));
        if name.ends_with(".tar.zst") {
            let stream = ruzstd::decoding::StreamingDecoder::new(file).expect("an archive is zstd");
            archive(&programs, &name, stream, &mut figures);
        } else if name.ends_with(".pcap.zst") {
            capture(&programs, &name, Box::new(file), &mut figures);
        }
    }
    println!(
        "{} captures, {} of them damaged or of no known format, {} packets",
        figures.files, figures.unreadable, figures.packets
    );
    assert!(figures.packets > 0, "no packet was found under {}", data.display());
}

fn programs() -> Vec<(String, Program)> {
    let paths = files(&root().join("programs"), "rav").expect("programs/ is there");
    let compile = |path: &PathBuf| {
        let compiled = compile_file(path, Decode::Lazy).expect("a program can be read");
        (path.display().to_string(), compiled.program.expect("a program compiles"))
    };
    paths.iter().map(compile).collect()
}

fn archive(programs: &[(String, Program)], name: &str, stream: impl Read, figures: &mut Figures) {
    let mut archive = tar::Archive::new(stream);
    for entry in archive.entries().expect("an archive is tar") {
        let mut entry = entry.expect("an archive is whole");
        let inner = entry.path().map(|path| path.to_path_buf()).unwrap_or_default();
        let is_capture = inner
            .extension()
            .is_some_and(|own| ["pcap", "pcapng", "cap"].iter().any(|ending| own == *ending));
        if is_capture {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("an archive is whole");
            let name = format!("{name}: {}", Path::new(&inner).display());
            capture(programs, &name, Box::new(std::io::Cursor::new(bytes)), figures);
        }
    }
}

fn capture(programs: &[(String, Program)], name: &str, stream: Box<dyn Read + Send>, figures: &mut Figures) {
    figures.files += 1;
    let opened = captures::compressed::uncompressed(stream).map(Capture::open);
    let Ok(Ok(mut capture)) = opened else {
        figures.unreadable += 1;
        return;
    };
    loop {
        let mut arrivals = Arrivals::default();
        let end = fill(&mut capture, &mut arrivals);
        figures.packets += arrivals.ports.len() as u64;
        run(programs, name, &arrivals);
        match end {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => {
                figures.unreadable += 1;
                return;
            }
        }
    }
}

/// Reads the next part; true if there may be more.
fn fill<R: Read>(capture: &mut Capture<R>, arrivals: &mut Arrivals) -> Result<bool, CaptureError> {
    while arrivals.ports.len() < PART {
        let Some(record) = capture.next()? else { return Ok(false) };
        let port = (arrivals.ports.len() % usize::from(PORTS)) as u16 + 1;
        arrivals.push(record.data, record.wire, record.time_ns, port);
    }
    Ok(true)
}

fn run(programs: &[(String, Program)], name: &str, arrivals: &Arrivals) {
    for (program_name, program) in programs {
        let judge = see(program, exec::BackendKind::Interpreter, arrivals, PORTS, 256).expect("it loads");
        let native = see(program, exec::BackendKind::Native, arrivals, PORTS, 256).expect("it loads");
        assert_eq!(native.difference(&judge), None, "{name}, {program_name}");
        assert_eq!(judge.verdicts.len(), arrivals.ports.len());
        let pending =
            judge.verdicts.iter().filter(|verdict| verdict.kind() == packet::VerdictKind::Pending).count();
        assert_eq!(pending, 0, "{name}, {program_name}");
    }
}
