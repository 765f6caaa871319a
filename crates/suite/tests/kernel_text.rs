//! Kernel text in its other two dialects: CUDA compiles to PTX, plain C runs under sanitizers with the
//! interpreter's results; and OpenCL under oclgrind.

use captures::generate::Profile;
use exec::kernel::{Back, CopiedPart, Dialect, Kernel, KernelOptions};
use exec::{Backend, BackendKind, QueueDepth};
use gpu::{Device, DeviceError, Geometry, Input, SlotOutput, study};
use ir::Program;
use lang::pipeline::Decode;
use offload::Offload;
use offload::Offloaded;
use packet::BATCH;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use suite::cores::each;
use suite::corpus::{compile_file, files, root};
use suite::device::PATIENCE;
use suite::outcome::{SEED, see, see_on};
use suite::ptx;
use suite::traffic::traffic;

const PORTS: u16 = 5;

/// A program that runs a kernel over what comes in: a word that says what comes, and that.
const SERVER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static u32 *table[TABLES + 1];
static void all(size_t done, size_t wanted) { if (done != wanted) exit(0); }
static void *taken(size_t bytes)
{
    void *memory = malloc(bytes);
    all(fread(memory, 1, bytes, stdin), bytes);
    return memory;
}
static void given(const void *memory, size_t bytes) { all(fwrite(memory, 1, bytes, stdout), bytes); }
int main(void)
{
    u32 head[3];
    for (;;) {
        all(fread(head, 4, 3, stdin), 3);
        if (head[0] == 1) {
            free(table[head[1]]);
            table[head[1]] = taken(4ul * head[2]);
            continue;
        }
        u32 packets = head[1];
        u8 *bytes = taken((size_t)packets * STRIDE);
        u32 *columns = taken(4ul * packets * COLUMNS);
        RESULT *verdicts = malloc(4ul * packets);
        u32 *records = calloc((size_t)packets * RECORD_WORDS, 4);
        run_packets(bytes, columns, verdicts, records, packets CALLED);
        given(bytes, (size_t)packets * STRIDE);
        given(verdicts, ((size_t)packets * VERDICT_BITS + 31) / 32 * 4);
        given(records, 4ul * packets * RECORD_WORDS);
        fflush(stdout);
        free(bytes), free(columns), free(verdicts), free(records);
    }
}
"#;

/// Kernels that do what none may, by what is said of them.
const WRONG: [(&str, &str); 2] = [
    ("Invalid write", "verdicts[packets + get_global_id(0)] = 1;"),
    ("data race", "verdicts[0] = (uint)get_global_id(0) + 1;"),
];

/// What the PTX of a persistent kernel has of the words that order memory, and how often.
const PERSISTENT: [(&str, usize); 9] = [
    (".visible .entry serve_packets(", 1),
    ("ld.acquire.sys", 2),
    ("ld.acquire.sys.v2", 1),
    ("ld.relaxed.sys", 1),
    ("st.release.sys", 2),
    ("ld.acquire.gpu", 2),
    ("st.release.gpu", 2),
    ("atom.acq_rel.gpu.cas", 1),
    ("nanosleep", 2),
];
/// How often warps meet in it; once more where they fetch their packets, and where they write them back.
const MEETINGS: usize = 4;

/// What tells compilers of CUDA that nobody writes a table while a kernel runs.
const READ_ONLY: &str = "#define TABLE const u32 *__restrict__\n";
/// Programs that read tables of several kinds.
const READERS: [&str; 4] = ["firewall", "firewall_rules", "ids", "lpm"];

/// The program that a test needs, or a line that says what it leaves out.
fn found(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        println!("skipped: there is no `{program}` (on Debian: apt-get install {package})");
    }
    there.is_ok()
}

/// A folder that goes away with its value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ravelin-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every program of a folder that has a kernel.
fn programs(folder: &str) -> Vec<(String, Program)> {
    let files = files(&root().join(folder), "rav").expect("the folder is there");
    let name = |path: &Path| path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    files
        .iter()
        .filter_map(|path| {
            Some((name(path), compile_file(path, Decode::Lazy).expect("it can be read").program?))
        })
        .filter(|(_, program)| Kernel::new(program, PORTS, &KernelOptions::default()).is_ok())
        .collect()
}

