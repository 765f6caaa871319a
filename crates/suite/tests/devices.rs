//! Programs on devices: every verdict, byte, table and counter is what the interpreter says, whatever the
//! device finished and whatever not.

use captures::generate::Profile;
use exec::kernel::{AGAIN, Dialect, KernelOptions};
use exec::{Backend, BackendKind, OnDevice, QueueDepth};
use gpu::{
    Device, DeviceError, FaultyDevice, Geometry, Host, Input, OpenCl, SlotMemory, SlotOutput, Trouble, study,
};
use ir::{Entry, Match, Program};
use lang::pipeline::Decode;
use offload::device_queue::Supply;
use offload::policy::BatchingPolicy;
use offload::{Offload, OffloadError};
use offload::{Offloaded, host};
use packet::BATCH;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use suite::agree::compile_as;
use suite::cores::each;
use suite::corpus::{compile_file, files, root, shipped};
use suite::device::{PATIENCE, pocl};
use suite::outcome::{SEED, see, see_held, see_on};
use suite::packet_generator::{self, Arrivals};
use suite::program_generator;
use suite::traffic::{settled, traffic};

const PORTS: u16 = 5;

/// What a run on a device came to.
#[derive(Debug, Default)]
struct Sum {
    /// Packets that the device finished.
    finished: u64,
    /// Packets that it had, and that the host ran after all.
    again: u64,
    /// Packets that it did not get.
    kept: u64,
    programs: u64,
    refused: u64,
}

impl Sum {
    fn add(&mut self, name: &str, on: Option<OnDevice>) {
        let on = on.unwrap_or_else(|| panic!("{name}: it is on no device"));
        assert_eq!(on.failure, None, "{name}");
        self.finished += on.tally.device;
        self.again += on.tally.again + on.tally.changed;
        self.kept += on.tally.host;
    }

    fn merge(&mut self, other: &Sum) {
        self.finished += other.finished;
        self.again += other.again;
        self.kept += other.kept;
        self.programs += other.programs;
        self.refused += other.refused;
    }
}

