"""Plays a capture (classic pcap, little endian) out of an interface, as fast as the gateway behind it takes it in.

play.py CAPTURE INTERFACE CONTROL prints how many frames were sent and how many the interface refused.
"""

import json
import socket
import struct
import sys
import time

AT_ONCE = 2000  # far fewer than a ring of the gateway holds


def main(capture, interface, control):
    gateway = socket.socket(socket.AF_UNIX)
    gateway.connect(control)
    answers = gateway.makefile("rb")

    def received():
        gateway.sendall(b'{"ask":"picture"}\n')
        return json.loads(answers.readline())["picture"]["report"]["received"]["packets"]

    def wait_for(packets):
        end = time.monotonic() + 10
        while received() < packets and time.monotonic() < end:
            time.sleep(0.001)

    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((interface, 0))
    with open(capture, "rb") as file:
        data = file.read()
    before, sent, refused, at = received(), 0, 0, 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        try:
            line.send(data[at + 16 : at + 16 + length])
            sent += 1
        except OSError:
            refused += 1
        at += 16 + length
        if sent % AT_ONCE == 0:
            wait_for(before + sent)
    wait_for(before + sent)
    print(sent, refused)


main(*sys.argv[1:])
