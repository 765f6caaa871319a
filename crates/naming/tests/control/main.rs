//! The control messages and the machines that send them: their bytes, and their life in a bad network.

mod codec;
mod leases;
mod network;
mod set_ups;
mod waypoints;

use naming::control::{AskBody, HostOffer, Registration, Rejection, SetUp};
use naming::dns::DnsName;
use naming::{Initiators, Service, Services, SetUpError};
use std::net::{IpAddr, Ipv4Addr};
use tables::generate::Random;

fn name(number: u64) -> DnsName {
    DnsName::parse(&format!("n{number}.home.example")).expect("a name")
}

fn services(random: &mut Random) -> Services {
    let count = random.below(5);
    let some = (0..count).map(|_| Service { protocol: random.word() as u8, port: random.word() as u16 });
    Services::new(some.collect::<Vec<_>>()).expect("few")
}

fn offer(random: &mut Random, number: u64) -> HostOffer {
    let host = Ipv4Addr::from_bits(random.word() as u32);
    let ipv6 = random.chance(50).then(|| random.wide().into());
    HostOffer { name: name(number), host, ipv6, services: services(random) }
}

fn set_up(random: &mut Random) -> AskBody {
    let address = Ipv4Addr::from_bits(random.word() as u32);
    let length = random.below(33) as u8;
    let prefix = Ipv4Addr::from_bits((u64::from(address.to_bits()) >> (32 - length) << (32 - length)) as u32);
    let initiators = match random.below(3) {
        0 => Initiators::Any,
        1 => Initiators::Prefix(prefix, length),
        _ => Initiators::Exact(address),
    };
    let resolver: IpAddr = match random.chance(50) {
        true => IpAddr::V4(Ipv4Addr::from_bits(random.word() as u32)),
        false => IpAddr::V6(random.wide().into()),
    };
    let host = Ipv4Addr::from_bits(random.word() as u32);
    let gateway = format!("g\u{e4}{}", random.below(100)).into();
    let (services, is_verified) = (services(random), random.chance(50));
    AskBody::SetUp(SetUp { gateway, host, services, initiators, resolver, is_verified })
}

fn registration(random: &mut Random) -> AskBody {
    let number = random.below(9);
    AskBody::Register(match random.below(4) {
        0 => Registration::Renew,
        1 => Registration::Offer(offer(random, number)),
        2 => Registration::Withdraw(name(number)),
        _ => Registration::Release,
    })
}

fn rejection(random: &mut Random) -> Rejection {
    [
        Rejection::SetUp(SetUpError::Full),
        Rejection::SetUp(SetUpError::Share),
        Rejection::SetUp(SetUpError::InitiatorFull),
        Rejection::UnknownResponder,
        Rejection::NameTaken,
        Rejection::NotAllowed,
        Rejection::NoRoom,
        Rejection::Superseded,
        Rejection::Unsupported,
        Rejection::NotGiven,
    ][random.below(10) as usize]
}
