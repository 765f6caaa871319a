//! `ravelin top`: a running gateway on one screen, second by second, with the last minutes to go back to.

use crate::arguments::seeing::TopArguments;
use crate::failure::Failure;
use crate::render;
use crate::render::top::{Sample, View, draw, text_of};
use gateway::control::ask;
use gateway::{Asked, ControlError};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Terminal};
use serde_json::Value;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

/// How many seconds can be gone back.
const REMEMBERED: usize = 900;
/// How long each sample is measured, a little less than a second with the questions around it.
const MEASURED: f64 = 0.98;
/// How often keys are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the command.
pub(crate) fn run(arguments: &TopArguments, json: bool) -> Result<(), Failure> {
    let control = &arguments.socket.control;
    // A gateway that is not there at the beginning ends it.
    let mut asking = Asking { control, before: view(control)? };
    if arguments.once {
        let sample = asking.next()?;
        return if json { Ok(render::line(&sample.document())?) } else { Ok(render::text(&once(&sample)?)?) };
    }
    if json {
        loop {
            render::line(&asking.next()?.document())?;
        }
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "`ravelin top` draws on a terminal: use --once or --json elsewhere".into(),
        ));
    }
    let (sender, samples) = mpsc::channel();
    let control = control.clone();
    // Nobody waits for it: a second that is being measured is no reason to stay.
    thread::spawn(move || follow(&control, &sender));
    let mut terminal = ratatui::try_init()?;
    let result = watch(&mut terminal, samples);
    ratatui::restore();
    Ok(result?)
}

/// Sends sample after sample, until nobody wants them. A gateway that does not answer may be there again a
/// second later.
fn follow(control: &Path, samples: &mpsc::Sender<Result<Sample, String>>) {
    loop {
        let failed = match view(control) {
            Err(error) => error,
            Ok(before) => {
                let mut asking = Asking { control, before };
                loop {
                    match asking.next() {
                        Ok(sample) => {
                            if samples.send(Ok(sample)).is_err() {
                                return;
                            }
                        }
                        Err(error) => break error,
                    }
                }
            }
        };
        if samples.send(Err(failed.to_string())).is_err() {
            return;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn view(control: &Path) -> Result<Value, Failure> {
    Ok(ask(control, Asked::Picture)?["picture"].take())
}

/// Asks a gateway for sample after sample.
struct Asking<'a> {
    control: &'a Path,
    before: Value,
}

impl Asking<'_> {
    /// What it does in the next second.
    fn next(&mut self) -> Result<Sample, Failure> {
        let measured = match ask(self.control, Asked::Measure { seconds: MEASURED }) {
            Ok(mut answer) => answer["measure"].take(),
            // A confined core does not tell where its time goes.
            Err(ControlError::Confined(_)) => {
                thread::sleep(Duration::from_secs_f64(MEASURED));
                Value::Null
            }
            Err(error) => return Err(error.into()),
        };
        let now = view(self.control)?;
        let sample = Sample::new(&self.before, now.clone(), measured);
        self.before = now;
        Ok(sample)
    }
}

/// One picture as text, 80 columns wide.
fn once(sample: &Sample) -> io::Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).map_err(io::Error::other)?;
    let view =
        View { samples: std::slice::from_ref(sample), back: 0, paused: false, help: false, trouble: None };
    terminal.draw(|frame| draw(frame, &view)).map_err(io::Error::other)?;
    let text = text_of(terminal.backend().buffer());
    // Keys are of no use here.
    Ok(text.lines().take(23).map(|line| format!("{line}\n")).collect())
}

/// Draws until `q`.
fn watch(terminal: &mut DefaultTerminal, samples: mpsc::Receiver<Result<Sample, String>>) -> io::Result<()> {
    let mut screen = Screen::default();
    loop {
        loop {
            match samples.try_recv() {
                Ok(Ok(sample)) => {
                    screen.trouble = None;
                    screen.add(sample);
                }
                Ok(Err(trouble)) => screen.trouble = Some(trouble),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        terminal.draw(|frame| draw(frame, &screen.view()))?;
        if event::poll(LOOK)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupted || !screen.key(key.code) {
                return Ok(());
            }
        }
    }
}

/// What is shown, and what is remembered.
#[derive(Default)]
struct Screen {
    samples: Vec<Sample>,
    back: usize,
    paused: bool,
    help: bool,
    trouble: Option<String>,
}

impl Screen {
    fn view(&self) -> View<'_> {
        let Screen { samples, back, paused, help, trouble } = self;
        View { samples, back: *back, paused: *paused, help: *help, trouble: trouble.as_deref() }
    }

    fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        // What is looked at stays where it is.
        if self.paused || self.back > 0 {
            self.back += 1;
        }
        if self.samples.len() > REMEMBERED {
            self.samples.remove(0);
        }
        self.back = self.back.min(self.samples.len() - 1);
    }

    /// Says whether it goes on.
    fn key(&mut self, key: KeyCode) -> bool {
        let most = self.samples.len().saturating_sub(1);
        if std::mem::take(&mut self.help) {
            return key != KeyCode::Char('q');
        }
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('p' | ' ') => {
                self.paused = !self.paused;
                if !self.paused {
                    self.back = 0;
                }
            }
            KeyCode::Left => self.back = (self.back + 1).min(most),
            KeyCode::PageUp => self.back = (self.back + 10).min(most),
            KeyCode::Right => self.back = self.back.saturating_sub(1),
            KeyCode::PageDown => self.back = self.back.saturating_sub(10),
            KeyCode::End => (self.back, self.paused) = (0, false),
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(second: u64) -> Sample {
        Sample::new(&Value::Null, json!({ "seconds": second, "generation": 1 }), Value::Null)
    }

    #[test]
    fn a_pause_keeps_the_picture_and_keys_move_it() {
        let mut screen = Screen::default();
        (0..20).for_each(|second| screen.add(sample(second)));
        assert!(screen.key(KeyCode::Left) && screen.key(KeyCode::PageUp));
        assert_eq!(screen.back, 11);
        screen.add(sample(20));
        assert_eq!(screen.back, 12, "the same second is shown");
        screen.key(KeyCode::End);
        screen.key(KeyCode::Char('p'));
        screen.add(sample(21));
        assert_eq!((screen.back, screen.paused), (1, true));
        screen.key(KeyCode::Char('p'));
        assert_eq!((screen.back, screen.paused), (0, false));
        (0..2 * REMEMBERED as u64).for_each(|second| screen.add(sample(second)));
        assert_eq!(screen.samples.len(), REMEMBERED);
        screen.key(KeyCode::Char('?'));
        assert!(screen.view().help && screen.key(KeyCode::Char('x')) && !screen.view().help);
        assert!(!screen.key(KeyCode::Char('q')));
    }
}
