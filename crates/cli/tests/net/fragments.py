"""Datagrams in fragments, sent in an order that the sender chooses.

fragments.py receive COUNT ADDRESS… binds port 7000 of each address, says `ready`, and then of each datagram its source
and whether its bytes are those that were sent; it ends when COUNT have come, or when none comes within 20 seconds.

fragments.py send INTERFACE ORDER FROM TO TO_ETHERNET sends one datagram of 2,400 bytes from port 40000 in three
fragments by an interface. ORDER names the fragments in the order in which they leave, as `210`; one that it does not
name is not sent. As a number it is the datagram's identification, too.
"""

import ipaddress
import select
import socket
import struct
import sys

DATA = bytes(index * 7 % 251 for index in range(2400))


def summed(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def receive(count, addresses):
    sockets = []
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sockets.append(socket.socket(family, socket.SOCK_DGRAM))
        sockets[-1].bind((address, 7000))
    print("ready", flush=True)
    while count:
        readable, _, _ = select.select(sockets, [], [], 20)
        if not readable:
            sys.exit("%d datagrams did not come" % count)
        for one in readable:
            data, source = one.recvfrom(65535)
            print(source[0], "whole" if data == DATA else "damaged", flush=True)
            count -= 1


def send(interface, order, source, to, ethernet):
    source, to = ipaddress.ip_address(source), ipaddress.ip_address(to)
    six = source.version == 6
    udp = struct.pack("!HHHH", 40000, 7000, 8 + len(DATA), 0)
    pseudo = source.packed + to.packed + struct.pack("!IHH", 8 + len(DATA), 0, 17)
    check = summed(pseudo + udp + DATA) or 0xFFFF
    datagram = udp[:6] + struct.pack("!H", check) + DATA
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((interface, 0))
    with open(f"/sys/class/net/{interface}/address") as file:
        own = bytes.fromhex(file.read().strip().replace(":", ""))
    head = bytes.fromhex(ethernet.replace(":", "")) + own + (b"\x86\xdd" if six else b"\x08\x00")
    for number in map(int, order):
        data = datagram[number * 808 : number * 808 + 808]
        more = number < 2
        if six:
            ip = struct.pack("!IHBB", 6 << 28, 8 + len(data), 44, 64) + source.packed + to.packed
            ip += struct.pack("!BBHI", 17, 0, number * 808 | more, int(order))
        else:
            place = number * 101 | more << 13
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), int(order), place, 64, 17, 0)
            ip += source.packed + to.packed
            ip = ip[:10] + struct.pack("!H", summed(ip)) + ip[12:]
        link.send(head + ip + data)


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]), sys.argv[3:])
else:
    send(*sys.argv[2:])
