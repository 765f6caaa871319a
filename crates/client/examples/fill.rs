//! Inserts many entries into a table of a running gateway, lists them and removes them again, and prints how
//! long each took: `cargo run --release -p client --example fill -- SOCKET TABLE COUNT`.
//!
//! The table has one column of at least 32 bits as its key. Keys are numbers from 2^31 on.

use client::message::TableRequest;
use client::{KeyMatch, TableClient, TableEntry};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, name, count] = arguments.as_slice() else {
        return Err("fill SOCKET TABLE COUNT".into());
    };
    let count: u128 = count.parse()?;
    let mut client = TableClient::connect(Path::new(socket))?;
    let (table, schema) = client.schema().table(name).ok_or("there is no such table")?;
    let value = vec![1; schema.values.len()];
    let key = |number: u128| vec![KeyMatch::Exact((1 << 31) + number)];

    let begun = Instant::now();
    let insert = |number| {
        let entry = TableEntry { key: key(number), priority: 0, value: value.clone() };
        TableRequest::Insert { table, entry }
    };
    let mut refused = 0;
    client.change((0..count).map(insert), |_, told| refused += u64::from(told.is_err()))?;
    report("inserted", count, begun);

    let (begun, mut listed, mut cursor) = (Instant::now(), 0, Vec::new());
    loop {
        let (entries, next) = client.list(table, 0, 4096, cursor)?;
        listed += entries.len() as u128;
        cursor = next;
        if cursor.is_empty() {
            break;
        }
    }
    report("listed", listed, begun);

    let begun = Instant::now();
    let remove = |number| TableRequest::Remove { table, key: key(number), priority: 0 };
    client.change((0..count).map(remove), |_, _| {})?;
    report("removed", count, begun);
    println!("{refused} refused");
    Ok(())
}

fn report(what: &str, count: u128, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!("{count} {what} in {seconds:.2} s: {:.0} a second", count as f64 / seconds);
}
