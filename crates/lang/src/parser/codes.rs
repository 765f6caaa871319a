//! What each code of the lexer and the parser means: cause, example and fix, for `ravelin explain`.

/// Code, headline and explanation of every fault that is found while reading a program.
pub const CODES: &[(&str, &str, &str)] = &[
    (
        "E0001",
        "A character does not belong to the language.",
        "Outside of texts and comments a program is made of letters a–z, digits, `_` and the signs of the grammar.\nExample: `send p§`\nFix: remove the character, or put it into a comment.",
    ),
    (
        "E0002",
        "A text has no end.",
        "A text begins and ends with `\"` on one line.\nExample: `reason not_web \"only web`\nFix: close it; write a line break as `\\n`.",
    ),
    (
        "E0003",
        "An escape in a text means nothing.",
        "There are `\\n`, `\\t`, `\\\\`, `\\\"` and `\\xHH` up to `\\x7f`.\nExample: `\"50\\%\"`\nFix: write `%` as it is, or bytes as `hex \"ff\"`.",
    ),
    (
        "E0004",
        "A number is too large.",
        "Numbers have at most 128 bits; times are kept in nanoseconds in 64 bits.\nExample: `const FOREVER: time = 9999999h`\nFix: write a smaller number.",
    ),
    (
        "E0005",
        "A number has wrong digits or an unknown unit.",
        "Sizes take `k` (1,024) and `M` (1,048,576), times `ns`, `us`, `ms`, `s`, `min` and `h`; `0x` and `0b` need digits of their base.\nExample: `capacity 64K`\nFix: `capacity 64k`.",
    ),
    (
        "E0006",
        "Numbers have no fraction.",
        "All numbers are whole.\nExample: `age 1.5s`\nFix: `age 1500ms`. A range is written with two dots: `1..5`.",
    ),
    (
        "E0007",
        "An IPv4 address is faulty.",
        "It has four numbers from 0 to 255, without leading zeros, joined by dots.\nExample: `10.0.0.256`\nFix: `10.0.0.255`.",
    ),
    (
        "E0008",
        "An IPv6 address is faulty.",
        "It has eight groups of up to four hexadecimal digits; one run of zero groups may be written `::`.\nExample: `2001::db8::1`\nFix: `2001:db8::1`.",
    ),
    (
        "E0009",
        "A MAC address is faulty.",
        "It has six groups of exactly two hexadecimal digits.\nExample: `2:0:0:0:0:1`\nFix: `02:00:00:00:00:01`.",
    ),
    (
        "E0010",
        "A prefix has bits behind its length.",
        "The bits behind the length are never compared; if they are not zero, something else was meant.\nExample: `10.0.0.1/8`\nFix: `10.0.0.0/8`, or the address without a length.",
    ),
    (
        "E0011",
        "A prefix is longer than its address.",
        "IPv4 addresses have 32 bits, IPv6 addresses 128.\nExample: `10.0.0.0/33`\nFix: `10.0.0.0/32`.",
    ),
    (
        "E0012",
        "A file is too long.",
        "A file has at most 16 MiB.\nExample: a table with a million initial entries.\nFix: split the program into modules, or insert the entries while it runs.",
    ),
    (
        "E0013",
        "Comments begin with `//`.",
        "There is one form of comment, up to the end of the line.\nExample: `# web only` or `/* web only */`\nFix: `// web only`.",
    ),
    (
        "E0014",
        "A range is written with two dots.",
        "Both ends belong to a range.\nExample: `1..=5`\nFix: `1..5`.",
    ),
    (
        "E0015",
        "Names are joined by a dot.",
        "`::` stands in IPv6 addresses only.\nExample: `import std::net::tcp`\nFix: `import std.net.tcp`.",
    ),
    (
        "E0016",
        "A name is too long.",
        "A name has at most 255 bytes.\nExample: a name that a program made by joining others.\nFix: give it a shorter name.",
    ),
    (
        "E0050",
        "Something else is needed here.",
        "The grammar leaves one continuation, and something else stands there.\nExample: `let x 3`\nFix: `let x = 3`; the message names what is needed.",
    ),
    (
        "E0051",
        "This does not begin a declaration.",
        "A file holds imports, constants, enums, layouts, tables, counters, reasons, functions, decoders, stages, events, `every` and tests.\nExample: `decodre packet(ip: ipv4) { flood }`\nFix: `decoder packet(ip: ipv4) { flood }`.",
    ),
    (
        "E0052",
        "This does not begin a statement.",
        "A statement begins with a word such as `let`, `match` or `send`, or gives a value to a name.\nExample: `sned 3`\nFix: `send 3`.",
    ),
    (
        "E0053",
        "A word with a meaning of its own cannot be a name.",
        "`true`, `false`, `if`, `else`, `match`, `in`, `as` and `_` mean something in every expression.\nExample: `let match = 3`\nFix: `let found = 3`.",
    ),
    (
        "E0054",
        "A brace is not closed.",
        "A declaration begins, or the file ends, while a `{` is open.\nExample: `stage a() { if x == 1 { flood }`\nFix: add the `}`.",
    ),
    (
        "E0055",
        "A bracket closes nothing.",
        "There is a closing bracket too many, or an opening one was lost.\nExample: `stage a() { flood } }`\nFix: remove it.",
    ),
    (
        "E0056",
        "Imports stand before the declarations.",
        "What a file takes from others is said at its top.\nExample: `const A: u8 = 1` and below it `import std.net.tcp`\nFix: move the import up.",
    ),
    (
        "E0057",
        "A table has no such property.",
        "Tables have `capacity`, `age`, `idle`, `evict`, `choose`, `answer`, `counted`, `releases`, `from`, `entries` and `default`.\nExample: `{ capcity 64k }`\nFix: `{ capacity 64k }`.",
    ),
    (
        "E0059",
        "There is no such kind of table.",
        "Tables are `exact`, `lpm`, `rules` or `patterns`.\nExample: `table hosts: hash(ip4) -> port { capacity 1k }`\nFix: `table hosts: exact(ip4) -> port { capacity 1k }`.",
    ),
    (
        "E0061",
        "A field of a header is changed by `set`.",
        "Only locals are changed by `name = value`.\nExample: `ip.ttl = 3`\nFix: `set ip.ttl = 3`.",
    ),
    (
        "E0062",
        "Comparisons do not chain.",
        "A comparison gives true or false, which is not compared again.\nExample: `1 < x < 5`\nFix: `1 < x && x < 5`, or `x in 2..4`.",
    ),
    (
        "E0063",
        "A drop or punt needs a reason.",
        "No packet is lost without a reason; it is counted under its name.\nExample: `drop`\nFix: `drop not_web`.",
    ),
    (
        "E0064",
        "There are no numbers below zero.",
        "All numbers are unsigned.\nExample: `x + -1`\nFix: `x - 1`, or `x -% 1` to wrap around.",
    ),
    (
        "E0065",
        "Two values are compared by `==`.",
        "`=` gives a value to a name.\nExample: `if x = 3 { flood }`\nFix: `if x == 3 { flood }`.",
    ),
    (
        "E0066",
        "This nests too deeply.",
        "Blocks and brackets nest at most 100 levels, and an expression has at most 250 operators in a row; constants and functions that build on each other nest 400 levels at most.\nExample: a hundred and one opening brackets.\nFix: name a part with `let`, or move it to a function or a stage.",
    ),
    (
        "E0067",
        "These are not hexadecimal bytes.",
        "`hex` takes pairs of hexadecimal digits, with blanks as you like.\nExample: `hex \"0 1c\"`\nFix: `hex \"00 1c\"`.",
    ),
    (
        "E0068",
        "This is no step of a test.",
        "A test holds `ports`, `packet`, `after` and `expect`; behind `expect` stands what became of the packet before.\nExample: `expect dorp not_web`\nFix: `expect drop not_web`.",
    ),
    (
        "E0069",
        "Only a whole field can be set.",
        "`set` names a header and a field.\nExample: `set ip.flags.df = 1`\nFix: `set ip.flags = ip.flags | 2`.",
    ),
    (
        "E0070",
        "Numbers are 1 to 128 bits wide.",
        "The types of numbers are `u1` to `u128`.\nExample: `key: u256`\nFix: `key: bytes[32]`.",
    ),
    (
        "E0071",
        "An `if` has no value when its condition fails.",
        "Where an `if` gives a value it needs both.\nExample: `let x = if a { 1 }`\nFix: `let x = if a { 1 } else { 0 }`.",
    ),
    (
        "E0072",
        "`and` and `or` are written `&&` and `||`.",
        "Operators are signs.\nExample: `if a and b { flood }`\nFix: `if a && b { flood }`.",
    ),
    (
        "E0073",
        "A value is needed here.",
        "A value is a number, an address, a name, a field, a lookup, a call or a computation.\nExample: `let x = `\nFix: `let x = ip.ttl`.",
    ),
    (
        "E0074",
        "A type is needed here.",
        "Types are `u1` to `u128`, bool, ip4, ip6, mac, port, time, and the names of enums.\nExample: `stage web(to: 16) { flood }`\nFix: `stage web(to: u16) { flood }`.",
    ),
    (
        "E0075",
        "A decoder decodes a header.",
        "Its first parameter names the header and its layout.\nExample: `decoder packet() { flood }`\nFix: `decoder packet(ip: ipv4) { flood }`, or a `stage`.",
    ),
    (
        "E0076",
        "Something is said twice of one field.",
        "A field has at most one constraint, one `length of` and one `when`.\nExample: `version: u4 = 4 = 6`\nFix: `version: u4 = 4`.",
    ),
    (
        "E0077",
        "There is no such way to make room in a table.",
        "A full table gives up the entry used longest ago (`lru`), or refuses the new one (`refuse`).\nExample: `evict oldest`\nFix: `evict lru`.",
    ),
    (
        "E0078",
        "A pattern is needed here.",
        "An arm begins with a value, a range, a choice, `some x`, `none`, a name, or `else`.\nExample: `match x { => flood }`\nFix: `match x { else => flood }`.",
    ),
    (
        "E0079",
        "A field and its value stand side by side in a packet.",
        "No sign stands between them.\nExample: `ipv4(ttl = 3)`\nFix: `ipv4(ttl 3)`.",
    ),
    (
        "E0080",
        "Only checksums cover something.",
        "What is covered stands behind the type `inet16`, the checksum of the Internet protocols.\nExample: `check: u16 over header`\nFix: `check: inet16 over header`.",
    ),
    (
        "E0081",
        "A group has no such property.",
        "A group has `buckets`, `capacity`, `from` and `members`.\nExample: `group g: port { size 8 }`\nFix: `group g: port { capacity 8 }`.",
    ),
    (
        "E0082",
        "This choice does not exist.",
        "Behind `choose` stands `first` or `priority`, behind `answer` stands `first`, `all` or `set`.\nExample: `choose last`\nFix: `choose priority`, with a `priority` for every entry.",
    ),
    (
        "E0083",
        "A meter has no such rate.",
        "A meter has `committed`, `burst` and `excess`, or `committed`, `burst`, `peak` and `peak_burst`.\nExample: `meter m: bytes { rate 125k }`\nFix: `meter m: bytes { committed 125k burst 64k }`.",
    ),
];
