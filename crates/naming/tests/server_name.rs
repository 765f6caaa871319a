//! The server name of clients of TLS, however their first message is cut and in whatever order it comes.

use naming::limits::{
    HELLO_SEGMENTS, HELLO_SEGMENTS_OF_NETWORK, HELLO_WAITS, LONGEST_HELLO, MOST_HELLO_PIECES, MOST_HELLOS,
    MOST_HELLOS_OF_NETWORK, SECOND,
};
use naming::{ClientConnection, ClientHello, ClientHellos, ClientSegment, HelloRefusal};
use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

const NAME: &str = "nas.home.example";

fn connection(network: u16, port: u16) -> ClientConnection {
    let [high, low] = network.to_be_bytes();
    ClientConnection {
        initiator: [203, high, low, 9].into(),
        initiator_port: port,
        address: [198, 51, 100, 2].into(),
        port: 443,
        acknowledges: 1_000,
    }
}

/// What rustls sends first to a server of this name, which says in its list of protocols that it can do
/// `more` things, so that the message becomes long.
fn hello(server: &'static str, more: usize) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions that it has")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = (0..more).map(|one| format!("{one:0>99}").into_bytes()).collect();
    let name = ServerName::try_from(server).expect("a name or an address");
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("a vector takes all");
    bytes
}

/// The same message in records that hold so much of it each.
fn in_records(hello: &[u8], length: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    hello[5..].chunks(length).flat_map(record).collect()
}

fn named(name: &str) -> Result<ClientHello, HelloRefusal> {
    Ok(ClientHello::Named(naming::dns::DnsName::parse(name).expect("a name")))
}

fn take(
    hellos: &mut ClientHellos,
    connection: ClientConnection,
    (sequence, bytes): (u32, &[u8]),
    now: u64,
) -> Result<ClientHello, HelloRefusal> {
    hellos.take(&ClientSegment { connection, sequence, bytes }, now)
}

/// Pieces of a message of this length, which together are all of it: where each begins and ends.
fn pieces(length: usize) -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..length, 0_usize..50), 0..30).prop_flat_map(move |cuts| {
        let mut starts: Vec<usize> = cuts.iter().map(|(at, _)| *at).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([length]);
        // Some reach into those behind them.
        let over = cuts.iter().map(|(_, over)| *over).chain([0]);
        let all: Vec<(usize, usize)> = starts
            .iter()
            .copied()
            .zip(ends)
            .zip(over)
            .map(|((start, end), over)| (start, (end + over).min(length)))
            .collect();
        Just(all).prop_shuffle()
    })
}

