//! The tables a program looks things up in: built once to a declared capacity, then read and changed packet by packet.

pub mod exact;
