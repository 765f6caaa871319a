"""A bad network of UDP between two ends of a tunnel, for tests: `bad_network.py PORT HOST TARGET` passes what
comes at PORT of 127.0.0.1 to port TARGET of HOST, and answers back. A line on standard input changes that, and
is answered by how many datagrams have gone to the target so far:

bad LOST REPEATED DELAY   of a hundred datagrams so many are lost and so many come twice, each up to DELAY ms late
replay                    all datagrams that have gone to the target go there once more
cut                       the same, each without its last byte
forge                     the same, each with another last byte
"""

import heapq
import random
import select
import socket
import sys
import time

inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inside.bind(("127.0.0.1", int(sys.argv[1])))
outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
target, client = (sys.argv[2], int(sys.argv[3])), None
random.seed(17)
lost, repeated, delay = 0, 0, 0
waiting, order, sent = [], 0, []


def send(way, data):
    global order
    for _ in range(2 if random.randrange(100) < repeated else 1):
        if random.randrange(100) >= lost:
            order += 1
            heapq.heappush(waiting, (time.monotonic() + random.random() * delay / 1000, order, way, data))


while True:
    now = time.monotonic()
    while waiting and waiting[0][0] <= now:
        _, _, way, data = heapq.heappop(waiting)
        if way == "out":
            sent.append(data)
            outside.sendto(data, target)
        elif client:
            inside.sendto(data, client)
    pause = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    for ready in select.select([inside, outside, sys.stdin], [], [], pause)[0]:
        if ready is inside:
            data, client = inside.recvfrom(65536)
            send("out", data)
        elif ready is outside:
            send("in", outside.recv(65536))
        else:
            words = sys.stdin.readline().split()
            if not words:
                sys.exit()
            if words[0] == "bad":
                lost, repeated, delay = map(int, words[1:])
            changed = {
                "replay": lambda data: data,
                "cut": lambda data: data[:-1],
                "forge": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
            }.get(words[0])
            if changed:
                for data in sent:
                    outside.sendto(changed(data), target)
            print(len(sent), flush=True)
