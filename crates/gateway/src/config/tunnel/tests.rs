//! Files with tunnels: what they say, and what is wrong with them at which place.

use super::*;
use crate::config::{Config, ConfigError};
use ports::live::PortKind;
use std::path::PathBuf;

const HEAD: &str =
    "program = \"a\"\n[[port]]\nkind = \"tunnel\"\nlisten = \"0.0.0.0:5282\"\nkey = \"home.key\"\n";

fn key(number: u8) -> String {
    ::tunnel::SecretKey::new([number; 32]).public().to_string()
}

fn peer(name: &str, number: u32, of: u8, more: &str) -> String {
    format!("[[port.peer]]\nname = \"{name}\"\nnumber = {number}\nkey = \"{}\"\n{more}", key(of))
}

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::read(text, Path::new("/etc/ravelin"))
}

#[test]
fn a_tunnel_is_a_port_with_peers() {
    let endpoint = "endpoint = \"198.51.100.1:5282\"\n";
    let text = format!(
        "{HEAD}mtu = 1280\n{}{}[[port]]\ninterface = \"eth0\"\n",
        peer("home", 1, 1, endpoint),
        peer("away", 16_777_215, 2, "keepalive = 7\npackets = false\n"),
    );
    let config = read(&text).expect("is right");
    assert_eq!(
        (config.ports[0].name().as_str(), &config.ports[0].kind),
        ("udp:0.0.0.0:5282", &PortKind::Tunnel)
    );
    assert_eq!(config.ports[1].tunnel, None);
    let wishes = config.ports[0].tunnel.as_ref().expect("a tunnel");
    assert_eq!(wishes.keys, [PathBuf::from("/etc/ravelin/home.key")]);
    assert_eq!((wishes.listen, wishes.mtu), (([0, 0, 0, 0], 5282).into(), 1280));
    let seen: Vec<_> = wishes
        .peers
        .iter()
        .map(|peer| (peer.name.as_str(), peer.number, peer.endpoint, peer.keepalive))
        .collect();
    let endpoint = SocketAddr::from(([198, 51, 100, 1], 5282));
    assert_eq!(
        seen,
        [("home", 1, Some(endpoint), Some(5 * SECOND)), ("away", 16_777_215, None, Some(7 * SECOND))]
    );
    assert_eq!(wishes.peers.iter().map(|peer| peer.packets).collect::<Vec<_>>(), [true, false]);
    let both =
        format!("{HEAD}[[port.peer]]\nname = \"a\"\nnumber = 1\nkey = [\"{}\", \"{}\"]\n", key(1), key(2));
    let peers = &read(&both).expect("is right").ports[0].tunnel.clone().expect("a tunnel").peers;
    assert_eq!((peers[0].keys.len(), peers[0].keepalive), (2, None));
}

