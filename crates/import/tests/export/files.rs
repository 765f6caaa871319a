//! Policies in all formats that are read, of those that nftables can say.

/// The format, the family where the file is about one, and the text.
pub(crate) const FILES: [(&str, &str); 8] = [
    (
        "iptables",
        "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -s 10.0.0.0/8 -i to-out -j DROP\nCOMMIT
*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:web - [0:0]\n:log - [0:0]
-A INPUT -i lo -j ACCEPT\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment admin -j ACCEPT
-A FORWARD -m state --state INVALID -j DROP\n-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -p tcp -m multiport --dports 80,443,8000:8100 -m state --state NEW -j web
-A FORWARD ! -s 10.0.0.0/16 -p udp -m udp ! --dport 53 -j REJECT --reject-with icmp-port-unreachable
-A FORWARD -p icmp -m icmp --icmp-type 8 -j ACCEPT\n-A FORWARD -j log
-A web -d 192.0.2.0/24 -j ACCEPT\n-A web -s 198.51.100.7/32 -j RETURN\n-A web -j DROP
-A log -j LOG --log-prefix \"dropped \"\n-A log -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n",
    ),
    (
        "iptables",
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:x - [0:0]
-A FORWARD -f -j DROP\n-A FORWARD -p tcp -m tcp --dport 22 -g x\n-A FORWARD -p tcp -m tcp ! --sport 1024:65535 -j DROP
-A FORWARD -p tcp -m tcp --tcp-flags SYN,ACK,FIN SYN -m ttl --ttl-lt 5 -j DROP
-A FORWARD -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -i from-in ! -o from-in -j ACCEPT
-A FORWARD -s 10.0.0.1/255.0.0.255 -m length --length 0:1400 -j ACCEPT\n-A FORWARD -p icmp -m icmp --icmp-type 3/4 -j ACCEPT
-A FORWARD -m dscp --dscp 0x2e -j ACCEPT\n-A FORWARD -p sctp -m sctp --dport 80 -j DROP
-A x -m iprange --src-range 10.0.0.2-172.16.0.1 -j RETURN\n-A x -j DROP\nCOMMIT\n",
    ),
    (
        "nft",
        r#"{"nftables": [
{"chain": {"family": "inet", "table": "t", "name": "late", "type": "filter", "hook": "forward", "prio": 10, "policy": "accept"}},
{"chain": {"family": "inet", "table": "t", "name": "early", "type": "filter", "hook": "forward", "prio": -5, "policy": "drop"}},
{"chain": {"family": "inet", "table": "t", "name": "x"}},
{"rule": {"family": "inet", "table": "t", "chain": "early", "expr": [{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}}, {"accept": null}]}},
{"rule": {"family": "inet", "table": "t", "chain": "early", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "ip6", "field": "hoplimit"}}, "right": 63}}, {"jump": {"target": "x"}}]}},
{"rule": {"family": "inet", "table": "t", "chain": "early", "expr": [{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": {"set": [[22, {"accept": null}], [80, {"jump": {"target": "x"}}], ["*", {"drop": null}]]}}}]}},
{"rule": {"family": "inet", "table": "t", "chain": "x", "expr": [{"counter": null}, {"match": {"op": "!=", "left": {"meta": {"key": "iifname"}}, "right": "from-in"}}, {"log": null}, {"return": null}]}},
{"rule": {"family": "inet", "table": "t", "chain": "x", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "icmpv6", "field": "type"}}, "right": {"range": [128, 140]}}}, {"reject": {"type": "icmpv6", "expr": "admin-prohibited"}}]}},
{"rule": {"family": "inet", "table": "t", "chain": "late", "expr": [{"match": {"op": "==", "left": {"&": [{"payload": {"protocol": "ip", "field": "saddr"}}, "255.0.0.255"]}, "right": "10.0.0.1"}}, {"drop": null}]}}
]}
"#,
    ),
    (
        "nft",
        r#"{"nftables": [
{"chain": {"family": "ip", "table": "t", "name": "c", "type": "filter", "hook": "prerouting", "prio": 0, "policy": "accept"}},
{"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}}, {"drop": null}]}},
{"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"match": {"op": "!=", "left": {"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]}, "right": 0}}, {"counter": null}, {"accept": null}]}},
{"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"match": {"op": "!=", "left": {"payload": {"protocol": "udp", "field": "sport"}}, "right": {"set": [53, {"range": [1024, 65535]}]}}}, {"reject": {"type": "icmp", "expr": "admin-prohibited"}}]}}
]}
"#,
    ),
    (
        "npf",
        "alg \"icmp\"\nprocedure \"log\" {\n log: npflog0\n}\n$own = { 10.0.0.0/8, 192.0.2.1 }\n
group \"a\" in on \"from-in\" {\n pass final proto tcp from $own to ! 10.0.0.0/16 port { 80, 8000-8010 }
 block return-rst proto tcp to any port 22 apply \"log\"\n pass family inet4 proto icmp icmp-type echo all
 pass proto tcp flags S/SA all\n block final proto udp from 192.0.2.0/24\n}
group \"b\" out on \"to-out\" {\n block all\n pass final proto udp to any port 53\n pass from 10.0.0.0/8\n}
group default {\n pass all\n}\n",
    ),
    ("npf", "group default {\n block all\n pass proto tcp to any port 22\n block return-icmp in proto udp all\n}\n"),
    (
        "pf",
        "block log all\npass in quick on from-in inet proto tcp from 10.0.0.0/8 to any port { 80, 443 } no state
match log proto tcp\npass proto udp to any port != 53 no state\nblock in quick proto tcp flags S/SA
block in proto tcp from any port 1024:65535\n
anchor out on ! from-in {\n pass inet proto icmp icmp-type { echoreq code 0, 3 } no state\n anchor {\n  block quick from 10.0.0.1\n }\n}\n",
    ),
    (
        "ios",
        "ip access-list extended web\n 10 permit tcp 10.0.0.0 0.0.255.255 any eq 80 443\n 20 permit tcp any any established
 30 deny udp any gt 1023 any log\n 40 permit icmp any any echo\n 50 permit ip 10.0.0.1 0.255.255.0 any
ip access-list standard out\n permit 192.0.2.0 0.0.0.255\n
interface from-in\n ip access-group web in\ninterface to-out\n ip access-group out out\n",
    ),
];
