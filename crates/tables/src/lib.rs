//! The tables a program looks things up in: built once to a declared capacity, then read and changed packet
//! by packet.

pub mod device;
pub mod exact;
pub mod generate;
pub mod group;
pub mod lpm;
pub mod meter;
pub mod patterns;
pub mod pool;
pub mod register;
pub mod rules;
pub mod sizes;
