//! Statements that make the packet longer or shorter: `push`, `pop`, `encapsulate`, `decapsulate`,
//! `truncate`, `fragment`.

use super::{Parsed, Parser};
use crate::ast::{Edit, StmtKind};

impl Parser<'_> {
    /// What stands behind the word that begins the statement.
    pub(super) fn edit(&mut self, word: &str) -> Parsed<StmtKind> {
        Ok(StmtKind::Edit(match word {
            "push" => {
                let packet = self.packet()?;
                let before = self.word() == "before";
                if before {
                    self.advance();
                } else {
                    self.expect_word(
                        "after",
                        "behind what is pushed, as in `push vlan(id 7) after eth`; or `before`",
                    )?;
                }
                let header = self.name("The name of a header", "as in `push vlan(id 7) after eth`")?;
                Edit::Push { packet, before, header }
            }
            "encapsulate" => Edit::Encapsulate(self.braced_packet()?),
            "pop" => Edit::Pop(self.name("The name of a header", "behind `pop`")?),
            "decapsulate" => {
                self.expect_word("to", "behind `decapsulate`, as in `decapsulate to inner`")?;
                Edit::Decapsulate(self.name("The name of a header", "behind `decapsulate to`")?)
            }
            "truncate" => {
                self.expect_word("to", "behind `truncate`, as in `truncate to 128`")?;
                Edit::Truncate(self.expression()?)
            }
            _ => {
                let header = self.name("The name of a header", "behind `fragment`")?;
                self.expect_word("to", "behind the header, as in `fragment ip to 1500`")?;
                Edit::Fragment(header, self.expression()?)
            }
        }))
    }
}
