//! Packets to classify, a line each: the five fields that every set of rules has, and further columns by
//! name.
//!
//! ```text
//! src dst sport dport proto [column=value …] [number …]     10.0.0.1 192.0.2.7 1024 80 6 tcp_flags=2 in_port=eth0
//! ```
//!
//! Addresses are dotted or plain numbers. A column that a line does not name is 0. Further numbers, such as
//! the answers in the traces of ClassBench, are passed over. `#` starts a comment line.

use crate::ImportError;
use crate::address::{self, host_mask};
use crate::ruleset::{ImportedRules, Part, RuleColumn};
use crate::text::{Line, Word, each_line, shown};

const SHAPE: &str = "a packet is written `src dst sport dport proto [column=value …]`";

impl ImportedRules {
    /// Reads packets to classify: for each a number a column.
    ///
    /// # Errors
    /// The first line that is no packet; a column that the rules do not know; a last line without an end, as
    /// the file may be cut there.
    pub fn keys(&self, text: &[u8]) -> Result<Vec<Vec<u128>>, ImportError> {
        each_line(text, |line| self.key(line))
    }

    fn key(&self, line: Line<'_>) -> Result<Vec<u128>, ImportError> {
        let mut key = vec![0; self.columns.len()];
        let mut words = line.words();
        for (column, place) in key.iter_mut().enumerate().take(5) {
            let Some(word) = words.next() else {
                return Err(line.error_at_end(format!("there are {column} fields and not five"), SHAPE));
            };
            *place = self.value(column, word)?;
        }
        for word in words {
            let Some((name, value)) = word.split('=') else {
                if word.text.parse::<i64>().is_err() {
                    return Err(
                        word.error(format!("`{}` is neither a column nor a number", shown(word.text)), SHAPE)
                    );
                }
                continue;
            };
            match self.column(name.text) {
                Some(column) => key[column] = self.value(column, value)?,
                // A column that no rule asks for changes nothing.
                None if Part::named(name.text).is_some() => {}
                None => {
                    let names: Vec<&str> = RuleColumn::names().collect();
                    let advice = format!("columns are {}", names.join(", "));
                    return Err(name.error(format!("there is no column `{}`", shown(name.text)), advice));
                }
            }
        }
        Ok(key)
    }

    fn value(&self, column: usize, word: Word<'_>) -> Result<u128, ImportError> {
        let column = &self.columns[column];
        if let Some((family, address)) = address::parse(word.text.as_bytes())
            && family.width() == column.width
        {
            return Ok(address);
        }
        if matches!(column.name, "in_port" | "out_port") {
            if let Some((_, number)) = self.interfaces.iter().find(|(name, _)| name == word.text) {
                return Ok((*number).into());
            }
            if !self.bound && word.text != "0" {
                let what = format!("`{}` is no value of {}", shown(word.text), column.name);
                return Err(word.error(what, "name an interface that the rules name, or write 0 for another"));
            }
        }
        let most = host_mask(column.width, 0);
        let number = crate::text::parse_number(word.text).map(u128::from).filter(|number| *number <= most);
        number.ok_or_else(|| {
            let what = format!("`{}` is no value of {}", shown(word.text), column.name);
            word.error(what, format!("a value has {} bits", column.width))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::iptables::{self, ChainOptions};

    #[test]
    fn columns_beyond_five_are_named() {
        let dump = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i eth0 -p tcp --syn -j ACCEPT\nCOMMIT\n";
        let rules = iptables::read(dump.as_bytes(), &ChainOptions::default()).unwrap();
        let keys = rules
            .keys(b"# a\n10.0.0.1 2 3 4 6 tcp_flags=0x2 in_port=eth0 out_port=7 5 -1\n1 2 3 4 6\n")
            .unwrap();
        assert_eq!(keys, [vec![0x0a00_0001, 2, 3, 4, 6, 2, 1, 0], vec![1, 2, 3, 4, 6, 0, 0, 0]]);
        for (text, column, part) in [
            ("1 2 3 4\n", 8, "4 fields"),
            ("1 2 3 4 256\n", 9, "no value of proto"),
            ("::1 2 3 4 5\n", 1, "no value of src"),
            ("1 2 3 4 5 colour=3\n", 11, "no column `colour`"),
            ("1 2 3 4 5 in_port=eth7\n", 19, "no value of in_port"),
            ("1 2 3 4 5 x\n", 11, "neither a column nor a number"),
            ("1 2 3 4 5", 10, "cut off"),
        ] {
            let error = rules.keys(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.column), (1, column), "{error}");
            assert!(error.what.contains(part), "{error}");
        }
    }
}
