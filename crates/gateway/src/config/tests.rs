//! Files that are right, and files with an error, which is shown at its place.

use super::*;
use ports::live::VlanPlace;

fn read(text: &str) -> Result<Config, String> {
    Config::read(text, Path::new("/etc/ravelin")).map_err(|error| error.to_string())
}

#[test]
fn what_a_reload_cannot_change_is_shown_where_it_stands() {
    let read = |text: &str| Config::read(text, Path::new("")).expect("a gateway");
    let running = read("program = \"a.rav\"\n[[port]]\ninterface = \"x\"\n[[port]]\ninterface = \"y\"\n");
    for (text, said) in [
        (
            "program = \"a.rav\"\nworkers = 2\n[[port]]\ninterface = \"x\"\n[[port]]\ninterface = \"y\"\n",
            "line 2, column 11: other workers than",
        ),
        (
            "program = \"a.rav\"\ncontrol = \"/run/b\"\n[[port]]\ninterface = \"x\"\n[[port]]\ninterface = \"y\"\n",
            "line 2, column 11: other `control` than",
        ),
        (
            "program = \"a.rav\"\n\nmetrics = \"127.0.0.1:9\"\n[[port]]\ninterface = \"x\"\n[[port]]\ninterface = \"y\"\n",
            "line 3, column 11: other `metrics` than",
        ),
    ] {
        let error = running.takes(&read(text)).expect_err(text).to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn what_of_names_is_fixed_while_the_process_runs_is_said_at_its_place() {
    let names = "[names]\nlisten = [\"127.0.0.1:53\"]\nzone = \"home.example\"\nstore = \"a\"\n\
        [[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\"]\n\
        [[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/8\"]\npeer = 1\n\
        [[names.host]]\nname = \"nas\"\ngateway = \"home\"\naddress = \"10.0.0.1\"\nservices = [\"tcp/22\"]\n\
        [names.waypoint]\nunknown = [\"203.0.113.32/31\"]\n";
    let read = |names: &str| {
        let text = format!("program = \"a.rav\"\n[[port]]\ninterface = \"x\"\n{names}");
        Config::read(&text, Path::new("")).expect("a gateway")
    };
    let running = read(names);
    let mut elsewhere = read(names);
    elsewhere.names.as_mut().expect("it has names").elsewhere.name_servers.push("ns2".to_owned());
    let error = running.takes(&elsewhere).expect_err("another name server").to_string();
    assert!(error.contains("other `waypoints` or `name_servers` of `[names]`"), "{error}");
    for (from, to, said) in [
        ("127.0.0.1:53", "127.0.0.1:54", "other `listen` of `[names]`"),
        ("home.example", "away.example", "other names, records, times or `shared_address` of the zone"),
        ("192.0.2.53\"", "192.0.2.54\"", "other names, records, times or `shared_address` of the zone"),
        ("store = \"a\"", "store = \"b\"", "other `store` of `[names]`"),
        ("zone =", "machine_services = []\nzone =", "other `machine_services` of `[names]`"),
        ("113.32/31", "113.32/30", "other `[names.waypoint]`"),
        ("113.32/31\"]", "113.32/31\"]\nhold = \"measured\"", "other `[names.waypoint]`"),
        ("113.32/31\"]", "113.32/31\"]\nserver_names = [\"tcp/443\"]", "other `[names.waypoint]`"),
        ("peer = 1", "peer = 2", "other `peer` of a `[[names.gateway]]`"),
        (names, "", "other `[names]`"),
    ] {
        assert!(names.contains(from), "{from}");
        let error = running.takes(&read(&names.replacen(from, to, 1))).expect_err(to).to_string();
        assert!(error.contains(said) && error.contains("start it anew"), "{error}");
    }
    for (from, to) in [
        ("nas", "tv"),
        ("10.0.0.1", "10.0.0.2"),
        ("tcp/22", "tcp/23"),
        ("10.0.0.0/8", "10.0.0.0/16"),
        ("[[names.host]]", "[[names.gateway]]\nname = \"far\"\nnetworks = []\npeer = 2\n[[names.host]]"),
        ("zone =", "clients = [\"10.0.0.0/8\"]\nreplies_per_second = 7\nserial = 9\nzone ="),
    ] {
        assert!(running.takes(&read(&names.replacen(from, to, 1))).is_ok(), "{to}");
    }
}

#[test]
fn ports_come_and_go_one_by_one_and_keep_their_numbers() {
    let file = |ports: &str| {
        let port = |port: &str| match port.split_once('.') {
            None if port == "-" => "[[port]]\nempty = true\n".to_owned(),
            None => format!("[[port]]\ninterface = \"{port}\"\n"),
            Some((on, vlan)) => format!("[[port]]\non = \"{on}\"\nvlan = {vlan}\n"),
        };
        let text: String = ports.split(' ').map(port).collect();
        Config::read(&format!("program = \"a.rav\"\n{text}"), Path::new("")).expect("a gateway")
    };
    let change = |old: &str, new: &str| {
        let anew = file(old).takes(&file(new)).map_err(|error| error.to_string())?;
        Ok::<String, String>(anew.iter().map(|anew| if *anew { 'n' } else { 's' }).collect())
    };
    for (old, new, anew) in [
        ("x y", "x y", "ss"),
        ("x y", "x y z", "ssn"),
        ("x y z", "x", "s"),
        ("x y z", "x - z", "sns"),
        ("x - z", "x y z", "sns"),
        ("x - z", "x - z", "sss"),
        ("x y", "- y - z", "nsnn"),
        ("x", "x y y.20 y.30", "snnn"),
        ("x y y.20", "x", "s"),
        ("y.20 x", "y.20 x y.30", "ssn"),
        ("y.20 y.30", "y.20", "s"),
        ("x y.20", "x y.20 y", "ssn"),
        ("y.20 y.30", "- y.30 y", "nsn"),
        ("y y.20 y.30", "- y.20 - y.40", "nsnn"),
    ] {
        assert_eq!(change(old, new), Ok(anew.to_owned()), "{old} to {new}");
    }
    for (old, new, said) in [
        ("x y z", "x z", "line 5, column 13: `z` is port 3 of the running gateway, with other settings or"),
        ("x y", "y x", "line 3, column 13: `y` is port 2 of the running gateway, with other settings or"),
        ("x y", "x - y", "line 7, column 13: `y` is port 2 of the running gateway, with other settings or"),
        (
            "x y",
            "x y y.20",
            "line 5, column 13: `y` is port 2 of the running gateway, with other settings or",
        ),
        (
            "x y y.20",
            "x y",
            "line 5, column 13: `y` is port 2 of the running gateway, with other settings or",
        ),
        ("x y", "x z", "line 5, column 13: port 2 of the running gateway is y, and a number goes from one"),
        ("x y", "z", "line 3, column 13: port 1 of the running gateway is x, and a number goes from one"),
        ("y.20 x", "- x y.30", "line 8, column 8: `y.30` divides the interface of port 1 of the running"),
    ] {
        let error = change(old, new).expect_err(new);
        assert!(error.starts_with(said), "{old} to {new}: {error}");
    }
    let many = |count: usize| (0..count).map(|number| format!("[[port]]\ninterface = \"p{number}\"\n"));
    let read = |count| read(&format!("program = \"a\"\n{}", many(count).collect::<String>())).map(drop);
    assert_eq!(read(1024), Ok(()));
    let error = read(1025).expect_err("too many");
    assert!(error.starts_with("line 2050, column 1: a gateway has at most 1024 ports"), "{error}");
}

#[test]
fn a_whole_file() {
    let config = read(
        "program = \"a.rav\"\n[[port]]\ninterface = \"x\"\nkind = \"af_packet\"\n[[port]]\ninterface = \"y\"\noffloads = false\n",
    );
    let port = |interface: &str, offloads| WantedPort {
        interface: interface.into(),
        vlan: VlanPlace::default(),
        kind: PortKind::AfPacket,
        offloads,
        keep_from_kernel: false,
        promiscuous: true,
        xdp: XdpWishes::default(),
        middleware: ports::live::Middleware::default(),
        tunnel: None,
        vnic: None,
    };
    let config = config.expect("is right");
    assert_eq!(config.program, Path::new("/etc/ravelin/a.rav"));
    assert_eq!(config.control, Path::new(CONTROL));
    assert_eq!(config.workers, WorkerSettings::default());
    assert_eq!(config.metrics, None);
    assert_eq!(config.ports, [port("x", Offloads::Cut), port("y", Offloads::Off)]);
    assert!(!config.routing.is_active() && config.tables.is_empty());
}

#[test]
fn ports_of_vlans_share_how_their_interface_is_attached() {
    let config = read(
        "program = \"a\"\n[[port]]\ninterface = \"x\"\nkind = \"af_xdp\"\n[[port]]\ninterface = \"y\"\n\
         [[port]]\non = \"x\"\nvlan = 20\nhost = true\n[[port]]\non = \"x\"\nvlan = 4094\naddresses = [\"10.0.0.1/24\"]\n\
         [[route]]\nto = \"0.0.0.0/0\"\nvia = \"10.0.0.7\"\nport = \"x.4094\"\n",
    )
    .expect("is right");
    let of = |port: &WantedPort| {
        let WantedPort { kind, vlan, keep_from_kernel, promiscuous, .. } = port;
        (port.name(), kind.clone(), *vlan, *keep_from_kernel, *promiscuous)
    };
    use PortKind::{AfPacket, AfXdp};
    let name = str::to_owned;
    assert_eq!(
        config.ports.iter().map(of).collect::<Vec<_>>(),
        [
            (name("x"), AfXdp, VlanPlace::Untagged, true, false),
            (name("y"), AfPacket, VlanPlace::Alone, false, true),
            (name("x.20"), AfXdp, VlanPlace::Tag(20), true, false),
            (name("x.4094"), AfXdp, VlanPlace::Tag(4094), true, false),
        ]
    );
    assert_eq!(config.routing.ports[2].host_interface.as_deref(), Some("h-x.20"));
    assert_eq!(config.routing.ports[2].tagged_on.as_deref(), Some("x"));
    assert_eq!(config.routing.routes[0].via[0].0.port, 4);
}

#[test]
fn several_workers_run_what_remembers_only_where_the_file_says_so() {
    let program = |text: &str| {
        let options = lang::pipeline::CompileOptions::default();
        lang::pipeline::compile("p.rav", text, &|_| None, &options).program.expect("compiles")
    };
    let hub = program("start stage all() { flood }");
    let switch = program(
        "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 1k  idle 30s  evict lru }\nstart decoder d(eth: ethernet) { learn hosts[eth.src] = in_port  flood }",
    );
    let suit = |rest: &str, program: &Program| {
        let text = format!("program = \"a\"\n{rest}[[port]]\ninterface = \"x\"\n");
        let config = Config::read(&text, Path::new("")).expect("is right");
        config.workers.suit(program).map_err(|error| error.to_string())
    };
    assert_eq!(suit("", &switch), Ok(()));
    assert_eq!(suit("workers = 2\n", &hub), Ok(()));
    assert_eq!(suit("workers = 2\nstate = \"per-worker\"\n", &switch), Ok(()));
    let error = suit("workers = 2\n", &switch).expect_err("the table is not shared");
    assert!(
        error.starts_with("line 2, column 11: with 2 workers each has table `hosts` for itself"),
        "{error}"
    );
    let steered = "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 1k  idle 30s  evict lru }\nstart decoder d(eth: ethernet) { learn hosts[eth.src] = in_port  flood }\nsteer decoder s(eth: ethernet) { steer hash(eth.src) as% u16 }\n";
    assert_eq!(suit("workers = 2\n", &program(steered)), Ok(()));
    let beats = format!("{steered}counter beats\nevery 1s {{ count beats }}\n");
    assert!(suit("workers = 2\n", &program(&beats)).is_err(), "it would beat at each worker");
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let cases = [
        ("prgram = 1\n", "line 1, column 1: unknown field `prgram`"),
        ("program = 1\n", "line 1, column 11: invalid type: integer `1`"),
        ("program = \"\"\n[[port]]\ninterface = \"x\"\n", "line 1, column 11: `program` names no file"),
        ("program = \"a\"\nmetrics = \"x\"\n", "line 2, column 11: `x` is not an address"),
        (
            "program = \"a\"\nmetrics = \"0.0.0.0:9480\"\n",
            "line 2, column 11: 0.0.0.0:9480 can be asked from other machines",
        ),
        ("program = \"a\"\n", "line 2, column 1: a gateway needs at least one port"),
        ("program = \"a\"\n[[port]]\nintrface = \"x\"\n", "line 3, column 1: unknown field `intrface`"),
        ("program = \"a\"\n[[port]]\ninterface = \"a b\"\n", "line 3, column 13: `a b` cannot be"),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\n[[port]]\ninterface = \"x\"\n",
            "line 5, column 13: interface `x` is port 1 already",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nkind = \"dpdk\"\n",
            "line 4, column 8: unknown variant `dpdk`, expected one of",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nqueues = [0]\n",
            "line 4, column 10: `queues` is for ports of `kind = \"af_xdp\"` alone",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nkind = \"af_xdp\"\nmode = \"generic\"\nzero_copy = true\n",
            "line 5, column 8: zero-copy needs",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nkind = \"af_xdp\"\nqueues = [1, 1]\n",
            "line 5, column 10: `queues` names each queue",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\noffloads = \"on\"\n",
            "line 4, column 12: invalid value: string \"on\", expected `\"cut\"`, `\"whole\"` or `\"off\"`",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nkind = \"tap\"\nkeep_from_kernel = true\n",
            "line 5, column 20: a TAP device is the kernel's own side",
        ),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\noffloads = 1\n",
            "line 4, column 12: invalid type: integer `1`, expected `\"cut\"`, `\"whole\"` or `\"off\"`",
        ),
        ("program = \"a\n", "line 1, column 13: "),
        ("program = \"a\"\n[[port]]\nkind = \"tap\"\n", "line 2, column 1: a port needs `interface"),
        ("program = \"a\"\n[[port]]\nvlan = 20\n", "line 3, column 8: `vlan` needs `on = \"…\"`"),
        ("program = \"a\"\n[[port]]\non = \"x\"\n", "line 3, column 6: `on` is for a port with `vlan"),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\n[[port]]\nempty = true\nmtu = 1500\n",
            "line 5, column 9: no port has a number that is `empty`",
        ),
        ("program = \"a\"\n[[port]]\nempty = true\n", "line 4, column 1: a gateway needs at least one"),
        (
            "program = \"a\"\n[[port]]\ninterface = \"x\"\nvlan = 20\n",
            "line 3, column 13: a port of a VLAN says `on`",
        ),
        (
            "program = \"a\"\n[[port]]\non = \"x\"\nvlan = 4095\n",
            "line 4, column 8: `vlan`: between 1 and 4094",
        ),
        ("program = \"a\"\n[[port]]\non = \"x\"\nvlan = 0\n", "line 4, column 8: `vlan`: between 1 and"),
        ("program = \"a\"\n[[port]]\non = \"x\"\nvlan = -1\n", "line 4, column 8: invalid value"),
        ("program = \"a\"\n[[port]]\non = \"a b\"\nvlan = 1\n", "line 3, column 6: `a b` cannot be"),
        (
            "program = \"a\"\n[[port]]\non = \"x\"\nvlan = 1\n[[port]]\non = \"x\"\nvlan = 1\n",
            "line 7, column 8: VLAN 1 on `x` is port 1 already",
        ),
        (
            "program = \"a\"\n[[port]]\non = \"x\"\nvlan = 1\n[[port]]\non = \"x.1\"\nvlan = 2\n",
            "line 7, column 8: `x.1` is port 1, a port of a VLAN",
        ),
        (
            "program = \"a\"\n[[port]]\non = \"x\"\nvlan = 1\n[[port]]\ninterface = \"x\"\nkind = \"tap\"\n",
            "line 7, column 8: `kind` is said at port 1, the first at `x`",
        ),
        (
            "program = \"a\"\nworkers = 0\n[[port]]\ninterface = \"x\"\n",
            "line 2, column 11: `workers`: between 1 and 64",
        ),
        (
            "program = \"a\"\nworkers = 2\ncores = [1, 1]\n[[port]]\ninterface = \"x\"\n",
            "line 3, column 9: `cores` names a core of its own for each worker: 2 of them",
        ),
        (
            "program = \"a\"\nstate = \"shared\"\n[[port]]\ninterface = \"x\"\n",
            "line 2, column 9: unknown variant `shared`, expected `per-worker`",
        ),
    ];
    for (text, wanted) in cases {
        let error = read(text).expect_err(text);
        assert!(error.starts_with(wanted), "{text:?} gives {error}");
    }
}
