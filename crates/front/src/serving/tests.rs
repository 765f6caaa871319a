//! A front with clients of all kinds, and a `control` that says what it was asked.

use super::*;
use crate::asking::{AskError, Session};
use crate::limits::{CONNECTIONS, HANDSHAKE_WITHIN, OF_KEY, SHORT_QUESTION, SILENCE, UNKNOWN_OF_NETWORK};
use crate::role::ClientRole;
use crate::welcome::Welcome;
use bundle::hex;
use messages::frame;
use messages::limits::LONGEST_BUNDLE_MESSAGE;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, Error, StreamOwned};
use std::net::Shutdown;

/// The keys of the front and of its clients, one for each role and a second administrator.
const FRONT: u8 = 1;
const READER: u8 = 2;
const OPERATOR: u8 = 3;
const ADMINISTRATOR: u8 = 4;
const OWNER: u8 = 5;
const SECOND: u8 = 6;
const STRANGER: u8 = 7;

fn key(number: u8) -> IdentityKey {
    IdentityKey::new([number; 32]).expect("a key")
}

fn digits(number: u8) -> String {
    hex(&key(number).public_key())
}

fn begin() -> FrontBegin {
    let roles = ClientRole::ALL.into_iter().chain([ClientRole::Administrator]);
    let clients = (READER..).zip(roles).map(|(number, role)| format!("n{number}={role}={}", digits(number)));
    FrontBegin { key: key(FRONT).to_text(), clients: clients.collect() }
}

/// A front that is not at work yet, its address, and the end of `control`.
fn made() -> (Front, SocketAddr, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    listener.set_nonblocking(true).expect("so");
    let at = listener.local_addr().expect("one");
    let (asks, control) = Channel::pair().expect("a pair");
    (Front::new(&begin(), listener, asks, |_| ()).expect("it can be made"), at, control)
}

/// A front at work, which ends with the test.
struct Working {
    at: String,
    control: Channel,
    runs: Option<thread::JoinHandle<()>>,
}

impl Working {
    fn new() -> Working {
        let (front, at, mut control) = made();
        let ends = control.again().expect("another handle");
        let runs = thread::spawn(move || front.run().expect("it works"));
        thread::spawn(move || {
            while let Ok(Some(question)) = control.receive_alone::<ControlQuestion>(LONGEST_BUNDLE_MESSAGE) {
                if control.send(&CoreAnswer::Refused(said(&question)), &[]).is_err() {
                    return;
                }
            }
        });
        Working { at: at.to_string(), control: ends, runs: Some(runs) }
    }

    fn session(&self, client: u8) -> Result<Session, AskError> {
        Session::connect(&self.at, &key(client), &digits(FRONT))
    }

    /// What is answered to a question.
    fn asked(&self, client: u8, question: &ControlQuestion) -> String {
        refusal(self.session(client).expect("it is known").ask(question).expect("an answer"))
    }

    fn raw(&self, client: u8) -> StreamOwned<ClientConnection, TcpStream> {
        raw(&self.at, client)
    }

    fn with(&self, config: Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
        with(&self.at, config)
    }
}

/// A connection that has been welcomed, and says whatever it wants.
fn raw(at: &str, client: u8) -> StreamOwned<ClientConnection, TcpStream> {
    let config = tls::of_client(&key(client), key(FRONT).public_key()).expect("a client");
    let mut stream = with(at, config);
    let _: Welcome = received(&mut stream).expect("it is known");
    stream
}

fn with(at: &str, config: Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("front").expect("a name");
    let socket = TcpStream::connect(at).expect("it listens");
    StreamOwned::new(ClientConnection::new(config, name).expect("a client"), socket)
}

impl Drop for Working {
    fn drop(&mut self) {
        self.control.end();
        let ended = self.runs.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// What `control` says to a question.
fn said(question: &ControlQuestion) -> String {
    match question {
        ControlQuestion::Show => "shown".to_owned(),
        ControlQuestion::Confirm { hash } => format!("confirmed {}", hash[0]),
        ControlQuestion::Install { bundle, confirm_within } => {
            format!("{} bytes within {confirm_within:?}", bundle.len())
        }
        other => panic!("{other:?} is passed on"),
    }
}

fn refusal(answer: CoreAnswer) -> String {
    let CoreAnswer::Refused(why) = answer else { panic!("{answer:?}") };
    why
}

fn install(bytes: usize, confirm_within: Option<u32>) -> ControlQuestion {
    ControlQuestion::Install { bundle: vec![7; bytes], confirm_within }
}

fn received<M: serde::de::DeserializeOwned>(stream: &mut impl Read) -> io::Result<M> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(frame::read(&bytes).expect("a message"))
}

/// The alert that the front answers a handshake with.
fn alert(mut stream: StreamOwned<ClientConnection, TcpStream>) -> AlertDescription {
    let error = stream.read(&mut [0]).expect_err("it is refused");
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::AlertReceived(alert)) => *alert,
        _ => panic!("{error:?}"),
    }
}

