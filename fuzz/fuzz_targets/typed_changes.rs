//! Any bytes that `control` sends are a question or refused, and of changes of entries those alone are
//! admitted that a right is for: under its prefix, with values that fit, no more than it allows.
#![no_main]

use bundle::{KeyPrefix, TableRight};
use libfuzzer_sys::fuzz_target;
use messages::control::ControlQuestion;
use messages::frame;
use ravelin_core::granted::Granted;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"program "p"
slots 0
reason r0 "no_such_port" "the program sends to a port that does not exist"
reason r1 "lost" "no route"
table t0 "pairs" {
  key ("" uint:8, "" uint:8)
  value ("" uint:3, "" uint:2)
  capacity 8
  evict refuse
}
table t1 "routes" {
  lpm
  key ("" uint:16)
  value ("" uint:3)
  capacity 8
  evict refuse
}
table t2 "free" {
  key ("" uint:8)
  value ("" uint:3)
  capacity 8
  evict refuse
}
stage s0 "all"
manifest {
}

function f0 "packet" {
b0:
  stage s0
  drop r1
}
"#;
/// The most entries, and changes in a second.
const MOST: u32 = 3;

static READ: LazyLock<Arc<ir::Program>> = LazyLock::new(|| Arc::new(ir::read::read(PROGRAM).unwrap()));

fuzz_target!(|data: &[u8]| {
    let Ok(question) = frame::read::<ControlQuestion>(data) else { return };
    let again = frame::written(&question).unwrap();
    assert_eq!(frame::read::<ControlQuestion>(&again[4..]), Ok(question.clone()));
    let ControlQuestion::Change { changes, .. } = question else { return };
    // 16 bits of a key, of which the first two are 01.
    let right = |table: &str| TableRight {
        table: table.to_owned(),
        prefixes: vec![KeyPrefix::new(16, 2, 0x4000).unwrap()],
        most_entries: MOST,
        changes_per_second: MOST,
    };
    let begin = Instant::now();
    let mut granted = Granted::new(READ.clone(), &[right("pairs"), right("routes")], begin);
    let Ok(admitted) = granted.admit(&changes, begin + Duration::from_secs(2)) else { return };
    assert_eq!(admitted.len(), changes.len());
    for (one, change) in admitted.iter().zip(&changes) {
        let table = &READ.tables[one.table as usize];
        assert!(one.table < 2 && change.bits >> 14 == 1 && change.length >= 2);
        assert!(table.kind.takes(&table.keys, &one.entry.key));
        assert!(!one.inserts || table.takes_value(&one.entry.value));
    }
    granted.made(&admitted);
    assert!(granted.held().count() <= 2 * MOST as usize);
});