fn complains(name: &str, command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(12).collect();
    output.status.success().then_some(()).ok_or_else(|| format!("{name}:\n{}", first.join("\n")))
}

/// The kernels of a program that differ: with each way of searching in its tables, and in some of the forms
/// in which packets travel.
fn kernels(program: &Program) -> Vec<(KernelOptions, Kernel)> {
    let plain = KernelOptions::default();
    let all = [
        plain,
        KernelOptions { linear_rules: true, bloom: true, ..plain },
        KernelOptions { over: CopiedPart::Packed, back: Back::Half, ..plain },
        KernelOptions { over: CopiedPart::InPlace, back: Back::Bit, ..plain },
        KernelOptions { over: CopiedPart::InPlace, ..plain },
        KernelOptions { over: CopiedPart::Packed, back: Back::Bit, ..plain },
    ];
    let made = |options: &KernelOptions| Some((*options, Kernel::new(program, PORTS, options).ok()?));
    let mut kernels: Vec<(KernelOptions, Kernel)> = all.iter().filter_map(made).collect();
    kernels.dedup_by(|other, one| other.1 == one.1);
    kernels
}

/// A program, its name, and its kernels that are looked at.
type Compiled = (String, Program, Vec<(KernelOptions, Kernel)>);

/// The programs with all their kernels; and the good cases, each with its plain kernel and one other, which
/// its name chooses: there are five times as many, and a compiler needs as long for one of theirs.
static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
    let of_programs = programs("programs").into_iter().map(|(name, program)| {
        let kernels = kernels(&program);
        (name, program, kernels)
    });
    let of_cases = programs("suite/good").into_iter().map(|(name, program)| {
        let mut all = kernels(&program).into_iter();
        let plain = all.next();
        let chosen = name.bytes().map(usize::from).sum::<usize>() % all.len().max(1);
        let kernels = plain.into_iter().chain(all.nth(chosen)).collect();
        (name, program, kernels)
    });
    let cases: Vec<Compiled> = of_cases.collect();
    let forms: BTreeSet<String> =
        cases.iter().flat_map(|case| &case.2).map(|(options, _)| format!("{options:?}")).collect();
    assert_eq!(forms.len(), 6, "{forms:?}");
    let all: Vec<Compiled> = of_programs.chain(cases).collect();
    assert!(all.len() > 80, "{} programs have a kernel", all.len());
    all
});

/// All of them.
fn compiled() -> Vec<&'static Compiled> {
    COMPILED.iter().collect()
}