#[test]
fn each_client_gets_the_answer_to_what_its_role_may_ask_and_a_refusal_to_anything_else() {
    let front = Working::new();
    let all = [
        ControlQuestion::Show,
        ControlQuestion::Confirm { hash: [9; 32] },
        install(100_000, Some(60)),
        install(100_000, None),
    ];
    for (place, client) in [READER, OPERATOR, ADMINISTRATOR, OWNER].into_iter().enumerate() {
        let session = front.session(client).expect("it is known");
        assert_eq!(session.welcome().role, ClientRole::ALL[place]);
        assert_eq!(session.welcome().name, format!("n{client}"));
        for (number, question) in all.iter().enumerate() {
            if number <= place {
                assert_eq!(front.asked(client, question), said(question), "{client}");
            } else {
                // Whoever has no right to bundles has not even the time to send one.
                let small = match question {
                    ControlQuestion::Install { confirm_within, .. } => install(10, *confirm_within),
                    other => other.clone(),
                };
                let why = front.asked(client, &small);
                assert!(why.contains(&format!("needs the role {}", ClientRole::ALL[number])), "{why}");
            }
        }
    }
    // One after the other over one connection.
    let mut session = front.session(OWNER).expect("it is known");
    for question in all.iter().chain(&all) {
        assert_eq!(refusal(session.ask(question).expect("an answer")), said(question));
    }
}

#[test]
fn whoever_has_no_key_or_another_one_or_speaks_otherwise_is_refused_in_the_handshake() {
    let front = Working::new();
    let stranger = front.session(STRANGER).err().expect("nobody knows it");
    assert!(matches!(stranger, AskError::UnknownClient), "{stranger}");
    let other = Session::connect(&front.at, &key(READER), &digits(STRANGER)).err().expect("another front");
    assert!(matches!(other, AskError::OtherFront), "{other}");

    let of_reader = tls::of_client(&key(READER), key(FRONT).public_key()).expect("a client");
    let mut without_key = (*of_reader).clone();
    without_key.client_auth_cert_resolver = tls::tests::no_key();
    assert_eq!(alert(front.with(Arc::new(without_key))), AlertDescription::CertificateRequired);

    let mut other_protocol = (*of_reader).clone();
    other_protocol.alpn_protocols = vec![b"ravelin-front/2".to_vec()];
    assert_eq!(alert(front.with(Arc::new(other_protocol))), AlertDescription::NoApplicationProtocol);
    // Who names no protocol is not refused by TLS, and is not welcomed.
    let mut no_protocol = (*of_reader).clone();
    no_protocol.alpn_protocols = Vec::new();
    let mut stream = front.with(Arc::new(no_protocol));
    assert!(received::<Welcome>(&mut stream).is_err());

    // A key of the right client, and a signature by another: what is signed is the handshake.
    let forged = tls::tests::with_key_of(&key(READER), &key(STRANGER), key(FRONT).public_key());
    assert_eq!(alert(front.with(forged)), AlertDescription::DecryptError);
    assert_eq!(front.asked(READER, &ControlQuestion::Show), "shown");
}

#[test]
fn a_question_that_is_too_long_is_refused_before_it_comes() {
    let front = Working::new();
    for (client, most) in
        [(READER, SHORT_QUESTION), (OPERATOR, SHORT_QUESTION), (ADMINISTRATOR, LONGEST_BUNDLE_MESSAGE)]
    {
        for length in [most + 1, u32::MAX as usize] {
            let mut stream = front.raw(client);
            stream.write_all(&(length as u32).to_le_bytes()).expect("sent");
            let why = refusal(received(&mut stream).expect("an answer"));
            assert!(why.contains(&format!("a question of {length} bytes")), "{why}");
            // Nothing is heard any more.
            assert!(matches!(stream.read(&mut [0]), Ok(0)));
        }
    }
    let mut stream = front.raw(READER);
    stream.write_all(&[1, 0, 0, 0, 9]).expect("sent");
    let why = refusal(received(&mut stream).expect("an answer"));
    assert!(why.contains("not understood"), "{why}");
}

