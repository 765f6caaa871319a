//! Bytes of control messages: one form each, and everything else refused.

use crate::{name, registration, rejection, services, set_up};
use naming::control::{
    AnswerBody, AskBody, ControlAsk, ControlCodecError, ControlMessage, HostOffer, OwnerAnswer, Registration,
    SetUp, decode, encode,
};
use naming::dns::DnsName;
use naming::limits::{LONGEST_CONTROL, LONGEST_GATEWAY_NAME};
use naming::{Initiators, MOST_SERVICES, Service, Services};
use std::net::Ipv4Addr;
use tables::generate::Random;

fn message(random: &mut Random) -> ControlMessage {
    let (epoch, serial) = (random.word(), random.word().max(1));
    let body = match random.below(5) {
        0 => Err(AnswerBody::Accept(Ipv4Addr::from_bits(random.word() as u32), random.word() as u32)),
        1 => Err(AnswerBody::Reject(rejection(random))),
        2 => Err(AnswerBody::Lease(random.word() as u32)),
        3 => Ok(set_up(random)),
        _ => Ok(registration(random)),
    };
    match body {
        Ok(body) => ControlMessage::Ask(ControlAsk { epoch, serial, body }),
        Err(body) => ControlMessage::Answer(OwnerAnswer { epoch, serial, owner_epoch: random.word(), body }),
    }
}

#[test]
fn messages_are_read_as_they_were_written_and_have_one_form() {
    let mut random = Random::new(47);
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    let mut refused = 0;
    for _ in 0..20_000 {
        let message = message(&mut random);
        encode(&message, &mut bytes);
        assert_eq!(decode(&bytes), Ok(message.clone()));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{message:?} cut to {length}");
        }
        for _ in 0..8 {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.word() as u8;
            match decode(&damaged) {
                Ok(other) => {
                    encode(&other, &mut again);
                    assert_eq!(again, damaged, "{other:?} has two forms");
                }
                Err(_) => refused += 1,
            }
        }
        bytes.push(0);
        assert!(decode(&bytes).is_err(), "a byte too many");
    }
    assert!(refused > 1_000);
}

#[test]
fn the_bytes_are_those_of_the_diagram() {
    let services = Services::new([(17, 53), (6, 443)].map(|(protocol, port)| Service { protocol, port }));
    let services = services.expect("few");
    let ask = SetUp {
        gateway: "home".into(),
        host: [10, 0, 0, 7].into(),
        services: services.clone(),
        initiators: Initiators::Prefix([198, 51, 100, 0].into(), 24),
        resolver: [192, 0, 2, 53].into(),
        is_verified: true,
    };
    let written = |body| {
        let mut bytes = Vec::new();
        encode(&ControlMessage::Ask(ControlAsk { epoch: 258, serial: 3, body }), &mut bytes);
        bytes
    };
    let head = |kind, length| [1, kind, 0, length, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
    let resolver = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 53];
    let offered = [6, 0, 1, 0xbb, 17, 0, 0, 53];
    let wanted =
        [&head(1, 60)[..], &[10, 0, 0, 7, 129, 24, 0, 2, 198, 51, 100, 0], &resolver, &offered, b"home"]
            .concat();
    assert_eq!(written(AskBody::SetUp(ask)), wanted);
    let offer = HostOffer { name: name(1), host: [10, 0, 0, 5].into(), ipv6: None, services };
    let wanted =
        [&head(4, 69)[..], &[1, 0, 0, 2, 10, 0, 0, 5], &[0; 16], &offered, b"\x02n1\x04home\x07example\0"]
            .concat();
    assert_eq!(written(AskBody::Register(Registration::Offer(offer))), wanted);
    let answer = |body| {
        let mut bytes = Vec::new();
        let answer = OwnerAnswer { epoch: 258, serial: 3, owner_epoch: 9, body };
        encode(&ControlMessage::Answer(answer), &mut bytes);
        bytes
    };
    let owner = [0, 0, 0, 0, 0, 0, 0, 9];
    let accept = answer(AnswerBody::Accept([203, 0, 113, 5].into(), 256));
    assert_eq!(accept, [&head(2, 36)[..], &owner, &[203, 0, 113, 5, 0, 0, 1, 0]].concat());
    assert_eq!(answer(AnswerBody::Lease(30_000)), [&head(5, 32)[..], &owner, &[0, 0, 0x75, 0x30]].concat());
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    let mut random = Random::new(48);
    let (mut bytes, mut wrong) = (Vec::new(), Vec::new());
    encode(&ControlMessage::Ask(ControlAsk { epoch: 1, serial: 1, body: set_up(&mut random) }), &mut bytes);
    let mut refused = |at: usize, byte: u8| {
        wrong.clone_from(&bytes);
        wrong[at] = byte;
        decode(&wrong).expect_err("it cannot be")
    };
    assert_eq!(refused(0, 2), ControlCodecError::Version(2));
    assert_eq!(refused(1, 6), ControlCodecError::Kind(6));
    assert_eq!(refused(2, 9), ControlCodecError::Length);
    assert_eq!(refused(19, 0), ControlCodecError::Value("serial"));
    assert_eq!(refused(24, 9), ControlCodecError::Value("initiators"));
    assert_eq!(refused(25, 33), ControlCodecError::Value("initiators"));
    let last = bytes.len() - 1;
    assert_eq!(refused(last, 0xff), ControlCodecError::Value("gateway"));
    assert_eq!(refused(last, b'\n'), ControlCodecError::Value("gateway"));
}

