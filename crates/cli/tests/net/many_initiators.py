"""Pretends to be many initiators that each exchange datagrams with a service, for tests: `many_initiators.py ADDRESS PORT COUNT`.

Each is an address of 198.18.0.0/15, whose answers nobody needs to get. It sends one datagram, and two more when the answer to the first
must have passed, which proves that it got that.
"""

import socket
import struct
import sys
import time

ADDRESS, PORT, COUNT = socket.inet_aton(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
AT_ONCE, ANSWER = 500, 0.1
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
# Linux fills in the checksum of the header; UDP has none.
datagram = struct.pack(">HHHH", 40000, PORT, 12, 0) + b"many"
first = socket.inet_aton("198.18.0.0")


def send(number):
    # One after the other they are in another network (/24).
    source = bytes([first[0], first[1] + (number % 512 >> 8), number % 256, number // 512])
    header = struct.pack(">BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0) + source + ADDRESS
    out.sendto(header + datagram, (sys.argv[1], 0))


for begin in range(0, COUNT, AT_ONCE):
    for _ in range(3):
        for number in range(begin, min(begin + AT_ONCE, COUNT)):
            send(number)
        time.sleep(ANSWER)
