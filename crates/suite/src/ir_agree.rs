//! Tests that native code relies only on what the verifier shows: runs random IR that the verifier accepts,
//! by the interpreter and as machine code, over packets whose memory ends where they end. One half of the
//! programs are others with changes; the other half are made from scratch, some of them spoilt on purpose.

use crate::agree::{PORTS, compile_as};
use crate::corpus::{compile_file, files, root};
use crate::ir_generator::{self, INSTRUCTIONS, instructions, probed};
use crate::ir_mutation::{is_small, mutate, spoil};
use crate::outcome::{RunOutcome, SEED, see, see_exactly};
use crate::packet_generator::{self, Arrivals};
use crate::program_generator;
use crate::random::SuiteRandom;
use crate::traffic::traffic;
use captures::generate::Profile;
use exec::{BackendKind, LoadError, load};
use ir::Program;
use lang::pipeline::Decode;
use std::collections::BTreeSet;
use std::fmt;
use std::io;

/// Packets a program.
const PACKETS: usize = 60;

/// Most changes that are made to a program.
const CHANGES: u64 = 12;

/// Changes by which a program is spoilt: so often is one tried that the verifier then refuses, before the
/// program stays as it was.
const SPOILING: usize = 6;

/// So many programs from scratch have had every instruction and run it.
const ENOUGH: u64 = 200;

/// Programs that random IR is made of.
pub struct Seeds {
    programs: Vec<Program>,
    packets: Arrivals,
}

/// A program to be tried, and packets for it.
pub struct Trial {
    /// The program.
    pub program: Program,
    /// Its packets.
    pub packets: Arrivals,
    /// It was made from scratch.
    pub made: bool,
    /// So many changes were made to it that the verifier refused, and whether one then stayed.
    pub spoilt: (u64, bool),
}

/// What was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Programs.
    pub programs: u64,
    /// Those of them that were made from scratch; the verifier has to admit all.
    pub made: u64,
    /// Changes to spoil these that the verifier refused, and that it admitted.
    pub spoilt: (u64, u64),
    /// Instructions that programs from scratch had.
    pub had: BTreeSet<&'static str>,
    /// Instructions that were run in such programs, as far as their blocks were counted.
    pub ran: BTreeSet<&'static str>,
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
    pub fn program(&self, seed: u64) -> Trial {
        let mut random = SuiteRandom::new(seed);
        if seed.is_multiple_of(2) {
            return made(&mut random);
        }
        let (program, packets) = self.changed(seed, &mut random);
        Trial { program, packets, made: false, spoilt: (0, false) }
    }

    fn changed(&self, seed: u64, random: &mut SuiteRandom) -> (Program, Arrivals) {
        let changes = random.between(1, CHANGES) as usize;
        if random.one_in(2) {
            let generated = program_generator::generate(seed);
            let compiled = compile_as(&generated.text, Decode::Lazy).program.map(smaller);
            if let Some(program) = compiled.filter(is_small) {
                let packets = packet_generator::generate(&generated, seed, PACKETS, PORTS);
                return (mutate(&program, random, changes), packets);
            }
        }
        let program = random.pick(&self.programs);
        let mut packets = self.packets.clone();
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length * 3).map(|_| random.number() as u8).collect();
            packets.append(&one_packet(&bytes));
        }
        (mutate(program, random, changes), packets)
    }
}

/// A program from scratch; one in three is spoilt.
fn made(random: &mut SuiteRandom) -> Trial {
    let program = ir_generator::generate(random);
    let packets = ir_generator::packets(random, PACKETS, PORTS);
    let mut trial = Trial { program, packets, made: true, spoilt: (0, false) };
    if !random.one_in(3) {
        return trial;
    }
    for _ in 0..SPOILING {
        match spoil(&trial.program, random) {
            Some(program) => {
                (trial.program, trial.spoilt.1) = (program, true);
                break;
            }
            None => trial.spoilt.0 += 1,
        }
    }
    trial
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

/// Runs a program every way. `guarded` is told when what machine code touches is about to be made, and when
/// it is done.
///
/// # Errors
/// What differs, in words.
pub fn compare(trial: &Trial, guarded: &dyn Fn(bool), tried: &mut Tried) -> Result<(), String> {
    let Trial { program, packets, .. } = trial;
    tried.programs += 1;
    tried.made += u64::from(trial.made);
    tried.spoilt.0 += trial.spoilt.0;
    tried.spoilt.1 += u64::from(trial.spoilt.1);
    let judge = match see(program, BackendKind::Interpreter, packets, PORTS, 1) {
        Ok(judge) => judge,
        Err(LoadError::Verify(faults)) => return Err(format!("not admitted: {faults:?}")),
        Err(error) => {
            let native = load(program, BackendKind::Native, PORTS, SEED).err().map(|error| error.to_string());
            let same = native.as_deref() == Some(error.to_string().as_str());
            return if same { Ok(()) } else { Err(format!("refused otherwise: {error}; {native:?}")) };
        }
    };
    tried.loaded += 1;
    tried.packets += judge.verdicts.len() as u64;
    tried.outputs += judge.sent.len() as u64;
    guarded(true);
    let exact = load(program, BackendKind::Native, PORTS, SEED)
        .map(|mut native| see_exactly(program, native.as_mut(), packets));
    guarded(false);
    let together = see(program, BackendKind::Native, packets, PORTS, 64);
    let bytecode = see(program, BackendKind::Bytecode, packets, PORTS, 64);
    for (how, seen) in [
        ("native, packet by packet", exact),
        ("native, in batches of 64", together),
        ("bytecode, in batches of 64", bytecode),
    ] {
        let seen: RunOutcome = seen.map_err(|error| format!("{how}: {error}"))?;
        if let Some(difference) = seen.difference(&judge) {
            return Err(format!("{how}: {difference}"));
        }
    }
    if trial.made && !trial.spoilt.1 {
        tried.had.extend(instructions(program));
        tried.ran.extend(probed(program, &judge.counters));
    }
    Ok(())
}

impl Tried {
    /// Instructions that no program from scratch ran though there were many.
    pub fn never_ran(&self) -> Vec<&'static str> {
        let missing = INSTRUCTIONS.iter().copied().filter(|name| !self.ran.contains(name));
        missing.filter(|_| self.made >= ENOUGH).collect()
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { programs, made, spoilt: (refused, admitted), loaded, packets, outputs, .. } = self;
        write!(
            out,
            "{programs} programs, {loaded} loaded, {packets} packets, {outputs} outputs, all alike; {made} from scratch, all admitted, with {} of {} \
             instructions, of which {} were run; of {} changes to spoil them {admitted} were admitted",
            self.had.len(),
            INSTRUCTIONS.len(),
            self.ran.len(),
            refused + admitted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_from_scratch_are_admitted_and_mean_the_same() {
        let seeds = Seeds { programs: Vec::new(), packets: Arrivals::default() };
        let mut tried = Tried::default();
        for seed in (0..60).step_by(2) {
            if let Err(what) = compare(&seeds.program(seed), &|_| {}, &mut tried) {
                panic!("seed {seed}: {what}");
            }
        }
        assert!(tried.made == 30 && tried.had.len() == INSTRUCTIONS.len() && tried.ran.len() > 45, "{tried}");
        assert!(tried.spoilt.0 > 0 && tried.spoilt.1 > 0, "{tried}");
        assert!(tried.never_ran().is_empty(), "too few to tell");
        tried.made = ENOUGH;
        assert_eq!(tried.never_ran().len(), INSTRUCTIONS.len() - tried.ran.len());
    }
}
