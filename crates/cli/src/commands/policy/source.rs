//! Policies from files, and how their lines are told.

use crate::arguments::policy::PolicySource;
use crate::commands::table::files::{import_failure, read};
use crate::failure::Failure;
use crate::render::quantity;
use import::ImportError;
use import::policies::{self, PolicyOptions};
use policy::{AnalysisFault, Policy, PolicyDecision, Reject, RuleAction, Step, Unreachable, tests_in};
use serde_json::{Value, json};

/// A policy and the file that it comes from.
pub(crate) struct Source {
    pub(crate) file: String,
    /// Its name, if it is one of a program.
    pub(super) name: Option<String>,
    /// What the tests beside its rules say behind `expect`, each with its line, from 1.
    pub(super) tests: Vec<(u32, String)>,
    pub(crate) policy: Policy,
    /// The lines that were left out, as the caller asked for that.
    left_out: Vec<ImportError>,
}

impl Source {
    /// Reads a file. `number` says which one of the command it is, from 0.
    ///
    /// # Errors
    /// It cannot be read, or holds lines that mean what no policy can say.
    pub(crate) fn load(file: &str, source: &PolicySource, number: usize) -> Result<Source, Failure> {
        let text = read(file)?;
        let format = match source.formats.get(number).or(source.formats.last()) {
            Some(format) => format.as_str(),
            None => policies::recognise(&text).ok_or_else(|| {
                let formats = policies::FORMATS.join(", ");
                Failure::Usage(format!(
                    "{file}: the format cannot be told from the text; say --as with one of {formats}"
                ))
            })?,
        };
        let mut tables = Vec::with_capacity(source.tables.len());
        for (name, contents) in &source.tables {
            let contents_text = String::from_utf8(read(contents)?).map_err(|_| {
                Failure::Usage(format!("{contents}: the file of the table {name} is no text"))
            })?;
            tables.push((name.clone(), contents_text));
        }
        let options = PolicyOptions {
            family: source.family,
            interfaces: source.interfaces.clone(),
            tables,
            skip_first_line: source.skip_title,
            skip_nat: source.skip_nat,
            skip_marks: source.skip_marks,
        };
        let read = policies::read(&text, format, &options).map_err(|error| import_failure(file, &error))?;
        if let Some(title) = &read.skipped {
            anstream::eprintln!("skipped: {file}: line 1 is none of the format: {}", title.escape_debug());
        }
        for refused in &read.refused {
            let lead = if source.lenient { "left out" } else { "refused" };
            anstream::eprintln!("{lead}: {file}: {refused}");
        }
        if !read.refused.is_empty() && !source.lenient {
            return Err(Failure::Finding(format!(
                "{file}: {} kept and {} refused, so nothing can be said of all packets; `ravelin policy` leaves these lines out with --lenient",
                quantity::of(read.kept as u64, "line"),
                quantity::of(read.refused.len() as u64, "line")
            )));
        }
        let words = String::from_utf8_lossy(&text);
        let tests = tests_in(&words).map(|(line, words)| (line, words.to_owned())).collect();
        let (file, left_out) = (file.to_owned(), read.refused);
        let read = Source { file, name: None, tests, policy: read.policy, left_out };
        Ok(read.with_interfaces(&source.interfaces))
    }

    /// A policy of a program.
    pub(super) fn of_program(file: &str, name: &str, policy: Policy, tests: &[(u32, String)]) -> Source {
        let (file, name, tests) = (file.to_owned(), Some(name.to_owned()), tests.to_vec());
        Source { file, name, tests, policy, left_out: Vec::new() }
    }

    /// The same with these names of ports.
    pub(super) fn with_interfaces(mut self, interfaces: &[(String, u16)]) -> Source {
        for bound in interfaces {
            if !self.policy.interfaces.contains(bound) {
                self.policy.interfaces.push(bound.clone());
            }
        }
        self
    }

    /// What it is called in sentences.
    pub(super) fn called(&self) -> String {
        self.name.as_ref().map_or_else(|| self.file.clone(), |name| format!("{}: policy {name}", self.file))
    }

    /// What is said of it, with its file and name, for programs.
    pub(super) fn document(&self, mut said: Value) -> Value {
        said["file"] = self.file.as_str().into();
        if let Some(name) = &self.name {
            said["policy"] = name.as_str().into();
        }
        if !self.left_out.is_empty() {
            said["left_out"] = self.left_out_document();
        }
        said
    }

