//! Forms in which packets travel to devices: whatever goes over and comes back, a program means the same; and
//! what has no meaning is refused.

use captures::generate::Profile;
use exec::kernel::{Back, CopiedPart, Kernel, KernelOptions, NoForm, NoKernel};
use exec::{Backend, BackendKind, QueueDepth};
use gpu::{Input, SlotMemory, study};
use ir::Program;
use lang::pipeline::Decode;
use offload::Offloaded;
use offload::{Offload, OffloadError, Whole};
use packet::batch::{BATCH, Batch};
use std::collections::BTreeMap;
use suite::agree::compile_as;
use suite::corpus::{compile_file, files, root, shipped};
use suite::device::{PATIENCE, pocl};
use suite::outcome::{RunOutcome, SEED, see, see_on};
use suite::packet_generator::Arrivals;
use suite::traffic::traffic;

const PORTS: u16 = 5;

/// Reads nothing but the destination address, and asks for no length but that.
const DESTINATION: &str = "
reason no_route \"nothing is known of the destination\"
layout front { link: u112 rest: u128 dst: ip4 }
table routes: lpm(ip4) -> port {
    capacity 1k
    entries { 10.0.0.0/8 => 1 192.168.0.0/16 => 2 0.0.0.0/1 => 3 }
}
start decoder frame(f: front) {
    match routes[f.dst] {
        some out => send out
        none => drop no_route
    }
}
";

/// Says one of two things of a packet by two bytes of it.
const TWO_ENDS: &str = "
reason odd \"not an IPv4 packet\"
layout front { dst: mac src: mac kind: u16 }
start decoder frame(f: front) {
    match f.kind {
        0x0800 => flood
        else => drop odd
    }
}
";

fn all(folder: &str) -> Vec<(String, Program)> {
    let files = files(&root().join(folder), "rav").expect("the folder is there");
    let compiled = files.iter().map(|path| {
        let compiled = compile_file(path, Decode::Lazy).expect("a program can be read");
        (path.display().to_string(), compiled.program.expect("it compiles"))
    });
    compiled.collect()
}