proptest! {
    #[test]
    fn any_pieces_in_any_order_give_the_same_name(
        cut in prop::sample::select(vec![0, 40, 150]).prop_flat_map(|more| {
            let bytes = hello(NAME, more);
            let length = bytes.len();
            (Just(bytes), pieces(length))
        }),
        first in prop::sample::select(vec![0, 7, u32::MAX - 3, u32::MAX - 900, 1 << 31]),
    ) {
        let (bytes, pieces) = cut;
        let mut hellos = ClientHellos::default();
        let mut said = Ok(ClientHello::Unfinished);
        for (start, end) in pieces {
            prop_assert_eq!(&said, &Ok(ClientHello::Unfinished), "before all of it has come");
            let sequence = first.wrapping_add(start as u32);
            said = take(&mut hellos, connection(1, 5), (sequence, &bytes[start..end]), 0);
            if said == named(NAME) {
                break;
            }
        }
        prop_assert_eq!(said, named(NAME));
        prop_assert_eq!((hellos.waiting(0), hellos.held()), (0, 0));
    }

    #[test]
    fn any_records_give_the_same_name(length in 30_usize..700, cut in 1_usize..600) {
        let bytes = in_records(&hello(NAME, 9), length);
        let mut hellos = ClientHellos::default();
        let cut = cut.min(bytes.len() - 1);
        let unfinished = take(&mut hellos, connection(1, 5), (0, &bytes[..cut]), 0);
        prop_assert_eq!(unfinished, Ok(ClientHello::Unfinished));
        prop_assert_eq!(take(&mut hellos, connection(1, 5), (cut as u32, &bytes[cut..]), 0), named(NAME));
    }

    #[test]
    fn a_port_that_is_used_again_in_the_middle_of_a_message_says_the_second_name(
        cut in prop::sample::select(vec![0, 40, 150]).prop_flat_map(|more| {
            let bytes = hello(NAME, more);
            let length = bytes.len();
            (Just(bytes), pieces(length))
        }),
        // Anywhere beside the first message, and in it.
        (begun, behind) in (1_usize..400, any::<u32>()),
        (number, other) in (any::<u32>(), 1..=u32::MAX),
    ) {
        let (bytes, pieces) = cut;
        let mut hellos = ClientHellos::default();
        let earlier = ClientConnection { acknowledges: number, ..connection(1, 5) };
        let later = ClientConnection { acknowledges: number.wrapping_add(other), ..earlier };
        let half = &hello("tv.home.example", 40)[..begun];
        prop_assert_eq!(take(&mut hellos, earlier, (7, half), 0), Ok(ClientHello::Unfinished));
        let mut said = Ok(ClientHello::Unfinished);
        for (start, end) in pieces {
            let sequence = behind.wrapping_add(start as u32);
            said = take(&mut hellos, later, (sequence, &bytes[start..end]), 0);
            if said == named(NAME) {
                break;
            }
            prop_assert_eq!(&said, &Ok(ClientHello::Unfinished), "before all of it has come");
            prop_assert_eq!(hellos.waiting(0), 1, "the earlier one is forgotten");
        }
        prop_assert_eq!(said, named(NAME));
        prop_assert_eq!((hellos.waiting(0), hellos.held(), hellos.given_up()), (0, 0, 1));
    }

    #[test]
    fn any_bytes_are_an_answer_and_what_is_held_has_a_bound(
        segments in prop::collection::vec(
            (0_u16..4, 0_u16..40, 0_u32..40_000, prop::collection::vec(any::<u8>(), 0..1_460), any::<bool>()),
            1..200,
        ),
    ) {
        let mut hellos = ClientHellos::default();
        let real = hello(NAME, 0);
        for (at, (network, port, sequence, mut bytes, like)) in segments.into_iter().enumerate() {
            if like {
                // The beginning of a message, with something else behind it.
                let part = real.len().min(bytes.len());
                bytes[..part].copy_from_slice(&real[..part]);
            }
            let said = take(&mut hellos, connection(network, port), (sequence, &bytes), at as u64);
            if let Ok(ClientHello::Named(name)) = said {
                prop_assert_eq!(name.to_string(), NAME);
            }
        }
        prop_assert!(hellos.waiting(200) <= 4 * MOST_HELLOS_OF_NETWORK);
        prop_assert!(hellos.held() <= hellos.waiting(200) * LONGEST_HELLO);
        prop_assert_eq!(hellos.waiting(HELLO_WAITS + 200), 0);
        prop_assert_eq!(hellos.held(), 0);
    }
}

#[test]
fn what_is_no_message_or_has_no_name_is_refused_and_forgotten() {
    let mut hellos = ClientHellos::default();
    let mut refused = |bytes: &[u8]| {
        let at = connection(1, 1);
        let cut = bytes.len() / 2;
        // By its first half nothing is decided.
        assert_eq!(take(&mut hellos, at, (0, &bytes[..cut]), 0), Ok(ClientHello::Unfinished), "{bytes:?}");
        let said = take(&mut hellos, at, (cut as u32, &bytes[cut..]), 0);
        assert_eq!(hellos.waiting(0), 0, "{bytes:?}");
        said.expect_err("refused")
    };
    assert_eq!(refused(&hello("203.0.113.7", 0)), HelloRefusal::NoName);
    let mut spoilt = hello(NAME, 0);
    // The message is one of a server.
    spoilt[5] = 2;
    assert_eq!(refused(&spoilt), HelloRefusal::NotTls);
    // A record that is longer than one may be.
    let mut long = hello(NAME, 0);
    long[3] = 0xff;
    let said = take(&mut hellos, connection(1, 1), (0, &long), 0);
    assert_eq!(said, Err(HelloRefusal::NotTls));
    // What is no message waits for an earlier piece, in vain.
    let said = take(&mut hellos, connection(1, 1), (0, b"GET / HTTP/1.1\r\n\r\n"), 0);
    assert_eq!((said, hellos.waiting(0)), (Ok(ClientHello::Unfinished), 1));
    assert_eq!((hellos.waiting(HELLO_WAITS), hellos.given_up()), (0, 1));
}

