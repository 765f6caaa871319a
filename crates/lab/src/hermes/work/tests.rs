//! Whether the kernels have as many instructions as the laws say, by clang's intermediate code with a count
//! at every block, over the packets; and as many registers as the model takes, by NVIDIA's compiler.

use super::*;
use exec::kernel::{Dialect, Kernel, PacketColumn};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs packet by packet what comes in, and gives the instructions of each.
const MAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned counted;
void counted_more(unsigned more) { counted += more; }
static unsigned *taken(size_t words)
{
    unsigned *memory = malloc(4 * words + 4);
    if (fread(memory, 4, words, stdin) != words) exit(1);
    return memory;
}
int main(void)
{
    unsigned *head = taken(4), *table[4] = { 0, 0, 0, 0 }, records[64], verdict, at;
    for (at = 0; at < head[0]; at++) table[at] = taken(*taken(1));
    for (at = 0; at < head[3]; at++) {
        unsigned *bytes = taken(head[1] / 4), *columns = taken(head[2]);
        counted = 0;
        CALL;
        fwrite(&counted, 4, 1, stdout);
        free(bytes), free(columns);
    }
    return 0;
}
"#;

/// The intermediate code with a call in every block that says how many instructions the block has.
fn instrumented(code: &str) -> String {
    let mut out = String::new();
    let mut block: Vec<&str> = Vec::new();
    let mut inside = false;
    let end = |block: &mut Vec<&str>, out: &mut String| {
        let is_step = |line: &&&str| line.starts_with("  ") && !line.starts_with("   ");
        let free = |line: &str| {
            ["phi ", "@llvm.lifetime", "@llvm.dbg", "@llvm.assume"].iter().any(|word| line.contains(word))
        };
        let steps = block.iter().filter(is_step).filter(|line| !free(line)).count();
        let phis = block.iter().take_while(|line| !line.starts_with("  ") || line.contains(" phi ")).count();
        for (place, line) in block.iter().enumerate() {
            if place == phis && steps > 0 {
                let _ = writeln!(out, "  call void @counted_more(i32 {steps})");
            }
            let _ = writeln!(out, "{line}");
        }
        block.clear();
    };
    for line in code.lines() {
        let label = inside && !line.starts_with(' ') && line.contains(':');
        if label || line == "}" {
            end(&mut block, &mut out);
        }
        inside = (inside || line.starts_with("define ")) && line != "}";
        if inside && !line.starts_with("define ") {
            block.push(line);
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out + "declare void @counted_more(i32)\n"
}

fn run(command: &mut Command) {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The instructions of every packet of a job.
fn counted(name: &str, job: &Job, folder: &Path) -> Vec<u32> {
    let kernel = Kernel::new(&job.program, PORTS, &job.options).expect("it has a kernel");
    let tables = job.tables().expect("its tables have images");
    let file = |end: &str| folder.join(format!("{name}{end}"));
    fs::write(file(".c"), kernel.text(Dialect::Plain)).expect("it can be written");
    let clang = || Command::new("clang");
    // A device's compiler does not make vectors, and unrolling is left to it.
    let flags = ["-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-S", "-emit-llvm"];
    run(clang().args(flags).arg(file(".c")).arg("-o").arg(file(".ll")));
    let code = fs::read_to_string(file(".ll")).expect("it was written");
    fs::write(file(".counted.ll"), instrumented(&code)).expect("it can be written");
    let arguments: String = (0..tables.len()).map(|place| format!(", table[{place}]")).collect();
    let call = format!("void run_packets(); run_packets(bytes, columns, &verdict, records, 1{arguments})");
    fs::write(file(".main.c"), MAIN.replace("CALL", &call)).expect("it can be written");
    run(clang().args(["-O1", "-w"]).args([file(".counted.ll"), file(".main.c")]).arg("-o").arg(file("")));

    let stride = kernel.plan.stride as usize;
    let mut words =
        vec![tables.len() as u32, stride as u32, kernel.plan.columns.len() as u32, job.frames.len() as u32];
    for table in &tables {
        words.push(table.len() as u32);
        words.extend(table);
    }
    let mut input: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for frame in &job.frames {
        let mut bytes = frame[..frame.len().min(stride)].to_vec();
        bytes.resize(stride, 0);
        input.extend(bytes);
        for column in &kernel.plan.columns {
            let word = match column {
                PacketColumn::Captured | PacketColumn::Wire => frame.len() as u32,
                PacketColumn::Port => 1,
                PacketColumn::TimeLow | PacketColumn::TimeHigh | PacketColumn::Place => 0,
            };
            input.extend(word.to_le_bytes());
        }
    }
    let mut child =
        Command::new(file("")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it ends").expect("it is taken");
    output.stdout.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

#[test]
fn kernels_have_the_instructions_that_the_laws_say() {
    if Command::new("clang").arg("--version").output().is_err() {
        println!("skipped: there is no `clang` (on Debian: apt-get install clang)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    for application in Application::ALL {
        let job = application.job().expect("it can be made");
        let counts = counted(&format!("{application:?}"), &job, folder.path());
        assert_eq!(counts.len(), PACKETS);
        let mut by_turns: BTreeMap<Turns, (u64, u64)> = BTreeMap::new();
        for (turns, count) in job.turns.iter().zip(&counts) {
            let sum = by_turns.entry(*turns).or_default();
            *sum = (sum.0 + 1, sum.1 + u64::from(*count));
        }
        for (turns, (packets, sum)) in by_turns {
            let (said, mean) =
                (f64::from(application.work(turns, 64).instructions), sum as f64 / packets as f64);
            // Our kernel has the host cut packets.
            let is_cut = application == Application::Fragmentation && turns.loops > 0;
            if packets >= 40 && !is_cut {
                assert!((said / mean - 1.0).abs() < 0.1, "{application:?}, {turns:?}: {mean} and not {said}");
            }
        }
    }
}

/// `BLESS=1` writes the file anew. The numbers are a compiler's: another version is only printed.
#[test]
fn registers_are_those_of_the_kernels() {
    for application in Application::ALL {
        assert_ne!(application.registers(), u32::MAX, "{application:?} is in the file");
    }
    let (major, minor) = match gpu::compiler_version() {
        Ok(version) => version,
        Err(missing) => {
            println!("skipped: {missing}");
            return;
        }
    };
    let compiler = format!("NVRTC {major}.{minor}, code for sm_90");
    let mut found = format!("{compiler}\n\n");
    for application in Application::ALL.into_iter().filter(|one| *one != Application::Expiring) {
        let job = application.job().expect("it can be made");
        let kernel = Kernel::new(&job.program, PORTS, &job.options).expect("it has a kernel");
        let told = gpu::cuda_needs(&kernel.text(Dialect::Cuda), 90).expect("it compiles");
        let (_, used) = told.split_once("Used ").expect("it says what is used");
        let (registers, _) = used.split_once(" registers").expect("it says how many");
        let _ = writeln!(found, "{:<14}{registers:>4}", application.name());
    }
    if std::env::var_os("BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hermes/registers.txt");
        fs::write(file, &found).expect("it can be written");
    } else if REGISTERS.lines().next() == Some(&compiler) {
        assert_eq!(found, REGISTERS);
    } else {
        println!("skipped: another compiler; this one gives\n{found}");
    }
}
