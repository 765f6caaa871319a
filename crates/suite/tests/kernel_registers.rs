//! What kernels need of an NVIDIA device, against golden numbers: registers, and what does not find room in
//! them.
//!
//! `BLESS=1 cargo test -p suite --test kernel_registers` writes `suite/golden` anew. Numbers are a
//! compiler's: where another version is installed than the one that a file names, they are printed and not
//! compared.

use exec::kernel::{Dialect, Kernel, KernelOptions};
use lang::pipeline::Decode;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use suite::cores::each;
use suite::corpus::{compile_file, files, root};
use suite::ptx;

const PORTS: u16 = 5;

/// The kernels of the programs in `programs/` by name, with each way of searching in rules and patterns and
/// as they keep running, as CUDA text.
fn kernels() -> Vec<(String, String)> {
    let plain = KernelOptions::default();
    let other = KernelOptions { linear_rules: true, bloom: true, ..plain };
    let mut kernels = Vec::new();
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let program =
            compile_file(&path, Decode::Lazy).expect("it can be read").program.expect("it compiles");
        let Ok(kernel) = Kernel::new(&program, PORTS, &plain) else { continue };
        let simple = Kernel::new(&program, PORTS, &other).expect("the other has a kernel");
        if simple != kernel {
            kernels.push((format!("{name}, one by one"), simple.text(Dialect::Cuda)));
        }
        kernels.push((format!("{name}, persistent"), kernel.persistent_text(Dialect::Cuda)));
        kernels.push((name, kernel.text(Dialect::Cuda)));
    }
    assert!(kernels.len() > 36, "{} kernels", kernels.len());
    kernels
}

/// A row of numbers for every kernel, and a row of names above them, against a golden file.
fn golden(
    file: &str,
    compiler: &str,
    names: &[&str],
    of: impl Fn(&str, &str) -> Result<Vec<u64>, String> + Sync,
) {
    let rows = Mutex::new(BTreeMap::new());
    each(kernels(), |(name, text)| {
        let numbers = of(name, text).map_err(|error| format!("{name}: {error}"))?;
        rows.lock().expect("nobody panics").insert(name.clone(), numbers);
        Ok(())
    });
    let row = |name: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>8}")).collect();
        format!("{name:<28}{cells}\n")
    };
    let mut found = format!(
        "{compiler}\n\n{}",
        row("kernel", &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    );
    for (name, numbers) in rows.into_inner().expect("nobody panics") {
        found += &row(&name, &numbers.iter().map(u64::to_string).collect::<Vec<_>>());
    }
    let path = root().join("suite/golden").join(file);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &found).expect("a golden file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected.lines().next() != Some(compiler) {
        println!("skipped: {} is of another compiler; this one gives\n{found}", path.display());
        return;
    }
    let differ: Vec<String> = expected
        .lines()
        .zip(found.lines())
        .filter(|(expected, found)| expected != found)
        .map(|(expected, found)| format!("- {expected}\n+ {found}"))
        .collect();
    assert!(differ.is_empty() && expected.len() == found.len(), "{}:\n{}", path.display(), differ.join("\n"));
}

/// The number in front of a word.
fn before(text: &str, words: &str) -> Result<u64, String> {
    let end = text.find(words).ok_or_else(|| format!("`{words}` is not in\n{text}"))?;
    let number = text[..end].rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    number.parse().map_err(|_| format!("no number stands before `{words}` in\n{text}"))
}

#[test]
fn clang_needs_no_more_registers_than_before() {
    let Some(compiler) = ptx::compiler() else {
        println!("skipped: there is no `clang` (on Debian: apt-get install clang)");
        return;
    };
    let folder = std::env::temp_dir().join(format!("ravelin-registers-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let names = ["1 bit", "16 bits", "32 bits", "64 bits", "depot"];
    golden("ptx.txt", &format!("{compiler}, PTX for sm_75"), &names, |name, text| {
        let made = ptx::of(text, &folder.join(name).with_extension("cu"))?;
        let declared = |what: &str, open: char| -> Result<u64, String> {
            match made.find(what) {
                None => Ok(0),
                Some(at) => {
                    let number = made[at + what.len()..].trim_start_matches(open).split(['>', ']']).next();
                    number
                        .and_then(|number| number.parse().ok())
                        .ok_or_else(|| format!("{what} has no number"))
                }
            }
        };
        let registers = ["%p", "%rs", "%r", "%rd"].map(|name| declared(&format!("{name}<"), '<'));
        registers.into_iter().chain([declared("__local_depot0[", '[')]).collect()
    });
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn nvidias_compiler_needs_no_more_registers_than_before() {
    let (major, minor) = match gpu::compiler_version() {
        Ok(version) => version,
        Err(missing) => {
            println!("skipped: {missing}");
            return;
        }
    };
    let names = ["registers", "stack", "stored", "loaded"];
    golden("sm_90.txt", &format!("NVRTC {major}.{minor}, code for sm_90"), &names, |_, text| {
        let told = gpu::cuda_needs(text, 90).map_err(|error| error.to_string())?;
        let numbers = [" registers", " bytes stack frame", " bytes spill stores", " bytes spill loads"]
            .map(|words| before(&told, words));
        numbers.into_iter().collect()
    });
}

#[test]
fn numbers_are_found_before_their_words() {
    let told = "0 bytes stack frame, 12 bytes spill stores\nUsed 40 registers";
    assert_eq!((before(told, " registers"), before(told, " bytes spill stores")), (Ok(40), Ok(12)));
    assert!(before(told, " barriers").is_err());
}
