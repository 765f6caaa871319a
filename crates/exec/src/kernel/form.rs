//! The forms in which packets are copied to a device and their results come back. They decide what a transfer
//! costs; the program does not change.
//!
//! ```text
//! over   header     the first bytes, as many as the program can read, rounded up to 16
//!        frame      the whole frame, in 2,048 bytes
//!        page       the whole frame, in 4,096 bytes
//!        packed     the bytes that the program reads and no others, one behind the other, rounded up to 4
//!        in place   whole frames, one behind the other as they are long, and for each a word that says where it begins
//! back   word       again 1 bit │ free 4 │ kind 3 │ free 8 │ argument 16      what is free, and what the argument leaves, is for effects
//!        half       again 1 bit │ kind 3 │ argument 12                        an argument that is larger sends the packet again
//!        bit        which of two outcomes it is
//! ```

use std::fmt;

/// What is copied of each packet to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopiedPart {
    /// The first bytes, as many as the program can read, rounded up to 16.
    #[default]
    Header,
    /// The whole frame, in [`FRAME_BYTES`](super::FRAME_BYTES).
    Frame,
    /// The whole frame, in [`PAGE_BYTES`](super::PAGE_BYTES): what the study of 2012 began with.
    Page,
    /// Only the ranges of bytes that the program reads.
    Packed,
    /// The whole frame, as long as it is, and the place where it begins.
    InPlace,
}

/// The result that comes back for a packet, in addition to its bytes if they were changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Back {
    /// 32 bits.
    #[default]
    Word,
    /// 16 bits.
    Half,
    /// One bit.
    Bit,
}

impl CopiedPart {
    /// All forms: four in ascending order of bytes, then frames in place.
    pub const ALL: [CopiedPart; 5] =
        [CopiedPart::Packed, CopiedPart::Header, CopiedPart::Frame, CopiedPart::Page, CopiedPart::InPlace];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            CopiedPart::Header => "header",
            CopiedPart::Frame => "frame",
            CopiedPart::Page => "page",
            CopiedPart::Packed => "packed",
            CopiedPart::InPlace => "in-place",
        }
    }
}

impl Back {
    /// All forms, in descending order of bits.
    pub const ALL: [Back; 3] = [Back::Word, Back::Half, Back::Bit];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Back::Word => "word",
            Back::Half => "half",
            Back::Bit => "bit",
        }
    }

    /// Its size for one packet, in bits.
    pub fn bits(self) -> u32 {
        match self {
            Back::Word => 32,
            Back::Half => 16,
            Back::Bit => 1,
        }
    }
}

impl fmt::Display for CopiedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Back {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a form cannot be used for a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoForm {
    /// The places of packed bytes must be the same for all packets.
    #[error(
        "packed: the program reads or writes a packet at a position that depends on the packet; use header"
    )]
    Computed,
    /// Checksums and searches need many bytes, so there is nothing to pack.
    #[error("packed: the program sums up or searches bytes of a packet; use header or frame")]
    ManyBytes,
    /// Frames in place do not come back, so the program may not change them.
    #[error(
        "in-place: the program writes packets, and frames in place do not come back; use header or frame"
    )]
    Writes,
    /// A bit can only tell two outcomes apart.
    #[error("bit: the program has {0} outcomes, and a bit tells two apart; use half or word")]
    Outcomes(usize),
    /// The outcome depends on a number in the packet, which a bit cannot say.
    #[error(
        "bit: the program computes the port that it sends to, and a bit says only one of two known outcomes; use half or word"
    )]
    ComputedPort,
    /// A bit has no room to say that the host must run the packet.
    #[error(
        "bit: the kernel may give a packet up to the processor, which a bit cannot say; use half or word"
    )]
    GivesUp,
    /// The result has no room for effects, which the host needs at commit.
    #[error("{0}: what the program does to counters and tables has no room in so few bits; use word")]
    Effects(Back),
}

/// Options for making a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelOptions {
    /// Whether rules are tried one by one instead of in trees.
    pub linear_rules: bool,
    /// Whether Bloom filters find patterns instead of an automaton.
    pub bloom: bool,
    /// What is copied of each packet to the device.
    pub over: CopiedPart,
    /// What comes back of it.
    pub back: Back,
}

/// Why a program has no kernel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoKernel {
    /// Every packet comes to a step that no device takes.
    #[error("no packet of this program can be finished on a device: {}", .sentences.join("; "))]
    Steps {
        /// The steps that prevent a kernel, as sentences.
        sentences: Vec<String>,
    },
    /// There is no kernel in the requested form.
    #[error("this program's packets cannot travel as asked for: {0}")]
    Form(#[from] NoForm),
}