#[test]
fn a_long_bundle_goes_through_while_slow_clients_are_there() {
    let front = Working::new();
    let mut slow = front.raw(ADMINISTRATOR);
    let bytes = frame::written(&install(1000, Some(1))).expect("it has a form");
    slow.write_all(&bytes[..500]).expect("sent");
    let unknown = TcpStream::connect(&front.at).expect("it listens");
    let long = install(8 << 20, None);
    assert_eq!(front.asked(OWNER, &long), said(&long));
    slow.write_all(&bytes[500..]).expect("sent");
    assert_eq!(refusal(received(&mut slow).expect("an answer")), said(&install(1000, Some(1))));
    drop(unknown);
}

#[test]
fn only_so_many_long_questions_come_at_once_and_the_next_is_refused() {
    let front = Working::new();
    let begun = frame::written(&install(1000, Some(1))).expect("it has a form");
    let clients = [ADMINISTRATOR, ADMINISTRATOR, SECOND, SECOND];
    assert_eq!(clients.len(), LONG_QUESTIONS);
    let mut long: Vec<_> = clients.iter().map(|client| front.raw(*client)).collect();
    for stream in &mut long {
        stream.write_all(&begun[..500]).expect("sent");
    }
    // Each has come: the front reads connections in order, and a question that is short goes on.
    assert_eq!(front.asked(OWNER, &ControlQuestion::Show), "shown");
    let mut one_more = front.raw(OWNER);
    one_more.write_all(&begun[..500]).expect("sent");
    let why = refusal(received(&mut one_more).expect("an answer"));
    assert!(why.contains("others hand policies in"), "{why}");
    for stream in &mut long {
        stream.write_all(&begun[500..]).expect("sent");
        assert_eq!(refusal(received(stream).expect("an answer")), said(&install(1000, Some(1))));
    }
    assert_eq!(front.asked(OWNER, &install(1000, None)), said(&install(1000, None)));
}

/// Has the front take what there is.
fn turns(front: &mut Front, until: impl Fn(&Front) -> bool) {
    while !until(front) {
        assert!(front.turn().expect("it works"), "control is there");
    }
}

#[test]
fn whoever_says_nothing_gives_way_and_is_closed_in_time() {
    let (mut front, at, _control) = made();
    let silent: Vec<_> =
        (0..=UNKNOWN_OF_NETWORK).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    turns(&mut front, |front| front.last as usize == silent.len());
    assert_eq!(front.connections.len(), UNKNOWN_OF_NETWORK);
    assert!(matches!((&silent[0]).read(&mut [0]), Ok(0)), "the first has given way");
    let begun = Instant::now();
    front.close_overdue(begun + HANDSHAKE_WITHIN / 2);
    assert_eq!(front.connections.len(), UNKNOWN_OF_NETWORK);
    front.close_overdue(begun + HANDSHAKE_WITHIN);
    assert!(front.connections.is_empty());

    let client = thread::spawn(move || Session::connect(&at.to_string(), &key(READER), &digits(FRONT)));
    turns(&mut front, |front| front.connections.values().any(|one| one.client.is_some()));
    let _session = client.join().expect("it ends").expect("it is known");
    let begun = Instant::now();
    front.close_overdue(begun + SILENCE / 2);
    assert_eq!(front.connections.len(), 1);
    front.close_overdue(begun + SILENCE);
    assert!(front.connections.is_empty());
}

