//! Readable listings of the tokens and of the syntax tree, for `compile --show tokens|tree`.

mod policies;
mod words;

pub(crate) use policies::limit_text;

use crate::ast::*;
use crate::lexer::lex;
use crate::token::TokenKind;
use ir::source::FileId;

/// One line a token: line, column, class and text.
pub fn show_tokens(text: &str) -> String {
    let (tokens, _) = lex(FileId::default(), text);
    let mut out = String::new();
    let (mut line, mut line_start, mut seen) = (1, 0, 0);
    for token in tokens {
        let start = token.span.start as usize;
        let between = text.get(seen..start).unwrap_or("");
        line += between.matches('\n').count();
        line_start = between.rfind('\n').map_or(line_start, |at| seen + at + 1);
        seen = start;
        let column = text.get(line_start..start).unwrap_or("").chars().count() + 1;
        let place = format!("{line}:{column}");
        let class = if token.kind == TokenKind::End { "end" } else { token.kind.class() };
        let shown = text.get(start..token.span.end as usize).unwrap_or("");
        out.push_str(format!("{place:<9}{class:<14}{shown}").trim_end());
        out.push('\n');
    }
    out
}

/// The tree as indented lines; expressions on one line, in brackets as they bind.
pub fn show_tree(file: &File) -> String {
    let mut listing = Listing { out: String::new(), depth: 0 };
    for import in &file.imports {
        let path: Vec<&str> = import.path.iter().map(|name| name.text.as_str()).collect();
        listing.line(format!("import {} : {}", path.join("."), words::names(&import.names)));
    }
    file.items.iter().for_each(|item| listing.item(item));
    listing.out
}

struct Listing {
    out: String,
    depth: usize,
}

