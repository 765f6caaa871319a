//! The packet loop of back ends that run one packet after the other, each to its end: the interpreter and
//! bytecode.

use crate::outputs::{self, Output, Outputs};
use crate::state::table_set::TableFamily;
use crate::state::{ProgramState, RunHandler};
use packet::batch::Batch;
use packet::resize::Resizable;
use packet::verdict::Verdict;

/// The packet that a function runs on.
pub(crate) struct Packet<'m> {
    pub(crate) bytes: Resizable<'m>,
    pub(crate) in_port: u16,
}

/// An engine that runs the packet function on one packet.
pub(crate) trait OneByOne<F: TableFamily>: RunHandler<F> + Sized {
    /// Runs it to its end.
    fn run_packet(
        &mut self,
        state: &mut ProgramState<F>,
        packet: &mut Packet<'_>,
        outputs: &mut Outputs,
    ) -> Verdict;

    /// The packet of this number in its batch, whose time (ns) is this, is next.
    fn begins(&mut self, _index: usize, _time: u64) {}

    /// It has its verdict, and events that it raised have been handled.
    fn ends(&mut self, _index: usize) {}

    /// Runs a batch.
    fn run_all(
        &mut self,
        state: &mut ProgramState<F>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        for i in 0..batch.len {
            let time = batch.time[i].max(state.now);
            if time >= state.next_wake {
                state.handle_due(time, self, outputs);
            }
            state.now = time;
            state.cause = i as u32;
            self.begins(i, time);
            let (first, bytes) = outputs::received(memory, batch, i);
            let mut packet = Packet { bytes, in_port: batch.port[i] };
            batch.verdict[i] = self.run_packet(state, &mut packet, outputs);
            outputs.finish_packet(batch, i, first, &packet.bytes);
            if state.has_queued() {
                state.handle_queued(self, outputs);
            }
            self.ends(i);
        }
        state.cause = Output::BETWEEN;
    }
}
