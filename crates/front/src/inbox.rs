//! What comes from a client after the handshake: one question at a time, judged by its length and its kind
//! before anybody else sees it.

use crate::role::ClientRole;
use messages::control::ControlQuestion;
use messages::frame;

/// Why a question is refused.
#[derive(Debug, thiserror::Error)]
pub enum QuestionRefusal {
    /// longer than the role has questions
    #[error("a question of {length} bytes, of which {role} may send {most} at most")]
    TooLong {
        /// Its length.
        length: usize,
        /// How long it may be.
        most: usize,
        /// The role of the client.
        role: ClientRole,
    },
    /// not a question
    #[error("a question that is not understood: {0}")]
    NotUnderstood(#[from] messages::MessageError),
    /// more behind it
    #[error("more behind a question, which was not answered yet")]
    Behind,
    /// the role has no right to it
    #[error("this needs the role {needed}, and the client's role is {role}")]
    Role {
        /// The first role that may ask it.
        needed: ClientRole,
        /// The role of the client.
        role: ClientRole,
    },
    /// no role has
    #[error("this is not asked over a network")]
    Nobody,
}

/// What has come of the next question of a client.
#[derive(Debug)]
pub struct Inbox {
    role: ClientRole,
    bytes: Vec<u8>,
}

/// The bytes of a length.
const LENGTH: usize = 4;

impl Inbox {
    /// Of a client that has this role.
    #[must_use]
    pub fn new(role: ClientRole) -> Inbox {
        Inbox { role, bytes: Vec::new() }
    }

    /// Whether a question has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether the question that has begun is a long one.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.announced().is_some_and(|length| length > crate::limits::SHORT_QUESTION)
    }

    /// Takes what has come. Returns a question once it is whole, and if the client may ask it.
    ///
    /// # Errors
    /// It may not, or what has come is no question. Nothing behind it is understood.
    pub fn take(&mut self, part: &[u8]) -> Result<Option<ControlQuestion>, QuestionRefusal> {
        // Memory is taken as bytes come, whatever length was announced.
        self.bytes.extend_from_slice(part);
        let Some(length) = self.announced() else { return Ok(None) };
        let (role, most) = (self.role, self.role.longest_question());
        if length > most {
            return Err(QuestionRefusal::TooLong { length, most, role });
        }
        if self.bytes.len() < LENGTH + length {
            return Ok(None);
        }
        if self.bytes.len() > LENGTH + length {
            return Err(QuestionRefusal::Behind);
        }
        let question = frame::read(&self.bytes[LENGTH..])?;
        self.bytes = Vec::new();
        match ClientRole::needed(&question) {
            None => Err(QuestionRefusal::Nobody),
            Some(needed) if needed > role => Err(QuestionRefusal::Role { needed, role }),
            Some(_) => Ok(Some(question)),
        }
    }

    /// The length of the question, once it is there.
    fn announced(&self) -> Option<usize> {
        let length = self.bytes.first_chunk::<LENGTH>()?;
        Some(u32::from_le_bytes(*length) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use messages::limits::LONGEST_BUNDLE_MESSAGE;
    use proptest::prelude::*;

    fn framed(question: &ControlQuestion) -> Vec<u8> {
        frame::written(question).expect("it has a length")
    }

    fn install(bundle: Vec<u8>, confirm_within: Option<u32>) -> ControlQuestion {
        ControlQuestion::Install { bundle, confirm_within }
    }

    #[test]
    fn a_question_is_whole_with_its_last_byte_and_refused_with_one_more() {
        let question = install(vec![7; 1000], Some(60));
        let bytes = framed(&question);
        let mut inbox = Inbox::new(ClientRole::Administrator);
        for byte in &bytes[..bytes.len() - 1] {
            assert!(inbox.take(&[*byte]).expect("it is right so far").is_none());
        }
        assert!(inbox.has_begun() && inbox.is_long());
        assert_eq!(inbox.take(&bytes[bytes.len() - 1..]).expect("it is right"), Some(question));
        assert!(!inbox.has_begun());
        let show = framed(&ControlQuestion::Show);
        assert_eq!(inbox.take(&show).expect("the next"), Some(ControlQuestion::Show));
        let behind = inbox.take(&[&show[..], &[0]].concat()).expect_err("one more");
        assert!(matches!(behind, QuestionRefusal::Behind), "{behind}");
    }

    #[test]
    fn a_longer_question_than_the_role_has_is_refused_with_its_length() {
        for role in ClientRole::ALL {
            let most = role.longest_question();
            for length in [most + 1, u32::MAX as usize] {
                let refused = Inbox::new(role).take(&(length as u32).to_le_bytes()).expect_err("too long");
                assert!(matches!(refused, QuestionRefusal::TooLong { .. }), "{refused}");
            }
            assert!(Inbox::new(role).take(&(most as u32).to_le_bytes()).expect("it may be").is_none());
        }
        // A bundle that is as long as it may be is.
        let longest = framed(&install(vec![0; messages::limits::LONGEST_BUNDLE], Some(u32::MAX)));
        assert!(longest.len() - LENGTH <= LONGEST_BUNDLE_MESSAGE);
    }

    #[test]
    fn a_role_asks_what_it_may_and_nothing_else() {
        let refused = |role, question: &ControlQuestion| {
            let refused = Inbox::new(role).take(&framed(question)).expect_err("it may not").to_string();
            assert!(refused.contains(&format!("the client's role is {role}")), "{refused}");
        };
        refused(ClientRole::Reader, &ControlQuestion::Confirm { hash: [0; 32] });
        refused(ClientRole::Reader, &install(vec![1], Some(60)));
        refused(ClientRole::Operator, &install(vec![1], None));
        refused(ClientRole::Administrator, &install(vec![1; 1000], None));
        let owners = install(vec![1; 1000], None);
        assert_eq!(Inbox::new(ClientRole::Owner).take(&framed(&owners)).expect("it may"), Some(owners));
    }

    proptest! {
        #[test]
        fn whatever_comes_in_whatever_parts_is_judged_alike(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
            cut in 0usize..100,
            role in 0usize..4,
        ) {
            let whole = Inbox::new(ClientRole::ALL[role]).take(&bytes).map_err(|error| error.to_string());
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut inbox = Inbox::new(ClientRole::ALL[role]);
            let parts = match inbox.take(first) {
                Ok(None) => inbox.take(second),
                // Whoever asks waits for the answer: more behind it is refused.
                Ok(Some(_)) if !second.is_empty() => Err(QuestionRefusal::Behind),
                other => other,
            };
            prop_assert_eq!(whole.is_err(), parts.is_err());
            prop_assert_eq!(whole.ok(), parts.ok());
        }
    }
}
