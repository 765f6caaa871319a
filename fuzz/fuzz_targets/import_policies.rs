//! Any bytes are refused by line as a policy of any format, or kept; what is kept decides about every packet,
//! or says that it cannot be walked to its end.
#![no_main]

use import::address::AddressFamily;
use import::policies::{self, PolicyOptions};
use libfuzzer_sys::fuzz_target;
use policy::{Packet, PacketField, Path, evaluate};

fuzz_target!(|input: (u8, bool, bool, [Option<u8>; PacketField::ALL.len()], &[u8])| {
    let (format, v6, skip, values, bytes) = input;
    let family = if v6 { AddressFamily::V6 } else { AddressFamily::V4 };
    let interfaces = vec![("eth0".to_owned(), 1), ("eth1".to_owned(), 2)];
    let format = policies::FORMATS[usize::from(format) % policies::FORMATS.len()];
    let tables = ["t", "addrtype:LOCAL"].map(|name| (name.to_owned(), "10.0.0.0/8\n".to_owned())).to_vec();
    let options =
        PolicyOptions { family, interfaces, tables, skip_first_line: skip, skip_nat: skip, skip_marks: skip };
    match policies::read(bytes, format, &options) {
        Ok(imported) => {
            let refused = imported.refused.iter().all(|error| error.line > 0 && error.column > 0);
            assert!(refused, "{:?}", imported.refused);
            let with = |packet: Packet, (field, value): (&PacketField, &Option<u8>)| {
                packet.with(*field, value.map(u128::from))
            };
            let packet = PacketField::ALL.iter().zip(&values).fold(Packet::default(), with);
            for path in [Path::Forwarded, Path::ToGateway, Path::FromGateway] {
                let _ = evaluate(&imported.policy, path, &packet, &|index| index % 2 == 0);
            }
        }
        Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
    }
});