/// Runs packets on the device and in the interpreter. Programs that have no kernel are counted.
fn agree(name: &str, program: &Program, arrivals: &Arrivals, options: &KernelOptions, sum: &mut Sum) {
    let offload = match Offload::new(program, PORTS, SEED, options) {
        Ok(offload) => offload,
        Err(OffloadError::NoKernel(_)) => {
            sum.refused += 1;
            return;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let judge = see(program, BackendKind::Interpreter, arrivals, PORTS, BATCH).expect("it loads");
    for memory in [SlotMemory::Mapped, study::PAGEABLE] {
        let offload = Offload::new(program, PORTS, SEED, options).unwrap_or_else(|_| unreachable!("{name}"));
        let offloaded = Offloaded::on_opencl(offload, &pocl(), memory, QueueDepth::BATCH);
        let offloaded = offloaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut offloaded = offloaded.with_patience(PATIENCE);
        let seen = see_on(program, &mut offloaded, arrivals, BATCH);
        assert_eq!(seen.difference(&judge), None, "{name}, {memory:?}");
        sum.add(name, offloaded.on_device());
    }
    drop(offload);
    sum.programs += 1;
}

#[test]
fn a_million_packets_mean_the_same_on_a_device() {
    let mut all = Vec::new();
    for (folder, packets) in [("programs", 20_000), ("suite/good", 3_000)] {
        // What has come to rest, and then a fifth that is damaged and stations that move, so that programs
        // that learn hardly come to rest.
        let mut arrivals = settled(&traffic(Profile::sample1(), packets / 10, PORTS, 9), 7, PORTS);
        arrivals.append(&traffic(Profile::sample1(), packets * 3 / 10, PORTS, 10));
        assert_eq!(arrivals.ports.len() as u64, packets);
        let arrivals = Arc::new(arrivals);
        let files = files(&root().join(folder), "rav").expect("the folder is there");
        all.extend(files.into_iter().map(|path| (path, Arc::clone(&arrivals))));
    }
    let (there, sum) = (all.len() as u64, Mutex::new(Sum::default()));
    each(all, |(path, arrivals)| {
        let compiled = compile_file(path, Decode::Lazy).map_err(|error| error.to_string())?;
        let program = compiled.program.ok_or_else(|| format!("{} does not compile", path.display()))?;
        let mut own = Sum::default();
        agree(&path.display().to_string(), &program, arrivals, &KernelOptions::default(), &mut own);
        sum.lock().expect("nobody panics").merge(&own);
        Ok(())
    });
    let sum = sum.into_inner().expect("nobody panics");
    println!("{sum:?}");
    assert!(sum.finished + sum.again >= 1_000_000 && sum.again > 100_000 && sum.kept > 1_000, "{sum:?}");
    // Of four no packet can be finished on a device: `delayed-event`, `events-in-order`,
    // `hole-recirculation-budget` and `one-cell`, which reads a register.
    assert!(sum.programs + sum.refused == there && sum.refused == 4, "{sum:?}");
}

#[test]
fn random_programs_mean_the_same_on_a_device() {
    let mut sum = Sum::default();
    for seed in 1000..1040 {
        let generated = program_generator::generate(seed);
        let Some(program) = compile_as(&generated.text, Decode::Lazy).program else { continue };
        let arrivals = packet_generator::generate(&generated, seed, 300, PORTS);
        agree(
            &format!("seed {seed}\n{}", generated.text),
            &program,
            &arrivals,
            &KernelOptions::default(),
            &mut sum,
        );
    }
    println!("{sum:?}");
    assert!(sum.programs > 10 && sum.finished > 1000, "{sum:?}");
}

#[test]
fn what_a_failing_device_had_under_way_is_run_by_the_processor() {
    let program = shipped("mac_switch.rav");
    let arrivals = traffic(Profile::sample1(), 5_000, PORTS, 3);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    for trouble in [Trouble::NoMemory, Trouble::Refused, Trouble::Lost, Trouble::Stalled] {
        for left in [1, 3] {
            let offload =
                Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
            let mut offloaded = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
                let text = kernel.text(Dialect::OpenCl);
                let inner = OpenCl::new(&pocl(), &text, geometry, SlotMemory::Mapped)?;
                Ok(Box::new(FaultyDevice::after(inner, trouble, left)))
            })
            .expect("it opens");
            let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
            assert_eq!(seen.difference(&judge), None, "{trouble:?} after {left}");
            let on = offloaded.on_device().expect("it was on a device");
            let failure = on.failure.expect("it failed");
            assert!(failure.contains(&on.name), "{failure}");
            // Tables go over less often than batches.
            let least = if trouble == Trouble::NoMemory { 1 } else { 4_000 - 256 * left };
            assert!(on.tally.host >= least, "{trouble:?} after {left}: {:?}", on.tally);
        }
    }
}

#[test]
fn rules_one_by_one_and_filters_answer_alike() {
    let options = KernelOptions { linear_rules: true, bloom: true, ..KernelOptions::default() };
    let arrivals = traffic(Profile::sample2(), 2_000, PORTS, 5);
    let mut sum = Sum::default();
    for name in ["firewall_rules", "both", "router", "dpi", "ids"] {
        let program = shipped(&format!("{name}.rav"));
        agree(name, &program, &arrivals, &options, &mut sum);
    }
    assert!(sum.programs == 5 && sum.finished > 5_000, "{sum:?}");
}

#[test]
fn what_timers_leave_to_do_is_done_behind_the_packet() {
    const TEXT: &str = "
counter fired
event a() { count fired }
every 1ms { raise a() raise a() }
start stage all() { flood }
";
    let program = compile_as(TEXT, Decode::Lazy).program.expect("it compiles");
    let mut arrivals = Arrivals::default();
    for index in 0..300_u64 {
        // The last packet of the first batch comes after two seconds, in which more falls due than is done
        // before one packet.
        let time = 1_000_000_000 + index + if index >= 255 { 2_000_000_000 } else { 0 };
        arrivals.push(&[0; 60], 60, time, 1);
    }
    let mut sum = Sum::default();
    agree("timers", &program, &arrivals, &KernelOptions::default(), &mut sum);
    assert!(sum.finished > 500, "{sum:?}");
}

