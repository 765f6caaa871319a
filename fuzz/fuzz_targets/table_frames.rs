//! Any bytes at the control socket are frames or an error, and a request that is understood is written again
//! as it was read.
#![no_main]

use client::answer::TableAnswer;
use client::frame::{LONGEST_REQUEST, TableFrame};
use client::message::TableRequest;
use client::{ColumnSchema, ColumnType, ProgramSchema, TableSchema};
use libfuzzer_sys::fuzz_target;

fn table(kind: &str, bits: &[u8]) -> TableSchema {
    let column = |bits: &u8| ColumnSchema {
        name: String::new(),
        kind: ColumnType::Uint,
        bits: *bits,
        names: Vec::new(),
    };
    TableSchema {
        name: kind.to_owned(),
        kind: kind.to_owned(),
        ranked: kind == "rules",
        keys: bits.iter().map(column).collect(),
        values: [1, 128].iter().map(column).collect(),
        capacity: 9,
        idle: None,
        age: None,
        counts: None,
        refuses: Default::default(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let tables = vec![table("exact", &[48]), table("rules", &[32, 7, 128]), table("patterns", &[])];
    let schema = ProgramSchema { tables, ..ProgramSchema::default() };
    let mut rest = bytes;
    while let Ok(Some((frame, taken))) = TableFrame::first(rest, LONGEST_REQUEST) {
        if let Ok(request) = TableRequest::read(frame, &schema) {
            let mut again = Vec::new();
            request.push(&mut again, frame.number, &schema).expect("it was read");
            let frame = TableFrame::first(&again, LONGEST_REQUEST).expect("a length").expect("whole").0;
            assert_eq!(TableRequest::read(frame, &schema), Ok(request));
        }
        for table in [None, Some(0), Some(1), Some(2)] {
            // An error is as good as an answer.
            let _ = TableAnswer::read(frame, &schema, table);
        }
        rest = &rest[taken..];
    }
});