    /// The lines that were left out, for programs.
    pub(super) fn left_out_document(&self) -> Value {
        let line = |error: &ImportError| {
            let ImportError { line, column, what, advice, .. } = error;
            json!({ "line": line, "column": column, "what": what, "advice": advice })
        };
        self.left_out.iter().map(line).collect()
    }

    /// A failure of the analysis.
    pub(super) fn fault(&self, fault: AnalysisFault) -> Failure {
        Failure::Finding(format!("{}: {fault}", self.called()))
    }

    /// What had a say, by its line.
    pub(super) fn step_text(&self, step: Step) -> String {
        match step {
            Step::Rule(group, index) => {
                let rule = &self.policy.groups[group].rules[index];
                match rule.place.line {
                    // A row of a running gateway, which stands in no file.
                    0 => format!("{}: {}", self.file, rule.text),
                    line => format!("{}:{line}: {}", self.file, rule.text),
                }
            }
            Step::Default(hook) => {
                let hook = &self.policy.hooks[hook];
                let group = &self.policy.groups[hook.group].name;
                format!(
                    "{}:{}: the default of {group}: {}",
                    self.file,
                    hook.place.line,
                    action_text(hook.default)
                )
            }
            Step::Remembered => format!("{}: the connection was let in before", self.file),
        }
    }

    /// What decides, by its line.
    pub(super) fn decision_text(&self, decision: PolicyDecision) -> String {
        match decision.by {
            Some(step) => format!("{} by {}", action_text(decision.action), self.step_text(step)),
            None => format!(
                "{}: {} has no rules for packets on this way",
                action_text(decision.action),
                self.file
            ),
        }
    }

    /// The same for programs.
    pub(super) fn step_document(&self, step: Step) -> Value {
        match step {
            Step::Rule(group, index) => {
                let rule = &self.policy.groups[group].rules[index];
                json!({
                    "kind": "rule", "group": self.policy.groups[group].name, "line": rule.place.line,
                    "text": &*rule.text, "action": self.action_of(rule.action),
                })
            }
            Step::Default(hook) => {
                let hook = &self.policy.hooks[hook];
                let group = &self.policy.groups[hook.group].name;
                json!({
                    "kind": "default", "group": group, "line": hook.place.line, "action": action_text(hook.default),
                })
            }
            Step::Remembered => json!({ "kind": "remembered" }),
        }
    }

    /// A decision for programs.
    pub(super) fn decision_document(&self, decision: PolicyDecision) -> Value {
        json!({
            "action": action_text(decision.action),
            "by": decision.by.map(|step| self.step_document(step)),
        })
    }

    /// What a rule does.
    pub(super) fn action_of(&self, action: RuleAction) -> String {
        match action {
            RuleAction::Jump(group) => format!("jump to {}", self.policy.groups[group].name),
            RuleAction::Goto(group) => format!("goto {}", self.policy.groups[group].name),
            other => action_text(other),
        }
    }
}

/// What happens to a packet.
pub(super) fn action_text(action: RuleAction) -> String {
    let told = match action {
        RuleAction::Pass => "pass",
        RuleAction::Keep => "pass and keep",
        RuleAction::Block => "block",
        RuleAction::Return => "return",
        RuleAction::Continue => "continue",
        RuleAction::Jump(_) => "jump",
        RuleAction::Goto(_) => "goto",
        RuleAction::Reject(kind) => return format!("reject with {}", reject_text(kind)),
    };
    told.to_owned()
}

fn reject_text(kind: Reject) -> String {
    match kind {
        Reject::TcpReset => "tcp reset".to_owned(),
        Reject::Icmp(code) => format!("icmp code {code}"),
        Reject::Icmpv6(code) => format!("icmpv6 code {code}"),
        Reject::ByProtocol => "tcp reset or port unreachable".to_owned(),
        Reject::Unreachable(Unreachable::NoRoute) => "no route".to_owned(),
        Reject::Unreachable(Unreachable::Host) => "host unreachable".to_owned(),
        Reject::Unreachable(Unreachable::Port) => "port unreachable".to_owned(),
        Reject::Unreachable(Unreachable::Prohibited) => "administratively prohibited".to_owned(),
    }
}

/// The documents of all policies of a command: of one alone its own.
pub(super) fn one_or_all(mut documents: Vec<Value>) -> Value {
    match documents.len() {
        1 => documents.remove(0),
        _ => json!({ "policies": documents }),
    }
}
