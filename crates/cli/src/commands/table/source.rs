//! Rules from a file in any of the formats that hold rules.

use super::files::import_failure;
use crate::arguments::table::{RuleFormat, RuleSource};
use crate::failure::Failure;
use import::{ImportError, ImportedRules, Naming, cisco, classbench, iptables, nft};

/// The rules of a file, and the lines that were left out told on standard error.
pub(crate) fn load(file: &[u8], path: &str, source: &RuleSource) -> Result<ImportedRules, Failure> {
    let rules = match source.format.unwrap_or_else(|| recognise(file)) {
        RuleFormat::Classbench => classbench::read(file, &classbench::ClassBenchOptions::default()),
        RuleFormat::Iptables => iptables::read(file, &chain_options(source)),
        RuleFormat::Nft => nft::read(file, &chain_options(source)),
        RuleFormat::Ios => access_list(file, source)?,
    };
    let rules = rules.map_err(|error| import_failure(path, &error))?;
    for refused in &rules.refused {
        anstream::eprintln!("left out: {refused}");
    }
    Ok(rules)
}

/// Which format a file is in, by how it starts.
pub(crate) fn recognise(file: &[u8]) -> RuleFormat {
    let text = String::from_utf8_lossy(file);
    let starts = |line: &str| text.lines().any(|own| own.trim_start().starts_with(line));
    match text.trim_start().as_bytes().first() {
        Some(b'@') => RuleFormat::Classbench,
        Some(b'{') => RuleFormat::Nft,
        Some(b'*') => RuleFormat::Iptables,
        _ if starts("*") => RuleFormat::Iptables,
        _ if starts("access-list ") || starts("ip access-list ") => RuleFormat::Ios,
        _ => RuleFormat::Classbench,
    }
}

fn chain_options(source: &RuleSource) -> iptables::ChainOptions {
    iptables::ChainOptions {
        table: source.table.clone(),
        chain: source.chain.clone(),
        family: source.family,
        interfaces: Naming::Themselves(source.interfaces.clone()),
        first_packets: source.first_packets,
        lenient: source.lenient,
        ..iptables::ChainOptions::default()
    }
}

/// The wanted access list, or the only one.
fn access_list(file: &[u8], source: &RuleSource) -> Result<Result<ImportedRules, ImportError>, Failure> {
    let options = cisco::AccessListOptions { lenient: source.lenient };
    let lists = match cisco::access_lists(file, &options) {
        Ok(lists) => lists,
        Err(error) => return Ok(Err(error)),
    };
    let names: Vec<&str> = lists.iter().map(|list| list.name.as_str()).collect();
    let wanted = match (&source.chain, &names[..]) {
        (Some(name), _) => names.iter().position(|own| own == name),
        (None, [_]) => Some(0),
        (None, _) => None,
    };
    let Some(wanted) = wanted else {
        return Err(Failure::Usage(format!(
            "name one access list with --chain; there are: {}",
            names.join(", ")
        )));
    };
    Ok(Ok(lists[wanted].rules.clone()))
}