fn own(text: &str) -> Program {
    let compiled = compile_as(text, Decode::Lazy);
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

/// Damaged and cut traffic, with frames that no buffer of a form holds.
fn arrivals(packets: u64, seed: u64) -> Arrivals {
    let mut arrivals = traffic(Profile::sample1(), packets, PORTS, seed);
    let time = arrivals.frames.iter().map(|frame| frame.time).max().unwrap_or(0);
    for length in [0, 1, 33, 34, 35, 2047, 2048, 2049, 4096, 4097, 9000] {
        let (mut bytes, first) =
            (vec![0; length], arrivals.frames.iter().next().map(|frame| frame.bytes.to_vec()));
        for (byte, from) in bytes.iter_mut().zip(first.unwrap_or_default()) {
            *byte = from;
        }
        arrivals.push(&bytes, length as u32, time, 1);
    }
    arrivals
}

/// How many packets kernels finished, by form.
type Finished = BTreeMap<(&'static str, &'static str), (u32, u64)>;

/// Runs packets in a form where it has a meaning, on the device that `open` makes, and compares with the
/// judge.
fn agree(
    (name, program): &(String, Program),
    arrivals: &Arrivals,
    judge: &RunOutcome,
    options: &KernelOptions,
    open: impl Fn(Offload) -> Offloaded,
    finished: &mut Finished,
) {
    let offload = match Offload::new(program, PORTS, SEED, options) {
        Ok(offload) => offload,
        Err(OffloadError::NoKernel(_)) => return,
        Err(error) => panic!("{name}: {error}"),
    };
    let mut offloaded = open(offload);
    // Batches of an odd size leave half a word of results over.
    let seen = see_on(program, &mut offloaded, arrivals, 77);
    assert_eq!(seen.difference(judge), None, "{name}, {options:?}");
    let on = offloaded.on_device().expect("it is on a device");
    assert_eq!(on.failure, None, "{name}, {options:?}");
    let sum = finished.entry((options.over.name(), options.back.name())).or_default();
    *sum = (sum.0 + 1, sum.1 + on.tally.device);
}

#[test]
fn every_form_means_the_same_on_threads() {
    let mut programs = all("programs");
    programs.extend(all("suite/good"));
    programs.push(("destination".to_owned(), own(DESTINATION)));
    programs.push(("two ends".to_owned(), own(TWO_ENDS)));
    let arrivals = arrivals(400, 8);
    let mut finished = Finished::new();
    for program in &programs {
        let judge = see(&program.1, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
        let open = |offload| {
            Offloaded::on_host(offload, &program.1, PORTS, QueueDepth::BATCH)
                .expect("there are threads")
                .with_patience(PATIENCE)
        };
        for over in CopiedPart::ALL {
            for back in Back::ALL {
                let options = KernelOptions { over, back, ..KernelOptions::default() };
                agree(program, &arrivals, &judge, &options, open, &mut finished);
            }
        }
    }
    println!("{finished:?}");
    let ran =
        |over: CopiedPart, back: Back| finished.get(&(over.name(), back.name())).copied().unwrap_or_default();
    for over in CopiedPart::ALL {
        let (programs, packets) = ran(over, Back::Word);
        assert!(programs > 20 && packets > 5_000, "{over}: {finished:?}");
        let (programs, packets) = ran(over, Back::Half);
        assert!(programs > 20 && packets > 5_000, "{over}, half: {finished:?}");
    }
    for over in [CopiedPart::Packed, CopiedPart::Frame, CopiedPart::InPlace] {
        let (programs, packets) = ran(over, Back::Bit);
        assert!(programs > 3 && packets > 1_000, "{over}, bit: {finished:?}");
    }
}

#[test]
fn forms_mean_the_same_as_opencl_text() {
    const FORMS: [(CopiedPart, Back); 8] = [
        (CopiedPart::Packed, Back::Word),
        (CopiedPart::InPlace, Back::Half),
        (CopiedPart::Frame, Back::Bit),
        (CopiedPart::Packed, Back::Half),
        (CopiedPart::Page, Back::Word),
        (CopiedPart::InPlace, Back::Word),
        (CopiedPart::Header, Back::Half),
        (CopiedPart::Packed, Back::Bit),
    ];
    let device = pocl();
    let arrivals = arrivals(1_500, 9);
    let mut finished = Finished::new();
    let memory = |number: usize| if number.is_multiple_of(2) { SlotMemory::Mapped } else { study::PAGEABLE };
    let mut run = |program: &(String, Program), forms: &[usize]| {
        let judge = see(&program.1, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
        for &form in forms {
            let (over, back) = FORMS[form];
            let open = |offload| {
                Offloaded::on_opencl(offload, &device, memory(form), QueueDepth::BATCH)
                    .expect("it opens")
                    .with_patience(PATIENCE)
            };
            let options = KernelOptions { over, back, ..KernelOptions::default() };
            agree(program, &arrivals, &judge, &options, open, &mut finished);
        }
    };
    let two = [("destination".to_owned(), own(DESTINATION)), ("two ends".to_owned(), own(TWO_ENDS))];
    for program in all("programs").iter().chain(&two) {
        run(program, &[0, 1, 2, 3, 4, 5, 6, 7]);
    }
    for (number, program) in all("suite/good").iter().enumerate() {
        run(program, &[number % FORMS.len()]);
    }
    println!("{finished:?}");
    for (over, back) in FORMS {
        let (programs, packets) = finished.get(&(over.name(), back.name())).copied().unwrap_or_default();
        assert!(programs > 0 && packets > 1_000, "{over}, {back}: {finished:?}");
    }
}

fn kernel(program: &Program, over: CopiedPart, back: Back) -> Result<Kernel, NoKernel> {
    Kernel::new(program, PORTS, &KernelOptions { over, back, ..KernelOptions::default() })
}

#[test]
fn what_a_program_does_not_read_does_not_go_over() {
    let moved = |program: &Program, over, back| {
        let plan = kernel(program, over, back).expect("it has a kernel").plan;
        (plan.bytes_over(32), plan.bytes_back(32))
    };
    let destination = own(DESTINATION);
    assert_eq!(moved(&destination, CopiedPart::Packed, Back::Word), (32 * 4, 32 * 4));
    assert_eq!(moved(&destination, CopiedPart::Header, Back::Half), (32 * (48 + 4), 32 * 2));
    assert_eq!(moved(&destination, CopiedPart::Frame, Back::Word), (32 * (2048 + 4), 32 * 4));
    assert_eq!(moved(&destination, CopiedPart::Page, Back::Word), (32 * (4096 + 4), 32 * 4));
    assert_eq!(moved(&destination, CopiedPart::InPlace, Back::Word), (32 * 8, 32 * 4));
    assert_eq!(moved(&own(TWO_ENDS), CopiedPart::Packed, Back::Bit), (32 * 4, 4));
    // Without options of IPv4 behind the header, the length is a word of its own.
    let lpm = shipped("lpm.rav");
    assert_eq!(moved(&lpm, CopiedPart::Packed, Back::Word), (32 * (24 + 4), 32 * 4));
}

#[test]
fn a_form_without_a_meaning_is_refused_with_a_reason() {
    let program = |name: &str| shipped(&format!("{name}.rav"));
    let refused = |name: &str, over, back| match kernel(&program(name), over, back) {
        Err(NoKernel::Form(reason)) => reason,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(refused("firewall_rules", CopiedPart::Packed, Back::Word), NoForm::Computed);
    assert_eq!(refused("router", CopiedPart::Packed, Back::Word), NoForm::ManyBytes);
    assert_eq!(refused("router", CopiedPart::InPlace, Back::Word), NoForm::Writes);
    assert_eq!(refused("lpm", CopiedPart::Header, Back::Bit), NoForm::ComputedPort);
    assert_eq!(refused("wire", CopiedPart::Header, Back::Bit), NoForm::Outcomes(3));
    assert_eq!(refused("mac_switch", CopiedPart::Header, Back::Half), NoForm::Effects(Back::Half));
    let said = kernel(&program("wire"), CopiedPart::Header, Back::Bit).expect_err("it has none").to_string();
    assert_eq!(
        said,
        "this program's packets cannot travel as asked for: bit: the program has 3 outcomes, and a bit tells two apart; use half or word"
    );
}

#[test]
fn batches_that_go_over_together_lie_as_one_would() {
    let arrivals = arrivals(200, 4);
    let program = own(DESTINATION);
    for over in CopiedPart::ALL {
        let options = KernelOptions { over, ..KernelOptions::default() };
        let mut offload = Offload::new(&program, PORTS, SEED, &options).expect("it has a kernel");
        let plan = &offload.kernel().plan;
        let (stride, count) = (plan.stride as usize, plan.columns.len());
        let packets = 200;
        let mut gather = |parts: &[usize]| {
            let (mut bytes, mut columns) = (vec![0; packets * stride], vec![0; packets * count]);
            let mut frames = arrivals.frames.clone();
            let mut before = 0;
            for part in parts {
                let mut batch = Batch::new();
                frames.fill(&mut batch, before..before + part);
                let whole = Whole { before, packets };
                let mut input = Input { bytes: &mut bytes, columns: &mut columns };
                offload.gather(frames.memory_mut(), &batch, whole, &mut input);
                before += part;
            }
            (bytes, columns)
        };
        let one = gather(&[200]);
        assert!(one.0.iter().any(|byte| *byte != 0), "{over}");
        assert_eq!(gather(&[1, 99, 3, 97]), one, "{over}");
    }
}
