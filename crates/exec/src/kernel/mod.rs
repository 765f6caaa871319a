//! Kernel text: the source of a program for devices, in one text that is OpenCL C 1.2, CUDA C++ and plain C
//! at once.
//!
//! One thread runs one packet, over the tables as they were on the device when the batch was submitted. If a
//! packet comes to a step that no device takes ([`Refusal`]), it ends with the word [`AGAIN`], and the host
//! runs it from the beginning. The same happens if the program reads bytes that were not copied, or would
//! change a table. Other effects of a packet on the state ([`Effect`]) are recorded, and the host applies
//! them at commit.
//!
//! ```text
//! result     31      30      27 26    24 23                     0
//!          +-------+----------+--------+----------+-------------+
//!          | again | effects  |  kind  | effects  |  argument   |     as `packet::verdict`; effects get what the argument leaves
//!          +-------+----------+--------+----------+-------------+
//! ```
//!
//! [`CopiedPart`] and [`Back`] choose what goes over and what comes back.

mod blocks;
mod form;
mod instructions;
mod intervals;
mod known;
mod names;
mod packed;
mod plan;
mod refusal;
mod results;
mod searches;
mod shape;
mod twin;

pub use form::{Back, CopiedPart, KernelOptions, NoForm, NoKernel};
pub use instructions::key_bits;
pub use plan::{Bytes, Effect, FRAME_BYTES, KernelPlan, PAGE_BYTES, PacketColumn};
pub use refusal::{Refusal, RefusalCause};
pub use results::{AGAIN, ResultPlace, Results};
pub use searches::{DEFAULT, HEADER_WORDS, KernelSearch};
pub use twin::Twin;

use ir::Program;
use std::fmt::Write;

/// The language for which a kernel's text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++.
    Cuda,
    /// C99 with 128-bit integers: for tests.
    Plain,
}

/// A program for devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// What it needs and leaves.
    pub plan: KernelPlan,
    searches: String,
    body: String,
}

impl Kernel {
    /// Makes the kernel of a program's packet function. `ports` is as for [`crate::load()`].
    ///
    /// # Errors
    /// Every packet comes to a step that no device takes, or a form cannot be used for the program.
    pub fn new(program: &Program, ports: u16, options: &KernelOptions) -> Result<Kernel, NoKernel> {
        let (body, plan) = blocks::body(program, ports, options)?;
        let searches = searches::texts(program, &plan.tables, &plan.searches);
        Ok(Kernel { plan, searches, body })
    }

    /// The whole text. Its one entry point is
    /// `run_packets(bytes, columns, verdicts, records, packets, table…)`. If the result of a packet is a bit,
    /// threads must run in groups of a multiple of 32, of at most 1,024.
    pub fn text(&self, dialect: Dialect) -> String {
        let bit = self.plan.results.back == Back::Bit;
        let end = match (dialect, bit) {
            (Dialect::OpenCl, false) => include_str!("text/opencl_end.h"),
            (Dialect::OpenCl, true) => include_str!("text/opencl_bits.h"),
            (Dialect::Cuda, false) => include_str!("text/cuda_end.h"),
            (Dialect::Cuda, true) => include_str!("text/cuda_bits.h"),
            (Dialect::Plain, false) => include_str!("text/plain_end.h"),
            (Dialect::Plain, true) => include_str!("text/plain_bits.h"),
        };
        self.packet_text(dialect, self.plan.stride) + end
    }

    /// The text of a persistent kernel, which takes slots from a ring of tickets (`gpu::ring`). Its one entry
    /// point is `serve_packets(bytes, columns, verdicts, records, ring, own, entries, room, launch, quantum,
    /// idle, table…)`: all slots one after the other, each with `room` packets, at most 32; the ring's shared
    /// words and the device's own; the number of entries of the ring; the number of the launch, never 0; and
    /// when the kernel ends by itself, in units of the dialect.
    pub fn persistent_text(&self, dialect: Dialect) -> String {
        let (words, end) = match dialect {
            Dialect::OpenCl => (include_str!("text/opencl_ring.h"), include_str!("text/opencl_persistent.h")),
            Dialect::Cuda => (include_str!("text/cuda_ring.h"), include_str!("text/cuda_persistent.h")),
            Dialect::Plain => (include_str!("text/plain_ring.h"), include_str!("text/plain_persistent.h")),
        };
        let KernelPlan { stride, columns, record_words, results, writes, .. } = &self.plan;
        let staged = dialect == Dialect::Cuda && self.plan.fits_staged();
        // An odd number of words, so that the packets of a warp begin in different banks.
        let pitch = if staged { stride + 4 } else { *stride };
        let sizes = format!(
            "\n#define STRIDE {stride}u\n#define COLUMNS {}u\n#define RECORD_WORDS {record_words}u\n#define BITS {}\n\
             #define STAGED {}\n#define WRITES {}\n\
             #define SERVED GLOBAL u8 *all_bytes, GLOBAL const u32 *all_columns, GLOBAL RESULT *all_verdicts, GLOBAL u32 *all_records, \
             GLOBAL WORD *ring, GLOBAL WORD *own, const u32 entries, const u32 room, const u32 launch, const u32 quantum, const u32 idle{}\n",
            columns.len(),
            results.back.bits(),
            u8::from(staged),
            u8::from(*writes),
            self.tables("TABLE "),
        );
        self.packet_text(dialect, pitch) + words + include_str!("text/ring.h") + &sizes + end
    }

    /// The text that runs one packet, which comes before an entry point; packets begin `pitch` bytes apart.
    fn packet_text(&self, dialect: Dialect, pitch: u32) -> String {
        let words = match dialect {
            Dialect::OpenCl => include_str!("text/opencl.h"),
            Dialect::Cuda => include_str!("text/cuda.h"),
            Dialect::Plain => include_str!("text/plain.h"),
        };
        let mut text = format!("{words}{}", include_str!("text/arithmetic.h"));
        text.push_str(&self.searches);
        let _ = writeln!(
            text,
            "\n#define PITCH {pitch}u\n#define RESULT {}\n#define PARAMETERS GLOBAL u8 *bytes, GLOBAL const u32 *columns, GLOBAL RESULT *verdicts, \
             GLOBAL u32 *records, const u32 packets{}\n#define ARGUMENTS bytes, columns, verdicts, records, packets{}\n",
            if self.plan.results.back == Back::Half { "u16" } else { "u32" },
            self.tables("TABLE "),
            self.tables(""),
        );
        text + &self.body
    }

    /// The tables in a list of arguments.
    fn tables(&self, what: &str) -> String {
        (0..self.plan.tables.len()).map(|place| format!(", {what}t{place}")).collect()
    }
}
