"""Judges captures of `ravelin naming demo --captures`: knows addresses, packets and DNS, and nothing of Ravelin.

Prints one JSON document: for each invariant the number of packets looked at, and what is wrong.
Usage: names_judge.py FOLDER [INITIATORS], where there are 10 initiators if nothing else is said.
"""

import collections
import functools
import ipaddress
import json
import logging
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import DNS, ICMP, IP, TCP, UDP, IPerror, PcapReader, raw  # noqa: E402
from scapy.layers.inet import in4_chksum  # noqa: E402
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPerror6, IPv6, in6_chksum  # noqa: E402
from scapy.utils import checksum  # noqa: E402

FOLDER = sys.argv[1]
INITIATORS = ["initiator%d" % number for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10)]
POOL = ipaddress.ip_network("198.51.100.0/28")
CLIENTS = ipaddress.ip_network("203.0.113.0/24")
HOSTS = ipaddress.ip_network("10.0.0.0/24")
PRIVATE = [ipaddress.ip_network(n) for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")]
POOL6 = ipaddress.ip_network("2001:db8:100::/64")
CLIENTS6 = ipaddress.ip_network("2001:db8:c::/48")
HOSTS6 = ipaddress.ip_network("fd00:10::/64")
PRIVATE6 = ipaddress.ip_network("fc00::/7")
RESOLVER = "192.0.2.2"
WAYPOINT = "192.0.2.34"
PUBLIC = ["public", "machine", "carrier"] + INITIATORS

looked = collections.Counter()
wrong = collections.defaultdict(list)


def fault(invariant, what):
    if len(wrong[invariant]) < 20:
        wrong[invariant].append(what)


@functools.lru_cache(maxsize=None)
def packets(link, layer=IP):
    with PcapReader("%s/%s.pcap" % (FOLDER, link)) as reader:
        return [packet for packet in reader if isinstance(packet.payload, layer)]


def within(address, network):
    return ipaddress.ip_address(address) in network


def has_right_checksums(packet):
    """Whether the sums over the header and over a whole body are those that RFC 1071 asks for. The field may be 0 or 0xffff where
    the rest sums to nothing: Linux writes 0xffff, scapy 0."""
    ip = packet[IP]
    whole = raw(ip)[: ip.len]
    header, body = whole[: 4 * ip.ihl], whole[4 * ip.ihl :]
    if checksum(header) != 0:
        return False
    if ip.frag != 0 or ip.flags.MF:
        return True
    if ip.proto == 1:
        return checksum(body) == 0
    return ip.proto not in (6, 17) or in4_chksum(ip.proto, ip, body) == 0


# I4: every checksum on every link is right. I8: no private address on a public link.
for link in PUBLIC + ["lan", "uplink"]:
    for packet in packets(link):
        looked["I4"] += 1
        if not has_right_checksums(packet):
            fault("I4", "%s: %s" % (link, packet.summary()))
        if link in PUBLIC:
            looked["I8"] += 1
            ends = [packet[IP].src, packet[IP].dst]
            if IPerror in packet:
                looked["I8 quotes"] += 1
                ends += [packet[IPerror].src, packet[IPerror].dst]
            if any(within(end, network) for end in ends for network in PRIVATE):
                fault("I8", "%s: %s" % (link, packet.summary()))


def flow(packet, forward):
    """Protocol, the client's port or number of its pings, and the service's port, of a whole packet."""
    ip = packet[IP]
    if ip.frag != 0:
        return None
    for name, layer in (("tcp", TCP), ("udp", UDP)):
        if ip.proto == {"tcp": 6, "udp": 17}[name] and layer in packet:
            ends = (packet[layer].sport, packet[layer].dport)
            return (name,) + (ends if forward else ends[::-1])
    if ip.proto == 1 and ICMP in packet and packet[ICMP].type == (8 if forward else 0):
        return ("icmp", packet[ICMP].id, 0)
    return None


def answered(packet):
    """What the name server says in this packet, by UDP or TCP."""
    for layer in (UDP, TCP):
        if layer in packet and packet[layer].sport == 53 and packet[IP].src == WAYPOINT and DNS in packet:
            return packet[DNS]
    return None


# What the name server has answered: when, to whom, which address, for which host.
answers = []
for packet in packets("machine"):
    answer = answered(packet)
    if answer is not None:
        for index in range(answer.ancount or 0):
            record = answer.an[index]
            label = record.rrname.decode().lower().split(".")[0]
            if record.type == 1 and label.startswith("host"):
                answers.append((float(packet.time), packet[IP].dst, record.rdata, "10.0.0.%d" % (80 + int(label[4:]))))

# Each flow from a client to an address of the pool, and when it began.
asked = {}
for packet in packets("public"):
    if within(packet[IP].dst, POOL) and within(packet[IP].src, CLIENTS):
        key = flow(packet, True)
        if key:
            asked.setdefault((packet[IP].src,) + key, []).append((float(packet.time), packet[IP].dst))

# I1: a packet reaches only the host whose name the address was given for last, before its flow began. I2: what an address and service mean for
# a client does not change. I5: the host sees the client's own address.
bound = {}
for packet in packets("lan"):
    ip = packet[IP]
    if within(ip.dst, HOSTS) and within(ip.src, HOSTS):
        continue
    if not within(ip.dst, HOSTS):
        continue
    key = flow(packet, True)
    if not key:
        continue
    looked["I5"] += 1
    if not within(ip.src, CLIENTS):
        fault("I5", packet.summary())
        continue
    came = [at for time, at in asked.get((ip.src,) + key, []) if time <= float(packet.time) + 0.001]
    looked["I1"] += 1
    if not came:
        fault("I1", "nobody sent it: " + packet.summary())
        continue
    address = came[-1]
    # Ports are used again, also towards another address.
    begun = next(time for time, at in asked[(ip.src,) + key] if at == address)
    given = [host for time, who, at, host in answers if at == address and who in (RESOLVER, ip.src) and time <= begun]
    if given[-1:] != [ip.dst]:
        fault("I1", "%s was given for %s: %s" % (address, given[-1:], packet.summary()))
    looked["I2"] += 1
    service = (ip.src, address, key[0], key[2])
    if bound.setdefault(service, ip.dst) != ip.dst:
        fault("I2", "%s meant %s and then %s" % (service, bound[service], ip.dst))

# I5, back: the client sees the address that it has asked.
for link in INITIATORS:
    for packet in packets(link):
        if within(packet[IP].dst, CLIENTS) and not within(packet[IP].src, CLIENTS) and ICMP not in packet:
            looked["I5 back"] += 1
            if packet[IP].src not in (RESOLVER, WAYPOINT) and not within(packet[IP].src, POOL):
                fault("I5 back", packet.summary())

# I6: before a client has shown that it gets answers, it gets at most three times what it sent.
for link in INITIATORS:
    sent, got, proved = collections.Counter(), collections.Counter(), set()
    for packet in packets(link):
        ip = packet[IP]
        if ip.proto != 17:
            continue
        forward = within(ip.src, CLIENTS) and within(ip.dst, POOL)
        back = within(ip.dst, CLIENTS) and within(ip.src, POOL)
        key = flow(packet, forward) if forward or back else None
        if not key:
            continue
        key = (ip.src if forward else ip.dst, ip.dst if forward else ip.src, key[2])
        if forward:
            if got[key]:
                proved.add(key)
            sent[key] += ip.len
        elif key not in proved:
            looked["I6"] += 1
            got[key] += ip.len
            if got[key] > 3 * sent[key]:
                fault("I6", "%s got %d for %d bytes" % (key, got[key], sent[key]))

# IPv6. I4: every checksum of a whole packet is right. I8: no private address on a public link, nor in what errors quote.
for link in PUBLIC + ["lan"]:
    for packet in packets(link, IPv6):
        ip = packet[IPv6]
        body = raw(ip)[40 : 40 + ip.plen]
        if ip.nh in (6, 17, 58):
            looked["I4 of IPv6"] += 1
            if in6_chksum(ip.nh, ip, body) != 0:
                fault("I4 of IPv6", "%s: %s" % (link, packet.summary()))
        if link in PUBLIC:
            looked["I8 of IPv6"] += 1
            ends = [ip.src, ip.dst]
            if IPerror6 in packet:
                looked["I8 quotes of IPv6"] += 1
                ends += [packet[IPerror6].src, packet[IPerror6].dst]
            if any(within(end, PRIVATE6) for end in ends):
                fault("I8 of IPv6", "%s: %s" % (link, packet.summary()))


def flow6(packet, forward):
    """Protocol, the client's port or number of its pings, and the service's port, of a whole packet of IPv6."""
    for name, layer in (("tcp", TCP), ("udp", UDP)):
        if packet[IPv6].nh == {"tcp": 6, "udp": 17}[name] and layer in packet:
            ends = (packet[layer].sport, packet[layer].dport)
            return (name,) + (ends if forward else ends[::-1])
    echo = ICMPv6EchoRequest if forward else ICMPv6EchoReply
    return ("icmp", packet[echo].id, 0) if packet[IPv6].nh == 58 and echo in packet else None


# The address of each host: the same in every answer.
hosts6 = {}
for packet in packets("machine"):
    answer = answered(packet)
    if answer is not None:
        for index in range(answer.ancount or 0):
            record = answer.an[index]
            label = record.rrname.decode().lower().split(".")[0]
            if record.type == 28 and label.startswith("host"):
                looked["F9"] += 1
                host = str(HOSTS6.network_address + 0x50 + int(label[4:]))
                if hosts6.setdefault(record.rdata, host) != host or not within(record.rdata, POOL6):
                    fault("F9", "%s was given for %s and %s" % (record.rdata, hosts6[record.rdata], host))
if len(set(hosts6.values())) != len(hosts6):
    fault("F9", "a host has two addresses: %s" % hosts6)

# I1 and I5 of IPv6: a packet reaches the host whose address its client has sent it to, and shows that client.
asked6 = collections.defaultdict(set)
for packet in packets("public", IPv6):
    if within(packet[IPv6].dst, POOL6) and within(packet[IPv6].src, CLIENTS6):
        key = flow6(packet, True)
        if key:
            asked6[(packet[IPv6].src,) + key].add(packet[IPv6].dst)
for packet in packets("lan", IPv6):
    ip = packet[IPv6]
    if not within(ip.dst, HOSTS6) or within(ip.src, HOSTS6) or ip.src.startswith("fe80:"):
        continue
    key = flow6(packet, True)
    if key:
        looked["I1 of IPv6"] += 1
        came = asked6.get((ip.src,) + key, set())
        if not within(ip.src, CLIENTS6) or ip.dst not in {hosts6.get(at) for at in came}:
            fault("I1 of IPv6", "came to %s: %s" % (came, packet.summary()))

# The gateway's own address asks only the host that has IPv4 alone.
for packet in packets("lan"):
    ip = packet[IP]
    if ip.src == "10.0.0.1" and (TCP in ip or UDP in ip or (ICMP in ip and ip[ICMP].type == 8)) and IPerror not in ip:
        looked["F9 translated"] += 1
        if ip.dst != "10.0.0.85":
            fault("F9 translated", packet.summary())

# I5, back: the client sees the address that it has asked.
for link in INITIATORS:
    for packet in packets(link, IPv6):
        ip = packet[IPv6]
        key = flow6(packet, False)
        if key and within(ip.dst, CLIENTS6) and not within(ip.src, CLIENTS6):
            looked["I5 back of IPv6"] += 1
            if ip.src not in asked6.get((ip.dst,) + key, set()):
                fault("I5 back of IPv6", packet.summary())

print(json.dumps({"looked": looked, "wrong": wrong}))
