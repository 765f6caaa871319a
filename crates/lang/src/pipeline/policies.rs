//! Writes a policy out as what the language has: for each hook a table of rules and a stage that asks it, and
//! a stage for what happens to packets. The checker fills the tables, since it knows the values of constants.
//!
//! ```text
//!                         +--> count, log, return, limit: asked again for the rules behind
//!                         |      |
//! goto edge.forward --> edge.forward (asks the table) --> edge.pass, edge.keep, edge.block, edge.reject
//! ```

use super::modules::{is_full, one_too_many};
use crate::ast::*;
use crate::check::policies::{
    BELOW, KeepReach, RowAction, asks_again, has_limits, limits_in, presence_of, rates_of, reject_number,
    table_of,
};
use crate::diagnostic::{Diagnostic, Findings};
use crate::limits::MOST_POLICY_ROUNDS;
use crate::rules_file::RulesFileReader;
use ir::source::{Sources, Span};
use tables::meter::Colour;

/// The number of a rule that a stage gets for a packet about which no rule decides.
const NO_RULE: u128 = 0;

// What a row says has names that no program can write, so that none of its constants and columns means
// another thing here.
const DOES: &str = ".does";
const KIND: &str = ".kind";
const RULE: &str = ".rule";
const ON: &str = ".below";
const OVER: &str = ".over";
const LIMIT: &str = ".limit";
const REACH: &str = ".reach";

const NAME_TEXT: &str = "name a text file by its path from the folder of the program";

/// Loads the files that policies take their rules from.
pub(super) fn load_rules(
    files: &mut [File],
    sources: &mut Sources,
    load: &dyn Fn(&str) -> Option<String>,
    reader: Option<RulesFileReader>,
    diagnostics: &mut Findings,
) {
    for item in files.iter_mut().flat_map(|file| &mut file.items) {
        let Item::Policy(PolicyDeclaration { file: Some(file), .. }) = item else { continue };
        if is_full(sources) {
            diagnostics.report(one_too_many(file.span));
        } else if let Some(text) = load(&file.path) {
            file.text = Some((sources.add(file.path.clone(), text.clone()), text));
        } else {
            let headline = format!("there is no text in `{}`", file.path);
            let fault = Diagnostic::error("E0571", headline, file.span, "the rules come from there");
            diagnostics.report(fault.help(NAME_TEXT));
        }
        let tables = file.options.iter_mut().filter_map(|option| match option {
            FileOption::Tables(tables, _) => Some(tables),
            _ => None,
        });
        for table in tables.flatten() {
            if is_full(sources) {
                diagnostics.report(one_too_many(table.path.span));
            } else if let Some(text) = load(&table.path.text) {
                sources.add(table.path.text.clone(), text.clone());
                table.text = Some(text);
            } else {
                let headline = format!("there is no text in `{}`", table.path.text);
                let label = "the addresses of a table come from there";
                let fault = Diagnostic::error("E0571", headline, table.path.span, label);
                diagnostics.report(fault.help(NAME_TEXT));
            }
        }
        file.limits = reader.map_or_else(Vec::new, |reader| limits_in(file, reader));
    }
}

/// Adds to each file what its policies stand for.
pub(super) fn write_out(files: &mut [File]) {
    let mut kinds = false;
    for file in files {
        let mut written = Vec::new();
        for item in &file.items {
            let Item::Policy(policy) = item else { continue };
            if !std::mem::replace(&mut kinds, true) {
                written.extend(enums(policy.name.span).map(Item::Enum));
            }
            written.extend(meters(policy).map(Item::Meter));
            for hook in &policy.hooks {
                let asking = Asking { policy, hook };
                written.push(Item::Table(asking.table()));
                written.extend(asking.stages().into_iter().map(Item::Stage));
            }
            written.extend(
                policy.outcomes.iter().filter_map(|outcome| acting(policy, outcome)).map(Item::Stage),
            );
        }
        file.items.extend(written);
    }
}

/// What tables of policies hold: `rule_action` says what is done, `reject_kind` what the sender is told, and
/// `keep_reach` where the packets of a kept connection pass, if the rules come from a file.
fn enums(span: Span) -> [Enum; 3] {
    let member = |name: &str, number: u128| (named(name, span), Expr { kind: ExprKind::Int(number), span });
    let actions = RowAction::ALL.map(|(action, name)| member(name, action as u128)).into();
    let kinds = (0..).zip(REJECTS).map(|(number, (name, _))| member(name, number)).collect();
    let reaches = KeepReach::ALL.map(|(reach, name)| member(name, reach as u128)).into();
    [
        Enum { name: named(RULE_ACTION, span), ty: uint(8, span), members: actions },
        Enum { name: named(REJECT_KIND, span), ty: uint(16, span), members: kinds },
        Enum { name: named(KEEP_REACH, span), ty: uint(8, span), members: reaches },
    ]
}