#[test]
fn what_control_changes_between_batches_holds_for_the_next_one() {
    let program = shipped("static_ipv4.rav");
    let arrivals = traffic(Profile::sample1(), 1_000, PORTS, 4);
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let mut offloaded = Offloaded::on_opencl(offload, &pocl(), SlotMemory::Mapped, QueueDepth::BATCH)
        .expect("it opens")
        .with_patience(PATIENCE);
    let mut judge = exec::load(&program, BackendKind::Interpreter, PORTS, SEED).expect("it loads");
    let (first, _) = offloaded.control().entries(0)[0].clone();
    for round in 0..4 {
        let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
        assert_eq!(
            seen.difference(&see_on(&program, judge.as_mut(), &arrivals, BATCH)),
            None,
            "round {round}"
        );
        for backend in [&mut offloaded as &mut dyn Backend, judge.as_mut()] {
            if round % 2 == 0 {
                assert!(backend.remove(0, &first.key, 0));
            } else {
                backend.insert(0, &first).expect("there is room");
            }
        }
    }
}

/// A device that counts the words of tables that go over: in how many calls whole tables, and how many words
/// of parts.
struct Counted {
    inner: OpenCl,
    whole: Arc<AtomicU64>,
    words: Arc<AtomicU64>,
}

impl Device for Counted {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.whole.fetch_add(1, Relaxed);
        self.inner.upload(table, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.words.fetch_add(words.len() as u64, Relaxed);
        self.inner.patch(table, first, words)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.inner.input(slot)
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.inner.submit(slot, packets)
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        self.inner.poll(slot, wait)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.inner.output(slot)
    }
}

#[test]
fn what_is_learned_concerns_only_who_asks_for_it() {
    let program = shipped("firewall.rav");
    let arrivals = traffic(Profile::sample1(), 20_000, PORTS, 12);
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let depth = QueueDepth { packets: 2_000, device_batches: 2 };
    let mut offloaded = Offloaded::on_host(offload, &program, PORTS, depth)
        .expect("there are threads")
        .with_patience(PATIENCE);
    let policy = BatchingPolicy::FixedBatch { packets: 2_000 };
    let seen = see_held(&program, &mut offloaded, &arrivals, policy.into(), Supply::Plenty);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None);
    let tally = offloaded.on_device().expect("it is on a device").tally;
    // Hosts turn up by other ports in every device batch, and only their packets and those that ask for them
    // are run again.
    assert!(judge.tables[0].moves > 1_000, "{:?}", judge.tables[0]);
    assert!(tally.device > 8_000 && tally.changed > 100 && tally.again > 500, "{tally:?}");
}

#[test]
fn an_entry_that_changes_goes_over_without_the_others() {
    const TEXT: &str = r#"
import std.net.{ethernet, ipv4}
reason unknown "nobody is there"
table hosts: exact(ip4) -> port { capacity 64k default => 1 }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet else => drop unknown } }
decoder packet(ip: ipv4) { match hosts[ip.dst] { some p => send p, none => drop unknown } }
"#;
    let program = compile_as(TEXT, Decode::Lazy).program.expect("it compiles");
    let arrivals = traffic(Profile::sample1(), 1_000, PORTS, 4);
    let mut addresses: Vec<u128> =
        arrivals.frames.iter().filter_map(|frame| destination(frame.bytes)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() > 40, "{addresses:x?}");
    let entry = |address, port| Entry { key: vec![Match::Exact(address)], value: vec![port], priority: 0 };
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let (whole, words) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let opened = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
        let inner = OpenCl::new(&pocl(), &kernel.text(Dialect::OpenCl), geometry, SlotMemory::Mapped)?;
        Ok(Box::new(Counted { inner, whole: Arc::clone(&whole), words: Arc::clone(&words) }))
    });
    let mut offloaded = opened.expect("it opens").with_patience(PATIENCE);
    let mut judge = exec::load(&program, BackendKind::Interpreter, PORTS, SEED).expect("it loads");
    let others = (0..20_000).map(|host| entry(0xc000_0000 + host, 1));
    for entry in others.chain(addresses.iter().map(|address| entry(*address, 2))) {
        offloaded.control_mut().insert(0, &entry).expect("there is room");
        judge.insert(0, &entry).expect("there is room");
    }
    for (round, address) in addresses.iter().take(40).enumerate() {
        for backend in [&mut offloaded as &mut dyn Backend, judge.as_mut()] {
            match round % 3 {
                0 => backend.insert(0, &entry(*address, 3)).expect("it is there"),
                1 => assert!(backend.remove(0, &entry(*address, 2).key, 0)),
                _ => backend.set_default(0, Some(&[1 + round as u128 % 4])).expect("it is a port"),
            }
        }
        let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
        let judged = see_on(&program, judge.as_mut(), &arrivals, BATCH);
        assert_eq!(seen.difference(&judged), None, "round {round}");
    }
    let on = offloaded.on_device().expect("it is on a device");
    assert!(on.failure.is_none() && on.tally.device == 40 * 1_000, "{on:?}");
    // A slot has 8 words, and what is there before the image 32; of the whole table there are half a million.
    let words = words.load(Relaxed);
    assert!(whole.load(Relaxed) == 1 && (39 * 8..40 * 32).contains(&words), "{words} words");
}

