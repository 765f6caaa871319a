//! Tools for tests of all crates together: random programs and packets, and the comparison of the back ends
//! over them.

#![forbid(unsafe_code)]

pub mod agree;
pub mod class_packets;
pub mod cores;
pub mod corpus;
pub mod coverage;
pub mod device;
pub mod edit_search;
pub mod ir_agree;
pub mod ir_generator;
pub mod ir_mutation;
pub mod outcome;
pub mod packet_generator;
pub mod program_generator;
pub mod ptx;
pub mod random;
pub mod shrink;
pub mod split;
pub mod traffic;
pub mod whole_sums;