#[test]
fn a_gateway_has_a_name_of_some_length() {
    let mut random = Random::new(50);
    let AskBody::SetUp(ask) = set_up(&mut random) else { panic!("it is a SETUP") };
    for (length, fits) in
        [(0, false), (1, true), (LONGEST_GATEWAY_NAME, true), (LONGEST_GATEWAY_NAME + 1, false)]
    {
        let body = AskBody::SetUp(SetUp { gateway: "g".repeat(length).into(), ..ask.clone() });
        let mut bytes = Vec::new();
        encode(&ControlMessage::Ask(ControlAsk { epoch: 1, serial: 1, body }), &mut bytes);
        assert_eq!(decode(&bytes).is_ok(), fits, "{length}");
    }
}

#[test]
fn the_longest_message_is_as_long_as_the_limit_says() {
    let label = "x".repeat(63);
    let long = DnsName::parse(&[&label[..], &label, &label, &label[..61]].join(".")).expect("just so long");
    let all = (0..MOST_SERVICES as u16).map(|port| Service { protocol: 6, port });
    let services = Services::new(all).expect("just so many");
    let offer = HostOffer { name: long, host: [10, 0, 0, 1].into(), ipv6: Some(1.into()), services };
    let body = AskBody::Register(Registration::Offer(offer));
    let message = ControlMessage::Ask(ControlAsk { epoch: 1, serial: 1, body });
    let mut bytes = Vec::new();
    encode(&message, &mut bytes);
    assert_eq!(bytes.len(), LONGEST_CONTROL);
    assert_eq!(decode(&bytes), Ok(message));
    let mut random = Random::new(49);
    assert!(services_fit(&mut random));
}

#[test]
fn services_that_are_not_in_order_each_once_are_refused() {
    let mut random = Random::new(51);
    let AskBody::SetUp(ask) = set_up(&mut random) else { panic!("it is a SETUP") };
    let two = [(6, 22), (17, 53)].map(|(protocol, port)| Service { protocol, port });
    let body = AskBody::SetUp(SetUp { services: Services::new(two).expect("few"), ..ask });
    let message = ControlMessage::Ask(ControlAsk { epoch: 1, serial: 1, body });
    let mut bytes = Vec::new();
    encode(&message, &mut bytes);
    assert_eq!(bytes[48..56], [6, 0, 0, 22, 17, 0, 0, 53]);
    assert_eq!(decode(&bytes), Ok(message));
    let wrong = Err(ControlCodecError::Value("services"));
    for services in [
        [17, 0, 0, 53, 6, 0, 0, 22],
        [6, 0, 0, 22, 6, 0, 0, 22],
        [6, 0, 0, 23, 6, 0, 0, 22],
        [6, 1, 0, 22, 17, 0, 0, 53],
        [6, 0, 0, 22, 17, 1, 0, 53],
    ] {
        bytes[48..56].copy_from_slice(&services);
        assert_eq!(decode(&bytes), wrong, "{services:?}");
    }
    // More than the message holds.
    bytes[26..28].copy_from_slice(&u16::MAX.to_be_bytes());
    assert_eq!(decode(&bytes), Err(ControlCodecError::Length));
}

/// One service more than there may be is refused, though its bytes are in order.
fn services_fit(random: &mut Random) -> bool {
    let ask = SetUp {
        gateway: "g".into(),
        host: [10, 0, 0, 1].into(),
        services: services(random),
        initiators: Initiators::Any,
        resolver: [192, 0, 2, 1].into(),
        is_verified: false,
    };
    let mut bytes = Vec::new();
    let body = AskBody::SetUp(SetUp { services: Services::new([]).expect("few"), ..ask });
    encode(&ControlMessage::Ask(ControlAsk { epoch: 1, serial: 1, body }), &mut bytes);
    let many = MOST_SERVICES as u16 + 1;
    bytes[26..28].copy_from_slice(&many.to_be_bytes());
    bytes.truncate(48);
    (1..=many).for_each(|port| bytes.extend([6, 0, (port >> 8) as u8, port as u8]));
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    decode(&bytes) == Err(ControlCodecError::Value("services"))
}
