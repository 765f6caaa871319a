"""Plays a capture (classic pcap, little endian) out of an interface, as fast as the gateway behind it takes it in.

play.py CAPTURE INTERFACE CONTROL AT_ONCE prints how many frames were sent, how many the interface refused, and how many of the others it lost without a
word. No more than AT_ONCE are on their way: neither taken in by the gateway's first port, nor counted as lost there or before.
"""

import errno
import json
import socket
import struct
import sys
import time

PATIENCE = 30  # seconds without anything arriving, on however slow a machine


def main(capture, interface, control, at_once):
    gateway = socket.socket(socket.AF_UNIX)
    gateway.connect(control)
    answers = gateway.makefile("rb")

    again = 0

    def dropped():
        with open(f"/sys/class/net/{interface}/statistics/tx_dropped") as file:
            return int(file.read())

    at_first = dropped()

    def silently():
        return max(dropped() - at_first - again, 0)

    def arrived():
        gateway.sendall(b'{"ask":"picture"}\n')
        picture = json.loads(answers.readline())["picture"]
        lost = sum(picture["ports"][0][what] for what in ("ring_full", "too_long", "unreadable", "foreign"))
        return picture["report"]["received"]["packets"] + lost + silently()

    def wait_for(packets):
        last, end = arrived(), time.monotonic() + PATIENCE
        while last < packets and time.monotonic() < end:
            time.sleep(0.001)
            now = arrived()
            if now != last:
                last, end = now, time.monotonic() + PATIENCE

    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((interface, 0))
    with open(capture, "rb") as file:
        data = file.read()
    before, sent, refused, at = arrived(), 0, 0, 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        try:
            line.send(data[at + 16 : at + 16 + length])
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                # No room for it, which the interface counts: it is tried again when the others have arrived.
                again += 1
                wait_for(before + sent)
                continue
            refused += 1
        else:
            sent += 1
        at += 16 + length
        if sent % at_once == 0:
            wait_for(before + sent)
    wait_for(before + sent)
    print(sent, refused, silently())


main(*sys.argv[1:4], int(sys.argv[4]))
