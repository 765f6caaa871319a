//! Runs a gateway for a long time: `cargo run --release -p lab --example soak -- target/release/ravelin [SECONDS]` prints what came of it as JSON.

use lab::soak::{SoakPlan, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = arguments.get(1).map_or(Ok(600.0), |text| text.parse());
    let (Some(binary), Ok(seconds)) = (arguments.first(), seconds) else {
        eprintln!("soak BINARY [SECONDS]: the ravelin binary, and for how long at half load (600)");
        return ExitCode::from(2);
    };
    let plan = SoakPlan { binary: binary.into(), seconds, processors: (0, 1) };
    match run(&plan, &mut |what| eprintln!("{what}")) {
        Ok(soak) => {
            let text = serde_json::to_string_pretty(&soak).unwrap_or_default();
            println!("{text}");
            let takeovers = &soak.takeovers;
            let named = takeovers.arrived.missing == takeovers.lost.0 + takeovers.lost.1;
            if soak.half_load.account.exact() && soak.overload.account.exact() && named {
                ExitCode::SUCCESS
            } else {
                eprintln!("not every packet is in the account");
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