impl Listing {
    fn line(&mut self, text: impl AsRef<str>) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    fn nested(&mut self, inner: impl FnOnce(&mut Self)) {
        self.depth += 1;
        inner(self);
        self.depth -= 1;
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(it) => {
                let ranged = |(low, high): &(Expr, Option<Expr>)| {
                    let high = high.as_ref().map(words::expr).unwrap_or_default();
                    format!(" in {}..{high}", words::expr(low))
                };
                self.line(format!(
                    "{}const {} : {}{} = {}",
                    settable(it.settable),
                    it.name.text,
                    words::ty(&it.ty),
                    it.range.as_ref().map(ranged).unwrap_or_default(),
                    words::expr(&it.value)
                ));
            }
            Item::Enum(it) => {
                self.line(format!("enum {} : {}", it.name.text, words::ty(&it.ty)));
                self.nested(|list| {
                    it.members.iter().for_each(|(name, value)| {
                        list.line(format!("{} = {}", name.text, words::expr(value)))
                    });
                });
            }
            Item::Layout(it) => self.layout(it),
            Item::Table(it) => self.table(it),
            Item::Counter(it) => {
                self.line(format!("counter {}{}", it.name.text, sized(&it.size)));
            }
            Item::Meter(it) => {
                self.line(format!("meter {}{} : {}", it.name.text, sized(&it.size), it.unit.text));
                self.nested(|list| {
                    for (name, value) in &it.rates {
                        list.line(format!("{} {}", name.text, words::expr(value)));
                    }
                });
            }
            Item::Register(it) => {
                self.line(format!("register {}{} : {}", it.name.text, sized(&it.size), words::ty(&it.ty)));
            }
            Item::Pool(it) => {
                let (types, ranges) = (words::types(&it.types), words::entry_keys(&it.ranges));
                let settable = settable(it.settable);
                self.line(format!("{settable}pool {} : ({types}) {{ {ranges} }}", it.name.text));
            }
            Item::Group(it) => self.group(it),
            Item::Reason(it) => self.line(format!("reason {} {:?}", it.name.text, it.help)),
            Item::Function(it) => {
                self.line(format!(
                    "fn {} {} -> {}",
                    it.name.text,
                    words::params(&it.params),
                    words::values(&it.result)
                ));
                self.nested(|list| list.line(words::expr(&it.value)));
            }
            Item::Stage(it) => self.stage(it),
            Item::Extern(it) => self.external(it),
            Item::Policy(it) => self.policy(it),
            Item::Event(it) => {
                self.line(format!("event {} {}", it.name.text, words::params(&it.params)));
                self.block(&it.body);
            }
            Item::Every(it) => {
                self.line(format!("every {}", words::expr(&it.period)));
                self.block(&it.body);
            }
            Item::Order(_) => self.line("order fragments"),
            Item::Test(it) => {
                self.line(format!("test {:?}", it.name));
                self.nested(|list| it.steps.iter().for_each(|step| list.line(words::step(step))));
            }
        }
    }

    fn layout(&mut self, it: &Layout) {
        self.line(format!("layout {}", it.name.text));
        self.nested(|list| it.fields.iter().for_each(|field| list.line(words::field(field))));
        if let Some(next) = &it.next {
            let when =
                next.when.as_ref().map(|when| format!(" when {}", words::expr(when))).unwrap_or_default();
            self.nested(|list| {
                list.line(format!("next {}{when}", next.selector.text));
                list.nested(|list| {
                    for (values, layout) in &next.targets {
                        let values: Vec<String> = values.iter().map(words::expr).collect();
                        list.line(format!("{} => {}", values.join(" | "), layout.text));
                    }
                });
            });
        }
        if let Some(pseudo) = &it.pseudo {
            self.nested(|list| list.line(words::pseudo(pseudo)));
        }
    }

    fn table(&mut self, it: &Table) {
        let keys: Vec<String> = it
            .keys
            .iter()
            .map(|(name, ty)| match name {
                Some(name) => format!("{}: {}", name.text, words::ty(ty)),
                None => words::ty(ty),
            })
            .collect();
        let value = match &it.value {
            TableValue::Nothing => String::new(),
            TableValue::Data(types) => {
                format!(" -> ({})", types.iter().map(words::ty).collect::<Vec<_>>().join(", "))
            }
            TableValue::Variants(variants) => {
                let shown =
                    variants.iter().map(|(name, params)| format!("{}{}", name.text, words::params(params)));
                format!(" -> {{ {} }}", shown.collect::<Vec<_>>().join(", "))
            }
        };
        self.line(format!("table {} : {} ({}){value}", it.name.text, it.kind.text, keys.join(", ")));
        self.nested(|list| {
            for property in &it.properties {
                match property {
                    Property::Capacity(value) => list.line(format!("capacity {}", words::expr(value))),
                    Property::Age(value) => list.line(format!("age {}", words::expr(value))),
                    Property::Idle(value) => list.line(format!("idle {}", words::expr(value))),
                    Property::Evict(name) => list.line(format!("evict {}", name.text)),
                    Property::Choose(name) => list.line(format!("choose {}", name.text)),
                    Property::Answer(name) => list.line(format!("answer {}", name.text)),
                    Property::Counted(counted) => {
                        list.line(if counted.times { "counted times" } else { "counted" });
                    }
                    Property::Secret(_) => list.line("secret"),
                    Property::Expires(name) => list.line(format!("expires {}", name.text)),
                    Property::Releases(name) => list.line(format!("releases {}", name.text)),
                    Property::From(EntryFile { path, format, options, .. }) => {
                        let format = format.as_ref().map(|format| format!(" as {}", format.text));
                        list.line(format!("from {path:?}{}", format.unwrap_or_default()));
                        list.nested(|list| options.iter().for_each(|option| file_option(list, option)));
                    }
                    Property::Default(value) => list.line(format!("default => {}", words::expr(value))),
                    Property::Entries(entries) => {
                        list.line("entries");
                        list.nested(|list| {
                            for entry in entries {
                                let value =
                                    entry.value.as_ref().map(|value| format!(" => {}", words::expr(value)));
                                let priority = words::priority(entry.priority.as_ref());
                                list.line(format!(
                                    "{}{}{}",
                                    words::entry_keys(&entry.keys),
                                    priority,
                                    value.unwrap_or_default()
                                ));
                            }
                        });
                    }
                }
            }
        });
    }

    fn group(&mut self, it: &Group) {
        self.line(format!("group {}{} : ({})", it.name.text, sized(&it.size), words::types(&it.types)));
        self.nested(|list| {
            for property in &it.properties {
                match property {
                    GroupProperty::Buckets(value) => list.line(format!("buckets {}", words::expr(value))),
                    GroupProperty::Capacity(value) => list.line(format!("capacity {}", words::expr(value))),
                    GroupProperty::From(path, _) => list.line(format!("from {path:?}")),
                    GroupProperty::Members(members) => {
                        list.line("members");
                        list.nested(|list| {
                            members.iter().for_each(|member| list.line(words::member(member)))
                        });
                    }
                }
            }
        });
    }

    fn stage(&mut self, it: &Stage) {
        let start = match (it.start, it.steers) {
            (true, _) => "start ",
            (_, true) => "steer ",
            _ => "",
        };
        let head = match &it.header {
            Some((name, layout)) => format!("decoder {} [{}: {}]", it.name.text, name.text, layout.text),
            None => format!("stage {}", it.name.text),
        };
        let cap = it.cap.as_ref().map(|cap| format!(" cap {}", words::expr(cap))).unwrap_or_default();
        let requires = words::requires(&it.requires);
        self.line(format!("{start}{head} {}{cap}{requires}", words::params(&it.params)));
        self.block(&it.body);
    }

    fn external(&mut self, it: &Extern) {
        let requires = words::requires(&it.requires);
        self.line(format!("extern stage {} {}{requires}", it.name.text, words::params(&it.params)));
        if let Some(body) = &it.body {
            self.block(body);
        }
    }

    fn block(&mut self, block: &Block) {
        self.nested(|list| block.statements.iter().for_each(|statement| list.statement(statement)));
    }

    fn otherwise(&mut self, block: &Option<Block>) {
        if let Some(block) = block {
            self.line("else");
            self.block(block);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::If(condition, then, otherwise) => {
                self.line(format!("if {}", words::expr(condition)));
                self.block(then);
                self.otherwise(otherwise);
            }
            StmtKind::Match(subject, arms) => {
                self.line(format!("match {}", words::expr(subject)));
                self.nested(|list| {
                    for arm in arms {
                        let guard = arm.guard.as_ref().map(|guard| format!(" if {}", words::expr(guard)));
                        list.line(format!(
                            "{}{} =>",
                            words::pattern(&arm.pattern),
                            guard.unwrap_or_default()
                        ));
                        list.block(&arm.body);
                    }
                });
            }
            StmtKind::For(name, first, last, body) => {
                self.line(format!("for {} in {}..{}", name.text, words::expr(first), words::expr(last)));
                self.block(body);
            }
            StmtKind::Walk { name, view, layout, body } => {
                self.line(format!("for {} in {} as {}", name.text, words::expr(view), layout.text));
                self.block(body);
            }
            StmtKind::Learn(write, otherwise) => {
                self.line(format!("learn {}", words::write(write)));
                self.otherwise(otherwise);
            }
            StmtKind::Insert(write, otherwise) => {
                self.line(format!("insert {}", words::write(write)));
                self.otherwise(otherwise);
            }
            StmtKind::LearnTogether(writes, otherwise) => {
                self.line("learn together");
                self.nested(|list| writes.iter().for_each(|write| list.line(words::write(write))));
                self.otherwise(otherwise);
            }
            simple => self.line(words::simple_statement(simple)),
        }
    }
}

