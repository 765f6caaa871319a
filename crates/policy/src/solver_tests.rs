//! The analysis beside z3, which gets the same policies as formulas over whole fields (SMT-LIB 2.6).

use crate::difference::difference;
use crate::field::{PacketField, Values};
use crate::model::{Hook, HookPoint, MatchOrder, Policy, Remembers, RuleAction, RuleCondition};
use crate::toy::policies;
use crate::why::DecidedPolicy;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A packet, and which packets there can be.
const PACKET: &str = "(declare-const path Int) (declare-const six Bool) (declare-const fragment Bool)
(declare-const src (_ BitVec 128)) (declare-const proto (_ BitVec 8)) (declare-const dport (_ BitVec 16))
(declare-const state (_ BitVec 3)) (declare-const out_state (_ BitVec 3)) (declare-const tcp_flags (_ BitVec 8)) (declare-const icmp_type (_ BitVec 8))
(declare-const in_port (_ BitVec 16)) (declare-const rate Bool)
(define-fun has_dport () Bool (and (not fragment)
  (or (= proto #x06) (= proto #x11) (= proto #x21) (= proto #x84) (= proto #x88))))
(define-fun has_tcp_flags () Bool (and (not fragment) (= proto #x06)))
(define-fun has_icmp_type () Bool (and (not fragment) (= proto (ite six #x3a #x01))))
(define-fun has_in_port () Bool (not (= path 2)))
(assert (and (>= path 0) (<= path 2) (bvule state #b100) (bvule out_state #b100) (not (= in_port #x0000))))
(assert (=> (not six) (= ((_ extract 127 32) src) #x00000000000000000000ffff)))\n";

/// The variable of a field, its width, and when a packet has it.
fn variable(field: PacketField) -> (&'static str, usize, &'static str) {
    match field {
        PacketField::Source => ("src", 128, "true"),
        PacketField::Protocol => ("proto", 8, "true"),
        PacketField::DestinationPort => ("dport", 16, "has_dport"),
        PacketField::State => ("state", 3, "true"),
        PacketField::OutState => ("out_state", 3, "(not (= path 1))"),
        PacketField::TcpFlags => ("tcp_flags", 8, "has_tcp_flags"),
        PacketField::IcmpType => ("icmp_type", 8, "has_icmp_type"),
        PacketField::InPort => ("in_port", 16, "has_in_port"),
        PacketField::LaterFragment => ("(ite fragment #b1 #b0)", 1, "true"),
        PacketField::Family => ("(ite six #b110 #b100)", 3, "true"),
        other => panic!("the small header has no {other:?}"),
    }
}

fn formula(condition: &RuleCondition) -> String {
    let each = |parts: &[RuleCondition]| parts.iter().map(formula).collect::<Vec<_>>().join(" ");
    match condition {
        RuleCondition::Holds(field, values) => {
            let (name, width, present) = variable(*field);
            let bits = |number: u128| format!("#b{number:0width$b}");
            let one = |values: &Values| match *values {
                Values::Range { low, high } => {
                    format!("(and (bvule {} {name}) (bvule {name} {}))", bits(low), bits(high))
                }
                Values::Masked { value, mask } => {
                    format!("(= (bvand {name} {}) {})", bits(mask), bits(value))
                }
            };
            format!("(and {present} (or false {}))", values.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        RuleCondition::Absent(field) => format!("(not {})", variable(*field).2),
        RuleCondition::All(parts) => format!("(and true {})", each(parts)),
        RuleCondition::Any(parts) => format!("(or false {})", each(parts)),
        RuleCondition::Not(inner) => format!("(not {})", formula(inner)),
        RuleCondition::Remembered(_) => "rate".to_owned(),
    }
}

/// Writes a policy in which the first match decides as functions of what follows.
struct Formulas<'a> {
    policy: &'a Policy,
    lead: &'a str,
    text: String,
    next: usize,
    /// The rules that are left out.
    gone: HashSet<(usize, usize)>,
}

/// What is known of a hook, as names of formulas.
struct HookFormulas {
    group: usize,
    default: RuleAction,
    /// Whether it is asked.
    asked: String,
    /// The number of the rule that decides, or -1.
    by: String,
    action: String,
}

impl Formulas<'_> {
    fn named(&mut self, sort: &str, formula: &str) -> String {
        self.next += 1;
        let name = format!("{}{}", self.lead, self.next);
        let _ = writeln!(self.text, "(define-fun {name} () {sort} {formula})");
        name
    }

    /// The number of the rule that decides from this one on; `rest` is what does behind the group.
    fn group(&mut self, index: usize, from: usize, rest: &str) -> String {
        let Some(rule) = self.policy.groups[index].rules.get(from) else { return rest.to_owned() };
        let behind = self.group(index, from + 1, rest);
        if self.gone.contains(&(index, from)) {
            return behind;
        }
        let inside = match rule.action {
            RuleAction::Continue => return behind,
            RuleAction::Return => rest.to_owned(),
            RuleAction::Jump(next) => self.group(next, 0, &behind),
            RuleAction::Goto(next) => self.group(next, 0, rest),
            _ => number(index, from).to_string(),
        };
        self.named("Int", &format!("(ite {} {inside} {behind})", formula(&rule.condition)))
    }

    fn at(point: HookPoint) -> &'static str {
        match point {
            HookPoint::In => "(not (= path 2))",
            HookPoint::Forward => "(= path 0)",
            HookPoint::ToGateway => "(= path 1)",
            HookPoint::FromGateway => "(= path 2)",
            HookPoint::Out => "(not (= path 1))",
        }
    }

    /// What a hook does where a rule decides, or its default.
    fn action(&mut self, by: &str, default: RuleAction) -> String {
        let mut actions = String::from("(- 1)");
        for (group, rules) in self.policy.groups.iter().enumerate() {
            for (index, rule) in rules.rules.iter().enumerate() {
                actions = format!("(ite (= by {}) {} {actions})", number(group, index), code(rule.action));
            }
        }
        self.named("Int", &format!("(let ((by {by})) (ite (= by (- 1)) {} {actions}))", code(default)))
    }

    /// Where a line decides, and without it something else would be done, or by one of the rules of `unfit`.
    fn needed(
        &mut self,
        line: &[(usize, usize)],
        unfit: &[(usize, usize)],
        hooks: &[HookFormulas],
    ) -> String {
        let keeps = self.policy.remembers.keeps();
        let effect =
            |action: &str| if keeps { action.to_owned() } else { format!("(ite (= {action} 1) 0 {action})") };
        self.gone.extend(line);
        let mut needed = String::from("(or false");
        for hook in hooks {
            let by = self.group(hook.group, 0, "(- 1)");
            let by = self.named("Int", &by);
            let action = self.action(&by, hook.default);
            let of_line =
                line.iter().map(|(group, rule)| format!("(= {} {})", hook.by, number(*group, *rule)));
            let of_line = of_line.collect::<Vec<String>>().join(" ");
            let mut differs = format!("(or (not (= {} {}))", effect(&hook.action), effect(&action));
            for (group, rule) in unfit {
                let _ = write!(differs, " (= {by} {})", number(*group, *rule));
            }
            differs.push(')');
            let _ = write!(needed, " (and {} (or false {of_line}) {differs})", hook.asked);
        }
        self.gone.clear();
        needed + ")"
    }

    /// What happens at last, and what happens at each hook.
    fn all(&mut self) -> (String, Vec<HookFormulas>) {
        use HookPoint as Point;
        // What is kept passes the points behind, where it is for the whole way.
        let most = if self.policy.remembers == Remembers::Kept { 0 } else { 1 };
        let (mut total, mut deciding) = ("0".to_owned(), Vec::new());
        for point in [Point::In, Point::Forward, Point::ToGateway, Point::FromGateway, Point::Out] {
            let hooks: Vec<Hook> =
                self.policy.hooks.iter().filter(|hook| hook.point == point).cloned().collect();
            let known = self.policy.remembers.asks(point).map_or("false".to_owned(), |field| {
                let (name, _, present) = variable(field);
                let followed = if self.policy.follows_icmp {
                    "true"
                } else {
                    "(not (or (= proto #x01) (= proto #x3a)))"
                };
                format!("(and {present} {followed} (or (= {name} #b001) (= {name} #b010)))")
            });
            for hook in hooks {
                let by = self.group(hook.group, 0, "(- 1)");
                let by = self.named("Int", &by);
                let asked = format!("(and {} (not {known}) (<= {total} {most}))", Self::at(point));
                let asked = self.named("Bool", &asked);
                let action = self.action(&by, hook.default);
                let both = format!("(ite (<= {action} 1) (ite (= 1 {total}) 1 {action}) {action})");
                total = self.named("Int", &format!("(ite {asked} {both} {total})"));
                deciding.push(HookFormulas { group: hook.group, default: hook.default, asked, by, action });
            }
        }
        (total, deciding)
    }
}

fn number(group: usize, rule: usize) -> usize {
    group * 100 + rule
}

fn code(action: RuleAction) -> usize {
    match action {
        RuleAction::Pass => 0,
        RuleAction::Keep => 1,
        RuleAction::Block => 2,
        _ => 3,
    }
}

/// The answers of z3 to a script; `None` if it is not there.
fn z3(script: &str) -> Option<Vec<String>> {
    let solver =
        Command::new("z3").args(["-in", "-smt2"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut solver = solver.ok()?;
    let mut input = solver.stdin.take().expect("piped");
    input.write_all(script.as_bytes()).expect("z3 reads");
    drop(input);
    let output = solver.wait_with_output().expect("z3 ends");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn z3_says_the_same_of_differences_and_of_rules_that_never_decide_or_are_redundant() {
    let mut runner = TestRunner::deterministic();
    let mut drawn = || {
        let mut policy = policies().new_tree(&mut runner).expect("a policy").current();
        for group in &mut policy.groups {
            group.order = MatchOrder::First;
        }
        policy
    };
    let (mut differ, mut rules, mut redundant) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..40 {
        let old = drawn();
        // Two policies of which one is made of the other are often the same.
        let mut new = old.clone();
        let changed = &mut new.groups[round % 3].rules;
        if changed.len() > 1 {
            changed.swap(0, 1);
        } else {
            new = drawn();
        }
        let both_keep = [&old, &new].iter().all(|policy| policy.remembers.keeps());
        let mut script = PACKET.to_owned();
        let mut totals = Vec::new();
        let mut deciding = Vec::new();
        for (lead, policy) in [("a", &old), ("b", &new)] {
            let (text, gone) = (String::new(), HashSet::new());
            let mut formulas = Formulas { policy, lead, text, next: 0, gone };
            let (total, hooks) = formulas.all();
            script.push_str(&formulas.text);
            totals.push(if both_keep { total } else { format!("(ite (= {total} 1) 0 {total})") });
            deciding.push(hooks);
        }
        let _ = writeln!(script, "(push) (assert (not (= {}))) (check-sat) (pop)", totals.join(" "));
        let mut expected = Vec::new();
        let unreached = DecidedPolicy::new(&old).expect("small").unreached().expect("small");
        for (group, list) in old.groups.iter().enumerate() {
            for index in (0..list.rules.len()).filter(|index| list.rules[*index].action.decides()) {
                let any = deciding[0].iter().fold(String::from("(or false"), |text, hook| {
                    format!("{text} (and {} (= {} {}))", hook.asked, hook.by, number(group, index))
                });
                let _ = writeln!(script, "(push) (assert {any})) (check-sat) (pop)");
                expected.push(!unreached.contains(&(group, index)));
            }
        }
        let lines = old.lines();
        let told = DecidedPolicy::new(&old).expect("small").order_findings(0).expect("small").redundant;
        let mut formulas =
            Formulas { policy: &old, lead: "c", text: String::new(), next: 0, gone: HashSet::new() };
        let depends = |(group, rule): &(usize, usize)| {
            old.groups[*group].rules[*rule].condition.depends_on_earlier_packets()
        };
        let rules_of = lines.iter().flatten().copied();
        let unfit: Vec<(usize, usize)> =
            rules_of.filter(|rule| unreached.contains(rule) || depends(rule)).collect();
        for (index, line) in lines.iter().enumerate() {
            let decides = |(group, rule): &(usize, usize)| old.groups[*group].rules[*rule].action.decides();
            let only_decides = line.iter().all(|rule| decides(rule) && !depends(rule));
            if only_decides && line.iter().any(|rule| !unreached.contains(rule)) {
                let needed = formulas.needed(line, &unfit, &deciding[0]);
                script.push_str(&std::mem::take(&mut formulas.text));
                let _ = writeln!(script, "(push) (assert {needed}) (check-sat) (pop)");
                let alike = told.iter().any(|told| told.line == index);
                expected.push(!alike);
                redundant.push(alike);
            }
        }
        let Some(answers) = z3(&script) else {
            assert!(std::env::var("CI").is_err(), "there is no `z3` (on Debian: apt-get install z3)");
            println!("skipped: there is no `z3` (on Debian: apt-get install z3)");
            return;
        };
        let answers: Vec<bool> = answers
            .iter()
            .map(|answer| match answer.as_str() {
                "sat" => true,
                "unsat" => false,
                other => panic!("z3 says {other}\n{script}"),
            })
            .collect();
        let differs = !difference(&old, &new, 1).expect("small").classes.is_empty();
        assert_eq!((answers[0], &answers[1..]), (differs, &expected[..]), "{old:?}\n{new:?}");
        differ.push(differs);
        rules.extend(expected);
    }
    for seen in [differ, rules, redundant] {
        assert!(seen.contains(&true) && seen.contains(&false), "the policies show one case only");
    }
}
