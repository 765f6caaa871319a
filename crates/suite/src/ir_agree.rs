//! Does native code keep to what the verifier shows? Random IR that it admits, run by the judge and as machine code, over packets whose memory ends where
//! they end.

use crate::agree::{PORTS, compile_as};
use crate::corpus::{compile_file, files, root};
use crate::ir_mutation::{is_small, mutate};
use crate::packet_generator::{self, Arrivals};
use crate::program_generator;
use crate::random::Random;
use crate::sighting::{SEED, Sighting, see, see_exactly};
use crate::traffic::traffic;
use exec::{BackEnd, LoadError, load};
use lang::ir::Program;
use lang::pipeline::Decode;
use packet::generate::Profile;
use std::io;

/// Packets a program.
const PACKETS: usize = 60;

/// Most changes that are made to a program.
const CHANGES: u64 = 12;

/// Programs that random IR is made of.
pub struct Seeds {
    programs: Vec<Program>,
    packets: Arrivals,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Programs.
    pub programs: u64,
    /// Those of them that a back end could load.
    pub loaded: u64,
    /// Packets that were sent, dropped and so on by them.
    pub packets: u64,
    /// What they sent besides.
    pub outputs: u64,
}

impl Seeds {
    /// Shipped programs and good cases, as far as they are small.
    ///
    /// # Errors
    /// If the folders cannot be read.
    pub fn of_repository() -> io::Result<Seeds> {
        let mut programs = Vec::new();
        for folder in ["programs", "suite/good"] {
            for path in files(&root().join(folder), "rav")? {
                programs.extend(compile_file(&path, Decode::Lazy)?.program.map(smaller).filter(is_small));
            }
        }
        Ok(Seeds { programs, packets: traffic(Profile::demo(), PACKETS as u64, PORTS, 1) })
    }

    /// The program of one seed and packets for it.
    pub fn program(&self, seed: u64) -> (Program, Arrivals) {
        let mut random = Random::new(seed);
        let changes = random.between(1, CHANGES) as usize;
        if random.one_in(2) {
            let generated = program_generator::generate(seed);
            let compiled = compile_as(&generated.text, Decode::Lazy).program.map(smaller);
            if let Some(program) = compiled.filter(is_small) {
                let packets = packet_generator::generate(&generated, seed, PACKETS, PORTS);
                return (mutate(&program, &mut random, changes), packets);
            }
        }
        let program = random.pick(&self.programs);
        let mut packets = self.packets.clone();
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length * 3).map(|_| random.number() as u8).collect();
            packets.append(&one_packet(&bytes));
        }
        (mutate(program, &mut random, changes), packets)
    }
}

fn one_packet(bytes: &[u8]) -> Arrivals {
    let mut packet = Arrivals::default();
    packet.push(bytes, bytes.len() as u32, 1, 1);
    packet
}

/// The program with tables that are quickly made.
fn smaller(mut program: Program) -> Program {
    for table in &mut program.tables {
        table.capacity = table.capacity.min(256).max(table.entries.len() as u32);
    }
    program
}

/// Runs a program every way. `guarded` is told when what machine code touches is about to be made, and when it is done.
///
/// # Errors
/// What differs, in words.
pub fn compare(
    program: &Program,
    packets: &Arrivals,
    guarded: &dyn Fn(bool),
    tried: &mut Tried,
) -> Result<(), String> {
    tried.programs += 1;
    let judge = match see(program, BackEnd::Interpreter, packets, PORTS, 1) {
        Ok(judge) => judge,
        Err(LoadError::Verify(faults)) => return Err(format!("not admitted: {faults:?}")),
        Err(error) => {
            let native = load(program, BackEnd::Native, PORTS, SEED).err().map(|error| error.to_string());
            let same = native.as_deref() == Some(error.to_string().as_str());
            return if same { Ok(()) } else { Err(format!("refused otherwise: {error}; {native:?}")) };
        }
    };
    tried.loaded += 1;
    tried.packets += judge.verdicts.len() as u64;
    tried.outputs += judge.sent.len() as u64;
    guarded(true);
    let exact = load(program, BackEnd::Native, PORTS, SEED)
        .map(|mut native| see_exactly(program, native.as_mut(), packets));
    guarded(false);
    let together = see(program, BackEnd::Native, packets, PORTS, 64);
    for (how, seen) in [("packet by packet", exact), ("in batches of 64", together)] {
        let seen: Sighting = seen.map_err(|error| format!("native, {how}: {error}"))?;
        if let Some(difference) = seen.difference(&judge) {
            return Err(format!("native, {how}: {difference}"));
        }
    }
    Ok(())
}