/// The destination of an IPv4 packet.
fn destination(frame: &[u8]) -> Option<u128> {
    (frame.get(12..14)? == [8, 0]).then_some(())?;
    Some(u128::from(u32::from_be_bytes(*frame.get(30..34)?.first_chunk()?)))
}

/// Runs packets on threads and in the interpreter. Programs that have no kernel are counted.
fn host_agrees(name: &str, program: &Program, arrivals: &Arrivals, options: &KernelOptions, sum: &mut Sum) {
    let offload = match Offload::new(program, PORTS, SEED, options) {
        Ok(offload) => offload,
        Err(OffloadError::NoKernel(_)) => {
            sum.refused += 1;
            return;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let mut offloaded = Offloaded::on_host(offload, program, PORTS, QueueDepth::BATCH)
        .expect("there are threads")
        .with_patience(PATIENCE);
    let seen = see_on(program, &mut offloaded, arrivals, BATCH);
    let judge = see(program, BackendKind::Interpreter, arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None, "{name} on threads");
    sum.add(name, offloaded.on_device());
    sum.programs += 1;
}

#[test]
fn all_programs_and_many_random_ones_mean_the_same_on_threads() {
    let arrivals = traffic(Profile::sample1(), 1_500, PORTS, 21);
    let mut sum = Sum::default();
    for folder in ["programs", "suite/good"] {
        for path in files(&root().join(folder), "rav").expect("the folder is there") {
            let compiled = compile_file(&path, Decode::Lazy).expect("a program can be read");
            let program = compiled.program.expect("it compiles");
            host_agrees(
                &path.display().to_string(),
                &program,
                &arrivals,
                &KernelOptions::default(),
                &mut sum,
            );
        }
    }
    println!("files: {sum:?}");
    for seed in 5000..5200 {
        let generated = program_generator::generate(seed);
        let Some(program) = compile_as(&generated.text, Decode::Lazy).program else { continue };
        let arrivals = packet_generator::generate(&generated, seed, 120, PORTS);
        let options =
            KernelOptions { linear_rules: seed % 2 == 1, bloom: seed % 4 > 1, ..KernelOptions::default() };
        host_agrees(&format!("seed {seed}\n{}", generated.text), &program, &arrivals, &options, &mut sum);
    }
    println!("{sum:?}");
    assert!(sum.programs > 150 && sum.finished > 20_000, "{sum:?}");
}

/// A device that runs every slot as text and as twin, and fails where they differ.
struct Both {
    text: OpenCl,
    twin: Host,
    packets: usize,
    /// Words that were compared and said that a packet is to be run again.
    again: Arc<AtomicU64>,
}

impl Both {
    fn compare(&mut self, slot: usize) -> Result<(), DeviceError> {
        let Geometry { stride, record_words, returns_bytes, .. } = *self.text.geometry();
        let device = self.name();
        let (text, twin) = (self.text.output(slot)?, self.twin.output(slot)?);
        let differ = |what: &str, at: usize| {
            let cause = format!("{what} {at} is not the twin's");
            Err(DeviceError::Failed { device: device.clone(), doing: "agree", cause })
        };
        let differs = |one: &[u32], other: &[u32], end: usize| (0..end).find(|at| one[*at] != other[*at]);
        if let Some(at) = differs(text.verdicts, twin.verdicts, self.packets) {
            return differ("verdict word", at);
        }
        if let Some(at) = differs(text.records, twin.records, self.packets * record_words) {
            return differ("record word", at);
        }
        let bytes = if returns_bytes { self.packets * stride } else { 0 };
        if let Some(at) = (0..bytes).find(|at| text.bytes[*at] != twin.bytes[*at]) {
            return differ("byte", at);
        }
        let again = text.verdicts[..self.packets].iter().filter(|word| **word & AGAIN != 0).count();
        self.again.fetch_add(again as u64, Relaxed);
        Ok(())
    }
}

impl Device for Both {
    fn name(&self) -> String {
        format!("{} and {}", self.text.name(), self.twin.name())
    }

    fn geometry(&self) -> &Geometry {
        self.text.geometry()
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.text.upload(table, words)?;
        self.twin.upload(table, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.text.patch(table, first, words)?;
        self.twin.patch(table, first, words)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.text.input(slot)
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let (from, to) = (self.text.input(slot)?, self.twin.input(slot)?);
        to.bytes.copy_from_slice(from.bytes);
        to.columns.copy_from_slice(from.columns);
        self.packets = packets;
        self.text.submit(slot, packets)?;
        self.twin.submit(slot, packets)
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        let done = self.text.poll(slot, wait)? && self.twin.poll(slot, wait)?;
        if done {
            self.compare(slot)?;
        }
        Ok(done)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.text.output(slot)
    }
}

/// Runs packets on a device of text and twin; how many were finished there, and how many both gave up on.
fn text_and_twin(
    name: &str,
    program: &Program,
    arrivals: &Arrivals,
    options: &KernelOptions,
) -> Option<(u64, u64)> {
    let offload = Offload::new(program, PORTS, SEED, options).ok()?;
    let again = Arc::new(AtomicU64::new(0));
    let opened = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
        let text = OpenCl::new(&pocl(), &kernel.text(Dialect::OpenCl), geometry, SlotMemory::Mapped)?;
        let twin = host(kernel, program, PORTS, geometry)?;
        Ok(Box::new(Both { text, twin, packets: 0, again: Arc::clone(&again) }))
    });
    let offloaded = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut offloaded = offloaded.with_patience(PATIENCE);
    see_on(program, &mut offloaded, arrivals, BATCH);
    let on = offloaded.on_device().expect("it is on a device");
    assert_eq!(on.failure, None, "{name}");
    Some((on.tally.device, again.load(Relaxed)))
}

#[test]
fn text_and_twin_leave_the_same_words_and_bytes() {
    let arrivals = traffic(Profile::sample1(), 2_000, PORTS, 33);
    let (mut finished, mut again) = (0, 0);
    let mut add = |ran: Option<(u64, u64)>| {
        let (device, other) = ran.unwrap_or_default();
        (finished, again) = (finished + device, again + other);
    };
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        let compiled = compile_file(&path, Decode::Lazy).expect("a program can be read");
        let program = compiled.program.expect("it compiles");
        let options = KernelOptions { linear_rules: true, bloom: true, ..KernelOptions::default() };
        add(text_and_twin(&path.display().to_string(), &program, &arrivals, &options));
    }
    for seed in 7000..7012 {
        let generated = program_generator::generate(seed);
        let Some(program) = compile_as(&generated.text, Decode::Lazy).program else { continue };
        let arrivals = packet_generator::generate(&generated, seed, 300, PORTS);
        add(text_and_twin(&format!("seed {seed}"), &program, &arrivals, &KernelOptions::default()));
    }
    println!("{finished} finished, {again} given up on by both");
    assert!(finished > 5_000 && again > 500, "{finished} finished, {again} given up on by both");
}
