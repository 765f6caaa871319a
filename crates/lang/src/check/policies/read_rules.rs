//! Has the file read that a policy takes its rules from, for its limits and for its rules, and finds the
//! places of its lines.

use super::rates::limits_of_file;
use crate::ast::{Binding, FileOption, Name, RuleLimit, RulesFile, TableText};
use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::rules_file::{FORMATS, RulesFileOptions, RulesFileReader, UnreadableLine};
use ir::source::{FileId, Span};
use policy::{LOOPBACK, Policy, RulePlace};

/// The last port that an interface of a file is given before its own is known.
const LAST_PORT: u16 = LOOPBACK - 1;

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

    /// How the file is to be read; reports what is said of it and cannot be.
    fn rules_file_options(&mut self, file: &'a RulesFile) -> Option<RulesFileOptions> {
        let interfaces = self.bound_interfaces(file.bindings());
        let taken = interfaces.iter().find(|(_, port)| *port == LOOPBACK);
        let loopback = taken
            .and_then(|(name, _)| file.bindings().iter().find(|binding| binding.interface.text == *name));
        if let Some(Binding { interface, port }) = loopback {
            let headline = format!("the interface `{}` is bound to {LOOPBACK}", interface.text);
            let fault = Diagnostic::error("E0535", headline, port.span, "in policies it stands for `lo`");
            self.report(fault.help("bind it to another port"));
        }
        let (options, faults) = options_of(file, interfaces);
        let known = loopback.is_none() && !faults.iter().any(|fault| matches!(fault, OptionFault::Format));
        for fault in faults {
            self.option_fault(file, &fault);
        }
        known.then_some(options)
    }

    fn option_fault(&mut self, file: &RulesFile, fault: &OptionFault<'_>) {
        match *fault {
            OptionFault::Format => {
                self.unknown("format of rules", &file.format.text, file.format.span, FORMATS.into_iter());
            }
            OptionFault::Twice(option) => {
                let headline = format!("`{}` is said twice", option.word());
                self.error("E0537", headline, option.span(), "it is said before");
            }
            OptionFault::Family(name) => {
                self.unknown("family", &name.text, name.span, ["ip4", "ip6"].into_iter());
            }
            OptionFault::Foreign(option) => {
                let headline = format!("a policy from a file of this format has no `{}`", option.word());
                let label = match option {
                    FileOption::Family(_) => "only `iptables` has, whose files are about one family",
                    FileOption::SkipTitle(_) => "only `npf` has",
                    FileOption::SkipNat(_) => "only `iptables` has, whose dumps have a table `nat`",
                    FileOption::SkipMarks(_) => "only `iptables` has, whose dumps mark packets",
                    FileOption::Tables(..) => {
                        "only `iptables`, `npf` and `pf` have, whose sets and tables may stand elsewhere"
                    }
                    _ => "a policy is the whole file",
                };
                self.error("E0537", headline, option.span(), label);
            }
            OptionFault::Table(name) => {
                let headline = format!("the table `{}` has two files", name.text);
                self.error("E0583", headline, name.span, "it has one already");
            }
        }
    }
}

/// What is said of a file and cannot be.
enum OptionFault<'a> {
    Format,
    Twice(&'a FileOption),
    Family(&'a Name),
    /// An option of another format.
    Foreign(&'a FileOption),
    /// A table with two files.
    Table(&'a Name),
}

/// How a file is to be read, with these ports of its interfaces.
fn options_of(file: &RulesFile, interfaces: Vec<(String, u16)>) -> (RulesFileOptions, Vec<OptionFault<'_>>) {
    let format = file.format.text.clone();
    let mut faults = Vec::new();
    let mut read = RulesFileOptions { format, interfaces, ..RulesFileOptions::default() };
    if !FORMATS.contains(&read.format.as_str()) {
        return (read, vec![OptionFault::Format]);
    }
    for (index, option) in file.options.iter().enumerate() {
        if file.options[..index].iter().any(|before| before.word() == option.word()) {
            faults.push(OptionFault::Twice(option));
            continue;
        }
        match option {
            FileOption::Family(name) if read.format == "iptables" => match name.text.as_str() {
                "ip4" => read.family = Some(4),
                "ip6" => read.family = Some(6),
                _ => faults.push(OptionFault::Family(name)),
            },
            FileOption::SkipTitle(_) if read.format == "npf" => read.skip_title = true,
            FileOption::SkipNat(_) if read.format == "iptables" => read.skip_nat = true,
            FileOption::SkipMarks(_) if read.format == "iptables" => read.skip_marks = true,
            FileOption::Tables(tables, _) if matches!(read.format.as_str(), "iptables" | "npf" | "pf") => {
                for TableText { name, text, .. } in tables {
                    if read.tables.iter().any(|(known, _)| *known == name.text) {
                        faults.push(OptionFault::Table(name));
                    }
                    // That a file cannot be loaded is told where it is loaded.
                    read.tables.extend(text.clone().map(|text| (name.text.clone(), text)));
                }
            }
            FileOption::Interfaces(..) => {}
            other => faults.push(OptionFault::Foreign(other)),
        }
    }
    (read, faults)
}

/// The limits of the rules of a file, for which meters are declared before the ports are known that its
/// interfaces stand for. None where anything is wrong: the checker reads the file again, and tells.
pub(crate) fn limits_in(file: &RulesFile, RulesFileReader(read): RulesFileReader) -> Vec<RuleLimit> {
    let Some((id, text)) = &file.text else { return Vec::new() };
    // Beyond the last port the ports begin anew: limits do not depend on them.
    let ports = (1..=LAST_PORT).cycle();
    let names = file.bindings().iter().map(|binding| binding.interface.text.clone());
    let (options, faults) = options_of(file, names.zip(ports).collect());
    if !faults.is_empty() {
        return Vec::new();
    }
    read(text, &options)
        .map_or_else(|_| Vec::new(), |read| limits_of_file(&read.policy, &Places::of(*id, text)))
}

/// Where lines of a file stand in its text.
pub(super) struct Places<'t> {
    file: FileId,
    text: &'t str,
    begins: Vec<usize>,
}

impl<'t> Places<'t> {
    pub(super) fn of(file: FileId, text: &'t str) -> Places<'t> {
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