/// The meters of a policy: one for each rate, with a cell for each rule.
fn meters(policy: &PolicyDeclaration) -> impl Iterator<Item = Meter> {
    rates_of(policy).into_iter().map(|rate| {
        let span = rate.limit.span;
        let cells = Expr { kind: ExprKind::Int(rate.rules.len() as u128), span };
        Meter {
            name: named(&rate.meter(policy), span),
            size: Some(cells),
            unit: named(if rate.limit.bytes { "bytes" } else { "packets" }, span),
            period: rate.limit.seconds,
            rates: vec![
                (named("committed", span), number_of(&rate.limit.rate, 64)),
                (named("burst", span), number_of(&rate.limit.burst, 32)),
            ],
            span,
        }
    })
}

/// A number or constant, whatever its width.
fn number_of(number: &LimitNumber, width: u32) -> Expr {
    let plain = number.expression();
    match number {
        LimitNumber::Int(..) => plain,
        LimitNumber::Constant(name) => {
            let span = name.span;
            Expr { kind: ExprKind::Cast(Box::new(plain), CastMode::Exact, uint(width, span)), span }
        }
    }
}

const RULE_ACTION: &str = "rule_action";
const REJECT_KIND: &str = "reject_kind";
const KEEP_REACH: &str = "keep_reach";

/// The stage that does with packets what the program says, with all columns, and the number of the rule.
fn acting(policy: &PolicyDeclaration, outcome: &PolicyOutcome) -> Option<Stage> {
    if outcome.word.text == "log" {
        return None;
    }
    let mut params = params(policy);
    if outcome.word.text == "reject" {
        params
            .push(Param { name: named("kind", outcome.word.span), ty: kind(REJECT_KIND, outcome.word.span) });
    }
    if outcome.word.text == "keep" && policy.file.is_some() {
        params
            .push(Param { name: named("reach", outcome.word.span), ty: kind(KEEP_REACH, outcome.word.span) });
    }
    params.push(Param { name: named("rule", outcome.word.span), ty: uint(32, outcome.word.span) });
    let params = distinct(params);
    let name = acting_name(policy, &outcome.word);
    Some(Stage::written(name, params, outcome.body.clone(), outcome.span))
}

fn acting_name(policy: &PolicyDeclaration, word: &Name) -> Name {
    named(&format!("{}.{}", policy.name.text, word.text), word.span)
}

/// What `goto` hands over: each column, and behind one with `absent` whether it is there.
fn params(policy: &PolicyDeclaration) -> Vec<Param> {
    let mut params = Vec::new();
    for PolicyColumn { param, presence } in &policy.columns {
        params.push(param.clone());
        if *presence == ColumnPresence::Optional {
            let span = param.name.span;
            params.push(Param { name: named(&presence_of(&param.name.text), span), ty: kind("bool", span) });
        }
    }
    distinct(params)
}

/// The same with a name that no program can write for each that is there before: the checker refuses such a
/// column, and no second error follows from that.
fn distinct(mut params: Vec<Param>) -> Vec<Param> {
    for at in 1..params.len() {
        if params[..at].iter().any(|before| before.name.text == params[at].name.text) {
            params[at].name.text.insert(0, '.');
        }
    }
    params
}

/// A hook of a policy.
struct Asking<'p> {
    policy: &'p PolicyDeclaration,
    hook: &'p PolicyHook,
}

