//! What was meant by a name that stands for nothing: a member without its enum, a flag, the layout of a
//! header in place of the header's name.

use super::hir::{HeaderId, LayoutId, Program};
use super::types::Type;
use super::{Checker, Context, unknown_name};
use crate::ast;
use ir::source::Span;

/// What a name that no header has could stand for where it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderUse {
    /// Only a header.
    Header,
    /// What stands in front of a dot: a header, or an enum.
    Base,
}

/// So many forms are listed where several could be meant.
const MOST_FORMS: usize = 4;

impl Checker<'_> {
    /// Reports a word that is no value, with what was meant if that can be told.
    pub(super) fn unknown_value(&mut self, name: &str, expected: Option<&Type>, span: Span) {
        let what = |label: String| unknown_name("value", name, span, label);
        if let Some((field, number)) = self.written_flag(name) {
            let fault = what(format!("`{name}` is a flag of `{field}`"));
            let fault =
                fault.help("a header is written with its flags as one number; several are joined by `|`");
            return self.report(fault.suggest(format!("write its number `{number}`"), span, number));
        }
        let members = self.members_named(name, expected);
        if let Some(first) = members.first() {
            let fault = what(format!("a member stands behind the name of its enum: `{first}`"));
            let fits = matches!(expected, None | Some(Type::Unknown | Type::Enum(..)));
            return self.report(if members.len() == 1 && fits {
                fault.suggest(format!("write `{first}`"), span, first)
            } else {
                fault.help(format!("there are: {}", members.join(", ")))
            });
        }
        if let Some((flag, number)) = self.read_flag(name) {
            let fault = what(format!("a flag stands behind its field: `{flag}`"));
            return self.report(if expected == Some(&Type::Bool) {
                fault.suggest(format!("write `{flag}`"), span, flag)
            } else {
                fault.help(format!(
                    "`{flag}` is true where the flag is set; its number in the field is `{number}`"
                ))
            });
        }
        let most = self.candidates();
        let locals = self.scope.locals.iter().flat_map(|scope| scope.keys().cloned());
        let mut known: Vec<String> = locals.take(most).collect();
        known.extend(self.names.constants.keys().take(most).map(|name| name.to_string()));
        known.extend(["in_port", "from_host", "length", "payload", "now"].map(String::from));
        if let Context::Layout(layout) = self.scope.context {
            known.extend(
                self.program.layouts[layout.0].fields.iter().take(most).map(|field| field.name.clone()),
            );
        }
        self.unknown("value", name, span, known.iter().map(String::as_str));
    }

    /// A flag of the field whose value is being written: the field, and the flag's number.
    fn written_flag(&self, name: &str) -> Option<(String, String)> {
        let (layout, index) = self.scope.written_field?;
        let number = self.program.flag_number(layout, index, name)?;
        let layout = &self.program.layouts[layout.0];
        Some((format!("{}.{}", layout.name, layout.fields[index].name), number))
    }

    /// Reports a flag that is written as if it were a field; false if it is none.
    pub(super) fn flag_for_field(
        &mut self,
        layout: LayoutId,
        name: &ast::Name,
        value: &ast::Expr,
        written: &[(ast::Name, ast::Expr)],
    ) -> bool {
        if self.candidates() == 0
            || !self.spent.likeness.allows(written.len() + self.program.layouts[layout.0].fields.len())
        {
            return false;
        }
        let header = &self.program.layouts[layout.0];
        let found = (0..header.fields.len())
            .find_map(|index| Some((index, self.program.flag_number(layout, index, &name.text)?)));
        let Some((index, number)) = found else { return false };
        let field = &header.fields[index].name;
        let same = |other: &str| {
            let flag = self.program.flag_number(layout, index, other).is_some();
            other == field || flag && header.fields.iter().all(|field| field.name != other)
        };
        let alone = written.iter().filter(|(other, _)| same(&other.text)).count() == 1;
        let what = format!("field of {}", header.name);
        let label = format!("this is a flag of `{field}`");
        let fault = unknown_name(&what, &name.text, name.span, label);
        let edit = format!("{field} {number}");
        let set = matches!(value.kind, ast::ExprKind::Int(1) | ast::ExprKind::Bool(true));
        self.report(if alone && set {
            fault.suggest(format!("write `{edit}`"), name.span.to(value.span), edit)
        } else {
            fault.help(format!("all flags are one number: `{edit}` where only this one is set"))
        });
        true
    }

    /// The members that are called so, with their enums: of the enum that is wanted, else of all.
    fn members_named(&mut self, name: &str, expected: Option<&Type>) -> Vec<String> {
        let wanted = if let Some(Type::Enum(id, ..)) = expected { Some(id.0) } else { None };
        let steps = match wanted {
            Some(id) => self.enums[id].members.len(),
            None => self.enums.iter().map(|one| 1 + one.members.len()).sum(),
        };
        if self.candidates() == 0 || !self.spent.likeness.allows(steps) {
            return Vec::new();
        }
        let enums = self.enums.iter().enumerate().filter(|(id, _)| wanted.is_none_or(|wanted| wanted == *id));
        let having = enums.filter(|(_, one)| one.members.iter().any(|(member, _)| member == name));
        let mut forms: Vec<String> = having.map(|(_, one)| format!("{}.{name}", one.name)).collect();
        forms.sort();
        forms.truncate(MOST_FORMS);
        forms
    }

    /// A flag of the header that is decoded or walked here: how it is read, and its number.
    fn read_flag(&mut self, name: &str) -> Option<(String, String)> {
        let walked = self.scope.walk_headers.iter().rev().map(|&(_, header)| header);
        let here: Vec<HeaderId> = walked.chain(self.scope.own_header).take(self.candidates()).collect();
        here.into_iter().find_map(|header| {
            let header = &self.program.headers[header.0];
            let fields = &self.program.layouts[header.layout.0].fields;
            let found = (0..if self.spent.likeness.allows(fields.len()) { fields.len() } else { 0 })
                .find_map(|index| Some((index, self.program.flag_number(header.layout, index, name)?)));
            let (index, number) = found?;
            Some((format!("{}.{}.{name}", header.name, fields[index].name), number))
        })
    }

    /// Reports a name that no header has, with the header that was meant if that can be told; `field` is read
    /// of it.
    pub(super) fn unknown_header(
        &mut self,
        wanted: HeaderUse,
        name: &str,
        field: Option<&ast::Name>,
        span: Span,
    ) {
        let what = match wanted {
            HeaderUse::Header => "header",
            HeaderUse::Base => "header or enum",
        };
        let fitting = self.headers_with(field);
        let meant = best(&fitting, |header| self.program.resemblance(name, header));
        if let Some(&first) = meant.iter().min() {
            let own = self.scope.own_header.filter(|own| meant.contains(own)).unwrap_or(first);
            let layout = &self.program.layout(own).name;
            let label =
                format!("the header of layout {layout} is called `{}`", self.program.headers[own.0].name);
            let mut names: Vec<&str> =
                meant.iter().map(|header| self.program.headers[header.0].name.as_str()).collect();
            names.sort_unstable();
            names.truncate(MOST_FORMS);
            let fault = unknown_name(what, name, span, label);
            let fault = if let [only] = names[..] {
                fault.suggest(format!("write `{only}`"), span, only)
            } else {
                fault.help(format!("there are: {}", names.join(", ")))
            };
            return self.report(fault);
        }
        let mut known: Vec<String> =
            fitting.iter().map(|header| self.program.headers[header.0].name.clone()).collect();
        if wanted == HeaderUse::Base {
            let enums = self.names.enums.keys().take(self.candidates());
            if self.spent.likeness.nearest(name, enums.map(String::as_str)).is_some() {
                known.extend(self.names.enums.keys().cloned());
            }
        }
        self.unknown(what, name, span, known.iter().map(String::as_str));
    }

    /// The headers that have this field; all of them if none has it, none if too much was looked for before.
    fn headers_with(&mut self, field: Option<&ast::Name>) -> Vec<HeaderId> {
        let walked = self.scope.walk_headers.iter().map(|&(_, header)| header);
        let all: Vec<HeaderId> =
            walked.chain(self.names.headers.values().copied()).take(self.candidates()).collect();
        let fields = |header: &HeaderId| &self.program.layout(*header).fields;
        let steps = |header| 1 + if field.is_some() { fields(header).len() } else { 0 };
        if !self.spent.likeness.allows(all.iter().map(steps).sum()) {
            return Vec::new();
        }
        let has =
            |name: &ast::Name, header: &HeaderId| fields(header).iter().any(|other| other.name == name.text);
        let having: Vec<HeaderId> =
            all.iter().copied().filter(|header| field.is_none_or(|name| has(name, header))).collect();
        if having.is_empty() { all } else { having }
    }
}

impl Program {
    /// The number of a field in which one flag alone is set.
    pub(super) fn flag_number(&self, layout: LayoutId, index: usize, name: &str) -> Option<String> {
        let field = &self.layouts[layout.0].fields[index];
        let position = field.flags.iter().rev().position(|flag| *flag == name)?;
        let digits = field.flags.len().div_ceil(4);
        Some(format!("0x{:0digits$x}", 1u128 << position))
    }

    /// How well a name suits a header: 2 for the name of its layout, 1 where one shortens the other.
    fn resemblance(&self, name: &str, header: HeaderId) -> u8 {
        let header = &self.headers[header.0];
        let layout = self.layouts[header.layout.0].name.as_str();
        let shortens = |other: &str| other.starts_with(name) || name.starts_with(other);
        if layout == name { 2 } else { u8::from(shortens(layout) || shortens(&header.name)) }
    }
}

/// Those that suit best, if any suits at all.
fn best(headers: &[HeaderId], suits: impl Fn(HeaderId) -> u8) -> Vec<HeaderId> {
    let most = headers.iter().map(|&header| suits(header)).max().unwrap_or(0);
    headers.iter().copied().filter(|&header| most > 0 && suits(header) == most).collect()
}
