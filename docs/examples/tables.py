#!/usr/bin/env python3
"""Lists a table of a running gateway, adds an entry, and tells the next events. Needs nothing but Python.

    tables.py SOCKET list TABLE
    tables.py SOCKET add TABLE ENTRY        # ENTRY as in the language: '02:00:00:00:00:07 => 3'
    tables.py SOCKET watch COUNT [EVENT…]

docs/control.md describes the protocol that this speaks.
"""

import ipaddress
import json
import socket
import struct
import sys

LIST, READ, INSERT, SUBSCRIBE = 2, 4, 5, 12
DONE, SCHEMA, ENTRIES, EVENT, PUNT, LOST, ERROR = 129, 130, 131, 132, 133, 134, 255


class Gateway:
    """A connection to the control socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)
        except OSError as error:
            raise SystemExit(f"no gateway answers at {path}: {error}")
        self.stream = self.socket.makefile("rb")
        self.socket.sendall(b'{"ask":"tables","version":1}\n')
        answer = json.loads(self.stream.readline())
        if "error" in answer:
            raise SystemExit(answer["error"])
        self.schema = answer["tables"]
        self.number = 0

    def table(self, name):
        """The number of a table and its description."""
        for number, table in enumerate(self.schema["tables"]):
            if table["name"] == name:
                return number, table
        raise SystemExit(f"there is no table {name}")

    def receive(self):
        """The next frame: request number, kind, body."""
        length, number, kind = struct.unpack(">IIB", self.stream.read(9))
        return number, kind, Body(self.stream.read(length - 5))

    def ask(self, kind, body):
        """Sends a request and waits for its answer."""
        self.number += 1
        self.socket.sendall(struct.pack(">IIB", len(body) + 5, self.number, kind) + body)
        while True:
            number, kind, answer = self.receive()
            if number != self.number:
                continue  # what an earlier subscription tells
            if kind == ERROR:
                raise SystemExit(answer.rest[10:].decode())
            return kind, answer

    def list(self, name):
        """All entries of a table."""
        number, table = self.table(name)
        cursor = b""
        while True:
            head = struct.pack(">HHI", number, 0, 1000)
            _, answer = self.ask(LIST, head + bytes([len(cursor)]) + cursor)
            cursor = answer.take(answer.number(1))
            for _ in range(answer.number(4)):
                answer.number(2)  # the worker
                yield answer.entry(table)
            if not cursor:
                return

    def add(self, name, text):
        """Adds the entries that a text of the language means."""
        number, table = self.table(name)
        _, answer = self.ask(READ, struct.pack(">HB", number, 0) + text.encode())
        answer.take(answer.number(1))
        for _ in range(answer.number(4)):
            answer.number(2)
            begin = answer.rest
            answer.entry(table)
            entry = begin[: len(begin) - len(answer.rest)]
            self.ask(INSERT, struct.pack(">H", number) + entry)

    def events(self, names):
        """The events of a program as they come: name and arguments, or how many were lost."""
        body = struct.pack(">IH", 0, len(names))
        body += b"".join(bytes([len(name)]) + name.encode() for name in names)
        self.ask(SUBSCRIBE, body + struct.pack(">H", 0))
        schema = self.schema
        while True:
            _, kind, answer = self.receive()
            if kind == SCHEMA:
                schema = json.loads(answer.rest)
            elif kind == LOST:
                yield "lost", [str(answer.number(8))]
            elif kind == EVENT:
                event = schema["events"][answer.number(2)]
                answer.take(2 + 8 + 8)  # worker, time, delay
                yield event["name"], [answer.value(column) for column in event["arguments"]]


class Body:
    """A body that is read from its beginning."""

    def __init__(self, rest):
        self.rest = rest

    def take(self, count):
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def number(self, count):
        return int.from_bytes(self.take(count), "big")

    def value(self, column):
        number = self.number((column["bits"] + 7) // 8)
        return shown(column, number)

    def part(self, column):
        kind = self.number(1)
        if kind == 0:
            return "_"
        if kind == 1:
            return self.value(column)
        if kind == 2:
            return f"{self.value(column)}/{self.number(1)}"
        if kind in (3, 4):
            return self.value(column) + (" mask " if kind == 3 else "..") + self.value(column)
        self.take(9)  # flags, offset, depth
        return "hex " + json.dumps(self.take(self.number(4)).hex(" "))

    def entry(self, table):
        bytes_column = [{"bits": 128, "type": "uint"}]
        key = [self.part(column) for column in table["keys"] or bytes_column]
        priority = self.number(4)
        value = [self.value(column) for column in table["values"]]
        ranked = f" priority {priority}" if table["ranked"] else ""
        return f"{', '.join(key)}{ranked} => {', '.join(value)}"


def shown(column, number):
    """A value as people write it."""
    kind = column["type"]
    if kind == "ip4":
        return str(ipaddress.IPv4Address(number))
    if kind == "ip6":
        return str(ipaddress.IPv6Address(number))
    if kind == "mac":
        return number.to_bytes(6, "big").hex(":")
    if kind == "bool":
        return "true" if number else "false"
    return dict(column.get("names", [])).get(str(number), str(number))


def main():
    if len(sys.argv) < 4:
        raise SystemExit(__doc__)
    _, path, what, *rest = sys.argv
    gateway = Gateway(path)
    if what == "list":
        for entry in gateway.list(rest[0]):
            print(entry)
    elif what == "add":
        gateway.add(rest[0], rest[1])
    elif what == "watch":
        names = rest[1:] or [event["name"] for event in gateway.schema["events"]]
        events = gateway.events(names)
        for _ in range(int(rest[0])):
            name, arguments = next(events)
            print(f"{name}({', '.join(arguments)})", flush=True)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
