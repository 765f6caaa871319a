//! Any bytes are refused by line as a dump of iptables, a ruleset of nftables or a configuration of IOS, or
//! kept; what is kept and can be written for nftables is read again.
#![no_main]

use import::{Naming, cisco, iptables, nft};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (lenient, first_packets, bytes) = input;
    let limit = 2_000;
    let dump = iptables::ChainOptions { lenient, first_packets, limit, ..Default::default() };
    let ruleset = nft::ChainOptions { lenient, first_packets, limit, ..Default::default() };
    for rules in [iptables::read(bytes, &dump), nft::read(bytes, &ruleset)] {
        match rules {
            Ok(rules) => {
                assert!(rules.rules.len() <= limit && (lenient || rules.refused.is_empty()));
                if let Ok(json) = nft::write_json(&rules, &nft::ExportLayout::default()) {
                    let interfaces = Naming::Ports(rules.interfaces.clone());
                    let options =
                        nft::ChainOptions { interfaces, limit: usize::MAX >> 16, ..Default::default() };
                    let again = nft::read(json.as_bytes(), &options).expect("what is written is read");
                    assert_eq!(rules.default, again.default);
                }
            }
            Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
        }
    }
    let _ = cisco::access_lists(bytes, &cisco::AccessListOptions { lenient });
});
