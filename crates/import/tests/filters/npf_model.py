"""What NPF decides: an own reading of configurations and an own walk, from NPF's documents.

Standard input has JSON: {"text", "title", "interfaces", "tables", "packets"}. Each packet has the interfaces by
which it comes in and goes out (or null), and its fields. Standard output has the decision of each packet, in
order: pass, keep, block, rst or icmp. Connections are remembered from packet to packet.
"""

import ipaddress
import json
import re
import sys

SERVICES = {"ssh": 22, "smtp": 25, "domain": 53, "http": 80, "ntp": 123, "https": 443}
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "esp": 50, "ipv6-icmp": 58, "ospf": 89}
ICMP_TYPES = {"echoreply": 0, "unreach": 3, "echo": 8, "timxceed": 11}
BITS = {letter: 1 << at for at, letter in enumerate("FSRPAUEW")}


def pieces(line):
    """The words of a line; a comment ends it."""
    found = re.findall(r'"[^"]*"|<[\w.-]+>|#.*|[{}(),=!]|[^\s{}(),=!"#]+', line)
    return [word for word in found if not word.startswith("#")]


class Words:
    def __init__(self, words):
        self.words = list(words)

    def peek(self):
        return self.words[0] if self.words else None

    def pop(self):
        return self.words.pop(0)

    def skip(self, *words):
        if self.peek() in words:
            return self.pop()
        return None


