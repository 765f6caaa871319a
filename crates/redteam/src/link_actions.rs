//! What root of a container has Linux do with the link, which is the container's own. It may do most of it;
//! what the hosts and the listener see meanwhile is judged.

/// What a script says before its attempt. One that does not has met a Linux that has no such kind of device
/// or of filter.
pub(crate) const TRIED: &str = "tried";

/// Something that Linux is told to do with the link.
#[derive(Clone, Copy, Debug)]
pub struct LinkAction {
    /// Its name.
    pub name: &'static str,
    /// The script of the shell; `REDTEAM` is this program. It says `tried` once Linux has done what the
    /// attempt needs. What it leaves is cleaned up by whoever runs it.
    pub script: &'static str,
    /// Whether it must not succeed: it does if somebody answers, or something is seen, against the policy.
    pub forbidden: bool,
}

macro_rules! link_actions {
    ($($name:literal, $forbidden:literal: $script:literal,)*) => {
        /// All of them.
        pub const LINK_ACTIONS: &[LinkAction] = &[
            $(LinkAction { name: $name, script: concat!("set -e\n", $script), forbidden: $forbidden },)*
        ];
    };
}

link_actions! {
    "listener_in_promiscuous_mode", true:
        "ip link set services promisc on; echo tried; timeout 2 $REDTEAM listen services",
    "reach_beyond_the_policy", true:
        "ip neighbour replace 10.1.1.2 lladdr 02:00:00:00:00:02 dev services; echo tried
         ping -c 1 -W 1 10.1.1.2",
    "another_station_at_the_link", true:
        "ip link set services down; ip link set services address 02:00:00:00:00:02; ip link set services up
         echo tried; ping -c 1 -W 1 10.1.1.1",
    "another_address_at_the_link", true:
        "ip address add 10.1.1.2/32 dev services; echo tried; ping -c 1 -W 1 -I 10.1.1.2 10.1.1.1",
    "macvlan_over_the_link", true:
        "ip link add link services name other type macvlan mode bridge; ip address add 10.1.1.98/24 dev other
         ip link set other up; echo tried; ping -c 1 -W 1 -I other 10.1.1.1",
    "ipvlan_over_the_link", true:
        "ip link add link services name other type ipvlan mode l2; ip address add 10.1.1.98/24 dev other
         ip link set other up; echo tried; ping -c 1 -W 1 -I other 10.1.1.1",
    "vlan_over_the_link", true:
        "ip link add link services name other type vlan id 20; ip address add 10.1.1.98/24 dev other
         ip link set other up; echo tried; ping -c 1 -W 1 -I other 10.1.1.1",
    // The bridge says that it is one (IEEE 802.1D) every two seconds.
    "bridge_and_cable_over_the_link", false:
        "ip link add other type bridge stp_state 1; ip link add end type veth peer name behind
         for link in services end; do ip link set $link master other; ip link set $link up; done
         ip link set behind up; ip link set other up; ip address add 10.1.1.98/24 dev other
         echo tried; ping -c 1 -W 1 10.1.1.1 || true; $REDTEAM send behind any 1000 7; sleep 2",
    "what_comes_is_sent_back_by_tc", false:
        "tc qdisc add dev services clsact
         tc filter add dev services ingress protocol all u32 match u32 0 0 action mirred egress redirect dev services
         echo tried; ping -c 3 -W 1 10.1.1.1 || true",
    "what_leaves_comes_back_by_tc", false:
        "tc qdisc add dev services clsact
         tc filter add dev services egress protocol all u32 match u32 0 0 action mirred ingress mirror dev services
         echo tried; echo 1 > /proc/sys/net/ipv4/ip_forward || true; ping -c 3 -W 1 10.1.1.1 || true",
    "another_source_by_nftables", true:
        "nft 'table ip other { chain sources { type nat hook postrouting priority 100; snat to 10.1.1.2; }; }'
         trap 'nft delete table ip other' EXIT; echo tried; ping -c 1 -W 1 10.1.1.1",
}
