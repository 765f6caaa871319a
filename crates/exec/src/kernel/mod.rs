//! Kernel text: a program as source for devices, in one dialect that is OpenCL C 1.2, CUDA C++ and plain C at once.
//!
//! One thread runs one packet, over the tables as they lay on the device when the batch was handed over. A packet whose way leads to a step
//! that no device takes ([`Refusal`]) ends with the word [`AGAIN`], and the processor runs it from its beginning; so does one whose bytes did
//! not all go over, and one that would change a table. What a packet does to the state besides ([`Effect`]) is recorded and done at commit.
//!
//! ```text
//! verdict word    31      30    27 26    24 23          16 15           0
//!               +-------+--------+--------+--------------+--------------+
//!               | again |   0    |  kind  | effects done |   argument   |     as `packet::verdict`, with two fields more
//!               +-------+--------+--------+--------------+--------------+
//! ```

mod blocks;
mod instructions;
mod names;
mod plan;
mod reach;
mod refusal;
mod searches;
mod twin;

pub use plan::{AGAIN, Bytes, Column, Effect, FEW_EFFECTS, FIRST_EFFECT, FRAME_BYTES, Plan};
pub use refusal::{Cause, Refusal};
pub use searches::{DEFAULT, HEADER_WORDS, Search};
pub use twin::Twin;

use lang::ir::Program;
use std::fmt::Write;

/// The language that a kernel's text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++.
    Cuda,
    /// C99 with 128-bit integers: for tests.
    Plain,
}

/// What may be chosen about a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Rules are tried one by one instead of in trees.
    pub linear_rules: bool,
    /// Patterns are found by Bloom filters instead of an automaton.
    pub bloom: bool,
}

/// A program for devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// What it needs and leaves.
    pub plan: Plan,
    searches: String,
    body: String,
}

/// Why a program has no kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("no packet of this program can be finished on a device: {}", .sentences.join("; "))]
pub struct NoKernel {
    /// The steps that stand in the way.
    pub sentences: Vec<String>,
}

impl Kernel {
    /// The kernel of a program's packet function. `ports` is as for [`crate::load()`].
    ///
    /// # Errors
    /// Every packet comes to a step that no device takes.
    pub fn new(program: &Program, ports: u16, options: &Options) -> Result<Kernel, NoKernel> {
        let (body, plan) = blocks::body(program, ports, options);
        match body {
            Some(body) => {
                let searches = searches::texts(program, &plan.tables, &plan.searches);
                Ok(Kernel { plan, searches, body })
            }
            None => {
                let sentence = |refusal: &Refusal| refusal.sentence(program).to_string();
                Err(NoKernel { sentences: plan.refusals.iter().map(sentence).collect() })
            }
        }
    }

    /// The whole text. Its one entry point is `run_packets(bytes, columns, verdicts, records, packets, table…)`.
    pub fn text(&self, dialect: Dialect) -> String {
        let (words, end) = match dialect {
            Dialect::OpenCl => (include_str!("text/opencl.h"), include_str!("text/opencl_end.h")),
            Dialect::Cuda => (include_str!("text/cuda.h"), include_str!("text/cuda_end.h")),
            Dialect::Plain => (include_str!("text/plain.h"), include_str!("text/plain_end.h")),
        };
        let mut text = format!("{words}{}", include_str!("text/arithmetic.h"));
        text.push_str(&self.searches);
        let tables = |what: &str| -> String {
            (0..self.plan.tables.len()).map(|place| format!(", {what}t{place}")).collect()
        };
        let _ = writeln!(
            text,
            "\n#define PARAMETERS GLOBAL u8 *bytes, GLOBAL const u32 *columns, GLOBAL u32 *verdicts, \
             GLOBAL u32 *records, const u32 packets{}\n#define ARGUMENTS bytes, columns, verdicts, records, packets{}\n",
            tables("GLOBAL const u32 *"),
            tables(""),
        );
        text + &self.body + end
    }
}
