"""Asks a name server from forged addresses of 198.18.0.0/15, for tests: `forged_queries.py SERVER PACE NAME...`.

Each query is for the address of one of the names in turn, from another network (/24) than the one before. They are sent for five minutes at
most: at about 2,000 a second where the pace is `slow`, and as fast as Python sends where it is `fast`.
"""

import socket
import struct
import sys
import time

SERVER, IS_SLOW, NAMES = sys.argv[1], {"slow": True, "fast": False}[sys.argv[2]], sys.argv[3:]
SECONDS, MADE = 300, 1 << 15
A, IN, RECURSION_DESIRED = 1, 1, 0x0100
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
target = socket.inet_aton(SERVER)


def question(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return labels + b"\0" + struct.pack(">HH", A, IN)


questions = [question(name) for name in NAMES]


def packet(number):
    asked = questions[number % len(questions)]
    message = struct.pack(">6H", number & 0xFFFF, RECURSION_DESIRED, 1, 0, 0, 0) + asked
    datagram = struct.pack(">HHHH", 1024 + number % 60000, 53, 8 + len(message), 0) + message
    source = bytes([198, 18 + (number % 512 >> 8), number % 256, 1 + number // 512 % 250])
    # Linux fills in the checksum of the header; UDP has none.
    header = struct.pack(">BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0) + source + target
    return header + datagram


packets = [packet(number) for number in range(MADE)]
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for first in range(0, MADE, 20):
        for made in packets[first : first + 20]:
            out.sendto(made, (SERVER, 0))
        if IS_SLOW:
            time.sleep(0.01)
