//! Files with the rules of a policy: how the compiler has them read, and what comes back.
//!
//! The compiler knows none of the formats. Its caller gives a [`RulesFileReader`] for all of them.

use policy::Policy;

/// The formats that a policy can be read from, as programs and commands name them.
pub const FORMATS: [&str; 5] = ["ios", "iptables", "nft", "npf", "pf"];

/// How to read a file with the rules of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesFileOptions {
    /// One of [`FORMATS`].
    pub format: String,
    /// The version of IP of the packets that the file is about, 4 or 6, where a file is about one only.
    pub family: Option<u8>,
    /// The ports that names of interfaces in it stand for.
    pub interfaces: Vec<(String, u16)>,
    /// Whether a first line that is none of the format is skipped, as a title.
    pub skip_title: bool,
    /// Whether the rules of a table `nat` are left aside, as the program translates addresses itself.
    pub skip_nat: bool,
    /// Whether rules that mark packets for others are left aside, as no rule asks for a mark.
    pub skip_marks: bool,
    /// The tables and sets whose addresses stand outside of the file: the name, and the text with them.
    pub tables: Vec<(String, String)>,
}

/// A line of the file that means what no policy can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableLine {
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// What was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesRead {
    /// Its policy.
    pub policy: Policy,
    /// Whether its first line was skipped, as a title.
    pub skipped_title: bool,
}

/// Reads the text of a file: what it says, or all lines of which no policy can be made.
pub type ReadRules = fn(&str, &RulesFileOptions) -> Result<RulesRead, Vec<UnreadableLine>>;

/// Who reads files with the rules of a policy.
#[derive(Clone, Copy, Debug)]
pub struct RulesFileReader(pub ReadRules);
