//! Ethernet addresses that stand for peers, where a tunnel is shown to a program as one Ethernet port.

/// The first three bytes of every such address: locally administered, for one station.
pub const PEER_MAC_PREFIX: [u8; 3] = [0x02, 0x52, 0x56];

/// The greatest number of a peer that an address has room for.
pub const GREATEST_PEER_NUMBER: u32 = 0x00ff_ffff;

/// The number that stands for this end, which is no peer's.
pub const OWN_NUMBER: u32 = 0;

/// The address of a peer: [`PEER_MAC_PREFIX`], then the lower three bytes of its number, the highest first.
/// A number has at most [`GREATEST_PEER_NUMBER`]; what is above is not in the address.
#[must_use]
pub const fn peer_mac(number: u32) -> [u8; 6] {
    let [_, high, middle, low] = number.to_be_bytes();
    let [first, second, third] = PEER_MAC_PREFIX;
    [first, second, third, high, middle, low]
}

/// The peer that an address stands for; none if it has another prefix or is that of this end.
#[must_use]
pub fn mac_peer(mac: [u8; 6]) -> Option<u32> {
    let [first, second, third, high, middle, low] = mac;
    let number = u32::from_be_bytes([0, high, middle, low]);
    ([first, second, third] == PEER_MAC_PREFIX && number != OWN_NUMBER).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_peer_and_no_other_address_does() {
        for number in [1, 2, 0xff, 0x1_0000, GREATEST_PEER_NUMBER] {
            assert_eq!(mac_peer(peer_mac(number)), Some(number));
        }
        assert_eq!(peer_mac(0x0001_0203), [0x02, 0x52, 0x56, 1, 2, 3]);
        assert_eq!(mac_peer(peer_mac(OWN_NUMBER)), None);
        for mac in [[0xff; 6], [0; 6], [0x02, 0x52, 0x57, 0, 0, 1], [0x03, 0x52, 0x56, 0, 0, 1]] {
            assert_eq!(mac_peer(mac), None);
        }
    }
}
