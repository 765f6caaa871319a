//! The ways from the name server of this process to waypoints: the one in the same process, and those at the
//! other ends of tunnels.

use super::waypoint::{SharedWaypoint, locked};
use crate::names::asking::WaypointLink;
use naming::control::{ControlAsk, ControlMessage, OwnerAnswer, Peer, encode};
use ports::live::TunnelControl;
use ports::live::tunnel::WantedPeer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The waypoint of this process, for the name server, and the name server, for the waypoint.
pub(super) const OWN: Peer = Peer(0);

/// The number of a waypoint or name server of the file, by its place there. None is [`OWN`].
pub(super) fn numbered(place: usize) -> Peer {
    Peer(u32::try_from(place + 1).unwrap_or(u32::MAX))
}

/// Peers of tunnels by their names: the tunnel, and what the file says of them there.
#[derive(Default)]
pub(crate) struct Ways(Mutex<HashMap<String, (TunnelControl, WantedPeer)>>);

impl Ways {
    /// These are the peers from now on. Gives the names of those that have gone or have lost a key.
    pub(crate) fn follow(&self, tunnels: &[TunnelControl]) -> Vec<String> {
        let of = |tunnel: &TunnelControl| {
            let peers = tunnel.peer_list().into_iter();
            peers.map(|peer| (peer.name.clone(), (tunnel.clone(), peer))).collect::<Vec<_>>()
        };
        let new: HashMap<_, _> = tunnels.iter().flat_map(of).collect();
        let mut all = self.all();
        let keeps = |(name, (_, before)): &(&String, &(TunnelControl, WantedPeer))| {
            new.get(*name).is_some_and(|(_, now)| now.keeps_keys_of(before))
        };
        let lost = all.iter().filter(|peer| !keeps(peer)).map(|(name, _)| name.clone()).collect();
        *all = new;
        lost
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, (TunnelControl, WantedPeer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ways to all waypoints that a name server asks.
pub(super) struct WaypointWays {
    pub(super) own: Option<SharedWaypoint>,
    /// The others, in the order of the file.
    pub(super) elsewhere: Vec<String>,
    pub(super) ways: Arc<Ways>,
}

impl WaypointWays {
    /// The waypoints in the order in which they are asked.
    pub(super) fn peers(&self) -> impl Iterator<Item = Peer> {
        self.own.iter().map(|_| OWN).chain((0..self.elsewhere.len()).map(numbered))
    }
}

impl WaypointWays {
    /// Sends an ask to a waypoint elsewhere, if there is a way.
    fn send(&self, to: Peer, ask: &ControlAsk) -> Option<()> {
        let name = self.elsewhere.get((to.0 as usize).checked_sub(1)?)?;
        let (tunnel, number) =
            self.ways.all().get(name).map(|(tunnel, peer)| (tunnel.clone(), peer.number))?;
        let mut bytes = Vec::new();
        encode(&ControlMessage::Ask(ask.clone()), &mut bytes);
        // What cannot go is repeated like what gets lost.
        tunnel.send(number, &bytes).ok()
    }
}

impl WaypointLink for WaypointWays {
    fn carry(&mut self, asks: &[(Peer, ControlAsk)], now: u64) -> Vec<(Peer, OwnerAnswer)> {
        let (own, others): (Vec<_>, Vec<_>) = asks.iter().partition(|(to, _)| *to == OWN);
        for (to, ask) in others {
            // What cannot go is repeated like what gets lost.
            let _ = self.send(*to, ask);
        }
        let Some(waypoint) = &self.own else { return Vec::new() };
        let own: Vec<_> = own.into_iter().map(|(_, ask)| ask).collect();
        // Without room it drops an ask, which is carried again.
        let answers = locked(waypoint).heard_all(OWN, &own, true, now).into_iter();
        answers.filter_map(|answer| Some((OWN, answer.ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProcessConfig;
    use crate::config::names::NamesConfig;
    use crate::leases::Leasing;
    use crate::leases::tests::{free, one_peer};
    use crate::names::Names;
    use naming::control::{AnswerBody, AskBody, ControlCodecError, Rejection, SetUp, decode};
    use naming::{Initiators, Service, Services};
    use ports::live::tunnel::LoneTunnel;
    use std::net::Ipv4Addr;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    const ZONE: &str = "zone = \"home.example\"\n[[names.server]]\nname = \"ns.other.example.\"\n\
        [[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/24\"]\npeer = 1\n\
        [[names.gateway]]\nname = \"lab\"\nnetworks = [\"10.0.1.0/24\"]\npeer = 2\n";
    const POOL: &str = "[names.waypoint]\nknown = [\"198.51.100.1\"]\n";

    fn file(names: &str, zone: &str) -> Result<NamesConfig, String> {
        file_with("packets = false\n", names, zone)
    }

    /// The same where `more` is said of the peer `ns1`.
    fn file_with(more: &str, names: &str, zone: &str) -> Result<NamesConfig, String> {
        let key = |byte| tunnel::SecretKey::new([byte; 32]).public();
        let peer = |name: &str, number: u32| {
            format!("[[port.peer]]\nname = \"{name}\"\nnumber = {number}\nkey = \"{}\"\n", key(number as u8))
        };
        let text = format!(
            "program = \"p.rav\"\n[[port]]\nkind = \"tunnel\"\nlisten = \"0.0.0.0:5282\"\nkey = \"w.key\"\n{}{}{more}[names]\n{names}\n{zone}",
            peer("home", 1),
            peer("ns1", 9)
        );
        match ProcessConfig::read(&text, Path::new("")) {
            Ok(ProcessConfig::Gateway(config)) => Ok(config.names.expect("it has names")),
            Ok(ProcessConfig::Names(_)) => panic!("it has ports"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn ask(epoch: u64, serial: u64, gateway: &str, host: [u8; 4], initiator: u8) -> ControlAsk {
        let services = Services::new([Service { protocol: 6, port: 22 }]).expect("one");
        let initiators = Initiators::Exact([203, 0, 113, initiator].into());
        let resolver = Ipv4Addr::from([203, 0, 113, initiator]).into();
        let host = host.into();
        let (gateway, is_verified) = (gateway.into(), true);
        let set_up = SetUp { gateway, host, services, initiators, resolver, is_verified };
        ControlAsk { epoch, serial, body: AskBody::SetUp(set_up) }
    }

    /// A waypoint without a name server of its own.
    fn waypoint() -> Names {
        let config = file("name_servers = [\"ns1\"]", &format!("{ZONE}{POOL}")).expect("is right");
        assert!(config.listen.is_empty());
        Names::open(&config).expect("it opens nothing")
    }

    fn promises(names: &Names) -> usize {
        names.view().promises.len()
    }

    #[test]
    fn only_a_name_server_of_the_file_gets_addresses_and_for_hosts_of_gateways_only() {
        let names = waypoint();
        let home = ask(5, 1, "home", [10, 0, 0, 80], 9);
        assert_eq!(names.asked("home", &home), Err("no_name_server"));
        assert_eq!(promises(&names), 0);
        let answer = names.asked("ns1", &home).expect("is answered");
        let AnswerBody::Accept(address, _) = answer.body else { panic!("{answer:?}") };
        assert_eq!((address, promises(&names)), ([198, 51, 100, 1].into(), 1));
        // What comes again is answered again, and nothing more is promised.
        assert_eq!(names.asked("ns1", &home), Ok(answer));
        assert_eq!(promises(&names), 1);
        // Another ask may not have its number, and no earlier life of its sender is heard.
        assert_eq!(names.asked("ns1", &ask(5, 1, "home", [10, 0, 0, 81], 10)), Err("other_ask"));
        assert_eq!(names.asked("ns1", &ask(4, 2, "home", [10, 0, 0, 81], 10)), Err("old_epoch"));
        for (serial, gateway, host) in [(2, "home", [10, 0, 1, 80]), (3, "other", [10, 0, 0, 80])] {
            let answer = names.asked("ns1", &ask(5, serial, gateway, host, 11)).expect("is answered");
            assert_eq!(answer.body, AnswerBody::Reject(Rejection::UnknownResponder), "{gateway} {host:?}");
        }
        assert_eq!(promises(&names), 1);
        // Nobody has asked anything here, so nothing is answered.
        assert_eq!(names.answered("ns1", &names.asked("ns1", &home).expect("again")), Err("not_asked"));
    }

    #[test]
    fn what_a_name_server_has_said_by_a_key_that_is_taken_away_is_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let listen = free();
        let wishes = |keys: &[u8]| one_peer(folder.path(), listen, "ns1", keys);
        let (_lone, control) = LoneTunnel::open(&wishes(&[7])).expect("it opens");
        let (names, ended) = (Arc::new(waypoint()), Arc::<AtomicBool>::default());
        let leasing = Leasing::new(Some(names.clone()), |_| ());
        let follow = |keys: &[u8]| {
            control.change_to(&wishes(keys)).expect("it can").make().expect("it does");
            leasing.follow(None, std::slice::from_ref(&control), &ended).expect("a thread");
        };
        let asked = |epoch| names.asked("ns1", &ask(epoch, 1, "home", [10, 0, 0, 80], 9)).map(drop);
        follow(&[7]);
        assert_eq!((asked(u64::MAX), asked(5)), (Ok(()), Err("old_epoch")));
        // A key more takes nothing away.
        follow(&[7, 8]);
        assert_eq!(asked(5), Err("old_epoch"));
        follow(&[8]);
        assert_eq!((asked(5), asked(4)), (Ok(()), Err("old_epoch")));
        ended.store(true, Ordering::SeqCst);
    }

    #[test]
    fn what_is_cut_or_of_another_kind_is_no_ask() {
        let mut bytes = Vec::new();
        encode(&ControlMessage::Ask(ask(1, 1, "home", [10, 0, 0, 80], 9)), &mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), Err(ControlCodecError::Length), "{length}");
        }
    }

    #[test]
    fn what_is_wrong_with_other_roles_is_said_at_its_place() {
        let whole = format!("{ZONE}{POOL}");
        let both = "waypoints = [\"ns1\"]\nname_servers = [\"ns1\"]\nlisten = [\"192.0.2.1:53\"]";
        assert!(file(both, &whole).is_ok());
        let many: Vec<String> = (0..20).map(|_| "\"ns1\"".to_owned()).collect();
        for (names, zone, said) in [
            ("waypoints = [\"w\"]", &whole[..], "line 16, column 14: no tunnel has a peer `w`"),
            ("name_servers = [\"ns1\", \"ns1\"]", &whole, "line 16, column 24: `ns1` stands here twice"),
            ("name_servers = [\"ns1\"]", ZONE, "line 16, column 17: name servers ask a waypoint"),
            ("", &whole, "line 17, column 8: `listen` says where names are asked for"),
            ("waypoints = [\"ns1\"]", &whole, "line 17, column 8: `listen` says"),
            (
                &format!("waypoints = [{}]", many.join(", ")),
                &whole,
                "line 16, column 21: `ns1` stands here twice",
            ),
        ] {
            let error = file(names, zone).expect_err(names);
            assert!(error.starts_with(said), "{error}\n{names}");
        }
        let error = file_with("", "name_servers = [\"ns1\"]", &whole).expect_err("it may send packets");
        let said = "line 15, column 17: `ns1` asks by control messages alone: write `packets = false` in its `[[port.peer]]`";
        assert_eq!(error, said);
        let is_gateway =
            format!("{whole}[[names.gateway]]\nname = \"ns1\"\nnetworks = [\"10.9.0.0/24\"]\npeer = 9\n");
        assert!(file_with("", "name_servers = [\"ns1\"]", &is_gateway).is_ok(), "a gateway has packets");
        // A name for each initiator needs somebody who promises it.
        let host = "[[names.host]]\nname = \"nas\"\ngateway = \"home\"\naddress = \"10.0.0.80\"\nservices = [\"icmp\"]\n";
        let alone = "listen = [\"192.0.2.1:53\"]";
        let error = file(alone, &format!("{ZONE}{host}")).expect_err("nobody promises");
        assert!(error.contains("add `[names.waypoint]` or `waypoints`"), "{error}");
        assert!(file(&format!("{alone}\nwaypoints = [\"ns1\"]"), &format!("{ZONE}{host}")).is_ok());
    }
}
