//! Rules of pf in the shapes that the tests of its parser in OpenBSD (`regress/sbin/pfctl`) go through,
//! written anew, with the decisions about five packets as pf.conf(5) says them.

use crate::packets::Sent;

/// A configuration, and what becomes of each packet of [`five`].
pub(crate) type Shape = (&'static str, [&'static str; 5]);

/// Two connections of TCP from both sides, a query, an echo request, and TCP in IPv6.
pub(crate) fn five() -> [Sent; 5] {
    let (lan, wan) = (2, 3);
    let syn = Some(2);
    [
        Sent::made([lan, wan], ["10.0.0.1", "192.0.2.49"], 6, Some([50_000, 80]), None, syn),
        Sent::made([wan, lan], ["198.51.100.3", "192.0.2.49"], 6, Some([50_000, 22]), None, syn),
        Sent::made([lan, wan], ["10.0.0.1", "192.0.2.42"], 17, Some([53, 53]), None, None),
        Sent::made([wan, lan], ["198.51.100.3", "10.0.0.1"], 1, None, Some([8, 0]), None),
        Sent::made([lan, wan], ["2001:db8::49", "2001:db8:1::7"], 6, Some([50_000, 80]), None, syn),
    ]
}

pub(crate) const SHAPES: [Shape; 25] = [
    ("pass in\npass out\n", ["keep"; 5]),
    (
        "block all\npass in quick on lan0 proto tcp from any to any port 80\npass out on wan0 all\n",
        ["keep", "block", "block", "block", "keep"],
    ),
    (
        "block in from { 10.0.0.0/8, 192.0.2.0/24 } to { 192.0.2.49, 192.0.2.42 }\n",
        ["block", "pass", "block", "pass", "pass"],
    ),
    ("block in inet from ! 10.0.0.0/8\npass out no state\n", ["pass", "block", "pass", "block", "pass"]),
    (
        "if = \"wan0\"\nhosts = \"{ 192.0.2.49, 192.0.2.42 }\"\nports = \"{ 22, 53 }\"\n\
         block drop in on $if proto { tcp, udp } from any to $hosts port $ports\n",
        ["pass", "block", "pass", "pass", "pass"],
    ),
    (
        "table <own> const { 10.0.0.0/8, !10.0.0.1, 198.51.100.0/24 }\nblock in from <own>\n\
         pass in from ! <own> no state\n",
        ["pass", "block", "pass", "block", "pass"],
    ),
    (
        "block proto tcp from any to any port 20 >< 25\nblock proto tcp to any port 79:81\n\
         block proto udp from any port != 53\n",
        ["block", "block", "pass", "pass", "block"],
    ),
    (
        "block\npass in proto tcp flags S/SA\npass out proto tcp flags any no state\n",
        ["keep", "keep", "block", "block", "keep"],
    ),
    ("block in proto tcp flags S/SA\n", ["block", "block", "pass", "pass", "block"]),
    (
        "block\npass in inet proto icmp icmp-type echoreq code 0\npass out inet proto icmp all icmp-type 8\n",
        ["block", "block", "block", "keep", "block"],
    ),
    (
        "set block-policy return\nblock in on wan0\nblock drop in on lan0 proto udp\n",
        ["pass", "rst", "block", "port", "pass"],
    ),
    ("block quick proto udp\npass quick on lan0 no state\nblock all\n", ["block"; 5]),
    ("block on ! lan0 inet6\nblock in on ! wan0 proto udp\n", ["pass", "pass", "block", "pass", "block"]),
    (
        "block\nanchor \"web\" in on lan0 proto tcp {\n pass quick proto tcp to any port 80 no state\n}\n\
         anchor out {\n pass no state\n}\n",
        ["pass", "block", "block", "block", "pass"],
    ),
    ("set skip on { lo0, wan0 }\nblock in\n", ["block", "pass", "block", "pass", "block"]),
    (
        "block in from 10.0.0.0 - 10.0.0.9 to any\nblock in proto tcp from 198.51.100.1 - 198.51.100.2\n",
        ["block", "pass", "block", "pass", "pass"],
    ),
    (
        "block\npass in proto tcp modulate state label \"in\"\npass out no state\n",
        ["keep", "keep", "block", "block", "keep"],
    ),
    (
        "block\npass in quick \\\n on lan0 \\\n inet proto udp \\\n from any to 192.0.2.42 port domain keep state\n\
         pass out no state # to the world\n",
        ["block", "block", "keep", "block", "block"],
    ),
    ("set state-policy if-bound\npass no state\n", ["pass"; 5]),
    ("block proto { icmp, 17 }\n", ["pass", "pass", "block", "block", "pass"]),
    (
        "match log all\nblock in inet proto tcp to port 80\nmatch in proto tcp\n",
        ["block", "pass", "pass", "pass", "pass"],
    ),
    ("block in from { ! 10.0.0.1, ! 198.51.100.3 }\n", ["block", "block", "block", "block", "pass"]),
    ("block inet6\npass inet6 proto tcp to port 80 no state\n", ["pass"; 5]),
    (
        "block in on { lan0, wan0 } proto tcp from any to any port { 22, 80 }\n",
        ["block", "block", "pass", "pass", "block"],
    ),
    ("block proto udp from any port { 53, 123 } to any port 53\n", ["pass", "pass", "block", "pass", "pass"]),
];
