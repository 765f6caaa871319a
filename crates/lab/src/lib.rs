//! Experiments that repeat the evaluation of the original language honestly, and their reports. No product
//! code depends on this crate.

#![forbid(unsafe_code)]

mod compile;
mod counts;
pub mod crossover;
mod decode;
mod experiment;
#[cfg(target_os = "linux")]
pub mod forwarding;
mod hermes;
mod learn;
mod machine;
mod measure;
mod operations;
mod page;
mod plan;
mod plot;
mod programs;
mod router;
pub mod schedule;
#[cfg(target_os = "linux")]
mod soak;
mod survey;
mod switch_apps;
mod tables;
mod traffic;
mod transfer;
pub mod twins;

pub use self::tables::{ComparedTable, TablesPlan};
pub use counts::Counts;
pub use experiment::{Experiment, Figure, Other, Row};
pub use machine::Machine;
pub use page::page;
pub use plan::{ExperimentKind, LabPlan, Length, pin, run};
pub use programs::{PROGRAMS, compiled};
pub use survey::{Survey, SurveyPlan, survey};
pub use traffic::{LabError, Traffic, TrafficCapture};
pub use transfer::{DeviceChoice, Pivot, pivots};
