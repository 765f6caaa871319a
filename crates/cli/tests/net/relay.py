"""A NAT of UDP between two ends of a tunnel, for tests: `relay.py PORT TARGET` passes what comes at PORT of
127.0.0.1 to TARGET from a port of its own, and answers back. A line on standard input changes that, and is
answered by how many datagrams were changed so far:

pass   datagrams go on unchanged
flip   of each datagram to the target a bit of one byte is changed, at the next place each time
move   the NAT has lost its mapping: datagrams go on from another port
"""

import select
import socket
import sys


def bound(port=0):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", port))
    return made


inside, outside = bound(int(sys.argv[1])), bound()
target, client, flips, flipped = ("127.0.0.1", int(sys.argv[2])), None, False, 0
while True:
    for ready in select.select([inside, outside, sys.stdin], [], [])[0]:
        if ready is inside:
            data, client = inside.recvfrom(65536)
            if flips:
                data = bytearray(data)
                data[flipped % len(data)] ^= 1 << flipped % 8
                flipped += 1
            outside.sendto(data, target)
        elif ready is outside:
            data, _ = outside.recvfrom(65536)
            if client:
                inside.sendto(data, client)
        else:
            line = sys.stdin.readline().strip()
            if not line:
                sys.exit()
            flips = line == "flip"
            if line == "move":
                outside = bound()
            print(flipped, flush=True)
