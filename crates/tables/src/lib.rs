//! The tables and other memory of programs: exact tables, longest prefixes, rules, patterns, meters,
//! registers, pools and groups. This crate knows neither packets nor programs.

pub mod deadlines;
pub mod device;
pub mod exact;
pub mod generate;
pub mod group;
pub mod lpm;
pub mod meter;
pub mod patterns;
pub mod pool;
pub mod register;
mod reserved;
pub mod rules;
pub mod sizes;
mod work;
