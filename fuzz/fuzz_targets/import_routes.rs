//! Any bytes are refused by line as routes or a dump of a collector, or kept and written again as they are.
#![no_main]

use import::{cisco, mrt, routes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for routes in [routes::read(bytes), cisco::forwarding_table(bytes), mrt::read(bytes).map(|dump| dump.v4)]
    {
        match routes {
            Ok(routes) => assert_eq!(routes.entries.len(), routes.lines.len()),
            Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
        }
    }
    if let Ok(table) = routes::read(bytes) {
        let again = routes::read(routes::write(&table).as_bytes()).expect("what is written is read");
        assert_eq!((table.entries, table.next_hops), (again.entries, again.next_hops));
    }
});
