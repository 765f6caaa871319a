//! `ravelin table show`, `add`, `remove` and `replace`: the tables of a running gateway.

use super::{counts, files};
use crate::arguments::table_live::{AddArguments, RemoveArguments, ReplaceArguments, ShowTableArguments};
use crate::failure::Failure;
use crate::render;
use crate::render::diagnostic::hex;
use crate::render::quantity::{count, of};
use crate::render::table::{Side, table};
use client::answer::ListedValue;
use client::frame::LONGEST_REQUEST;
use client::message::{RefusalPart, TableRequest};
use client::{
    ClientError, ColumnSchema, GroupSchema, KeyMatch, ListedEntry, ProgramSchema, RequestRefusal,
    TableClient, TableEntry, TableSchema, text,
};
use gateway::ControlError;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// How many entries are asked for at once.
pub(super) const PART: u64 = 2048;
/// The longest text that is sent to be read, in bytes: a request has a few more.
const TEXT: usize = LONGEST_REQUEST - 16;

/// Connects to the gateway at a socket.
pub(super) fn connect(path: &Path) -> Result<TableClient, Failure> {
    TableClient::connect(path).map_err(|error| match error {
        ClientError::Connection(source) => {
            let path = path.display().to_string();
            Failure::from(match source.kind() {
                io::ErrorKind::PermissionDenied => ControlError::Permission { path, source },
                _ => ControlError::Connect { path, source },
            })
        }
        ClientError::Silent(seconds) => {
            ControlError::Silent { path: path.display().to_string(), seconds: seconds as f64 }.into()
        }
        other => failed(other),
    })
}

/// A failed request.
pub(super) fn failed(error: ClientError) -> Failure {
    Failure::Finding(error.to_string())
}

/// A table by its name.
pub(super) fn find<'a>(schema: &'a ProgramSchema, name: &str) -> Result<(u16, &'a TableSchema), Failure> {
    schema.table(name).ok_or_else(|| {
        let names: Vec<&str> = schema.tables.iter().map(|table| table.name.as_str()).collect();
        let there = if names.is_empty() { "no tables".to_owned() } else { names.join(", ") };
        Failure::Finding(format!("{} has no table `{name}`; it has {there}", schema.program))
    })
}

/// Runs `ravelin table show`.
pub(super) fn show(arguments: &ShowTableArguments, json: bool) -> Result<(), Failure> {
    let mut client = connect(&arguments.socket.control)?;
    let Some(name) = &arguments.table else { return Ok(describe(client.schema(), json)?) };
    if let Some((group, schema)) = client.schema().group(name) {
        let schema = schema.clone();
        return members(&mut client, group, &schema, json);
    }
    let (number, schema) = find(client.schema(), name).map_err(|failure| match &client.schema().untold {
        Some(why) => Failure::Finding(format!("{failure}; it may be a group: {why}")),
        None => failure,
    })?;
    let schema = schema.clone();
    if let Some(key) = &arguments.key {
        let read = entries(&mut client, number, key, true, None)?;
        let found: Result<Vec<Vec<ListedEntry>>, ClientError> =
            read.into_iter().map(|entry| client.find(number, entry.key, entry.priority)).collect();
        let found = found.map_err(failed)?.concat();
        if found.is_empty() {
            return Err(Failure::Finding(format!("`{name}` has no entry for {key}")));
        }
        return Ok(print(&schema, &found, json)?);
    }
    if arguments.counts {
        return counts::show(&mut client, number, &schema, arguments.worker, json);
    }
    let mut cursor = arguments.from.as_deref().map_or(Ok(Vec::new()), bytes)?;
    let (mut left, mut shown) = (arguments.most.unwrap_or(u64::MAX), 0);
    loop {
        let most = left.min(PART) as u32;
        let (listed, next) =
            client.list(number, arguments.worker.unwrap_or(0), most, cursor).map_err(failed)?;
        print(&schema, &listed, json)?;
        (left, shown) = (left - (listed.len() as u64).min(left), shown + listed.len() as u64);
        cursor = next;
        if cursor.is_empty() || left == 0 {
            break;
        }
    }
    let more = if cursor.is_empty() { String::new() } else { format!("; more with --from {}", hex(&cursor)) };
    anstream::eprintln!(
        "{}{more}",
        if shown == 1 { "1 entry".to_owned() } else { format!("{} entries", count(shown)) }
    );
    Ok(())
}

/// Prints the members of a group, or of all groups of one name.
fn members(client: &mut TableClient, group: u16, schema: &GroupSchema, json: bool) -> Result<(), Failure> {
    for index in 0..schema.size {
        for ListedValue { worker, columns } in client.members(group, index).map_err(failed)? {
            let values =
                schema.columns.iter().zip(&columns).map(|(column, value)| text::value(column, *value));
            let values: Vec<String> = values.collect();
            if json {
                render::line(&json!({ "index": index, "worker": worker, "member": values }))?;
                continue;
            }
            let member = if values.len() == 1 { values.concat() } else { format!("({})", values.join(", ")) };
            let member = if schema.size == 1 { member } else { format!("{index}: {member}") };
            render::text(&format!("{member}\n"))?;
        }
    }
    Ok(())
}

