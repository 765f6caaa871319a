//! Configurations of IOS are policies by interface and direction, or are refused by line.

use super::*;
use crate::policies::segment::first_segment;
use policy::{Packet, Path, evaluate};

fn options() -> PolicyOptions {
    let interfaces = [("GigabitEthernet0/1", 1), ("Serial 0/0", 2)];
    let interfaces = interfaces.map(|(name, port)| (name.to_owned(), port)).to_vec();
    PolicyOptions { interfaces, ..PolicyOptions::default() }
}

fn imported(text: &str) -> ImportedPolicy {
    read(text.as_bytes(), &options()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn whole(text: &str) -> Policy {
    let imported = imported(text);
    assert_eq!(imported.refused, [], "{text}");
    imported.policy
}

fn segment(in_port: Option<u128>, out_port: Option<u128>, dport: u128) -> Packet {
    first_segment(dport)
        .with(PacketField::SourcePort, Some(2000))
        .with(PacketField::InPort, in_port)
        .with(PacketField::OutPort, out_port)
}

fn passes(policy: &Policy, path: Path, packet: &Packet) -> bool {
    evaluate(policy, path, packet, &|_| false).expect("it ends").action == RuleAction::Pass
}

const BOTH: &str = "hostname r\n!\ninterface GigabitEthernet0/1\n description permit all\n ip address 10.0.0.1 255.0.0.0\n \
                    ip access-group from-lan in\n!\ninterface Serial 0/0\n ip access-group 101 out\n no shutdown\n!\n\
                    ip access-list extended from-lan\n remark web\n 20 permit tcp 10.0.0.0 0.255.255.255 any eq www 443\n \
                    10 deny tcp any any eq 443 log\n!\naccess-list 101 permit tcp any any established\n\
                    access-list 101 permit tcp any any eq 80\nend\n";

#[test]
fn lists_are_asked_by_interface_and_direction() {
    let policy = whole(BOTH);
    for (in_port, dport, expected) in
        [(1, 80, true), (1, 443, false), (1, 22, false), (2, 443, false), (2, 80, true), (3, 443, false)]
    {
        let packet = segment(Some(in_port), Some(2), dport);
        assert_eq!(passes(&policy, Path::Forwarded, &packet), expected, "{in_port} {dport}");
    }
    let elsewhere = segment(Some(2), Some(1), 22);
    assert!(passes(&policy, Path::Forwarded, &elsewhere), "no list is asked there");
    assert!(!passes(&policy, Path::ToGateway, &segment(Some(1), None, 22)));
    assert!(passes(&policy, Path::FromGateway, &segment(None, Some(2), 22)), "the router's own packets");
    let six = segment(Some(1), Some(2), 22).with(PacketField::Family, Some(6));
    assert!(passes(&policy, Path::Forwarded, &six), "the lists are of IPv4");
    let answer = segment(Some(3), Some(2), 4000).with(PacketField::TcpFlags, Some(0x10));
    assert!(passes(&policy, Path::Forwarded, &answer));
    let place =
        |group: usize| policy.groups[group].rules.iter().map(|rule| rule.place.line).collect::<Vec<u32>>();
    assert_eq!((place(0), place(1)), (vec![15, 14, 12], vec![17, 18, 17]));
    assert!(policy.groups[0].rules[0].log);
}

#[test]
fn configurations_without_indents_mean_the_same() {
    for other in [BOTH.replace("\n ", "\n"), BOTH.replace("\n ", "\n\t"), BOTH.replace("\n!", "")] {
        let policies = [&other, BOTH].map(|text| imported(text).policy);
        for packet in
            [(1, 80), (1, 443), (2, 443), (3, 80)].map(|(port, to)| segment(Some(port), Some(2), to))
        {
            let [one, wanted] = policies.each_ref().map(|policy| passes(policy, Path::Forwarded, &packet));
            assert_eq!(one, wanted, "{other}");
        }
    }
}

#[test]
fn object_groups_are_all_that_they_hold() {
    let policy = whole(
        "object-group network lan\n description ours\n host 10.0.0.1\n 10.9.0.0 255.255.0.0\n group-object more\n\
         object-group network more\nrange 10.1.0.1 10.1.0.9\n10.2.0.0 /16\n!\nobject-group service web\n tcp eq www\n \
         tcp source gt 1999 443\n gre\n udp range 5000 5003\n!\ninterface Serial 0/0\n ip access-group x out\n\
         ip access-list extended x\n deny object-group web object-group lan host 192.0.2.1\n permit ip any any\nend\n"
            .replace("10.2.0.0 /16", "10.2.0.0/16")
            .as_str(),
    );
    let from =
        |address: u128, packet: Packet| packet.with(PacketField::Source, Some(0xffff_0000_0000 | address));
    let web = |dport| segment(Some(1), Some(2), dport);
    for (address, dport, denied) in [
        (0x0a00_0001, 80, true),
        (0x0a00_0002, 80, false),
        (0x0a09_0505, 443, true),
        (0x0a01_0009, 443, true),
        (0x0a01_000a, 443, false),
        (0x0a02_ffff, 80, true),
        (0x0a00_0001, 444, false),
        (0x0a00_0001, 5001, false),
    ] {
        let packet = from(address, web(dport));
        assert_eq!(passes(&policy, Path::Forwarded, &packet), !denied, "{address:x} {dport}");
    }
    let low = web(443).with(PacketField::SourcePort, Some(1999));
    assert!(passes(&policy, Path::Forwarded, &low));
    // A line that denies by ports denies no later fragment, but one that denies a protocol does.
    let ports = [PacketField::SourcePort, PacketField::DestinationPort, PacketField::TcpFlags];
    let bare = ports.into_iter().fold(web(80), |packet, field| packet.with(field, None));
    let later = bare.with(PacketField::LaterFragment, Some(1));
    assert!(passes(&policy, Path::Forwarded, &later));
    assert!(!passes(&policy, Path::Forwarded, &later.with(PacketField::Protocol, Some(47))));
}

#[test]
fn what_lists_use_of_groups_has_a_limit() {
    let hosts: String = (0..1000).map(|host| format!(" host 10.0.{}.{}\n", host / 250, host % 250)).collect();
    let all = " group-object few\n".repeat(1001);
    let read = imported(&format!(
        "object-group network one\n host 10.0.0.1\nobject-group network few\n{hosts}object-group network all\n{all}\
         ip access-list extended a\n permit ip object-group one any\n permit ip object-group all any\n \
         permit ip object-group one any\n"
    ));
    // Beyond the limit nothing more is looked through.
    let refused: Vec<u32> = read.refused.iter().map(|error| error.line).collect();
    let end = 1 + 1 + 1 + 1000 + 1 + 1001 + 1;
    assert_eq!((read.kept, refused), (1, vec![end + 2, end + 3]));
    assert!(read.refused.iter().all(|error| error.what.contains("members of object groups")));
}

#[test]
fn lines_that_are_taken_away_are_gone() {
    let list = |lines: &str| {
        whole(&format!(
            "interface Serial 0/0\n ip access-group x out\nip access-list extended x\n{lines}\nend\n"
        ))
    };
    for (lines, web, mail) in [
        (" permit tcp any any eq 80\n permit ip any any\n no permit ip any any", true, false),
        (" 10 deny tcp any any eq 80\n 20 permit ip any any\n no 10", true, true),
        (" permit tcp any any eq 25\n no permit tcp any any eq 25\n permit tcp any any eq 80", true, false),
        (
            " permit tcp any any eq 25\nno ip access-list extended x\nip access-list extended x\n permit tcp any any eq www",
            true,
            false,
        ),
    ] {
        let policy = list(lines);
        let asked = [80, 25].map(|port| passes(&policy, Path::Forwarded, &segment(Some(1), Some(2), port)));
        assert_eq!(asked, [web, mail], "{lines}");
    }
    let taken = BOTH.replace("end\n", "interface Serial 0/0\n no ip access-group 101 out\nend\n");
    assert!(passes(&whole(&taken), Path::Forwarded, &segment(Some(3), Some(2), 443)));
}

#[test]
fn a_group_that_was_taken_away_begins_anew() {
    let policy = whole(
        "object-group network g\n host 10.0.0.1\nno object-group network g\nobject-group network g\n host 10.0.0.2\n\
         interface Serial 0/0\n ip access-group x out\n\
         ip access-list extended x\n permit ip object-group g any\nno object-group network other\nend\n",
    );
    for (source, expected) in [(0x0a00_0001, false), (0x0a00_0002, true)] {
        let packet = segment(Some(1), Some(2), 80).with(PacketField::Source, Some(0xffff_0000_0000 | source));
        assert_eq!(passes(&policy, Path::Forwarded, &packet), expected, "{source:x}");
    }
}

const ASKED: &str = "interface Serial 0/0\n ip access-group A in\nend\n";

#[test]
fn what_stands_in_a_banner_is_no_configuration() {
    let inner = "ip access-list extended A\n permit ip any any\ndeny nothing\nobject-group network N\n any\n";
    let list = "ip access-list extended A\n deny ip object-group N any\n permit ip any any\n";
    let group = "object-group network N\n host 10.0.0.1\n";
    for (begin, end) in [
        ("banner motd ^C", "^C"),
        ("banner motd ^Cwelcome", "goodbye^C"),
        ("banner motd \u{3}", "\u{3}"),
        ("BANNER Login #", "#"),
        ("banner exec ~", "that is the end ~ of it"),
        ("aaa authentication banner ^C", "^C"),
        ("aaa authentication fail-message %", "%"),
        ("menu staff title ^C", "^C"),
        ("busy-message host #", "#"),
        ("macro name uplink", "@"),
    ] {
        let policy = whole(&format!("{begin}\n{inner}{end}\n{group}{list}{ASKED}"));
        let denied = segment(Some(2), Some(1), 80);
        assert!(!passes(&policy, Path::Forwarded, &denied), "{begin}");
        let other = denied.with(PacketField::Source, Some(0xffff_0a00_0002));
        assert!(passes(&policy, Path::Forwarded, &other), "{begin}");
    }
    let one_line = whole(&format!("banner motd #permit ip any any#\n{group}{list}{ASKED}"));
    assert!(!passes(&one_line, Path::Forwarded, &segment(Some(2), Some(1), 80)));
    for (text, part, advice) in [
        ("banner motd ^C\n", "does not end", "the delimiter that begins it"),
        ("macro name uplink\n", "does not end", "a line `@`"),
        ("banner motd ^C\n a ^ b\n^C\n", "its end is not certain", "take the `^` out"),
        ("banner motd\n", "delimiter of the text is missing", "remove the line"),
    ] {
        let error = read(format!("hostname x\n{text}{ASKED}").as_bytes(), &options()).expect_err(text);
        assert_eq!(error.line, 2 + u32::from(text.contains("a ^ b")), "{error}");
        assert!(error.what.contains(part) && error.advice.contains(advice), "{error}");
    }
}

#[test]
fn a_certificate_is_hexadecimal_digits_and_hides_no_command() {
    let list = "ip access-list extended A\n deny tcp any any\n permit ip any any\n";
    let begin = "crypto pki certificate chain own\n certificate self-signed 01";
    for body in
        ["\n  30820241 308201AA\n\n  a0\n  \tquit", "\n  quit", " nvram:own.cer", "\n  30820241\n\tquit\n"]
    {
        let policy = whole(&format!("{begin}{body}\n{list}{ASKED}"));
        assert!(!passes(&policy, Path::Forwarded, &segment(Some(2), Some(1), 80)), "{body}");
    }
    for behind in ["", "  30820241\n", "  30820241 deny\n", "!\n"] {
        for end in ["", "quit\n"] {
            let text = format!("{begin}\n{behind}{list}{end}{ASKED}");
            let error = read(text.as_bytes(), &options()).expect_err(&text);
            assert_eq!((error.line, error.column), (2, 2), "{text}: {error}");
            assert!(
                error.what.contains("does not end") && error.advice.contains("`quit`"),
                "{text}: {error}"
            );
        }
    }
}

#[test]
fn remarks_and_descriptions_are_one_line_and_begin_no_text() {
    for free in [
        "ip access-list extended B\n remark was ^C before\n",
        "ip access-list extended B\n 10 remark \u{3}\n",
        "access-list 101 remark ^C\n",
        "interface Serial 0/1\n description a ^C b\n",
    ] {
        let policy = whole(&format!("{free}ip access-list extended A\n deny ip any any\n{ASKED}"));
        assert!(!passes(&policy, Path::Forwarded, &segment(Some(2), Some(1), 80)), "{free}");
    }
}

#[test]
fn a_line_that_may_begin_a_text_is_refused() {
    for line in [
        "banner # text",
        "banner ^C",
        "banner mot #",
        "banner l #",
        "bann motd #",
        "BAN #",
        "crypto isakmp client configuration group g\n banner #",
        "aaa authentication ban #",
        "aaa authen fail-message #",
        "refuse-mes #",
        "men staff title #",
        "menu staff tit #",
        "macro nam uplink",
        "ip admission auth-proxy-banner http #",
        "snmp-server contact ^C",
        "permit ip any any \u{3}",
        "rem ^C",
    ] {
        let text = format!("hostname x\n{line}\nip access-list extended A\n permit ip any any\n#\n{ASKED}");
        let error = read(text.as_bytes(), &options()).expect_err(line);
        assert!(error.what.contains("may begin a text"), "{line}: {error}");
        assert_eq!(error.line, 2 + line.matches('\n').count() as u32, "{line}: {error}");
    }
    // Words that begin as those of commands with texts do, and are whole.
    whole(&format!(
        "aaa authentication login default local\nmenu staff text 1 a\nip admission auth-proxy-banner http\n\
         ip access-list extended A\n permit ip any any\n{ASKED}"
    ));
}

#[test]
fn a_mask_of_a_group_has_ones_before_zeros() {
    for (mask, refused) in
        [("0.255.255.255", true), ("255.0.255.0", true), ("255.255.0.0", false), ("0.0.0.0", false)]
    {
        let text = format!(
            "object-group network N\n 10.0.0.0 {mask}\nip access-list extended A\n deny ip object-group N any\n \
             permit ip any any\n{ASKED}"
        );
        let imported = imported(&text);
        assert_eq!(imported.refused.len(), usize::from(refused), "{mask}");
        if let Some(error) = imported.refused.first() {
            assert_eq!((error.line, error.column), (2, 11), "{error}");
            assert!(error.what.contains("no mask of a network"), "{error}");
        } else {
            let packet = segment(Some(2), Some(1), 80);
            assert!(!passes(&imported.policy, Path::Forwarded, &packet), "{mask}");
        }
    }
}

#[test]
fn lines_that_decide_nothing_about_packets_of_ipv4_are_passed_over() {
    let list = "ip access-list extended A\n permit tcp any any eq 80\n";
    let policy = whole(&format!(
        "access-list 700 permit 0000.0000.0000 ffff.ffff.ffff\naccess-list 200 permit 0x0000 0xffff\n\
         access-list 1000 permit 0\naccess-list dynamic-extended\nip access-list logging interval 10\n\
         ip access-list role-based S\n permit ip\n deny tcp\n{list}{ASKED}"
    ));
    let web = |policy: &Policy, port| passes(policy, Path::Forwarded, &segment(Some(2), Some(1), port));
    assert_eq!((web(&policy, 80), web(&policy, 22)), (true, false));
    // New numbers move no line, and later lines go by them.
    let policy = whole(&format!(
        "{list} permit tcp any any eq 22\nip access-list resequence A 100 5\nip access-list extended A\n \
         103 deny ip any any\n no permit tcp any any eq 80\n{ASKED}"
    ));
    assert_eq!((web(&policy, 80), web(&policy, 22)), (false, false));
    let unclear = [
        ("access-list 2700 permit ip any any\n", 13, "none of IP"),
        ("ip access-list hardware permit fragments\n", 41, "has not the words"),
        ("ip access-list resequence B 10 10\n", 27, "no list `B`"),
        ("ip access-list resequence A 0 10\n", 29, "no such numbers"),
        ("permit ip any any\n", 1, "in no list"),
        ("interface Serial 0/0\n ip policy route-map x\n", 2, "sends packets another way"),
        ("ip options drop\n", 1, "options of IP"),
        ("cts role-based enforcement\n", 1, "security groups"),
    ];
    for (line, column, part) in unclear {
        let imported = imported(&format!("{list}hostname x\n{line}{ASKED}"));
        assert_eq!(imported.kept, 2, "{line}: the list and the interface are kept");
        let refused: Vec<&ImportError> = imported.refused.iter().collect();
        assert_eq!(refused.len(), 1, "{line}: {refused:?}");
        assert!(refused[0].what.contains(part), "{line}: {}", refused[0]);
        assert_eq!(refused[0].column, column, "{line}: {}", refused[0]);
    }
}

#[test]
fn nothing_is_found_about_what_nobody_has_written_or_no_interface_asks() {
    let policy = whole(&format!(
        "ip access-list extended A\n deny tcp any any eq 23\n permit ip any any\nip access-list standard VTY\n \
         permit 10.0.0.1\nline vty 0 4\n access-class VTY in\n{ASKED}"
    ));
    let found = policy::findings(&policy, 9).expect("small");
    assert_eq!(found.unreached, [0usize; 0], "{found:?}");
    assert_eq!(found.order.expect("small").redundant.len(), 0);
    assert_eq!(policy.lines().len(), 3, "two lines of the list, and one of the interface");
    assert!(!passes(&policy, Path::Forwarded, &segment(Some(2), Some(1), 23)));
}

#[test]
fn a_list_of_refused_lines_denies_and_is_told_once() {
    let imported = imported(&format!("ip access-list extended A\n permit tcp any any dscp ef\n{ASKED}"));
    assert_eq!(imported.refused.len(), 1, "{:?}", imported.refused);
    assert!(!passes(&imported.policy, Path::Forwarded, &segment(Some(2), Some(1), 80)));
}

#[test]
fn what_no_policy_says_is_refused_at_its_place() {
    let list = "ip access-list extended x\n permit ip any any\n";
    for (text, line, column, part) in [
        ("interface Vlan7\n ip access-group x in\n", 1, 2, "bound to no port"),
        ("interface Serial 0/0\n ip access-group y in\n", 1, 2, "no access list `y`"),
        ("interface Serial 0/0\n ip access-group x both\n", 1, 20, "no direction"),
        ("interface Serial 0/0\n ip access-group x\n", 1, 19, "has not the words"),
        ("line vty 0 4\n ip access-group x in\n", 1, 2, "behind no interface"),
        ("interface Serial 0/0\n ipv6 traffic-filter six in\n", 1, 2, "a list of IPv6"),
        ("ip access-list extended y\n permit tcp any any eq 80 dscp ef\n", 1, 27, "no column"),
        ("ip access-list extended y\n permit ip object-group g any\n", 1, 25, "no object group `g`"),
        (
            "object-group network g\n hosts 1.2.3.4\naccess-list 101 permit ip object-group g any\n",
            1,
            2,
            "no IPv4 address",
        ),
        (
            "object-group service g\n tcp neither 4\naccess-list 101 permit object-group g any any\n",
            1,
            6,
            "too many",
        ),
        (
            "object-group network g\n group-object g\naccess-list 101 permit ip object-group g any\n",
            1,
            15,
            "holds itself",
        ),
        ("object-group network g\naccess-list 101 permit ip object-group g any\n", 1, 40, "is empty"),
        (
            "object-group network g\n any\naccess-list 101 permit object-group g any any\n",
            2,
            37,
            "of the other kind",
        ),
        ("ip access-list extended y\n no permit ip any any\n", 1, 2, "no line above"),
        ("ip access-list extended y\n no 30\n", 1, 2, "no line above"),
        (
            "interface Serial 0/0\nint GigabitEthernet0/1\n ip access-group x in\n",
            1,
            1,
            "may mean `interface`",
        ),
        ("interface Serial 0/0\n ip access-g x in\n", 1, 5, "may mean `access-group`"),
        ("interface Serial 0/0\n no ip access-gr x in\n", 1, 8, "may mean `access-group`"),
        (
            "object-group network g\n host 1.2.3.4\n!\nno object-group network g\naccess-list 101 permit ip object-group g any\n",
            4,
            40,
            "no object group `g`",
        ),
        (
            "object-group network g\n host 1.2.3.4\nno object-group service g\naccess-list 101 permit ip object-group g any\n",
            2,
            1,
            "is of another kind",
        ),
        ("interface Serial 0/0\n zone-member security inside\n", 1, 2, "zones"),
        ("interface Serial 0/0\n ip verify unicast source reachable-via rx\n", 1, 2, "source"),
        ("interface Serial 0/0\n service-policy input limits\n", 1, 2, "classes of packets"),
        ("interface Serial 0/0\n ip nat inside\n", 1, 2, "(NAT)"),
        ("ip nat inside source list 1 interface Serial 0/0 overload\n", 0, 1, "(NAT)"),
        ("vlan access-map guard 10\n", 0, 1, "packets of a VLAN"),
        (
            "ip access-list standard y\n remark x\ninterface Serial 0/0\n ip access-group y in\n",
            3,
            2,
            "has no line",
        ),
    ] {
        let imported = imported(&format!("{list}{text}end\n"));
        assert_eq!(imported.refused.len(), 1, "{text}: {:?}", imported.refused);
        let error = &imported.refused[0];
        assert_eq!((error.line, error.column), (line + 3, column), "{text}: {error}");
        assert!(error.what.contains(part), "{text}: {error}");
    }
    assert!(read(b"interface Serial 0/0", &options()).is_err(), "the configuration is cut");
}

#[test]
fn the_last_line_may_get_the_largest_number() {
    let list = |lines: &str, first: u32| {
        imported(&format!(
            "ip access-list extended A\n permit tcp any any eq 80\n{lines}ip access-list resequence A {first} 1\n{ASKED}"
        ))
    };
    let largest = 2_147_483_647;
    assert_eq!(list("", largest).refused, []);
    assert_eq!(list(" deny udp any any\n", largest - 1).refused, []);
    let refused = list(" deny udp any any\n", largest).refused;
    assert!(refused.len() == 1 && refused[0].what.contains("no such numbers"), "{refused:?}");
}

#[test]
fn behind_a_refused_line_no_line_is_taken_by_a_number_that_is_not_known() {
    let (weird, unknown) = (" permit tcp any any dscp ef\n", "not known which line has which number");
    let list = |lines: &str| {
        imported(&format!(
            "ip access-list extended A\n{lines}ip access-list extended B\n permit ip any any\n{ASKED}"
        ))
    };
    let web = " deny tcp any any eq 80\n permit ip any any\n";
    let asked = |policy: &Policy| passes(policy, Path::Forwarded, &segment(Some(2), Some(1), 80));
    for (lines, line, column) in [
        // The numbers of lines with and without the refused one differ.
        (format!("{weird}{web} no 20\n"), 5, 5),
        (format!("{weird}{web} 15 permit tcp any any\n"), 5, 2),
        (format!("{web}{weird}ip access-list resequence A 5 5\n"), 5, 29),
        // A device has the refused line under this number, and takes no other one.
        (format!(" 10 deny tcp any any dscp ef\n 10 permit ip any any\n{web}"), 3, 2),
        (format!(" deny udp any any\n{weird} 20 permit ip any any\n{web}"), 4, 2),
        (format!(" per tcp any any\n 10 permit ip any any\n{web}"), 3, 2),
    ] {
        let imported = list(&lines);
        assert_eq!(imported.refused.len(), 2, "{lines}: {:?}", imported.refused);
        let error = &imported.refused[1];
        assert_eq!((error.line, error.column), (line, column), "{lines}: {error}");
        assert!(error.what.contains(unknown), "{lines}: {error}");
        assert!(!asked(&imported.policy), "{lines}");
    }
    let behind = format!("{web}{weird}ip access-list resequence A 5 5\nip access-list extended A\n no 10\n");
    let imported = list(&behind);
    assert_eq!(imported.refused.len(), 3, "{:?}", imported.refused);
    assert!(imported.refused[2].what.contains(unknown) && !asked(&imported.policy));
    // Lines before the refused one have their numbers, and so have those that say them.
    for lines in [
        format!("{web}{weird} no 10\n"),
        format!("{weird} 30 deny tcp any any eq 80\n 40 permit ip any any\n no 30\n"),
    ] {
        let imported = list(&lines);
        assert_eq!(imported.refused.len(), 1, "{lines}: {:?}", imported.refused);
        assert!(asked(&imported.policy), "{lines}");
    }
    // A list that is taken away begins anew.
    let anew = format!("{weird}{web}no ip access-list extended A\nip access-list extended A\n{web} no 10\n");
    let imported = list(&anew);
    assert!(imported.refused.is_empty() && asked(&imported.policy), "{:?}", imported.refused);
}

proptest::proptest! {
    #[test]
    fn broken_configurations_are_an_answer(at in 0..BOTH.len(), byte: u8, other in 0..BOTH.len()) {
        let mut text = format!("object-group network g\n 10.0.0.0 255.0.0.0\n{BOTH}").into_bytes();
        text[at] = byte;
        text.swap(at, other);
        if let Ok(imported) = read(&text, &options()) {
            let _ = evaluate(&imported.policy, Path::Forwarded, &segment(Some(1), Some(2), 80), &|_| true);
        }
    }
}
