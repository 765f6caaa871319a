//! The channel to a confined core, which all that is done beside it share: one question at a time.

use messages::control::{ControlQuestion, CoreAnswer};
use messages::limits::{AFTER_POLICY, LONGEST_EXCHANGE, LONGEST_MESSAGE};
use messages::{Channel, ChannelError};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long after a question of others no exchange has them wait.
const OTHERS_ASK: Duration = Duration::from_millis(100);
/// How often a policy that came too soon is handed in again.
const TRIES: usize = 8;

/// The channel.
pub(super) struct CoreChannel {
    channel: Mutex<Channel>,
    /// When something else than an exchange was asked last.
    asked: Mutex<Option<Instant>>,
}

impl CoreChannel {
    pub(super) fn new(channel: Channel) -> CoreChannel {
        CoreChannel { channel: Mutex::new(channel), asked: Mutex::default() }
    }

    /// Asks the core. After an answer that is not understood nobody knows where the next one begins, so the
    /// channel ends, and with it this process.
    ///
    /// # Errors
    /// The core is gone, or its answer is not understood.
    pub(super) fn ask(&self, question: &ControlQuestion) -> Result<CoreAnswer, ChannelError> {
        if !matches!(question, ControlQuestion::Exchange { .. }) {
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        let mut core = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || ChannelError::System(io::ErrorKind::UnexpectedEof.into());
        let sent = core.send(question, &[]).map_err(ChannelError::from);
        let answered = sent.and_then(|()| core.receive_alone(LONGEST_MESSAGE)?.ok_or_else(gone));
        if answered.is_err() {
            core.end();
        }
        answered
    }

    /// Asks the core, and asks again where a policy came too soon behind another one.
    ///
    /// # Errors
    /// As for [`CoreChannel::ask`].
    pub(super) fn ask_in_time(&self, question: &ControlQuestion) -> Result<CoreAnswer, ChannelError> {
        for _ in 0..TRIES {
            match self.ask(question)? {
                CoreAnswer::TooFast { milliseconds, .. } => {
                    thread::sleep(Duration::from_millis(milliseconds.max(1)).min(AFTER_POLICY));
                }
                answer => return Ok(answer),
            }
        }
        self.ask(question)
    }

    /// How many milliseconds an exchange waits for packets at most: others have their turn soon if some ask.
    pub(super) fn patience(&self) -> u16 {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let others_ask = asked.is_some_and(|asked| asked.elapsed() < OTHERS_ASK);
        if others_ask { 1 } else { LONGEST_EXCHANGE }
    }
}

/// Why an answer is not the one that was asked for, for people.
pub(crate) fn unexpected(answer: CoreAnswer) -> String {
    match answer {
        CoreAnswer::Refused(why) | CoreAnswer::TooFast { why, .. } => why,
        _ => "the core gave an answer to another question: `ravelin` and `ravelin-core` have to be of one version"
            .to_owned(),
    }
}