fn bytes(digits: &str) -> Result<Vec<u8>, Failure> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let read: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(pair).collect();
    read.filter(|_| digits.len().is_multiple_of(2) && digits.is_ascii())
        .ok_or_else(|| Failure::Usage(format!("--from: `{digits}` is no cursor that `table show` told")))
}

fn print(schema: &TableSchema, listed: &[ListedEntry], json: bool) -> io::Result<()> {
    if json {
        return listed.iter().try_for_each(|listed| render::line(&document(schema, listed)));
    }
    let lines = listed.iter().map(|listed| text::entry(schema, &listed.entry) + "\n");
    render::text(&lines.collect::<String>())
}

/// An entry for programs: its text, and its parts as numbers.
pub(super) fn document(schema: &TableSchema, listed: &ListedEntry) -> Value {
    let number =
        |number: &u128| u64::try_from(*number).map_or_else(|_| json!(number.to_string()), Value::from);
    let part = |part: &KeyMatch| match part {
        KeyMatch::Any => json!("any"),
        KeyMatch::Exact(exact) => number(exact),
        KeyMatch::Prefix { value, length } => json!({ "prefix": number(value), "length": length }),
        KeyMatch::Masked { value, mask } => json!({ "value": number(value), "mask": number(mask) }),
        KeyMatch::Range { low, high } => json!({ "from": number(low), "to": number(high) }),
        KeyMatch::Bytes { bytes, nocase, offset, depth } => {
            json!({ "hex": hex(bytes), "nocase": nocase, "offset": offset, "depth": depth })
        }
    };
    let entry = &listed.entry;
    let key: Vec<Value> = entry.key.iter().map(part).collect();
    let value: Vec<Value> = entry.value.iter().map(number).collect();
    json!({
        "entry": text::entry(schema, entry),
        "worker": listed.worker,
        "key": key,
        "priority": entry.priority,
        "value": value,
    })
}

/// Describes all tables.
fn describe(schema: &ProgramSchema, json: bool) -> io::Result<()> {
    if json {
        return render::json(schema);
    }
    if schema.tables.is_empty() {
        return render::text(&format!("{} has no tables\n", schema.program));
    }
    let rows = schema.tables.iter().map(|table| {
        // Where anything is refused, inserting is.
        let changes = table.refuses.insert.clone().unwrap_or_else(|| "yes".to_owned());
        let key = if table.keys.is_empty() { "bytes".to_owned() } else { columns(&table.keys) };
        let shape = [table.name.clone(), table.kind.clone(), key, columns(&table.values)];
        shape.into_iter().chain([count(table.capacity.into()), changes]).collect()
    });
    let headings = [
        Side::Left.columns(&["table", "kind", "key", "value"]),
        Side::Right.columns(&["capacity"]),
        Side::Wrapped.columns(&["changed from outside"]),
    ];
    let heading = format!(
        "{}, generation {}, {}\n\n",
        schema.program,
        schema.generation,
        of(schema.workers.into(), "worker")
    );
    render::text(&(heading + &table(&headings.concat(), rows.collect())))
}

