//! The tests of programs and the packet tests of the suite, on a device.

use engine::{PacketBench, case, stf};
use exec::QueueDepth;
use exec::kernel::KernelOptions;
use gpu::SlotMemory;
use ir::Program;
use lang::pipeline::Decode;
use offload::Offloaded;
use offload::{Offload, OffloadError};
use std::fs;
use std::sync::Mutex;
use suite::cores::each;
use suite::corpus::{compile_file, files, root};
use suite::device::{PATIENCE, pocl};

/// A program on the device, as its tests want it; none where it has no kernel.
fn bench<'a>(
    program: &'a Program,
    ports: u16,
    options: &KernelOptions,
) -> Result<Option<PacketBench<'a>>, String> {
    let offload = match Offload::new(program, ports, 0, options) {
        Ok(offload) => offload,
        Err(OffloadError::NoKernel(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let offloaded = Offloaded::on_opencl(offload, &pocl(), SlotMemory::Mapped, QueueDepth::BATCH);
    let offloaded = offloaded.map_err(|error| error.to_string())?;
    Ok(Some(PacketBench::with(program, Box::new(offloaded.with_patience(PATIENCE)), ports)))
}

#[test]
fn tests_of_programs_hold_on_a_device() {
    let mut all = files(&root().join("programs"), "rav").expect("the folder is there");
    all.extend(files(&root().join("suite/good"), "rav").expect("the folder is there"));
    let cases = Mutex::new((0, 0));
    each(all, |path| {
        let compiled = compile_file(path, Decode::Lazy).map_err(|error| error.to_string())?;
        let program = compiled.program.ok_or_else(|| format!("{} does not compile", path.display()))?;
        for case in &compiled.tests {
            let place = format!("{}, {:?}", path.display(), case.name);
            let told = |error| format!("{place}: {error}");
            let bench = bench(&program, case.ports, &KernelOptions::default()).map_err(told)?;
            let mut cases = cases.lock().expect("nobody panics");
            let Some(bench) = bench else {
                cases.1 += 1;
                continue;
            };
            cases.0 += 1;
            drop(cases);
            if let Some(mismatch) = case::run_on(bench, &program, case) {
                return Err(format!("{place}: {mismatch:?}"));
            }
        }
        Ok(())
    });
    let (held, without) = cases.into_inner().expect("nobody panics");
    println!("{held} tests hold, {without} are of programs without a kernel");
    assert!(held > 250 && without < 20, "{held} tests hold, {without} are of programs without a kernel");
}

#[test]
fn packet_tests_hold_on_a_device() {
    let all = files(&root().join("suite/stf"), "stf").expect("the folder is there");
    let held = Mutex::new((0, 0));
    each(all, |path| {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| told(&error))?;
        let named = text.lines().find_map(|line| line.strip_prefix("# program: "));
        let named = root().join(named.ok_or_else(|| told(&"names no program"))?.trim());
        let program = compile_file(&named, Decode::Lazy).map_err(|error| told(&error))?.program;
        let program = program.ok_or_else(|| told(&"the program does not compile"))?;
        let test = stf::read(&text).map_err(|error| told(&error))?;
        let Some(bench) =
            bench(&program, test.ports, &KernelOptions::default()).map_err(|error| told(&error))?
        else {
            held.lock().expect("nobody panics").1 += 1;
            return Ok(());
        };
        if let Some(mismatch) = stf::run_on(bench, &program, &test).map_err(|error| told(&error))? {
            return Err(told(&format!("{mismatch:?}")));
        }
        held.lock().expect("nobody panics").0 += 1;
        Ok(())
    });
    let (held, without) = held.into_inner().expect("nobody panics");
    println!("{held} files hold, {without} are of programs without a kernel");
    assert!(held > 30 && without < 5, "{held} files hold, {without} are of programs without a kernel");
}
