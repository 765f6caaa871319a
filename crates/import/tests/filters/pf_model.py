"""What pf decides: an own reading of configurations and an own walk, after pf.conf(5).

Standard input has JSON: {"text", "tables", "packets"}. Rules are expanded, as pfctl does it: one for each
combination of the elements of lists. Standard output has the decision of each packet: pass, keep, block, rst or
port. States are kept from packet to packet.
"""

import ipaddress
import itertools
import json
import re
import sys

PORTS = {"ssh": 22, "smtp": 25, "domain": 53, "http": 80, "https": 443}
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "icmp6": 58, "ipv6-icmp": 58}
TYPES = {"echoreq": 8, "echorep": 0, "unreach": 3}
BITS = {letter: 1 << at for at, letter in enumerate("FSRPAUEW")}


def split(text):
    return re.findall(r'"[^"]*"|<[\w.-]+>|!=|<=|>=|<>|><|[{}(),=!<>]|[^\s{}(),=!<>"]+', text)


def net(text):
    address, _, length = text.partition("/")
    if ":" not in address:
        address += ".0" * (3 - address.count("."))
    return ipaddress.ip_network(address + ("/" + length if length else ""), strict=False)


class Table:
    def __init__(self, entries):
        self.entries = [(net(entry.lstrip("!").strip()), entry.startswith("!")) for entry in entries]

    def __contains__(self, address):
        found = [entry for entry in self.entries if address.version == entry[0].version and address in entry[0]]
        return bool(found) and not max(found, key=lambda entry: entry[0].prefixlen)[1]


class Words:
    def __init__(self, words):
        self.words = words

    def take(self, *wanted):
        if self.words and self.words[0] in wanted:
            return self.words.pop(0)
        return None

    def list(self, read):
        """What `read` makes of each element."""
        if not self.take("{"):
            return [read()]
        elements = []
        while not self.take("}"):
            if not self.take(","):
                elements += self.list(read)
        return elements


class Rules:
    def __init__(self, text, tables):
        self.macros, self.tables = {}, {name: Table(entries) for name, entries in tables.items()}
        self.policy, self.skipped, self.if_bound = "drop", set(), False
        lines = re.sub(r"\\\n", " ", re.sub(r"#.*", "", text)).split("\n")
        self.rules = self.block(iter(lines))

    def block(self, lines):
        rules = []
        for line in lines:
            words = split(line)
            if not words:
                continue
            if words[0] == "}":
                return rules
            if words[1:2] == ["="]:
                self.macros[words[0]] = self.expand([part for word in words[2:] for part in split(word.strip('"'))])
                continue
            words = Words(self.expand(words))
            first = words.words.pop(0)
            if first == "set":
                self.set(words)
            elif first == "table":
                name = words.words.pop(0)[1:-1]
                words.take("const")
                words.take("persist")
                if words.words and words.words[0] == "{":
                    self.tables[name] = Table(words.list(lambda: (words.take("!") or "") + words.words.pop(0)))
            elif first == "anchor":
                assert words.words.pop() == "{"
                if words.words and words.words[0].startswith('"'):
                    words.words.pop(0)
                header = self.rule("anchor", words)
                rules.append({"action": "anchor", "any": header, "inner": self.block(lines)})
            else:
                rules += self.rule(first, words)
        return rules

    def expand(self, words):
        return [part for word in words for part in (self.macros[word[1:]] if word[0] == "$" else [word])]

    def set(self, words):
        name = words.words.pop(0)
        if name == "skip":
            words.take("on")
            self.skipped |= set(words.list(lambda: words.words.pop(0)))
        elif name == "block-policy":
            self.policy = words.words.pop(0)
        elif name == "state-policy":
            self.if_bound = words.words.pop(0) == "if-bound"

    def rule(self, action, words):
        tell = None
        if action == "block":
            tell = words.take("drop", "return", "return-rst", "return-icmp") or self.policy
        direction = words.take("in", "out")
        quick = False
        while True:
            word = words.take("log", "quick")
            if word is None:
                break
            quick = quick or word == "quick"
        interfaces, families, protocols = [None], [None], [None]
        if words.take("on"):
            interfaces = words.list(lambda: (words.take("!") is not None, words.words.pop(0)))
        family = words.take("inet", "inet6")
        if family:
            families = [4 if family == "inet" else 6]
        if words.take("proto"):
            protocols = words.list(lambda: self.number(words.words.pop(0), PROTOCOLS))
        sides = []
        words.take("all")
        for keyword in ("from", "to"):
            hosts, ports = [None], [None]
            if words.take(keyword):
                if not words.words or words.words[0] != "port":
                    hosts = words.list(lambda: self.host(words))
                if words.take("port"):
                    ports = words.list(lambda: self.port(words))
            sides += [hosts, ports]
        flags, kinds, state = None, [None], action == "pass"
        while words.words:
            word = words.words.pop(0)
            if word == "flags":
                flags = words.words.pop(0)
            elif word in ("icmp-type", "icmp6-type"):
                kinds = words.list(lambda: self.kind(words))
            elif word in ("keep", "modulate", "no"):
                assert words.take("state")
                state = word != "no"
            else:
                assert word == "label", word
                words.words.pop(0)
        if flags is None and state:
            flags = "S/SA"
        return [
            {
                "action": action, "tell": tell, "direction": direction, "quick": quick, "interface": parts[0],
                "family": parts[1], "proto": parts[2], "src": parts[3], "sport": parts[4], "dst": parts[5],
                "dport": parts[6], "kind": parts[7], "flags": flags, "state": state,
            }
            for parts in itertools.product(interfaces, families, protocols, *sides, kinds)
        ]

    @staticmethod
    def number(word, names):
        return names[word] if word in names else int(word)

    def kind(self, words):
        kind = self.number(words.words.pop(0), TYPES)
        return kind, int(words.words.pop(0)) if words.take("code") else None

    def host(self, words):
        negated = words.take("!") is not None
        word = words.words.pop(0)
        if word == "any":
            return None
        if word.startswith("<"):
            return negated, None, self.tables[word[1:-1]]
        first = net(word)
        if words.take("-"):
            last = ipaddress.ip_address(words.words.pop(0))
            return negated, first.version, list(ipaddress.summarize_address_range(first[0], last))
        return negated, first.version, [first]

    def port(self, words):
        operator = words.take("=", "!=", "<", "<=", ">", ">=")
        word = words.words.pop(0)
        if operator:
            number = self.number(word, PORTS)
            compare = {
                "=": lambda port: port == number, "!=": lambda port: port != number,
                "<": lambda port: port < number, "<=": lambda port: port <= number,
                ">": lambda port: port > number, ">=": lambda port: port >= number,
            }
            return compare[operator]
        between = words.take("><", "<>")
        if between:
            low, high = self.number(word, PORTS), self.number(words.words.pop(0), PORTS)
            if between == "><":
                return lambda port: low < port < high
            return lambda port: port < low or port > high
        low, _, high = word.partition(":")
        low = self.number(low, PORTS)
        high = self.number(high, PORTS) if high else low
        return lambda port: low <= port <= high