/// The word before what may have a value from outside.
fn settable(settable: bool) -> &'static str {
    if settable { "settable " } else { "" }
}

/// The size of what has several cells.
fn sized(size: &Option<Expr>) -> String {
    size.as_ref().map(|size| format!(" [{}]", words::expr(size))).unwrap_or_default()
}

/// What to read of a file.
fn file_option(list: &mut Listing, option: &FileOption) {
    match option {
        FileOption::Family(name) => list.line(format!("family {}", name.text)),
        FileOption::Table(name) => list.line(format!("table {:?}", name.text)),
        FileOption::Chain(name) => list.line(format!("chain {:?}", name.text)),
        FileOption::FirstPackets(_) => list.line("first_packets"),
        FileOption::SkipTitle(_) => list.line("skip_title"),
        FileOption::SkipNat(_) => list.line("skip_nat"),
        FileOption::SkipMarks(_) => list.line("skip_marks"),
        FileOption::Tables(tables, _) => {
            for TableText { name, path, .. } in tables {
                list.line(format!("table {:?} = {:?}", name.text, path.text));
            }
        }
        FileOption::Interfaces(bindings, _) => {
            for Binding { interface, port } in bindings {
                list.line(format!("interface {:?} = {}", interface.text, words::expr(port)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    #[test]
    fn tokens_are_listed_with_their_place() {
        let shown = show_tokens("let\n  x = 10.0.0.0/8 // net");
        assert_eq!(
            shown,
            "1:1      word          let\n2:3      word          x\n2:5      sign          =\n\
             2:7      IPv4 prefix   10.0.0.0/8\n2:18     comment       // net\n2:24     end\n"
        );
    }

    #[test]
    fn the_tree_shows_how_operators_bind() {
        let (tree, faults) = parse(
            FileId::default(),
            "stage a(x: u8) cap 2 { if x + 2 * 3 == 7 && !(x in 1..) { drop no } match t[x] { some p if p == 1 => send p, none => b(x) } }",
        );
        assert_eq!(faults, vec![]);
        assert_eq!(
            show_tree(&tree),
            "stage a (x: u8) cap 2\n  if (((x + (2 * 3)) == 7) && !(x in 1..))\n    drop no\n  match t[x]\n    some p if (p == 1) =>\n      send p\n    none =>\n      goto b(x)\n"
        );
    }
}