impl Asking<'_> {
    /// The table of the hook: a key part for each column, a rule as its value.
    fn table(&self) -> Table {
        let span = self.hook.point.span;
        let mut keys: Vec<(Option<Name>, Type)> =
            self.columns().into_iter().map(|Param { name, ty }| (Some(name), ty)).collect();
        let counted = CountedProperty { times: self.policy.counted_times.is_some(), span };
        let mut properties = vec![Property::Choose(named("priority", span)), Property::Counted(counted)];
        properties.extend(self.policy.capacity.clone().map(Property::Capacity));
        let mut value = vec![kind(RULE_ACTION, span), kind(REJECT_KIND, span), uint(32, span)];
        if asks_again(self.policy) {
            keys.push((Some(named(BELOW, span)), uint(32, span)));
            value.push(uint(32, span));
        }
        if has_limits(self.policy) {
            value.extend([uint(32, span), uint(32, span)]);
        }
        if self.policy.file.is_some() {
            value.push(kind(KEEP_REACH, span));
        }
        let name = table_of(self.policy, self.hook);
        let value = TableValue::Data(value);
        Table { name, kind: named("rules", span), keys, value, properties, span: self.hook.span }
    }

    /// The columns that rules compare.
    fn columns(&self) -> Vec<Param> {
        let carried = |name: &Name| {
            let of_name = |column: &&PolicyColumn| column.param.name.text == name.text;
            self.policy.columns.iter().find(of_name).is_some_and(|it| it.presence == ColumnPresence::Carried)
        };
        params(self.policy).into_iter().filter(|param| !carried(&param.name)).collect()
    }

    /// The stage to which a program goes, and the one that asks again.
    fn stages(&self) -> Vec<Stage> {
        let span = self.hook.point.span;
        let name = table_of(self.policy, self.hook);
        let params = params(self.policy);
        if !asks_again(self.policy) {
            return vec![Stage::written(name, params, self.ask(), self.hook.span)];
        }
        let again = self.again();
        let mut args = words(&params);
        args.push(Expr { kind: ExprKind::Int(u128::from(u32::MAX)), span });
        let first = block(vec![goto(again.clone(), args)], span);
        let mut with_below = params.clone();
        with_below.push(Param { name: named(ON, span), ty: uint(32, span) });
        // The checker sets the cap, once it knows how many rules go on.
        let cap = Some(Expr { kind: ExprKind::Int(MOST_POLICY_ROUNDS as u128), span });
        let again = Stage { cap, ..Stage::written(again, with_below, self.ask(), self.hook.span) };
        vec![Stage::written(name, params, first, self.hook.span), again]
    }

    /// The name of the stage that asks for rules behind one.
    fn again(&self) -> Name {
        let Name { text, span } = table_of(self.policy, self.hook);
        Name { text: format!("{text}.again"), span }
    }

    /// Looks the packet up and goes on as the rule says.
    fn ask(&self) -> Block {
        let span = self.hook.point.span;
        let mut key = words(&self.columns());
        if asks_again(self.policy) {
            key.push(word(ON, span));
        }
        let subject = Expr { kind: ExprKind::Lookup(table_of(self.policy, self.hook), key), span };
        let mut arms = Vec::new();
        for PolicyOutcome { word, body, .. } in &self.policy.outcomes {
            let body = match word.text.as_str() {
                "log" => self.logged(body.clone(), word.span),
                "reject" => self.act(word, &[KIND, RULE]),
                "keep" if self.policy.file.is_some() => self.act(word, &[REACH, RULE]),
                _ => self.act(word, &[RULE]),
            };
            arms.push(arm(action(word), body));
        }
        let mut parts = [DOES, KIND, RULE].map(|name| pattern(name, span)).to_vec();
        if asks_again(self.policy) {
            parts.push(pattern(ON, span));
            for word in ["count", "return"] {
                arms.push(arm(action(&named(word, span)), block(vec![self.on(ON, span)], span)));
            }
        }
        if has_limits(self.policy) {
            parts.extend([OVER, LIMIT].map(|name| pattern(name, span)));
            arms.push(arm(action(&named("limit", span)), self.limited(span)));
        }
        if self.policy.file.is_some() {
            parts.push(pattern(REACH, span));
        }
        arms.push(arm(Pattern { kind: PatternKind::Any, span }, self.unknown()));
        let decide = Stmt { kind: StmtKind::Match(word(DOES, span), arms), span };
        let found = Pattern {
            kind: PatternKind::Some(Box::new(Pattern { kind: PatternKind::Tuple(parts), span })),
            span,
        };
        let arms = vec![
            arm(found, block(vec![decide], span)),
            arm(Pattern { kind: PatternKind::None, span }, self.otherwise()),
        ];
        block(vec![Stmt { kind: StmtKind::Match(subject, arms), span }], span)
    }

    /// Does what the program says of a packet that is logged, in a block of its own: what it names there
    /// hides no column from the rules behind.
    fn logged(&self, mut body: Block, span: Span) -> Block {
        let rule = StmtKind::Let(named("rule", span), None, word(RULE, span));
        body.statements.insert(0, Stmt { kind: rule, span });
        let every = Pattern { kind: PatternKind::Any, span };
        let own = Stmt { kind: StmtKind::Match(word(DOES, span), vec![arm(every, body)]), span };
        let then = if asks_again(self.policy) { vec![self.on(ON, span)] } else { self.unknown().statements };
        block([vec![own], then].concat(), span)
    }

    /// What a row from outside does whose action the program has nothing for: it blocks, where the program
    /// can.
    fn unknown(&self) -> Block {
        let blocks = self.policy.outcomes.iter().find(|outcome| outcome.word.text == "block");
        blocks.map_or_else(|| self.otherwise(), |blocks| self.act(&blocks.word, &[RULE]))
    }

    /// Asks the meter of a limit. A row from outside with a limit that there is not is beyond it.
    fn limited(&self, span: Span) -> Block {
        let number = |value: u32| Expr { kind: ExprKind::Int(value.into()), span };
        let beyond = || arm(Pattern { kind: PatternKind::Any, span }, block(vec![self.on(OVER, span)], span));
        let mut arms = Vec::new();
        for rate in rates_of(self.policy) {
            let last = rate.first + (rate.rules.len() as u32 - 1);
            let limits = PatternKind::Range(number(rate.first), Some(number(last)));
            let (left, right) = (Box::new(word(LIMIT, span)), Box::new(number(rate.first)));
            let cell = Expr { kind: ExprKind::Binary(BinaryOp::SubWrap, left, right), span };
            let colour = ExprKind::Lookup(named(&rate.meter(self.policy), span), vec![cell]);
            // As a number, since a program may mean something else by the names of colours.
            let colour = Box::new(Expr { kind: colour, span });
            let colour = Expr { kind: ExprKind::Cast(colour, CastMode::Exact, uint(2, span)), span };
            let green = Pattern { kind: PatternKind::Value(number(Colour::Green as u32)), span };
            let decide = vec![arm(green, block(vec![self.on(ON, span)], span)), beyond()];
            let decide = Stmt { kind: StmtKind::Match(colour, decide), span };
            arms.push(arm(Pattern { kind: limits, span }, block(vec![decide], span)));
        }
        arms.push(beyond());
        block(vec![Stmt { kind: StmtKind::Match(word(LIMIT, span), arms), span }], span)
    }

    /// Asks for the rules below a priority that the row of a rule says.
    fn on(&self, below: &str, span: Span) -> Stmt {
        let mut args = words(&params(self.policy));
        args.push(word(below, span));
        goto(self.again(), args)
    }

    /// Goes to the stage that acts, with what the table says of the rule.
    fn act(&self, outcome: &Name, found: &[&str]) -> Block {
        let span = outcome.span;
        let mut args = words(&params(self.policy));
        args.extend(found.iter().map(|text| word(text, span)));
        block(vec![goto(acting_name(self.policy, outcome), args)], span)
    }

    /// What happens where the table has no row, since the row of the default was taken away from outside.
    /// Where the rules come from a file, no packet passes then.
    fn otherwise(&self) -> Block {
        let span = self.hook.point.span;
        let blocks = self.policy.outcomes.iter().find(|outcome| outcome.word.text == "block");
        if let (Some(_), Some(blocks)) = (&self.policy.file, blocks) {
            let number = Expr { kind: ExprKind::Int(NO_RULE), span };
            let mut args = words(&params(self.policy));
            args.push(number);
            return block(vec![goto(acting_name(self.policy, &blocks.word), args)], span);
        }
        let known = |default: &&RuleDecision| {
            self.policy.outcomes.iter().any(|outcome| outcome.word.text == default.word.text)
        };
        let Some(RuleDecision { word: decision, reject }) = self.hook.default.as_ref().filter(known) else {
            // The checker refuses the policy; no second error follows from that.
            return block(vec![Stmt { kind: StmtKind::Flood, span }], span);
        };
        let number = |value| Expr { kind: ExprKind::Int(value), span };
        let mut args = words(&params(self.policy));
        let enumerated =
            |reject| ExprKind::Cast(Box::new(number(reject)), CastMode::Exact, kind(REJECT_KIND, span));
        args.extend(reject.map(|reject| Expr { kind: enumerated(reject_number(reject)), span }));
        args.push(number(NO_RULE));
        block(vec![goto(acting_name(self.policy, decision), args)], span)
    }
}

