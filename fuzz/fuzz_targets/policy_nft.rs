//! Any bytes are refused at a place as a ruleset of nftables, or become a policy whose places are in the file
//! and that decides about every packet; what can be written of it is read again.
#![no_main]

use import::policies::{PolicyOptions, read, write_nft_json};
use libfuzzer_sys::fuzz_target;
use policy::{Packet, PacketField, Path, PolicyFault, evaluate};

fuzz_target!(|input: (&[u8], [Option<u16>; PacketField::ALL.len()], bool)| {
    let (bytes, values, remembered) = input;
    let options = PolicyOptions { interfaces: vec![("eth0".to_owned(), 1)], ..PolicyOptions::default() };
    let imported = match read(bytes, "nft", &options) {
        Ok(imported) => imported,
        Err(error) => return assert!(error.line > 0 && error.column > 0, "{error}"),
    };
    assert!(imported.refused.iter().all(|error| error.line > 0 && error.column > 0));
    if let Ok(text) = write_nft_json(&imported.policy) {
        let again = read(text.as_bytes(), "nft", &options).expect("what is written is read");
        assert!(again.refused.is_empty(), "{:?}\n{text}", again.refused);
    }
    let packet =
        PacketField::ALL.into_iter().zip(values).fold(Packet::default(), |packet, (field, value)| {
            packet.with(field, value.map(|value| u128::from(value) & field.most()))
        });
    for path in [Path::Forwarded, Path::ToGateway, Path::FromGateway] {
        let decided = evaluate(&imported.policy, path, &packet, &|_| remembered);
        assert_ne!(decided, Err(PolicyFault::TooDeep), "the reader refuses circles");
    }
});
