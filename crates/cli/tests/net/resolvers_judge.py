"""Judges captures of a waypoint whose names are asked for by a resolver: reads DNS byte by byte (RFC 1035, RFC 6891, RFC 7871), and knows
nothing of Ravelin.

Usage: resolvers_judge.py FOLDER NAME=HOST:PORT,PORT...

`machine` is the link of the name server, `public` that of the addresses, `lan` that of the hosts. Prints one JSON document: for each
invariant how often it was looked at, and what is wrong; how many questions for each name came to the name server; and which hosts were
answered with each address.
"""

import collections
import ipaddress
import json
import logging
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import IP, TCP, UDP, PcapReader  # noqa: E402

FOLDER = sys.argv[1]
SERVICES_OF = {}
for argument in sys.argv[2:]:
    name, services = argument.split("=")
    host, ports = services.split(":")
    SERVICES_OF[name] = (host, {int(port) for port in ports.split(",")})
SERVER = "192.0.2.34"
ZONE = "home.example"
POOL = ipaddress.ip_network("198.51.100.0/28")
HOSTS = ipaddress.ip_network("10.0.0.0/24")
A, OPT, CLIENT_SUBNET = 1, 41, 8

looked = collections.Counter()
wrong = collections.defaultdict(list)
asked = collections.Counter()


def packets(link):
    with PcapReader("%s/%s.pcap" % (FOLDER, link)) as reader:
        return [packet for packet in reader if isinstance(packet.payload, IP)]


def within(address, network):
    return ipaddress.ip_address(address) in network


def name_at(message, at):
    """A name, and where what follows begins."""
    labels, after = [], None
    while message[at]:
        if message[at] >= 0xC0:
            after = after or at + 2
            at = struct.unpack_from(">H", message, at)[0] & 0x3FFF
        else:
            labels.append(message[at + 1 : at + 1 + message[at]].decode().lower())
            at += 1 + message[at]
    return ".".join(labels), after or at + 1


def read(message):
    """Whether it is a reply, its question, its addresses, and the client subnet in it: first bits, source and scope."""
    _, flags, questions, *counts = struct.unpack_from(">6H", message)
    at, question, addresses, subnet = 12, None, [], None
    for _ in range(questions):
        name, at = name_at(message, at)
        question = (name, struct.unpack_from(">H", message, at)[0])
        at += 4
    for _ in range(sum(counts)):
        _, at = name_at(message, at)
        kind, _, _, length = struct.unpack_from(">HHIH", message, at)
        at += 10
        data, at = message[at : at + length], at + length
        if kind == A:
            addresses.append(str(ipaddress.ip_address(data)))
        while kind == OPT and data:
            code, size = struct.unpack_from(">HH", data)
            option, data = data[4 : 4 + size], data[4 + size :]
            if code == CLIENT_SUBNET and option[:2] == b"\0\1":
                first = ipaddress.ip_address(option[4:].ljust(4, b"\0"))
                subnet = (str(first), option[2], option[3])
    return bool(flags & 0x8000), question, addresses, subnet


# What the name server was asked, and what it answered: when, for whom, by which address, for which host.
answers, subnets = [], {}
for packet in packets("machine"):
    ip = packet[IP]
    if UDP in ip and 53 in (ip[UDP].sport, ip[UDP].dport):
        message, peer = bytes(ip[UDP].payload), (ip[UDP].sport if ip.dst == SERVER else ip[UDP].dport)
    elif TCP in ip and 53 in (ip[TCP].sport, ip[TCP].dport) and len(ip[TCP].payload) > 14:
        message, peer = bytes(ip[TCP].payload)[2:], (ip[TCP].sport if ip.dst == SERVER else ip[TCP].dport)
    else:
        continue
    is_reply, question, addresses, subnet = read(message)
    if question is None or question[1] != A or not question[0].endswith("." + ZONE):
        continue
    name = question[0][: -len(ZONE) - 1]
    exchange = (peer, message[:2], name)
    if not is_reply:
        asked[name] += 1
        subnets[exchange] = subnet
        continue
    told = subnets.get(exchange)
    if told or subnet:
        what = "F13 /%d" % (told or subnet)[1]
        looked[what] += 1
        # What was told comes back, and the reply holds for no more than that (RFC 7871, 7.2.1).
        if not told or not subnet or subnet[:2] != told[:2] or subnet[2] < told[1]:
            wrong[what].append("%s: told %s, answered with %s" % (name, told, subnet))
    network = ipaddress.ip_network("%s/%d" % told[:2]) if told else ipaddress.ip_network("0.0.0.0/0")
    answers += [(float(packet.time), network, address, name) for address in addresses]

# I1: who begins a connection reaches the host whose name the address was given for last, for a network that the client is in, and by its port.
begun = collections.defaultdict(list)
for packet in packets("public"):
    ip = packet[IP]
    if TCP in ip and ip[TCP].flags == "S" and within(ip.dst, POOL):
        begun[(ip.src, ip[TCP].sport, ip[TCP].dport)].append((float(packet.time), ip.dst))
for packet in packets("lan"):
    ip = packet[IP]
    if TCP not in ip or ip[TCP].flags != "S" or not within(ip.dst, HOSTS):
        continue
    looked["I1"] += 1
    came = begun.get((ip.src, ip[TCP].sport, ip[TCP].dport), [])
    if not came:
        wrong["I1"].append("nobody sent it: " + packet.summary())
        continue
    since, at = came[0]
    given = [name for time, network, address, name in answers if address == at and within(ip.src, network) and time <= since]
    host, ports = SERVICES_OF.get(given[-1], (None, set())) if given else (None, set())
    if host != ip.dst or ip[TCP].dport not in ports:
        wrong["I1"].append("%s was given for %s: %s" % (at, given[-1:], packet.summary()))

led = collections.defaultdict(set)
for _, _, address, name in answers:
    led[address].add(SERVICES_OF.get(name, (None, set()))[0])
print(json.dumps({"looked": looked, "wrong": wrong, "asked": asked, "led": {at: len(hosts) for at, hosts in led.items()}}))
