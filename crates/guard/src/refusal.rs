//! Why a frame is refused: one reason for each kind of frame that is not the router's.

macro_rules! refusals {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// Why a frame is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SourceRefusal {
            $($(#[doc = $doc])* $variant,)*
        }

        impl SourceRefusal {
            /// All of them, in the order of their numbers.
            pub const ALL: &[SourceRefusal] = &[$(SourceRefusal::$variant),*];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self {
                    $(SourceRefusal::$variant => $name,)*
                }
            }
        }
    };
}

refusals! {
    /// Shorter than an Ethernet header.
    TooShort = "too_short",
    /// Longer than the router's MTU allows.
    TooLong = "too_long",
    /// Not finished: a segment that nobody cut, or a checksum that nobody wrote.
    Unfinished = "unfinished",
    /// The Ethernet source is not the router's.
    EthernetSource = "ethernet_source",
    /// To a group that bridges keep for themselves (IEEE 802.1Q, 8.6.3).
    BridgeGroup = "bridge_group",
    /// With a VLAN tag.
    VlanTag = "vlan_tag",
    /// Neither ARP nor IPv4 nor IPv6.
    EthernetType = "ethernet_type",
    /// ARP of a form that is not that of IPv4 over Ethernet (RFC 826).
    ArpForm = "arp_form",
    /// ARP that tells an address that is not the router's.
    ArpSender = "arp_sender",
    /// An IPv4 header that is cut off, or whose lengths contradict the frame.
    Ipv4Form = "ipv4_form",
    /// An IPv4 header with a wrong checksum.
    Ipv4Checksum = "ipv4_checksum",
    /// Options of IPv4 that are malformed or not known.
    Ipv4Options = "ipv4_options",
    /// A way that the source chooses: the options of IPv4, or a routing header of IPv6.
    SourceRoute = "source_route",
    /// A fragment of IPv4 that no packet has.
    Ipv4Fragment = "ipv4_fragment",
    /// The IPv4 source is not the router's.
    Ipv4Source = "ipv4_source",
    /// An IPv6 header that is cut off, or whose lengths contradict the frame.
    Ipv6Form = "ipv6_form",
    /// The IPv6 source is not the router's.
    Ipv6Source = "ipv6_source",
    /// Extension headers that are malformed, not known, or too many.
    ExtensionHeaders = "extension_headers",
    /// A fragment of IPv6 that no packet has, or a first one that does not hold all extension headers and
    /// eight bytes behind them (RFC 7112).
    Ipv6Fragment = "ipv6_fragment",
    /// A router advertisement, where it was not declared that the router sends some.
    RouterAdvertisement = "router_advertisement",
    /// A redirect.
    Redirect = "redirect",
    /// A message of Neighbour Discovery of a form that hosts ignore, or of a kind that is not known.
    NeighbourForm = "neighbour_form",
    /// A message of Neighbour Discovery that tells an address of IPv6 that is not the router's.
    NeighbourTarget = "neighbour_target",
    /// A message of Neighbour Discovery that tells an Ethernet address that is not the router's.
    NeighbourLinkLayer = "neighbour_link_layer",
}
