//! `lab learn`: a switch whose table holds 65,536 addresses, with both ends of every packet drawn at random.

use crate::experiment::Row;
use crate::measure::{Contender, Group, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::compiled;
use crate::switch_apps::{app_rows, twins};
use crate::traffic::{LabError, random_hosts};
use exec::BackendKind;
use lang::pipeline::Decode;
use ports::Order;

/// As many as the table of `mac_switch` holds.
const HOSTS: u64 = 65_536;
/// Packets besides one from each host; enough that a packet finds little of what it needs in the nearest
/// cache.
const PACKETS: u64 = 262_144;

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    progress("learn: 65,536 addresses");
    let program = compiled("mac_switch", Decode::Lazy).map_err(LabError::Program)?;
    let mut workload = Workload::new(random_hosts(HOSTS, PACKETS), Order::Replay, 5);
    let mut contenders =
        vec![Contender::loaded(&program, BackendKind::Native, 5).map_err(LabError::Program)?];
    contenders.extend(twins(&program).map_err(LabError::Program)?);
    let mut groups = [(Group::new(contenders), 5)];
    let case = "65536 addresses at random, replay, MAC learning";
    let measured = rounds(&mut workload, &mut groups, plan);
    Ok(measured.into_iter().flat_map(|measured| app_rows(case, measured, None)).collect())
}
