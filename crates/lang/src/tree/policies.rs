//! The lines of a policy in the listing of a syntax tree.

use super::{Listing, file_option, words};
use crate::ast::*;
use policy::{MatchOrder, Reject};

impl Listing {
    pub(super) fn policy(&mut self, it: &PolicyDeclaration) {
        let column = |PolicyColumn { param, presence }: &PolicyColumn| {
            let presence = match presence {
                ColumnPresence::Always => "",
                ColumnPresence::Optional => " absent",
                ColumnPresence::Carried => " carried",
            };
            format!("{}: {}{presence}", param.name.text, words::ty(&param.ty))
        };
        let columns: Vec<String> = it.columns.iter().map(column).collect();
        self.line(format!("policy {} ({})", it.name.text, columns.join(", ")));
        self.nested(|list| {
            if let Some(RulesFile { path, format, options, .. }) = &it.file {
                list.line(format!("from {path:?} as {}", format.text));
                list.nested(|list| options.iter().for_each(|option| file_option(list, option)));
            }
            it.capacity.iter().for_each(|capacity| list.line(format!("capacity {}", words::expr(capacity))));
            it.counted_times.iter().for_each(|_| list.line("counted times"));
            for hook in &it.hooks {
                let group = hook.group.as_ref().map(|group| format!(" group {}", group.text));
                let default = hook.default.as_ref().map(|default| format!(" default {}", decision(default)));
                let (group, default) = (group.unwrap_or_default(), default.unwrap_or_default());
                list.line(format!("hook {}{group}{default}", hook.point.text));
            }
            for outcome in &it.outcomes {
                list.line(format!("{} =>", outcome.word.text));
                list.block(&outcome.body);
            }
            for group in &it.groups {
                let order = if group.order == MatchOrder::Last { " last" } else { "" };
                list.line(format!("group {}{order}", group.name.text));
                list.nested(|list| group.rules.iter().for_each(|rule| list.line(shown(rule))));
            }
        });
    }
}

fn decision(decision: &RuleDecision) -> String {
    let reject = decision.reject.map_or_else(String::new, |reject| match reject {
        Reject::Icmp(code) => format!(" icmp {code}"),
        Reject::Icmpv6(code) => format!(" icmpv6 {code}"),
        plain => {
            REJECTS.iter().filter(|(_, known)| *known == plain).map(|(word, _)| format!(" {word}")).collect()
        }
    });
    format!("{}{reject}", decision.word.text)
}

/// A limit as it is written.
pub(crate) fn limit_text(RuleLimit { rate, seconds, bytes, burst, .. }: &RuleLimit) -> String {
    let unit = if *bytes { " bytes" } else { "" };
    let time = rate_time(*seconds).map_or_else(|| format!("{seconds}s"), str::to_owned);
    format!(
        "limit {}{unit}/{time} burst {}",
        words::expr(&rate.expression()),
        words::expr(&burst.expression())
    )
}

fn shown(rule: &DeclaredRule) -> String {
    let action = match &rule.action {
        DeclaredAction::Decide(decided) => decision(decided),
        DeclaredAction::Jump(group) => format!("jump {}", group.text),
        DeclaredAction::Return => "return".to_string(),
        DeclaredAction::Continue => "count".to_string(),
    };
    let condition = |DeclaredCondition { column, values, negated, .. }: &DeclaredCondition| match values {
        None => format!("{} absent", column.text),
        Some(values) => {
            let not = if *negated { " not" } else { "" };
            let values: Vec<String> = values.iter().map(words::entry_key).collect();
            format!("{}{not} {}", column.text, values.join(" | "))
        }
    };
    let conditions: Vec<String> = rule.conditions.iter().map(condition).collect();
    let (log, last) = (if rule.log { "log " } else { "" }, if rule.decides_at_once { " final" } else { "" });
    let limit = rule.limit.as_ref().map_or_else(String::new, |limit| format!("{} ", limit_text(limit)));
    format!("{limit}{log}{action}{last} {}", conditions.join(", ")).trim_end().to_string()
}
