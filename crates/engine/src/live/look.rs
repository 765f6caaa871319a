//! Looks: copies of what a program has counted, taken while it runs. A look copies a few cells between two
//! batches, so that it costs packets a bounded part of the time.
//!
//! ```text
//! asked ──► begun: the ledger's moment ──► ledger, cell by cell ──► counters ──► lost punts ──► answered
//!                                              (a program that ends or is replaced gets its ledger back at once, and the look begins anew)
//! ```
//!
//! The account of packets is that of one moment, and its sums are exact. Cells of counters are copied while
//! packets run: each cell is exact when it is copied, and two cells may be from different moments. One look
//! is taken after the other, so many looks at a time cost no more than one.

use super::generation::{Generation, PortLosses};
use crate::Ledger;
use crate::commit::moment::Moment;
use crate::figures::Figures;
#[cfg(feature = "observe")]
use crate::report::{Imbalance, Report, Setting, Times};
use ir::Program;
use ir::source::Sources;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The largest number of cells (of 16 bytes) of account and counters that are copied between two rounds over
/// the ports, however many clients ask: this takes a few microseconds.
pub const CELLS: usize = 1024;

/// The copy of what one worker has counted for its program.
pub struct Counted {
    /// The program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// How many programs have taken over, this one included.
    pub number: u64,
    /// For how long the program had run.
    pub age: Duration,
    /// The account of packets.
    pub ledger: Ledger,
    /// What the back end has counted.
    pub figures: Figures,
    /// The losses at each port; none of a part that runs no more.
    pub losses: Vec<LossesSince>,
    /// Punted packets that found no room, by the number of the reason.
    pub punts_lost: Vec<u64>,
    /// Packets that left with the checksum that their sender left open.
    pub left_open: u64,
}

/// The losses at one port.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossesSince {
    /// Since the program took over.
    pub takeover: PortLosses,
    /// Since the port was attached, under all programs together.
    pub attached: PortLosses,
}

impl LossesSince {
    fn new((takeover, &before): (PortLosses, &PortLosses)) -> LossesSince {
        let mut attached = before;
        attached += takeover;
        // What waits now is no sum over time.
        (attached.receive.waiting, attached.send.waiting) = (takeover.receive.waiting, takeover.send.waiting);
        LossesSince { takeover, attached }
    }
}

impl Counted {
    /// What a generation has counted that runs no more.
    pub fn of(generation: &Generation) -> Counted {
        Counted {
            program: generation.program.clone(),
            sources: generation.sources.clone(),
            number: generation.number,
            age: generation.since.elapsed(),
            ledger: generation.ledger.clone(),
            figures: Figures::of(&generation.program, generation.backend.as_ref()),
            losses: Vec::new(),
            punts_lost: generation.punts_lost.clone(),
            left_open: generation.left_open,
        }
    }

    /// The parts of all workers as one; `None` without workers.
    pub fn whole(parts: impl IntoIterator<Item = Counted>) -> Option<Counted> {
        parts.into_iter().reduce(|mut whole, part| {
            whole.ledger.add(&part.ledger);
            whole.figures.add(&whole.program, &part.figures);
            whole.age = whole.age.max(part.age);
            whole.left_open += part.left_open;
            for (lost, more) in whole.losses.iter_mut().zip(&part.losses) {
                lost.takeover += more.takeover;
                lost.attached += more.attached;
            }
            for (lost, more) in whole.punts_lost.iter_mut().zip(&part.punts_lost) {
                *lost += more;
            }
            whole
        })
    }

    /// The report of these packets; `program` is the file of the program.
    ///
    /// # Errors
    /// The account does not add up.
    #[cfg(feature = "observe")]
    pub fn report(self, program: &str) -> Result<Report, Imbalance> {
        let setting = Setting { program: program.to_owned(), ..Setting::default() };
        let times = Times { packets: self.age, ..Times::default() };
        Report::of(setting, &self.program, &self.ledger, self.figures, times)
    }
}

/// A requested look: the function that gets the copy.
pub(super) type Look = Box<dyn FnOnce(Counted) + Send>;

/// The looks that wait, and the one that is being copied.
#[derive(Default)]
pub(super) struct Looks {
    waiting: VecDeque<Look>,
    begun: Option<Begun>,
}