#[test]
fn a_message_that_is_sent_again_goes_on_and_its_time_ends() {
    let (bytes, at) = (hello(NAME, 20), connection(1, 1));
    let (first, second) = bytes.split_at(1_000);
    let mut hellos = ClientHellos::default();
    for again in 0..3 {
        let said = take(&mut hellos, at, (77, first), again * SECOND);
        assert_eq!((said, hellos.held()), (Ok(ClientHello::Unfinished), first.len()));
    }
    assert_eq!(take(&mut hellos, at, (77, &first[..500]), 3 * SECOND), Ok(ClientHello::Unfinished));
    assert_eq!(take(&mut hellos, at, (77, &[]), 3 * SECOND), Ok(ClientHello::Unfinished));
    // Another connection of the same client has nothing to do with it.
    let other = connection(1, 2);
    assert_eq!(take(&mut hellos, other, (1_077, second), 3 * SECOND), Ok(ClientHello::Unfinished));
    assert_eq!(take(&mut hellos, at, (1_077, second), HELLO_WAITS - 1), named(NAME));
    take(&mut hellos, at, (77, first), HELLO_WAITS).expect("waits");
    let late = take(&mut hellos, at, (1_077, second), 2 * HELLO_WAITS);
    assert_eq!(late, Ok(ClientHello::Unfinished), "the first piece is forgotten");
}

#[test]
fn long_messages_and_very_many_pieces_are_refused() {
    let (long, at) = (hello(NAME, 180), connection(1, 1));
    assert!(long.len() > LONGEST_HELLO);
    let mut hellos = ClientHellos::default();
    assert_eq!(take(&mut hellos, at, (0, &long), 0), Err(HelloRefusal::TooLong));
    let said: Vec<_> = long
        .chunks(1_000)
        .enumerate()
        .map(|(place, piece)| take(&mut hellos, at, (place as u32 * 1_000, piece), 0))
        .collect();
    assert_eq!(said[0], Ok(ClientHello::Unfinished));
    assert_eq!(said.last(), Some(&Err(HelloRefusal::TooLong)));
    assert!(hellos.held() <= LONGEST_HELLO);
    let short = hello(NAME, 0);
    let mut hellos = ClientHellos::default();
    let mut said = short
        .iter()
        .enumerate()
        .map(|(place, byte)| take(&mut hellos, at, (place as u32, std::slice::from_ref(byte)), 0));
    assert!(said.by_ref().take(MOST_HELLO_PIECES).all(|said| said == Ok(ClientHello::Unfinished)));
    assert_eq!(said.next(), Some(Err(HelloRefusal::TooManyPieces)));
}

#[test]
fn networks_have_parts_of_the_places_and_of_the_segments() {
    let bytes = &hello(NAME, 0)[..100];
    let mut hellos = ClientHellos::default();
    for port in 0..MOST_HELLOS_OF_NETWORK as u16 {
        assert_eq!(take(&mut hellos, connection(0, port), (0, bytes), 0), Ok(ClientHello::Unfinished));
    }
    assert_eq!(take(&mut hellos, connection(0, 9_999), (0, bytes), 0), Err(HelloRefusal::NetworkFull));
    for one in MOST_HELLOS_OF_NETWORK..MOST_HELLOS {
        let network = (one / MOST_HELLOS_OF_NETWORK) as u16;
        assert_eq!(
            take(&mut hellos, connection(network, one as u16), (0, bytes), 0),
            Ok(ClientHello::Unfinished)
        );
    }
    assert_eq!(take(&mut hellos, connection(999, 1), (0, bytes), 0), Err(HelloRefusal::Full));
    // Whole messages need no place.
    assert_eq!(take(&mut hellos, connection(999, 1), (0, &hello(NAME, 0)), 0), named(NAME));

    let (whole, mut hellos) = (hello(NAME, 0), ClientHellos::default());
    for _ in 0..HELLO_SEGMENTS_OF_NETWORK {
        assert_eq!(take(&mut hellos, connection(0, 1), (0, &whole), 5), named(NAME));
    }
    let too_many = Err(HelloRefusal::TooManySegments);
    assert_eq!(take(&mut hellos, connection(0, 1), (0, &whole), 5), too_many);
    for one in HELLO_SEGMENTS_OF_NETWORK..HELLO_SEGMENTS {
        let network = 1 + (one / HELLO_SEGMENTS_OF_NETWORK) as u16;
        assert_eq!(take(&mut hellos, connection(network, 1), (0, &whole), 5), named(NAME));
    }
    assert_eq!(take(&mut hellos, connection(99, 1), (0, &whole), 5), too_many);
    assert_eq!(take(&mut hellos, connection(0, 1), (0, &whole), 5 + SECOND), named(NAME));
}
