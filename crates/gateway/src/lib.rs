//! The control plane of a running gateway, beside the packet path: its file, its start and end, the control
//! server, metrics, and addresses, neighbours and routes.

#![forbid(unsafe_code)]

mod active;
pub mod beside_core;
mod clients;
pub mod config;
pub mod control;
mod control_server;
mod http;
pub mod leases;
mod limits;
mod metrics;
mod middleware;
pub mod names;
mod open_ports;
mod policies;
mod reload;
mod remarks;
mod review;
pub mod routing;
pub mod seeing;
pub mod serve;
mod signalled;
mod snapshot;
mod tables;

pub use active::ActiveView;
pub use config::{Config, ConfigError};
pub use control::{Asked, ControlAnswer, ControlError, GatewayView, PortView};
pub use control_server::{ConfigReader, Load, ReadConfig};
pub use policies::{PolicyCounts, PolicyView, RowCounts, RuleCounts};
pub use remarks::Remarks;
pub use review::{OnlyIf, Policies, PolicyReview, ReloadWish, Review, ReviewedProgram, Takeover};
pub use seeing::{PacketView, WatchWish, Watched};
pub use serve::{ServeError, Served, Telling};
