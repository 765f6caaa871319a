//! Experiments that repeat the evaluation of the original language honestly, and their reports; and the
//! demonstration of names. No product code depends on this crate.

#![forbid(unsafe_code)]

mod compile;
mod connections;
#[cfg(target_os = "linux")]
mod control_socket;
mod counts;
pub mod crossover;
mod decode;
pub mod device_run;
mod device_workload;
mod experiment;
#[cfg(target_os = "linux")]
pub mod forwarding;
mod hermes;
#[cfg(target_os = "linux")]
mod host_traffic;
#[cfg(target_os = "linux")]
mod hosted;
mod kinds;
mod learn;
mod load_result;
mod machine;
mod measure;
mod naming;
#[cfg(target_os = "linux")]
pub mod naming_demo;
#[cfg(target_os = "linux")]
mod naming_path;
#[cfg(target_os = "linux")]
mod needed;
mod operations;
mod page;
mod plan;
mod plot;
mod policy;
mod programs;
mod router;
#[cfg(target_os = "linux")]
mod routes;
mod run;
pub mod schedule;
mod shares;
#[cfg(target_os = "linux")]
mod soak;
mod studies;
mod survey;
mod switch_apps;
mod tables;
mod thesis;
mod traffic;
mod transfer;
#[cfg(target_os = "linux")]
mod trusted;
pub mod twins;

pub use counts::Counts;
pub use experiment::{Experiment, Figure, Other, Row};
pub use kinds::ExperimentKind;
pub use machine::{Machine, pin};
pub use page::page;
pub use plan::{ComparedTable, DeviceChoice, LabPlan, Length, TablesPlan};
pub use programs::{PROGRAMS, compiled};
pub use run::run;
pub use studies::{ClaimCounts, StudyPages, read_report, reports_of_studies, study_pages};
pub use survey::{Survey, SurveyPlan, survey};
pub use traffic::{LabError, Traffic, TrafficCapture};
pub use transfer::{Pivot, pivots};
