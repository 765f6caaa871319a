//! What a client may ask: four roles, each with all rights of the one before it.

use crate::limits::SHORT_QUESTION;
use messages::control::ControlQuestion;
use messages::limits::LONGEST_BUNDLE_MESSAGE;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The role of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientRole {
    /// Asks which policy runs and what became of packets.
    Reader,
    /// Also confirms the policy that runs.
    Operator,
    /// Also hands in policies that have to be confirmed.
    Administrator,
    /// Also hands in policies that need no confirmation.
    Owner,
}

/// A name that no role has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no role `{0}`; the roles are reader, operator, administrator and owner")]
pub struct UnknownRole(String);

impl ClientRole {
    /// All roles, each with all rights of the one before it.
    pub const ALL: [ClientRole; 4] =
        [ClientRole::Reader, ClientRole::Operator, ClientRole::Administrator, ClientRole::Owner];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClientRole::Reader => "reader",
            ClientRole::Operator => "operator",
            ClientRole::Administrator => "administrator",
            ClientRole::Owner => "owner",
        }
    }

    /// The first role that may ask this; `None` if nobody may ask it over a network.
    #[must_use]
    pub fn needed(question: &ControlQuestion) -> Option<ClientRole> {
        match question {
            ControlQuestion::Show => Some(ClientRole::Reader),
            ControlQuestion::Confirm { .. } => Some(ClientRole::Operator),
            ControlQuestion::Install { confirm_within: Some(_), .. } => Some(ClientRole::Administrator),
            ControlQuestion::Install { confirm_within: None, .. } => Some(ClientRole::Owner),
            ControlQuestion::Figures
            | ControlQuestion::Table(_)
            | ControlQuestion::Entries { .. }
            | ControlQuestion::Entry { .. }
            | ControlQuestion::Change { .. }
            | ControlQuestion::Exchange { .. } => None,
        }
    }

    /// The longest question that this role has, in bytes: whoever may hand in no bundle has the front keep
    /// none.
    #[must_use]
    pub fn longest_question(self) -> usize {
        if self >= ClientRole::Administrator { LONGEST_BUNDLE_MESSAGE } else { SHORT_QUESTION }
    }
}

impl fmt::Display for ClientRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for ClientRole {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<ClientRole, UnknownRole> {
        let role = ClientRole::ALL.into_iter().find(|role| role.name() == name);
        role.ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_ask_one_question_more_than_the_one_before_it() {
        let install = |confirm_within| ControlQuestion::Install { bundle: Vec::new(), confirm_within };
        let questions = [
            ControlQuestion::Show,
            ControlQuestion::Confirm { hash: [0; 32] },
            install(Some(60)),
            install(None),
        ];
        for (place, role) in ClientRole::ALL.into_iter().enumerate() {
            assert_eq!(role.name().parse(), Ok(role));
            let needed = |question: &&ControlQuestion| ClientRole::needed(question).expect("somebody may");
            let may = questions.iter().filter(|question| needed(question) <= role).count();
            assert_eq!(may, place + 1, "{role}");
        }
        let change = ControlQuestion::Change { number: 1, changes: Vec::new() };
        assert_eq!([&change, &ControlQuestion::Table(0)].map(ClientRole::needed), [None; 2]);
        let unknown = "root".parse::<ClientRole>().expect_err("there is none").to_string();
        assert!(unknown.contains("reader, operator, administrator and owner"), "{unknown}");
    }
}