class Configuration:
    def __init__(self, text, tables):
        self.variables, self.procedures, self.groups = {}, {}, []
        self.follows_icmp = False
        self.tables = {name: [ipaddress.ip_network(entry) for entry in entries] for name, entries in tables.items()}
        group, procedure = None, None
        for line in re.sub(r"\\\n", " ", text).split("\n"):
            # A block may open and close in one line; statements in it are parted by semicolons.
            words = pieces(line.replace(";", " \0 "))
            while words:
                first = words[0]
                if first == "\0":
                    words = words[1:]
                elif first == "}" and (group is not None or procedure is not None):
                    group, procedure, words = None, None, words[1:]
                elif first == "group":
                    at = words.index("{")
                    group = self.group(Words(words[1:at]))
                    words = words[at + 1:]
                elif first == "procedure":
                    at = words.index("{")
                    procedure = words[1]
                    self.procedures[procedure] = True
                    words = words[at + 1:]
                else:
                    end, depth = len(words), 0
                    for at, word in enumerate(words):
                        if word == "\0" or word == "}" and depth == 0:
                            end = at
                            break
                        depth += (word == "{") - (word == "}")
                    self.statement(words[:end], group, procedure)
                    words = words[end:]

    def statement(self, words, group, procedure):
        if procedure is not None or words[0] == "table":
            return
        if words[0] == "alg":
            self.follows_icmp = True
            return
        if words[0].startswith("$"):
            assert words[1] == "="
            self.variables[words[0]] = self.list(Words(words[2:]))
            return
        group["rules"].append(self.rule(Words(words)))

    def list(self, words):
        if not words.skip("{"):
            return self.element(words)
        elements = self.element(words)
        while not words.skip("}"):
            assert words.pop() == ","
            elements += self.element(words)
        return elements

    def element(self, words):
        word = words.pop()
        if word.startswith("$"):
            return list(self.variables[word])
        if word == "inet4":
            words.pop()
            name = words.pop()
            words.pop()
            return [name]
        return [word.strip('"')]

    def group(self, words):
        group = {"default": False, "direction": ("in", "out"), "interface": None, "rules": []}
        if words.skip("default"):
            group["default"] = True
        else:
            words.pop()
            direction = words.skip("in", "out")
            if direction:
                group["direction"] = (direction,)
            if words.skip("on"):
                group["interface"] = self.list(words)[0]
        self.groups.append(group)
        return group

    def rule(self, words):
        rule = {"pass": words.pop() == "pass", "tests": []}
        tests = rule["tests"]
        rule["tell"] = None if rule["pass"] else words.skip("return", "return-rst", "return-icmp")
        rule["stateful"] = words.skip("stateful", "stateful-all")
        direction = words.skip("in", "out")
        rule["direction"] = (direction,) if direction else ("in", "out")
        rule["final"] = words.skip("final", "quick") is not None
        rule["interface"] = self.list(words)[0] if words.skip("on") else None
        family = None
        if words.skip("family"):
            family = 4 if words.pop() == "inet4" else 6
            tests.append(lambda packet: packet["family"] == family)
        protocol, flags = None, None
        if words.skip("proto"):
            word = words.pop().strip('"')
            protocol = PROTOCOLS[word] if word in PROTOCOLS else int(word, 0)
            tests.append(lambda packet: packet["proto"] == protocol)
            if words.skip("flags"):
                flags = words.pop()
            if words.skip("icmp-type"):
                kind = self.number(words.pop(), ICMP_TYPES)
                tests.append(lambda packet: packet["type"] == kind)
                if words.skip("code"):
                    code = int(words.pop(), 0)
                    tests.append(lambda packet: packet["code"] == code)
        if flags is None and rule["stateful"]:
            flags = "S/SAFR"
        if flags is not None:
            tests.append(lambda packet: packet["proto"] != 6 or flags_are(packet["flags"], flags))
        if not words.skip("all"):
            for keyword, address, port in (("from", "src", "sport"), ("to", "dst", "dport")):
                if words.skip(keyword):
                    self.endpoint(words, tests, protocol, address, port)
        if words.skip("apply"):
            assert self.procedures[words.pop()]
        assert not words.words, words.words
        return rule

    @staticmethod
    def number(word, names):
        return names[word] if word in names else int(word, 0)

    def endpoint(self, words, tests, protocol, address, port):
        inverted = words.skip("!") is not None
        if not words.skip("any"):
            elements = self.list(words)
            if elements[0].startswith("<"):
                networks = [network for name in elements for network in self.tables[name[1:-1]]]
            else:
                networks = [ipaddress.ip_network(element) for element in elements]
                # An address is compared with packets of its family only, also where that is turned round.
                versions = {network.version for network in networks}
                if any(network.prefixlen for network in networks):
                    tests.append(lambda packet: packet["family"] in versions)
                else:
                    networks = [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
            tests.append(lambda packet: inverted != any(packet[address] in network for network in networks))
        if words.skip("port"):
            ranges = [self.ports(element) for element in self.list(words)]
            if protocol is None:
                tests.append(lambda packet: packet["proto"] in (6, 17))
            tests.append(
                lambda packet: packet[port] is not None
                and any(low <= packet[port] <= high for low, high in ranges)
            )

    def ports(self, element):
        low, _, high = element.partition("-")
        low = self.number(low, SERVICES)
        return low, self.number(high, SERVICES) if high else low

    def decide(self, direction, interface, packet):
        """The rule that decides at a hook, or None."""
        order = [group for group in self.groups if not group["default"]]
        for group in order + [group for group in self.groups if group["default"]]:
            if direction not in group["direction"] or group["interface"] not in (None, interface):
                continue
            last = None
            for rule in group["rules"]:
                if direction not in rule["direction"] or rule["interface"] not in (None, interface):
                    continue
                if all(test(packet) for test in rule["tests"]):
                    last = rule
                    if rule["final"]:
                        break
            if last is not None:
                return last
        return None


def flags_are(flags, wanted):
    if flags is None:
        return False
    on, _, mask = wanted.partition("/")
    on, mask = (sum(BITS[letter] for letter in part) for part in (on, mask or on))
    return flags & mask == on


class Firewall:
    def __init__(self, configuration):
        self.configuration = configuration
        self.connections = set()

    def hook(self, direction, interface, packet):
        """The decision at one hook, with NPF's table of connections."""
        forward = (packet["proto"], packet["src"], packet["sport"], packet["dst"], packet["dport"])
        backward = (packet["proto"], packet["dst"], packet["dport"], packet["src"], packet["sport"])
        other = "out" if direction == "in" else "in"
        known = [(forward, None, None), (backward, None, None)]
        known += [(forward, interface, direction), (backward, interface, other)]
        # Only the gateway of ICMP knows by what an echo or an error belongs to a connection.
        followed = self.configuration.follows_icmp or packet["proto"] not in (1, 58)
        if followed and any(connection in self.connections for connection in known):
            return "pass"
        rule = self.configuration.decide(direction, interface, packet)
        if rule is None:
            return "block"
        if not rule["pass"]:
            if packet["proto"] == 6 and rule["tell"] in ("return", "return-rst"):
                return "rst"
            return "icmp" if packet["proto"] == 17 and rule["tell"] in ("return", "return-icmp") else "block"
        if not rule["stateful"]:
            return "pass"
        if not followed:
            return "keep"
        if rule["stateful"] == "stateful":
            self.connections.add((forward, interface, direction))
        else:
            self.connections.add((forward, None, None))
        return "keep"

    def packet(self, packet):
        decisions = []
        for direction in ("in", "out"):
            if packet[direction] is not None:
                decision = self.hook(direction, packet[direction], packet)
                if decision not in ("pass", "keep"):
                    return decision
                decisions.append(decision)
        return "keep" if "keep" in decisions else "pass"


def main():
    task = json.load(sys.stdin)
    text = task["text"].split("\n", 1)[1] if task["title"] else task["text"]
    firewall = Firewall(Configuration(text, task["tables"]))
    for packet in task["packets"]:
        for field in ("src", "dst"):
            packet[field] = ipaddress.ip_address(packet[field])
    print("\n".join(firewall.packet(packet) for packet in task["packets"]))


main()