#[test]
fn cuda_text_compiles_to_ptx() {
    if !found("clang", "clang") {
        return;
    }
    let folder = Folder::new("cuda");
    each(compiled(), |(name, _, kernels)| {
        for (number, (_, kernel)) in kernels.iter().enumerate() {
            let file = folder.0.join(format!("{name}-{number}.cu"));
            let ptx = ptx::of(&kernel.text(Dialect::Cuda), &file).map_err(|log| format!("{name}: {log}"))?;
            if !ptx.contains(".visible .entry run_packets(") {
                return Err(format!("{name}: the PTX has no entry point `run_packets`"));
            }
            let file = folder.0.join(format!("{name}-{number}-persistent.cu"));
            let text = kernel.persistent_text(Dialect::Cuda);
            // A warp copies packets of up to 256 bytes, in pieces of 16.
            let plan = &kernel.plan;
            let fetches = plan.over != CopiedPart::InPlace && plan.stride % 16 == 0 && plan.stride <= 256;
            let writes_back = fetches && plan.writes;
            let meetings = MEETINGS + usize::from(fetches) + usize::from(writes_back);
            let ptx = ptx::of(&text, &file);
            let ptx = ptx.map_err(|log| format!("{name}, persistent: {log}"))?;
            // How often each stands there: both words of the host are read at once, and what is published
            // again where the host stops the kernel; only the dispatcher reads entries; and so on.
            for (words, times) in PERSISTENT.into_iter().chain([("bar.warp.sync", meetings)]) {
                if ptx.matches(words).count() != times {
                    return Err(format!(
                        "{name}: `{words}` is not {times} times in the persistent kernel's PTX"
                    ));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn cuda_text_says_of_every_table_that_nobody_writes_it() {
    let mut tables = 0;
    for (name, program) in programs("programs") {
        for (_, kernel) in kernels(&program) {
            let (text, persistent) = (kernel.text(Dialect::Cuda), kernel.persistent_text(Dialect::Cuda));
            for (list, text) in [("PARAMETERS", text), ("SERVED", persistent)] {
                assert_eq!(text.matches("#define TABLE ").count(), 1, "{name}");
                assert!(text.contains(READ_ONLY), "{name}: a table is no `const __restrict__`");
                let start = format!("#define {list} ");
                let list = text.lines().find(|line| line.starts_with(&start)).expect("it has parameters");
                let places = 0..kernel.plan.tables.len();
                let wanted: String = places.map(|place| format!(", TABLE t{place}")).collect();
                assert!(list.ends_with(&wanted), "{name}: {list}");
                tables += kernel.plan.tables.len();
            }
        }
    }
    assert!(tables > 100, "{tables} tables");
}

#[test]
fn tables_are_read_by_the_path_for_data_that_nobody_writes() {
    if !found("clang", "clang") {
        return;
    }
    let folder = Folder::new("read-only");
    let named: Vec<_> =
        programs("programs").into_iter().filter(|(name, _)| READERS.contains(&name.as_str())).collect();
    assert_eq!(named.len(), READERS.len());
    each(named, |(name, program)| {
        let kernel = Kernel::new(program, PORTS, &KernelOptions::default());
        let kernel = kernel.map_err(|refusal| format!("{name}: {refusal}"))?;
        let (text, persistent) = (kernel.text(Dialect::Cuda), kernel.persistent_text(Dialect::Cuda));
        for (form, text) in [("", text), ("-persistent", persistent)] {
            let loads = |text: &str, of: &str| {
                let file = folder.0.join(format!("{name}{form}-{of}.cu"));
                let ptx = ptx::of(text, &file).map_err(|log| format!("{name}{form}, {of}: {log}"))?;
                Ok::<usize, String>(ptx.matches("ld.global.nc").count())
            };
            let without = text.replace(READ_ONLY, "#define TABLE const u32 *\n");
            let found = (loads(&text, "as-it-is")?, loads(&without, "without")?);
            // Without the word there are none, so it is tables that are read so.
            if found.0 == 0 || found.1 > 0 {
                return Err(format!(
                    "{name}{form}: {found:?} loads by `ld.global.nc`, with and without the word"
                ));
            }
        }
        Ok(())
    });
}

#[test]
fn cuda_text_becomes_machine_code_where_its_compiler_is_installed() {
    if let Err(missing) = gpu::compiler_version() {
        println!("skipped: {missing}");
        return;
    }
    each(compiled(), |(name, _, kernels)| {
        for (_, kernel) in kernels {
            let code = gpu::compile_cuda(&kernel.text(Dialect::Cuda), 90);
            let code = code.map_err(|error| format!("{name}: {error}"))?;
            if !code.image().windows(11).any(|bytes| bytes == b"run_packets") {
                return Err(format!("{name}: the code has no entry point `run_packets`"));
            }
            let code = gpu::compile_cuda(&kernel.persistent_text(Dialect::Cuda), 90);
            let code = code.map_err(|error| format!("{name}, persistent: {error}"))?;
            if !code.image().windows(13).any(|bytes| bytes == b"serve_packets") {
                return Err(format!("{name}: the code has no entry point `serve_packets`"));
            }
        }
        Ok(())
    });
}

/// What clang says of the text of a kernel that keeps running, for a device of this version of OpenCL.
fn opencl_errors(file: &Path, version: &str, more: &[&str]) -> String {
    let output = Command::new("clang")
        .args(["-x", "cl", "-Xclang", "-finclude-default-header", "-target", "spir64", "-fsyntax-only"])
        .args(["-Wall", "-Werror", "-Wno-unused-label", "-Wno-unused-variable", "-Wno-unused-function"])
        .args(["-Wno-unused-but-set-variable", "-DGROUP=32", version])
        .args(more)
        .arg(file)
        .output()
        .expect("it starts");
    String::from_utf8_lossy(&output.stderr).lines().take(6).collect::<Vec<_>>().join("\n")
}

#[test]
fn opencl_text_that_keeps_running_compiles_for_devices_with_memory_of_both() {
    if !found("clang", "clang") {
        return;
    }
    let folder = Folder::new("opencl");
    each(compiled(), |(name, _, kernels)| {
        for (number, (_, kernel)) in kernels.iter().enumerate() {
            let file = folder.0.join(format!("{name}-{number}.cl"));
            fs::write(&file, kernel.persistent_text(Dialect::OpenCl)).map_err(|error| error.to_string())?;
            for version in ["-cl-std=CL2.0", "-cl-std=CL3.0"] {
                let said = opencl_errors(&file, version, &[]);
                if !said.is_empty() {
                    return Err(format!("{name}, {version}: {said}"));
                }
            }
        }
        Ok(())
    });
    let file = folder.0.join("hub-0.cl");
    let known = "-cl-ext=-all,+__opencl_c_atomic_order_acq_rel,+__opencl_c_atomic_scope_device";
    let without = ["-target", "x86_64-unknown-linux-gnu", "-Xclang", known];
    let said = opencl_errors(&file, "-cl-std=CL3.0", &without);
    assert!(said.contains("no atomics that the processor takes part in"), "{said}");
    let said = opencl_errors(&file, "-cl-std=CL3.0", &[&without[..], &["-DON_PROCESSOR"]].concat());
    assert_eq!(said, "");
}

/// A device that is a child process with the kernel in plain C, built with sanitizers.
struct PlainDevice {
    geometry: Geometry,
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    tables: Vec<Vec<u32>>,
    bytes: Vec<u8>,
    columns: Vec<u32>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
}

fn as_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl PlainDevice {
    fn new(source: &Path, kernel: &Kernel, geometry: Geometry) -> Result<PlainDevice, DeviceError> {
        let log = |log: String| DeviceError::Build { device: "plain C".to_owned(), log };
        let called: String = (0..geometry.tables).map(|table| format!(", table[{table}]")).collect();
        let Geometry { stride, columns, verdict_bits, record_words, tables, .. } = geometry;
        let text = format!(
            "{}\n#define STRIDE {stride}u\n#define COLUMNS {columns}u\n#define RECORD_WORDS {record_words}u\n\
             #define VERDICT_BITS {verdict_bits}u\n\
             #define TABLES {tables}u\n#define CALLED {called}\n{SERVER}",
            kernel.text(Dialect::Plain)
        );
        fs::write(source, text).map_err(|error| log(error.to_string()))?;
        let built = source.with_extension("bin");
        complains(
            "cc",
            Command::new("cc")
                .args(["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-label"])
                .args(["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter"])
                .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o"])
                .args([&built, &source.to_path_buf()]),
        )
        .map_err(log)?;
        let mut child = Command::new(&built)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| log(error.to_string()))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (Some(to), Some(from)) = (to, from) else { return Err(log("it has no pipes".to_owned())) };
        let packets = geometry.packets;
        Ok(PlainDevice {
            child,
            to,
            from,
            tables: vec![Vec::new(); tables],
            bytes: vec![0; packets * stride],
            columns: vec![0; packets * columns],
            verdicts: vec![0; packets],
            records: vec![0; packets * record_words],
            geometry,
        })
    }

    fn tell(&mut self, head: [u32; 3], parts: &[&[u8]]) -> Result<(), DeviceError> {
        let sent = self.to.write_all(&as_bytes(&head));
        let sent = parts.iter().fold(sent, |sent, part| sent.and_then(|()| self.to.write_all(part)));
        sent.and_then(|()| self.to.flush()).map_err(failed)
    }

    fn hear(&mut self, words: usize) -> Result<Vec<u32>, DeviceError> {
        let mut bytes = vec![0; 4 * words];
        self.from.read_exact(&mut bytes).map_err(failed)?;
        let word = |bytes: &[u8; 4]| u32::from_ne_bytes(*bytes);
        Ok(bytes.as_chunks().0.iter().map(word).collect())
    }
}

fn failed(error: std::io::Error) -> DeviceError {
    DeviceError::Failed { device: "plain C".to_owned(), doing: "run a batch", cause: error.to_string() }
}

impl Drop for PlainDevice {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Device for PlainDevice {
    fn name(&self) -> String {
        "plain C".to_owned()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.tables[table] = words.to_vec();
        self.tell([1, table as u32, words.len() as u32], &[&as_bytes(words)])
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        let mut all = self.tables[table].clone();
        all[first..first + words.len()].copy_from_slice(words);
        self.upload(table, &all)
    }

    fn input(&mut self, _: usize) -> Result<Input<'_>, DeviceError> {
        Ok(Input { bytes: &mut self.bytes, columns: &mut self.columns })
    }

    fn submit(&mut self, _: usize, packets: usize) -> Result<(), DeviceError> {
        let bytes = self.bytes[..packets * self.geometry.stride].to_vec();
        let columns = as_bytes(&self.columns[..packets * self.geometry.columns]);
        self.tell([2, packets as u32, 0], &[&bytes, &columns])?;
        self.from.read_exact(&mut self.bytes[..bytes.len()]).map_err(failed)?;
        self.verdicts = self.hear(self.geometry.verdict_words(packets))?;
        self.records = self.hear(packets * self.geometry.record_words)?;
        Ok(())
    }

    fn poll(&mut self, _: usize, _: bool) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn output(&mut self, _: usize) -> Result<SlotOutput<'_>, DeviceError> {
        Ok(SlotOutput { bytes: &self.bytes, verdicts: &self.verdicts, records: &self.records })
    }
}

#[test]
fn plain_text_does_nothing_undefined_and_means_the_same() {
    if !found("cc", "gcc") {
        return;
    }
    let folder = Folder::new("plain");
    let arrivals = traffic(Profile::sample1(), 3_000, PORTS, 5);
    let finished = Mutex::new(0);
    each(compiled(), |(name, program, kernels)| {
        let judge = see(program, BackendKind::Interpreter, &arrivals, PORTS, BATCH)
            .map_err(|error| error.to_string())?;
        for (number, (options, _)) in kernels.iter().enumerate() {
            let tell = |error: &dyn std::fmt::Display| format!("{name}, {options:?}: {error}");
            let offload = Offload::new(program, PORTS, SEED, options).map_err(|error| tell(&error))?;
            let source = folder.0.join(format!("{name}-{number}.c"));
            let mut offloaded = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
                Ok(Box::new(PlainDevice::new(&source, kernel, geometry)?))
            })
            .map_err(|error| tell(&error))?
            .with_patience(PATIENCE);
            let seen = see_on(program, &mut offloaded, &arrivals, BATCH);
            let on = offloaded.on_device().ok_or_else(|| tell(&"it is on no device"))?;
            if let Some(failure) = on.failure {
                return Err(tell(&failure));
            }
            if let Some(difference) = seen.difference(&judge) {
                return Err(tell(&difference));
            }
            *finished.lock().expect("nobody panics") += on.tally.device;
        }
        Ok(())
    });
    let finished = finished.into_inner().expect("nobody panics");
    assert!(finished > 100_000, "{finished} packets were finished by kernels");
}

/// Which part of the test a child process runs.
const PART: &str = "RAVELIN_KERNEL_TEXT_PART";

#[test]
fn kernels_stay_in_their_buffers_under_oclgrind() {
    match std::env::var(PART) {
        Ok(part) => under_oclgrind(&part),
        Err(_) => oclgrind(),
    }
}

/// Runs the parts of the test in processes that know no driver but oclgrind.
fn oclgrind() {
    let driver = Path::new("/usr/lib/oclgrind/liboclgrind-rt-icd.so");
    if !driver.exists() {
        println!("skipped: there is no {} (on Debian: apt-get install oclgrind)", driver.display());
        return;
    }
    let folder = Folder::new("oclgrind");
    fs::write(folder.0.join("oclgrind.icd"), driver.display().to_string()).expect("it can be written");
    let own = std::env::current_exe().expect("a test has a file");
    // Every program as it is, some in other forms, and what must be found.
    let mut parts: Vec<String> = programs("programs").into_iter().map(|(name, _)| name).collect();
    assert!(parts.len() >= 19, "{} programs have a kernel", parts.len());
    let forms =
        ["lpm packed half", "hub packed bit", "dpi in-place word", "both one-by-one", "ids one-by-one"];
    parts.extend(forms.iter().chain(&WRONG.map(|(name, _)| name)).map(|part| (*part).to_owned()));
    each(parts, |part| {
        let log = folder.0.join(part);
        let run = Command::new(&own)
            .args(["--exact", "kernels_stay_in_their_buffers_under_oclgrind"])
            .env(PART, part)
            .env("OCL_ICD_VENDORS", &folder.0)
            .env("OCLGRIND_LOG", &log)
            // It does not know the rotations that its compiler makes of shifts.
            .env("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable")
            .env("OCLGRIND_DATA_RACES", "1")
            .output()
            .map_err(|error| format!("{part}: {error}"))?;
        let said = String::from_utf8_lossy(&run.stdout);
        if !run.status.success() {
            return Err(format!("{part}: {said}\n{}", String::from_utf8_lossy(&run.stderr)));
        }
        let report = fs::read_to_string(log).unwrap_or_default();
        let first: Vec<&str> = report.lines().take(20).collect();
        let is_wrong = WRONG.iter().any(|(name, _)| name == part);
        let right = if is_wrong { report.contains(part) } else { report.trim().is_empty() };
        right.then_some(()).ok_or_else(|| format!("{part}: {}", first.join("\n")))
    });
}

fn under_oclgrind(part: &str) {
    let device = gpu::opencl_devices().unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert!(device.name.contains("Oclgrind"), "{}", device.name);
    if let Some((_, body)) = WRONG.iter().find(|(name, _)| *name == part) {
        let text = format!(
            "__kernel void run_packets(__global uchar *bytes, __global const uint *columns, \
             __global uint *verdicts, __global uint *records, const uint packets) {{ {body} }}"
        );
        let geometry = Geometry {
            packets: 64,
            stride: 16,
            columns: 1,
            verdict_bits: 32,
            record_words: 1,
            returns_bytes: false,
            slots: 1,
            tables: 0,
        };
        let mut wrong = gpu::OpenCl::new(&device, &text, geometry, study::PAGEABLE).expect("it builds");
        wrong.submit(0, 64).and_then(|()| wrong.poll(0, true)).expect("it runs");
        return;
    }
    let mut words = part.split(' ');
    let path = root().join(format!("programs/{}.rav", words.next().unwrap_or_default()));
    let program = compile_file(&path, Decode::Lazy).expect("it can be read").program.expect("it compiles");
    let arrivals = traffic(Profile::sample1(), 600, PORTS, 3);
    let (over, back) = (words.next(), words.next());
    let simple = over == Some("one-by-one");
    let options = KernelOptions {
        linear_rules: simple,
        bloom: simple,
        over: CopiedPart::ALL.into_iter().find(|form| Some(form.name()) == over).unwrap_or_default(),
        back: Back::ALL.into_iter().find(|form| Some(form.name()) == back).unwrap_or_default(),
    };
    let offload = Offload::new(&program, PORTS, SEED, &options).expect("it has a kernel");
    let mut offloaded = Offloaded::on_opencl(offload, &device, study::PAGEABLE, QueueDepth::BATCH)
        .expect("it builds")
        .with_patience(PATIENCE);
    let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None, "{part}");
    let on = offloaded.on_device().expect("it is on a device");
    assert_eq!(on.failure, None, "{part}");
    let by_kernel = on.tally.device + on.tally.again + on.tally.changed;
    assert!(by_kernel > 300, "{part}: {:?}", on.tally);
}