def host_matches(host, address):
    if host is None:
        return True
    negated, version, networks = host
    if version is None:
        return (address in networks) != negated
    return address.version == version and any(address in network for network in networks) != negated


def matches(rule, direction, interface, packet):
    if "any" in rule:
        return any(matches(each, direction, interface, packet) for each in rule["any"])
    if rule["direction"] not in (None, direction):
        return False
    if rule["interface"] is not None and (rule["interface"][1] == interface) == rule["interface"][0]:
        return False
    if rule["family"] not in (None, packet["family"]) or rule["proto"] not in (None, packet["proto"]):
        return False
    for address, port in (("src", "sport"), ("dst", "dport")):
        if not host_matches(rule[address], packet[address]):
            return False
        if rule[port] is not None and (packet[port] is None or not rule[port](packet[port])):
            return False
    if rule["kind"] is not None:
        kind, code = rule["kind"]
        if packet["type"] != kind or code not in (None, packet["code"]):
            return False
    if rule["flags"] not in (None, "any") and packet["proto"] == 6:
        on, mask = (sum(BITS[letter] for letter in part) for part in rule["flags"].split("/"))
        if packet["flags"] is None or packet["flags"] & mask != on:
            return False
    return True


def walk(rules, last, direction, interface, packet):
    """The last rule that matches, and whether it ends the walk."""
    for rule in rules:
        if not matches(rule, direction, interface, packet):
            continue
        if rule["action"] == "anchor":
            last, ends = walk(rule["inner"], last, direction, interface, packet)
            if ends:
                return last, True
        elif rule["action"] != "match":
            last = rule
            if rule["quick"]:
                return last, True
    return last, False


def main():
    task = json.load(sys.stdin)
    rules, states = Rules(task["text"], task["tables"]), set()
    for packet in task["packets"]:
        packet["src"], packet["dst"] = (ipaddress.ip_address(packet[side]) for side in ("src", "dst"))
        forward = (packet["proto"], packet["src"], packet["sport"], packet["dst"], packet["dport"])
        backward = (packet["proto"], packet["dst"], packet["dport"], packet["src"], packet["sport"])
        verdict = "pass"
        for direction, other in (("in", "out"), ("out", "in")):
            interface = packet[direction]
            bound = interface if rules.if_bound else None
            if interface is None or interface in rules.skipped:
                continue
            if (forward, direction, bound) in states or (backward, other, bound) in states:
                continue
            rule, _ = walk(rules.rules, None, direction, interface, packet)
            if rule is None:
                continue
            if rule["action"] == "block":
                tcp = packet["proto"] == 6
                verdict = {
                    "drop": "block", "return": "rst" if tcp else "port", "return-rst": "rst" if tcp else "block",
                    "return-icmp": "port",
                }[rule["tell"]]
                break
            if rule["state"]:
                states.add((forward, direction, bound))
                verdict = "keep"
        print(verdict)


main()