fn columns(columns: &[ColumnSchema]) -> String {
    let column = |column: &ColumnSchema| {
        let kind = serde_json::to_value(column.kind).unwrap_or_default();
        let kind = match kind.as_str().unwrap_or_default() {
            "uint" => format!("u{}", column.bits),
            kind => kind.to_owned(),
        };
        if column.name.is_empty() { kind } else { format!("{}: {kind}", column.name) }
    };
    columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// The entries that a text means; a fault is shown at its place. `from` is the name of the file that the text
/// is from, and the number of its first line there.
pub(super) fn entries(
    client: &mut TableClient,
    table: u16,
    text: &str,
    keys: bool,
    from: Option<(&str, usize)>,
) -> Result<Vec<TableEntry>, Failure> {
    client.read(table, text, keys).map_err(|error| match error {
        ClientError::Refused(fault) if fault.place.part == RefusalPart::Text => {
            let at = (fault.place.index as usize).min(text.len());
            let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let line = text[begin..].lines().next().unwrap_or_default();
            let before = text[begin..at].chars().count();
            let place = from.map_or_else(String::new, |(name, first)| {
                format!("{name}:{}: ", first + text[..begin].matches('\n').count())
            });
            Failure::Finding(format!("{place}{}\n  {line}\n  {}^", fault.message, " ".repeat(before)))
        }
        other => failed(other),
    })
}

/// Runs `ravelin table add`.
pub(super) fn add(arguments: &AddArguments, json: bool) -> Result<(), Failure> {
    let mut client = connect(&arguments.socket.control)?;
    let table = find(client.schema(), &arguments.table)?.0;
    let mut changes = Vec::new();
    for text in &arguments.entries {
        for entry in entries(&mut client, table, text, false, None)? {
            let lifetime = arguments.lifetime;
            changes.push(match arguments.learn || lifetime.is_some() {
                true => TableRequest::Learn { table, entry, lifetime },
                false => TableRequest::Insert { table, entry },
            });
        }
    }
    change(&mut client, changes, "added", json)
}

/// Runs `ravelin table remove`.
pub(super) fn remove(arguments: &RemoveArguments, json: bool) -> Result<(), Failure> {
    let mut client = connect(&arguments.socket.control)?;
    let table = find(client.schema(), &arguments.table)?.0;
    let mut changes = Vec::new();
    for text in &arguments.keys {
        for TableEntry { key, priority, .. } in entries(&mut client, table, text, true, None)? {
            changes.push(TableRequest::Remove { table, key, priority });
        }
    }
    change(&mut client, changes, "removed", json)
}

/// Makes changes, and tells how many entries they changed, or why the first one was refused.
pub(super) fn change(
    client: &mut TableClient,
    changes: Vec<TableRequest>,
    what: &str,
    json: bool,
) -> Result<(), Failure> {
    let (mut done, mut refused, mut first) = (0_u64, 0_u64, None::<RequestRefusal>);
    let wanted = changes.len() as u64;
    let told = |_, told| match told {
        Ok(count) => done += u64::from(count),
        Err(fault) => {
            refused += 1;
            first.get_or_insert(fault);
        }
    };
    client.change(changes, told).map_err(failed)?;
    if let Some(fault) = first {
        let others =
            if wanted > 1 { format!(" ({refused} of {wanted} were refused)") } else { String::new() };
        return Err(Failure::Finding(format!("{}{others}", fault.message)));
    }
    if json {
        return Ok(render::json(&json!({ what: done }))?);
    }
    let there =
        if done < wanted { format!("; {} were not there", count(wanted - done)) } else { String::new() };
    Ok(render::text(&format!("{} {what}{there}\n", count(done)))?)
}

/// Runs `ravelin table replace`.
pub(super) fn replace(arguments: &ReplaceArguments, json: bool) -> Result<(), Failure> {
    // Standard input may take its time: the gateway is asked when it is there.
    let (name, text) = read(&arguments.file)?;
    let mut client = connect(&arguments.socket.control)?;
    let (table, schema) = find(client.schema(), &arguments.table)?;
    let schema = schema.clone();
    let (mut all, mut rest, mut line) = (Vec::new(), text.as_str(), 1);
    while !rest.is_empty() {
        let part = part(rest, TEXT).ok_or_else(|| {
            Failure::Finding(format!("{name}:{line}: the line is longer than {TEXT} bytes"))
        })?;
        all.extend(entries(&mut client, table, part, false, Some((&name, line)))?);
        line += part.matches('\n').count();
        rest = &rest[part.len()..];
    }
    let entries = client.replace(table, all.iter().cloned()).map_err(|error| match error {
        ClientError::Refused(fault) => match all.get(fault.place.entry as usize) {
            Some(entry) if fault.place.part != RefusalPart::Whole => {
                Failure::Finding(format!("{}\n  {}", fault.message, text::entry(&schema, entry)))
            }
            _ => Failure::Finding(fault.message),
        },
        other => failed(other),
    })?;
    if json {
        return Ok(render::json(&json!({ "entries": entries }))?);
    }
    Ok(render::text(&format!("`{}` has {} entries now\n", arguments.table, count(entries.into())))?)
}

/// The first lines of a text, with at most so many bytes: an entry ends with its line. `None` if the first
/// line is longer.
fn part(text: &str, most: usize) -> Option<&str> {
    if text.len() <= most {
        return Some(text);
    }
    let end = text.as_bytes()[..most].iter().rposition(|byte| *byte == b'\n')?;
    Some(&text[..=end])
}

/// The name of a file for people, and its text.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let bytes = files::read(&name)?;
    let name = if name == "-" { "standard input".to_owned() } else { name };
    let text = String::from_utf8(bytes);
    text.map_err(|_| Failure::Usage(format!("{name} is no text in UTF-8"))).map(|text| (name, text))
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_text_is_divided_at_the_ends_of_its_lines() {
        for (text, most, wanted) in [
            ("", 3, Some("")),
            ("ab", 3, Some("ab")),
            ("ab\n", 3, Some("ab\n")),
            ("ab\ncd", 3, Some("ab\n")),
            ("a\nb\ncd", 4, Some("a\nb\n")),
            ("abcd\n", 3, None),
            ("abc\n", 3, None),
            ("é\né\n", 4, Some("é\n")),
        ] {
            assert_eq!(part(text, most), wanted, "{text:?}");
        }
    }
}