fn named(text: &str, span: Span) -> Name {
    Name { text: text.to_string(), span }
}

fn uint(width: u32, span: Span) -> Type {
    Type { kind: TypeKind::Uint(width), span }
}

fn kind(name: &str, span: Span) -> Type {
    Type { kind: TypeKind::Named(name.to_string()), span }
}

fn word(text: &str, span: Span) -> Expr {
    Expr { kind: ExprKind::Word(text.to_string()), span }
}

fn words(params: &[Param]) -> Vec<Expr> {
    params.iter().map(|Param { name, .. }| word(&name.text, name.span)).collect()
}

fn block(statements: Vec<Stmt>, span: Span) -> Block {
    Block { statements, span }
}

fn goto(stage: Name, args: Vec<Expr>) -> Stmt {
    let span = stage.span;
    Stmt { kind: StmtKind::Goto(stage, args), span }
}

fn arm(pattern: Pattern, body: Block) -> Arm {
    Arm { pattern, guard: None, body }
}

/// The pattern that gives a value a name.
fn pattern(name: &str, span: Span) -> Pattern {
    Pattern { kind: PatternKind::Word(named(name, span)), span }
}

/// The pattern of an action.
fn action(name: &Name) -> Pattern {
    let of = Box::new(word(RULE_ACTION, name.span));
    let value = Expr { kind: ExprKind::Field(of, name.clone()), span: name.span };
    Pattern { kind: PatternKind::Value(value), span: name.span }
}