struct Begun {
    age: Duration,
    moment: Option<Moment>,
    ledger: Option<Ledger>,
    figures: Figures,
    losses: Vec<LossesSince>,
    punts_lost: Vec<u64>,
}

impl Looks {
    pub(super) fn add(&mut self, look: Look) {
        self.waiting.push_back(look);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Continues the first look by at most [`CELLS`] cells, and returns how many were copied. `losses` gives
    /// the losses at the ports since the program took over.
    pub(super) fn step(
        &mut self,
        generation: &mut Generation,
        losses: impl FnOnce(&Generation) -> Vec<PortLosses>,
    ) -> usize {
        if self.waiting.is_empty() {
            return 0;
        }
        let mut most = CELLS;
        let mut begun = self.begun.take().unwrap_or_else(|| Begun::new(generation, losses));
        if !begun.step(generation, &mut most) {
            self.begun = Some(begun);
        } else if let Some(look) = self.waiting.pop_front() {
            look(begun.end(generation));
        }
        CELLS - most
    }

    /// Interrupts a look because the program ends or is replaced: the ledger gets all counts back. The look
    /// begins anew with the next program, if there is one.
    pub(super) fn interrupt(&mut self, generation: &mut Generation) {
        if let Some(mut begun) = self.begun.take() {
            let mut most = usize::MAX;
            begun.tell(generation, &mut most);
        }
    }
}

impl Begun {
    fn new(generation: &mut Generation, losses: impl FnOnce(&Generation) -> Vec<PortLosses>) -> Begun {
        let losses = losses(generation);
        let empty = generation.empty.take();
        Begun {
            age: generation.since.elapsed(),
            moment: empty.map(|empty| Moment::new(&mut generation.ledger, empty)),
            ledger: None,
            figures: Figures::begin(generation.backend.as_ref()),
            losses: losses.into_iter().zip(generation.lost_before()).map(LossesSince::new).collect(),
            punts_lost: Vec::with_capacity(generation.punts_lost.len()),
        }
    }

    /// Copies cells of the ledger. Returns whether all are copied.
    fn tell(&mut self, generation: &mut Generation, most: &mut usize) -> bool {
        let Some(mut moment) = self.moment.take() else { return true };
        if !moment.part(&mut generation.ledger, most) {
            self.moment = Some(moment);
            return false;
        }
        let (told, empty) = moment.end();
        (self.ledger, generation.empty) = (Some(told), Some(empty));
        true
    }

    fn step(&mut self, generation: &mut Generation, most: &mut usize) -> bool {
        if !self.tell(generation, most)
            || !self.figures.count(&generation.program, generation.backend.as_ref(), most)
        {
            return false;
        }
        let from = self.punts_lost.len();
        let further = generation.punts_lost.iter().skip(from).take(*most);
        self.punts_lost.extend(further);
        *most -= self.punts_lost.len() - from;
        self.punts_lost.len() == generation.punts_lost.len()
    }

