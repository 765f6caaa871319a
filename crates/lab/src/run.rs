//! Runs the experiments of a plan, one after the other.

use crate::experiment::{Experiment, Row};
use crate::kinds::ExperimentKind;
use crate::machine::Machine;
use crate::plan::{LabPlan, Length};
use crate::traffic::LabError;
use crate::{
    compile, connections, crossover, decode, hermes, learn, naming, operations, policy, router, schedule,
    switch_apps, tables, transfer,
};

/// Runs experiments. `progress` hears what is being done.
///
/// # Errors
/// If a capture cannot be read. A program that does not do what it should is no error but a row without a
/// figure.
pub fn run(
    plan: &LabPlan,
    machine: &Machine,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Experiment>, LabError> {
    let mut experiments = Vec::new();
    for kind in &plan.kinds {
        // Elsewhere than on Linux there is no such file, and the load is not known.
        let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let machine = machine.clone().with_load(&loadavg);
        let mut mode = "one thread, packets in memory, native code unless a row says otherwise".to_owned();
        let (mut runs, mut length) = (plan.runs, plan.length.line());
        let rows = match kind {
            ExperimentKind::SwitchApps => switch_apps::rows(plan, progress)?,
            ExperimentKind::Decode => decode::rows(plan, progress)?,
            ExperimentKind::Operations => operations::rows(plan, progress)?,
            ExperimentKind::Learn => learn::rows(plan, progress)?,
            ExperimentKind::Compile => compile::rows(plan, progress)?,
            ExperimentKind::Router => {
                mode = router::mode();
                router::rows(plan, progress)?
            }
            ExperimentKind::Connections => {
                mode = connections::mode();
                connections::rows(plan, progress)?
            }
            ExperimentKind::Policy => {
                mode = policy::mode();
                policy::rows(plan, progress)?
            }
            ExperimentKind::Forwarding
            | ExperimentKind::Latency
            | ExperimentKind::Soak
            | ExperimentKind::Routes
            | ExperimentKind::HostTraffic
            | ExperimentKind::NamingPath
            | ExperimentKind::Trusted
            | ExperimentKind::Availability => {
                let (rows, roll) = live(*kind, plan, progress)?;
                mode = roll;
                if *kind == ExperimentKind::Soak {
                    runs = 1;
                }
                if *kind == ExperimentKind::Routes {
                    length = "each until both tables are as announced".to_owned();
                }
                if matches!(
                    kind,
                    ExperimentKind::HostTraffic
                        | ExperimentKind::NamingPath
                        | ExperimentKind::Trusted
                        | ExperimentKind::Availability
                ) {
                    length = "whole seconds a run, at least one".to_owned();
                }
                rows
            }
            ExperimentKind::Transfer => {
                let (rows, told) = transfer::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Crossover => {
                let (rows, told) = crossover::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Schedule => {
                let (rows, told) = schedule::rows(plan, progress)?;
                mode = told;
                rows
            }
            ExperimentKind::Hermes => {
                let (rows, told) = hermes::rows(plan, progress)?;
                (mode, runs, length) = (told, hermes::runs(), "simulated time".to_owned());
                rows
            }
            ExperimentKind::Naming => {
                let (rows, told) = naming::rows(plan, progress)?;
                (mode, length) = (told, "simulated time, and packets as often as they need".to_owned());
                rows
            }
            ExperimentKind::Tables => {
                let (rows, roll) = tables::rows(plan, progress)?;
                mode = format!("one thread, its own time, queries in memory; {roll}");
                runs = tables::runs(plan);
                length = Length::Seconds(tables::seconds(plan)).line();
                rows
            }
        };
        let machine = Machine { runs, length, mode, ..machine };
        experiments.push(Experiment { experiment: kind.name().to_owned(), machine, rows });
    }
    Ok(experiments)
}

type Told = Result<(Vec<Row>, String), LabError>;

#[cfg(target_os = "linux")]
fn live(kind: ExperimentKind, plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Told {
    match kind {
        ExperimentKind::Latency => crate::forwarding::latency::rows(plan, progress),
        ExperimentKind::Soak => crate::soak::rows(plan, progress),
        ExperimentKind::Routes => crate::routes::rows(plan, progress),
        ExperimentKind::HostTraffic => crate::host_traffic::rows(plan, progress),
        ExperimentKind::NamingPath => crate::naming_path::rows(plan, progress),
        ExperimentKind::Trusted => crate::trusted::rows(plan, progress),
        ExperimentKind::Availability => crate::trusted::availability::rows(plan, progress),
        _ => crate::forwarding::rows(plan, progress),
    }
}

/// Networks of its own are something that only Linux has.
#[cfg(not(target_os = "linux"))]
fn live(_: ExperimentKind, _: &LabPlan, _: &mut dyn FnMut(&str)) -> Told {
    Err(LabError::Tables("networks to measure gateways in can be made on Linux only".to_owned()))
}
