//! Answers the questions of `control`, one process after the other.

use crate::activation::Activation;
use crate::guarded::Refused;
use crate::run::say;
use engine::live::look::Counted;
use engine::report::by_reason;
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer, Shown};
use messages::limits::LONGEST_MESSAGE;
use std::sync::Arc;

/// Answers until the other end is gone, or says something that is not understood.
pub(crate) fn serve(
    mut control: Channel,
    activation: &Activation,
    layers: &[String],
    refused: &[(String, Arc<Refused>)],
) {
    loop {
        let question = match control.receive_alone::<ControlQuestion>(LONGEST_MESSAGE) {
            Ok(Some(question)) => question,
            Ok(None) => return,
            Err(error) => {
                // Whatever it says next, nobody knows where it begins.
                say(&format_args!("control: {error}"));
                return;
            }
        };
        let answer = match question {
            ControlQuestion::Show => shown(activation, layers, refused),
        };
        if control.send(&answer, &[]).is_err() {
            return;
        }
    }
}

/// What runs, and what became of packets.
fn shown(activation: &Activation, layers: &[String], refused: &[(String, Arc<Refused>)]) -> CoreAnswer {
    let active = activation.active();
    let whole = activation.remote().look().and_then(Counted::whole);
    let Some(counted) = whole else {
        return CoreAnswer::Refused("a worker of the core has ended".to_owned());
    };
    let (program, ledger) = (&counted.program, &counted.ledger);
    CoreAnswer::Shown(Shown {
        hash: active.hash,
        program: active.name,
        number: active.number,
        layers: layers.to_vec(),
        received: ledger.received().packets,
        forwarded: ledger.forwarded().packets,
        dropped: by_reason(program, |reason| ledger.dropped(reason).packets),
        punted: by_reason(program, |reason| ledger.punted(reason).packets),
        refused: refused.iter().map(|(port, counts)| (port.clone(), counts.by_name())).collect(),
    })
}