#[test]
fn no_more_connections_are_there_than_may_be_and_a_key_has_its_share() {
    let front = Working::new();
    let mut sessions: Vec<_> = (0..=OF_KEY).map(|_| front.session(READER).expect("it is known")).collect();
    let mut last = sessions.pop().expect("one");
    assert_eq!(refusal(last.ask(&ControlQuestion::Show).expect("an answer")), "shown");
    assert!(sessions[0].ask(&ControlQuestion::Show).is_err(), "the first has given way");

    // From many networks, so that only the number of all counts.
    let from = |number: usize| {
        let source = SocketAddr::from(([127, 0, 1, number as u8], 0));
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
                .expect("a socket");
        rustix::net::bind(&socket, &source).expect("an address of this machine");
        let at: SocketAddr = front.at.parse().expect("an address");
        rustix::net::connect(&socket, &at).expect("it listens");
        TcpStream::from(socket)
    };
    let all: Vec<_> = (1..=2 * CONNECTIONS).map(from).collect();
    assert_eq!(refusal(last.ask(&ControlQuestion::Show).expect("an answer")), "shown");
    assert_eq!(front.asked(OWNER, &ControlQuestion::Show), "shown");
    let closed = all.iter().filter(|one| {
        one.set_nonblocking(true).expect("so");
        !matches!((&mut &**one).read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    });
    // The reader has its places, and the owner took one.
    assert_eq!(closed.count(), 2 * CONNECTIONS - (CONNECTIONS - OF_KEY - 1));
}

#[test]
fn an_end_of_a_client_ends_nothing_else() {
    let front = Working::new();
    let stream = front.raw(ADMINISTRATOR);
    stream.sock.shutdown(Shutdown::Both).expect("it is open");
    let mut asks = front.raw(OWNER);
    let bytes = frame::written(&install(1000, None)).expect("it has a form");
    asks.write_all(&bytes).expect("sent");
    drop(asks);
    assert_eq!(front.asked(READER, &ControlQuestion::Show), "shown");
}

#[test]
fn a_client_that_breaks_off_while_it_waits_has_its_place_taken_from_it() {
    let (mut front, at, mut control) = made();
    let client = thread::spawn(move || {
        let mut stream = raw(&at.to_string(), READER);
        stream.write_all(&frame::written(&ControlQuestion::Show).expect("it has a form")).expect("sent");
        stream
    });
    turns(&mut front, |front| front.connections.values().any(Connection::waits));
    let stream = client.join().expect("it ends");
    // Linux resets it at its end.
    rustix::net::sockopt::set_socket_linger(&stream.sock, Some(Duration::ZERO)).expect("so");
    drop(stream);
    turns(&mut front, |front| front.connections.is_empty());
    // Its answer finds nobody, and nobody misses it.
    let asked = control.receive_alone::<ControlQuestion>(100).expect("a question");
    assert_eq!(asked, Some(ControlQuestion::Show));
    control.send(&CoreAnswer::Refused(String::new()), &[]).expect("sent");
    assert!(front.turn().expect("it works"));
}

#[test]
fn what_a_client_leaves_behind_is_not_asked() {
    let (mut front, at, mut control) = made();
    let asks = |client: u8, question: ControlQuestion| {
        thread::spawn(move || {
            let mut stream = raw(&at.to_string(), client);
            stream.write_all(&frame::written(&question).expect("it has a form")).expect("sent");
            stream
        })
    };
    let confirm = |first: u8| ControlQuestion::Confirm { hash: [first; 32] };
    let first = asks(READER, ControlQuestion::Show);
    turns(&mut front, |front| front.in_flight.is_some());
    for _ in 0..5 {
        let leaves = asks(OPERATOR, confirm(9));
        turns(&mut front, |front| front.waiting.len() == 1);
        let stream = leaves.join().expect("it ends");
        rustix::net::sockopt::set_socket_linger(&stream.sock, Some(Duration::ZERO)).expect("so");
        drop(stream);
        turns(&mut front, |front| front.waiting.is_empty());
    }
    let stays = asks(OWNER, confirm(1));
    turns(&mut front, |front| front.waiting.len() == 1);
    let mut answers = |question: ControlQuestion| {
        let asked = control.receive_alone::<ControlQuestion>(100).expect("a question");
        assert_eq!(asked, Some(question));
        control.send(&CoreAnswer::Refused(String::new()), &[]).expect("sent");
    };
    answers(ControlQuestion::Show);
    turns(&mut front, |front| front.waiting.is_empty());
    answers(confirm(1));
    turns(&mut front, |front| front.in_flight.is_none());
    drop((first.join(), stays.join()));
}

#[test]
fn what_is_no_key_and_too_many_clients_are_refused() {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("an address");
    let refused = |begin: &FrontBegin| {
        let (asks, _control) = Channel::pair().expect("a pair");
        Front::new(begin, listener(), asks, |_| ()).err().expect("refused").to_string()
    };
    let right = begin();
    let text = "0".repeat(64);
    assert!(refused(&FrontBegin { key: text, ..right.clone() }).contains("its own key"));
    assert!(
        refused(&FrontBegin { clients: vec!["anna".to_owned()], ..right.clone() }).contains("NAME=ROLE=KEY")
    );
    let clients = vec![right.clients[0].clone(); CLIENTS + 1];
    assert!(refused(&FrontBegin { clients, ..right }).contains("17 clients"));
}

#[test]
fn of_many_that_are_refused_few_are_told() {
    let mut refused = Refused { untold: 0, told: None };
    let now = Instant::now();
    assert_eq!(refused.one_more(now), Some(String::new()));
    for _ in 0..3 {
        assert_eq!(refused.one_more(now + REFUSED_TOLD / 2), None);
    }
    assert_eq!(refused.one_more(now + REFUSED_TOLD), Some("; 3 more before it".to_owned()));
}