#[test]
fn what_is_wrong_with_a_tunnel_is_said_at_its_place() {
    let two = |second: &str| format!("{HEAD}{}{second}", peer("home", 1, 1, ""));
    let weak = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let cases: Vec<(String, (usize, usize), &str)> = vec![
        (HEAD.replace("listen = \"0.0.0.0:5282\"\n", ""), (2, 1), "a tunnel needs `listen"),
        (HEAD.replace(":5282", ""), (4, 10), "no address with a port"),
        (HEAD.replace(":5282", ":0"), (4, 10), "no address with a port"),
        (HEAD.replace("key = \"home.key\"\n", ""), (4, 10), "a tunnel needs `key"),
        (HEAD.replace("\"home.key\"", "[]"), (5, 7), "1 to 4 keys"),
        (format!("{HEAD}interface = \"eth0\"\n"), (6, 13), "a tunnel has no interface"),
        (format!("{HEAD}offloads = \"off\"\n"), (6, 12), "`offloads` is for ports at an interface"),
        (
            format!("{HEAD}addresses = [\"10.0.0.1/24\"]\n"),
            (6, 14),
            "`addresses` is for ports at an interface",
        ),
        (format!("{HEAD}host = true\n"), (6, 8), "a tunnel has none"),
        (format!("{HEAD}mtu = 500\n"), (6, 7), "between 576 and 9000"),
        (two(&peer("home", 2, 2, "")), (11, 8), "there is a peer `home` above already"),
        (two(&peer("", 2, 2, "")), (11, 8), "1 to 64 bytes"),
        (two(&peer("b", 1, 2, "")), (12, 10), "`home` has the number 1 already"),
        (two(&peer("b", 0, 2, "")), (12, 10), "this end is 0"),
        (two(&peer("b", 16_777_216, 2, "")), (12, 10), "between 1 and 16777215"),
        (two(&peer("b", 2, 1, "")), (13, 7), "`home` has the key"),
        (two(&peer("b", 2, 2, "").replace(&key(2), "abc")), (13, 7), "`abc` is no key"),
        (two(&peer("b", 2, 2, "").replace(&key(2), weak)), (13, 7), "no usable key"),
        (two(&peer("b", 2, 2, "endpoint = \"example.org:1\"\n")), (14, 12), "no address with a port"),
        (two(&peer("b", 2, 2, "endpoint = \"0.0.0.0:1\"\n")), (14, 12), "no address with a port"),
        (two(&peer("b", 2, 2, "keepalive = 0\n")), (14, 13), "between 1 and 3600"),
        (
            two("[[port]]\nkind = \"tunnel\"\nlisten = \"0.0.0.0:5282\"\nkey = \"b\"\n"),
            (12, 10),
            "is port 1 already",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"eth0\"\nlisten = \"0.0.0.0:1\"\n".into(),
            (4, 10),
            "`kind = \"tunnel\"` alone",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"eth0\"\n[[port]]\nempty = true\nkey = \"x\"\n".into(),
            (5, 9),
            "no port has a number",
        ),
    ];
    for (text, place, wanted) in cases {
        let error = read(&text).expect_err(&text);
        assert!(error.message.contains(wanted), "{error}\n{text}");
        assert_eq!((error.line, error.column), place, "{error}\n{text}");
    }
}

#[test]
fn a_tunnel_has_a_limit_of_peers() {
    // Any 32 bytes with a clear last bit are a key.
    let key = |number: usize| {
        let mut bytes = [9; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        PublicKey(bytes)
    };
    let peer = |number: usize| {
        format!("[[port.peer]]\nname = \"p{number}\"\nnumber = {number}\nkey = \"{}\"\n", key(number))
    };
    let text = |count: usize| format!("{HEAD}{}", (1..=count).map(peer).collect::<String>());
    assert_eq!(
        read(&text(MOST_PEERS)).expect("is right").ports[0].tunnel.as_ref().map(|t| t.peers.len()),
        Some(MOST_PEERS)
    );
    let error = read(&text(MOST_PEERS + 1)).expect_err("too many");
    assert!(error.message.contains("at most 8192 peers"), "{error}");
}

/// Peers and keys change while a tunnel stays; where it listens does not.
#[test]
fn a_reload_keeps_a_tunnel_with_other_peers() {
    let config = |text: &str| read(text).expect("is right");
    let one = config(&format!("{HEAD}{}", peer("home", 1, 1, "")));
    let other = config(&format!("{}{}", HEAD.replace("home.key", "new.key"), peer("b", 2, 2, "")));
    assert_eq!(one.takes(&other), Ok(vec![false]));
    let moved = config(&HEAD.replace("5282", "5283"));
    assert!(one.takes(&moved).is_err());
}

/// What a gateway registers must lead to the peer that has registered it.
#[test]
fn a_gateway_of_names_has_the_number_of_the_peer_with_its_name() {
    let names = |number: u32| {
        format!(
            "{HEAD}{}[names]\nlisten = [\"192.0.2.53:53\"]\nzone = \"home.example\"\n[[names.server]]\nname = \"ns1\"\n\
             addresses = [\"192.0.2.53\"]\n[[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/24\"]\npeer = {number}\n",
            peer("home", 1, 1, "")
        )
    };
    assert!(read(&names(1)).is_ok());
    let error = read(&names(2)).expect_err("another number");
    assert!(error.message.contains("another number than the peer `home`"), "{error}");
}
