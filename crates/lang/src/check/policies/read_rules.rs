//! Has the file read that a policy takes its rules from, and finds the places of its lines.

use crate::ast::{FileOption, RulesFile, TableText};
use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::rules_file::{FORMATS, RulesFileOptions, UnreadableLine};
use crate::source::{FileId, Span};
use policy::{Policy, RulePlace};

impl<'a> Checker<'a> {
    /// Has the file read; reports what cannot be kept.
    pub(super) fn read_rules(&mut self, file: &'a RulesFile) -> Option<(Policy, Places<'a>)> {
        let options = self.rules_file_options(file)?;
        let (id, text) = file.text.as_ref()?;
        let Some(reader) = self.rules_reader else {
            let label = "what compiles this program reads no files of rules";
            self.error("E0571", format!("`{}` is not read", file.path), file.span, label);
            return None;
        };
        let places = Places::of(*id, text);
        match (reader.0)(text, &options) {
            Ok(read) => {
                if read.skipped_title {
                    let span = places.span(RulePlace { line: 1, column: 1 });
                    let headline = "the first line of a file of rules is skipped, as a title";
                    let skipped = Diagnostic::warning("W0410", headline, span, "none of it is a rule");
                    self.report(skipped.place(file.span, "the rules come from there"));
                }
                Some((read.policy, places))
            }
            Err(lines) => {
                for UnreadableLine { line, column, what, advice } in lines {
                    let span = places.span(RulePlace { line, column });
                    let fault = Diagnostic::error("E0572", what, span, "this cannot be kept");
                    self.report(fault.place(file.span, "the rules come from there").help(advice));
                }
                None
            }
        }
    }

    fn rules_file_options(&mut self, file: &RulesFile) -> Option<RulesFileOptions> {
        let format = file.format.text.clone();
        if !FORMATS.contains(&format.as_str()) {
            self.unknown("format of rules", &format, file.format.span, FORMATS.into_iter());
            return None;
        }
        let mut read = RulesFileOptions { format, ..RulesFileOptions::default() };
        for (index, option) in file.options.iter().enumerate() {
            let word = option.word();
            if file.options[..index].iter().any(|before| before.word() == word) {
                let headline = format!("`{word}` is said twice");
                self.error("E0537", headline, option.span(), "it is said before");
                continue;
            }
            match option {
                FileOption::Family(name) if read.format == "iptables" => match name.text.as_str() {
                    "ip4" => read.family = Some(4),
                    "ip6" => read.family = Some(6),
                    other => self.unknown("family", other, name.span, ["ip4", "ip6"].into_iter()),
                },
                FileOption::SkipTitle(_) if read.format == "npf" => read.skip_title = true,
                FileOption::SkipNat(_) if read.format == "iptables" => read.skip_nat = true,
                FileOption::Tables(tables, _) if matches!(read.format.as_str(), "npf" | "pf") => {
                    read.tables = self.table_texts(tables);
                }
                FileOption::Interfaces(bindings, _) => read.interfaces = self.bound_interfaces(bindings),
                other => {
                    let headline = format!("a policy from a file of this format has no `{word}`");
                    let label = match other {
                        FileOption::Family(_) => "only `iptables` has, whose files are about one family",
                        FileOption::SkipTitle(_) => "only `npf` has",
                        FileOption::SkipNat(_) => "only `iptables` has, whose dumps have a table `nat`",
                        FileOption::Tables(..) => {
                            "only `npf` and `pf` have, whose tables may stand elsewhere"
                        }
                        _ => "a policy is the whole file",
                    };
                    self.error("E0537", headline, other.span(), label);
                }
            }
        }
        Some(read)
    }

    /// The tables whose addresses stand outside of the file, with their texts.
    fn table_texts(&mut self, tables: &[TableText]) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String)> = Vec::with_capacity(tables.len());
        for TableText { name, text, .. } in tables {
            if texts.iter().any(|(known, _)| *known == name.text) {
                let headline = format!("the table `{}` has two files", name.text);
                self.error("E0583", headline, name.span, "it has one already");
            }
            // That a file cannot be loaded is told where it is loaded.
            texts.extend(text.clone().map(|text| (name.text.clone(), text)));
        }
        texts
    }
}

/// Where lines of a file stand in its text.
pub(super) struct Places<'t> {
    file: FileId,
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Places<'t> {
    fn of(file: FileId, text: &'t str) -> Places<'t> {
        let begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Places { file, text, begins }
    }

    /// The rest of the line from a place on.
    pub(super) fn span(&self, place: RulePlace) -> Span {
        let line = (place.line as usize).saturating_sub(1).min(self.begins.len() - 1);
        let end = self.begins.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let mut start = (self.begins[line] + (place.column as usize).saturating_sub(1)).min(end);
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let written = self.text[start..end].trim_end();
        Span::new(self.file, start as u32, (start + written.len()) as u32)
    }
}