    fn end(self, generation: &Generation) -> Counted {
        Counted {
            program: generation.program.clone(),
            sources: generation.sources.clone(),
            number: generation.number,
            age: self.age,
            ledger: self.ledger.unwrap_or_else(|| generation.ledger.clone()),
            figures: self.figures,
            losses: self.losses,
            punts_lost: self.punts_lost,
            left_open: generation.left_open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Loaded;
    use crate::{Report, Setting, Times};
    use exec::Outputs;
    use lang::pipeline::{CompileOptions, compile};
    use packet::Batch;
    use packet::region::SLACK;
    use std::sync::mpsc;

    /// Cells of the counter: many more than are copied at once.
    const SIZE: usize = 60_000;

    /// So many that the ledger's cells of ports are not told in one step.
    const PORTS: u16 = 3000;

    fn generation() -> Generation {
        let text = "import std.net.{ethernet}
reason odd \"an odd type\"
counter seen[60000]
counter all
start decoder frame(eth: ethernet) {
    count all
    if eth.type < 60000 { count seen[eth.type] }
    if eth.type & 1 == 1 { drop odd }
    flood
}
";
        let compiled = compile("odd.rav", text, &|_| None, &CompileOptions::default());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let backends = vec![exec::load(&program, exec::BackendKind::Interpreter, PORTS, 0).expect("loads")];
        let (program, sources) = (Arc::new(program), Arc::new(compiled.sources));
        Loaded { program, sources, backends, schedule: None, steering: Vec::new() }
            .generations(PORTS, 1)
            .remove(0)
    }

    /// Counts a batch of packets of these types.
    fn count(generation: &mut Generation, types: impl Iterator<Item = u16>) {
        let (mut memory, mut batch) = (Vec::new(), Batch::new());
        for (index, kind) in types.enumerate() {
            batch.push(memory.len() as u64, 60, 60, 1 + index as u16 % 3, 5);
            memory.extend([0; 12].into_iter().chain(kind.to_be_bytes()).chain([0; 50]));
        }
        memory.resize(memory.len() + SLACK, 0);
        let mut outputs = Outputs::default();
        generation.backend.run(&mut memory, &mut batch, &mut outputs);
        generation.ledger.commit(&memory, &mut batch, &outputs);
    }

    fn ask(looks: &mut Looks) -> mpsc::Receiver<Counted> {
        let (sender, receiver) = mpsc::channel();
        looks.add(Box::new(move |counted| {
            let _ = sender.send(counted);
        }));
        receiver
    }

    fn report(counted: Counted) -> Report {
        let Counted { program, ledger, figures, .. } = counted;
        Report::of(Setting::default(), &program, &ledger, figures, Times::default()).expect("it adds up")
    }

    #[test]
    fn a_look_copies_few_cells_between_two_batches_and_adds_up() {
        let (mut looks, mut generation) = (Looks::default(), generation());
        (0..200).for_each(|batch| count(&mut generation, (0..256).map(|index| batch * 256 + index)));
        let (first, second) = (ask(&mut looks), ask(&mut looks));
        let (mut rounds, mut cells) = (0, 0);
        while !looks.is_empty() {
            let copied = looks.step(&mut generation, |_| Vec::new());
            assert!(copied <= CELLS, "{copied} cells between two batches");
            (rounds, cells) = (rounds + 1, cells + copied);
            count(&mut generation, (0..256).map(|index| index * 200));
        }
        assert!(cells > 2 * SIZE && rounds >= 2 * (SIZE / CELLS), "{rounds} rounds");
        let (first, second) =
            (report(first.recv().expect("answered")), report(second.recv().expect("answered")));
        assert_eq!(first.received.packets, 200 * 256, "what came afterwards is not in it");
        assert_eq!(first.drops["odd"], 200 * 128);
        assert!(second.received.packets > first.received.packets);
        // Nothing is lost, and nothing is counted twice.
        let whole = report(asked(&mut looks, &mut generation));
        assert_eq!(whole.received.packets, (200 + rounds as u64) * 256);
        assert_eq!(generation.ledger.received().packets, whole.received.packets);
    }

    /// What a look tells while no packet comes.
    fn asked(looks: &mut Looks, generation: &mut Generation) -> Counted {
        let answer = ask(looks);
        while !looks.is_empty() {
            looks.step(generation, |_| Vec::new());
        }
        answer.recv().expect("answered")
    }

    #[test]
    fn a_look_that_a_replacement_interrupts_gives_everything_back_and_begins_anew() {
        let (mut looks, mut old, mut new) = (Looks::default(), generation(), generation());
        count(&mut old, 0..256);
        let answer = ask(&mut looks);
        // A part of the ledger has been told, and not all of it.
        assert_eq!(looks.step(&mut old, |_| Vec::new()), CELLS);
        assert!(looks.begun.as_ref().is_some_and(|begun| begun.ledger.is_none()));
        count(&mut old, 0..256);
        looks.interrupt(&mut old);
        assert_eq!(old.ledger.received().packets, 512);
        count(&mut new, 0..16);
        while !looks.is_empty() {
            looks.step(&mut new, |_| Vec::new());
        }
        assert_eq!(report(answer.recv().expect("answered")).received.packets, 16);
        assert_eq!(report(asked(&mut looks, &mut old)).received.packets, 512);
    }
}
