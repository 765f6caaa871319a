//! The bound holds what headers say of their own length, and gives up where a loop moves a position on.

use super::*;
use lang::pipeline::{CompileOptions, compile};

fn reach_of(text: &str) -> Bytes {
    let compiled = compile("test", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    header_bytes(&program.functions[0], &Shape::new(&program, false))
}

#[test]
fn a_header_of_variable_length_has_a_bound() {
    let ports = "
import std.net.{ethernet, ipv4, tcp}
layout ports { src: u16 dst: u16 }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet else => flood } }
decoder packet(ip: ipv4) { if ip.frag != 0 { flood } match ip.proto { 6 => transport else => flood } }
decoder transport(l4: ports) { if l4.dst == 80 { send 1 } flood }
";
    // 14 bytes of Ethernet, at most 60 of IPv4, 4 of ports.
    assert_eq!(reach_of(ports), Bytes::All(80));
    let behind = ports.replace("transport(l4: ports)", "transport(t: tcp)").replace(
        "if l4.dst == 80 { send 1 } flood }",
        "goto application }\ndecoder application(l4: ports) { if l4.dst == 80 { send 1 } flood }",
    );
    // Then at most 60 of TCP before them.
    assert_eq!(reach_of(&behind), Bytes::All(144));
}

#[test]
fn a_loop_has_none() {
    let text = "
import std.net.{ethernet, vlan}
start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag else => flood } }
decoder tag(t: vlan) cap 30 { match t.type { 0x8100 => tag else => application } }
layout two { first: u8 second: u8 }
decoder application(x: two) { if x.second == 1 { send 1 } flood }
";
    assert_eq!(reach_of(text), Bytes::Part(PART));
}
