"""Sends frames with a VLAN tag by an interface, and waits for their echo with another tag.

tagged.py INTERFACE TAG TIMES [ECHO]: a TAG is a number, 0 for none, `priority` for one that names no VLAN;
an ECHO of `none` means that nothing comes back within a second.
"""

import socket
import struct
import sys

interface, tag, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
echo = sys.argv[4] if len(sys.argv) > 4 else None

SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
link.bind((interface, 0))

# To everybody, so that a station that is not promiscuous takes them, too.
stations = bytes.fromhex("ffffffffffff" + "020000009902")
control = {"0": b"", "priority": struct.pack("!HH", 0x8100, 5 << 13)}
header = control[tag] if tag in control else struct.pack("!HH", 0x8100, int(tag) | 3 << 13)
for number in range(times):
    payload = b"%s/%s/%d" % (interface.encode(), tag.encode(), number)
    link.send(stations + header + b"\x88\xb5" + payload.ljust(50, b"."))
    while echo is not None:
        link.settimeout(1 if echo == "none" else 20)
        try:
            frame, ancillary, _, _ = link.recvmsg(4096, 256)
        except TimeoutError:
            if echo != "none":
                sys.exit("frame %d did not come back" % number)
            break
        if payload not in frame:
            continue
        data = next(data for level, kind, data in ancillary if (level, kind) == (SOL_PACKET, PACKET_AUXDATA))
        status, _, _, _, _, vlan = struct.unpack("=IIIHHH", data[:18])
        found = vlan if status & 0x10 else 0
        if frame[12:14] != b"\x88\xb5" or str(found) != echo:
            sys.exit("frame %d came back with tag %r (%s) in place of %s" % (number, found, frame.hex(), echo))
        break
