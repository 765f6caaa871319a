//! The tables and other memory of programs: exact tables, longest prefixes, rules, patterns, meters,
//! registers, pools and groups. This crate knows neither packets nor programs.
//!
//! Tables on a device and what makes entries up are the features `device` and `generate`.

pub mod deadlines;
#[cfg(feature = "device")]
pub mod device;
pub mod exact;
#[cfg(feature = "generate")]
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
