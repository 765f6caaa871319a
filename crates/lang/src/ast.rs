//! The syntax tree: what the parser saw, with a span on everything; names are not resolved, types not
//! checked.

mod declared;
mod edit;
mod policies;
mod stages;
mod tables;

pub use edit::Edit;
pub use policies::*;
pub use stages::{Extern, Stage};
pub use tables::*;

use ir::source::Span;

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// `import` lines.
    pub imports: Vec<Import>,
    /// Declarations in source order.
    pub items: Vec<Item>,
    /// Where each import and declaration lies, also those that could not be read.
    pub ranges: Vec<Span>,
}

/// `import std.net.{ethernet, ipv4}` or `import std.net.ethernet`: the path of the module, the names taken
/// from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Path without the last part: `std`, `net`.
    pub path: Vec<Name>,
    /// The names in braces, or the one last part.
    pub names: Vec<Name>,
    /// The whole line.
    pub span: Span,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `settable const NAME: type in 1..5 = value`
    Const(Const),
    /// `enum NAME: type { A = 1, B = 2 }`
    Enum(Enum),
    /// `layout NAME { … } next …`
    Layout(Layout),
    /// `table NAME: exact(…) -> … { … }`
    Table(Table),
    /// `counter NAME` or `counter NAME[N]`
    Counter(Counter),
    /// `meter NAME[N]: bytes { committed 1M burst 64k }`
    Meter(Meter),
    /// `register NAME[N]: u32`
    Register(Register),
    /// `pool NAME: (ip4, u16) { 198.51.100.1, 1024..65535 }`
    Pool(Pool),
    /// `group NAME[N]: (mac, port) { buckets 256 capacity 8 }`
    Group(Group),
    /// `reason NAME "help"`
    Reason(Reason),
    /// `fn NAME(a: t) -> t { value }`
    Function(Function),
    /// `decoder NAME(h: layout, …) { … }` or `stage NAME(…) { … }`
    Stage(Stage),
    /// `extern stage NAME(…)` or `extern stage NAME(…) { … }`
    Extern(Extern),
    /// `policy NAME(…) { … }`
    Policy(PolicyDeclaration),
    /// `event NAME(…) { … }`
    Event(Event),
    /// `every 1s { … }`
    Every(Every),
    /// `order fragments`
    Order(Span),
    /// `test "…" { … }`
    Test(Test),
}

/// `settable const NAME: type in 1..5 = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// Whoever compiles the program may give it another value.
    pub settable: bool,
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// The values that it may have (both ends belong to the range).
    pub range: Option<(Expr, Option<Expr>)>,
    /// Its value.
    pub value: Expr,
}

/// `enum NAME: type { A = 1, B = 2 }`
#[derive(Clone, Debug, PartialEq)]
pub struct Enum {
    /// Its name.
    pub name: Name,
    /// The integer type beneath.
    pub ty: Type,
    /// Names and values.
    pub members: Vec<(Name, Expr)>,
}

/// `layout NAME { fields } next selector when condition { values => layout }`
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Its name.
    pub name: Name,
    /// Its fields in order of the wire.
    pub fields: Vec<Field>,
    /// What follows.
    pub next: Option<Next>,
    /// What checksums of headers behind this one cover of it.
    pub pseudo: Option<Pseudo>,
}

/// `name: type constraint when condition length of (header + payload)`
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: FieldType,
    /// What the decoder checks.
    pub constraint: Option<Constraint>,
    /// The field is there only if this holds.
    pub when: Option<Expr>,
    /// `length of (…)`
    pub length_of: Option<LengthOf>,
    /// The whole field.
    pub span: Span,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldType {
    /// A scalar.
    Scalar(Type),
    /// `u3 { reserved, df, mf }`: one name a bit, the most significant first.
    Flags(Type, Vec<Name>),
    /// `bytes[expr]`: as many bytes as the expression says.
    Bytes(Expr),
    /// `inet16 over …`: an Internet checksum.
    Checksum(Covers),
}

/// What the length in a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthOf {
    /// `length of (header)`
    Header,
    /// `length of (header + payload)`
    Both,
    /// `length of (payload)`
    Payload,
}

/// What a checksum covers: the header it stands in, and what is said here.
/// `over (pseudo + header + payload) unless 0`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covers {
    /// The pseudo header, which a header before this one describes.
    pub pseudo: bool,
    /// Everything behind the header.
    pub payload: bool,
    /// Zero says that there is no checksum.
    pub unless_zero: bool,
    /// Its place.
    pub span: Span,
}

/// `pseudo (src + dst + kind of payload + length of payload)`
#[derive(Clone, Debug, PartialEq)]
pub struct Pseudo {
    /// Fields that are covered.
    pub fields: Vec<Name>,
    /// `kind of payload`: the number that announces the header behind.
    pub kind: bool,
    /// `length of payload`: the number of bytes from that header on.
    pub length: bool,
    /// The whole clause.
    pub span: Span,
}

/// What a decoder checks of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// `= 4`
    Equal(Expr),
    /// `in 5..` or `in 5..15` (both ends belong to the range)
    Range(Expr, Option<Expr>),
}

/// `next selector when condition { values => layout, … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// The field that selects.
    pub selector: Name,
    /// The condition under which something follows at all.
    pub when: Option<Expr>,
    /// Values and the layout that follows.
    pub targets: Vec<(Vec<Expr>, Name)>,
    /// The whole clause.
    pub span: Span,
}

/// `reason NAME "help"`
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its name.
    pub name: Name,
    /// What it means.
    pub help: String,
}

/// `name: type`
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
}

/// `fn NAME(params) -> type { value }`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The type of its value, or of each of its values.
    pub result: Vec<Type>,
    /// Its value.
    pub value: Expr,
}

/// `event NAME(params) { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: Name,
    /// Its arguments.
    pub params: Vec<Param>,
    /// What happens.
    pub body: Block,
}

/// `every 1s { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Every {
    /// The period.
    pub period: Expr,
    /// What happens.
    pub body: Block,
    /// The whole declaration.
    pub span: Span,
}

/// `test "name" { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: Vec<TestStep>,
    /// The whole test.
    pub span: Span,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum TestStep {
    /// `ports 5`
    Ports(Expr),
    /// `packet 1 from_host { ethernet / ipv4 } at 3s`: enters at a port (at a time after the start of the
    /// test).
    Packet {
        /// The port it enters at.
        port: Expr,
        /// The machine sends it, as a host at the port.
        from_host: bool,
        /// Its bytes.
        packet: PacketExpr,
        /// Time since the start of the test, else the time of the step before.
        at: Option<Expr>,
        /// The whole step.
        span: Span,
    },
    /// `after 61s`: time passes.
    After(Expr),
    /// `expect send 2`, … : what became of the packet before.
    Expect(Expectation, Span),
}

/// What a test expects.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// `send 2`
    Send(Expr),
    /// `flood`
    Flood,
    /// `multicast {1, 2}`
    Multicast(Vec<Expr>),
    /// `drop reason`, `drop short(ipv4)`, `drop invalid(ipv4.ihl)`: the reason as text.
    Drop(Name),
    /// `punt reason`
    Punt(Name),
    /// `out 2 { ethernet / arp(op 2) }`: the packet before caused exactly these bytes to leave there.
    Out(Expr, PacketExpr),
    /// `entries hosts 3`: so many entries are in the table now.
    Entries(Name, Expr),
    /// `count web 2` or `count seen[3] 2`: the counter's packets.
    Count(Name, Option<Expr>, Expr),
    /// `event new_host(10.0.0.1, 2)`: the packet before raised it with these values.
    Event(Name, Vec<Expr>),
}

/// `ethernet(dst …) / ipv4 / payload`
#[derive(Clone, Debug, PartialEq)]
pub struct PacketExpr {
    /// Its parts in order.
    pub parts: Vec<PacketPart>,
    /// The whole expression.
    pub span: Span,
}

/// Where the part of a received packet begins that ends a made one.
#[derive(Clone, Debug, PartialEq)]
pub enum RestFrom {
    /// `payload`: behind the last header.
    Payload,
    /// `packet`: with its first byte.
    Packet,
    /// `from ip`: with the first byte of a header.
    Header(Name),
}

/// A part of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketPart {
    /// `ipv4(src 10.0.0.1, ttl 3)`
    Header(Name, Vec<(Name, Expr)>),
    /// `"text"`
    Text(String, Span),
    /// `hex "00 11 22"`
    Hex(Vec<u8>, Span),
    /// `zero[N]`: N zero bytes.
    Zero(Expr, Span),
    /// The end of the packet being processed (not in tests).
    Rest {
        /// Where it begins.
        from: RestFrom,
        /// `take n`: at most so many bytes of it.
        take: Option<Expr>,
        /// The whole part.
        span: Span,
    },
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// What it is.
    pub kind: TypeKind,
    /// Its place.
    pub span: Span,
}

/// What a type is.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `u1` … `u128`
    Uint(u32),
    /// A word: `bool`, `ip4`, `ip6`, `mac`, `port`, `time`, or the name of an enum.
    Named(String),
}

/// Statements in braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Stmt>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its place.
    pub span: Span,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let x: t = e`
    Let(Name, Option<Type>, Expr),
    /// `var x: t = e`
    Var(Name, Option<Type>, Expr),
    /// `x = e`
    Assign(Name, Expr),
    /// `set ip.ttl = e`
    Set(Name, Name, Expr),
    /// `set r = e` or `set r[i] = e`
    SetRegister(Name, Option<Expr>, Expr),
    /// `give pool[a, b]`
    Give(Name, Vec<Expr>),
    /// `if e { … } else { … }`; `else if` is an else block of one statement.
    If(Expr, Block, Option<Block>),
    /// `match e { … }`
    Match(Expr, Vec<Arm>),
    /// `for i in a..b { … }`
    For(Name, Expr, Expr, Block),
    /// `for option in tcp.options as tcp_option { … }`
    Walk {
        /// The name each header gets.
        name: Name,
        /// The bytes that are walked.
        view: Expr,
        /// The layout of each header.
        layout: Name,
        /// What is done with each.
        body: Block,
    },
    /// `break`: leaves the innermost walk.
    Break,
    /// `extract a, b`; `extract all` is the empty list.
    Extract(Vec<Name>),
    /// `learn t[k] = v else { … }`
    Learn(TableWrite, Option<Block>),
    /// `insert t[k] = v else { … }`
    Insert(TableWrite, Option<Block>),
    /// `learn together { t[k] = v, u[l] = w } else { … }`
    LearnTogether(Vec<TableWrite>, Option<Block>),
    /// `insert t[default] = v`
    SetDefault(Name, Expr),
    /// `remove t[k]`; in rules chosen by priority, `remove t[k] priority 5`
    Remove(Name, Vec<Expr>, Option<Expr>),
    /// `remove t[default]`
    ClearDefault(Name),
    /// `count c` or `count c[i]`
    Count(Name, Option<Expr>),
    /// `raise e(a, b)`; with a delay, `after d raise e(a, b)`
    Raise(Option<Expr>, Name, Vec<Expr>),
    /// `emit packet to port`
    Emit(PacketExpr, Expr),
    /// `copy to port`
    Copy(Expr),
    /// `push`, `pop`, `encapsulate`, `decapsulate`, `truncate`, `fragment`
    Edit(Edit),
    /// `goto stage(args)`, also a bare `stage` in an arm
    Goto(Name, Vec<Expr>),
    /// `send port`
    Send(Expr),
    /// `flood`
    Flood,
    /// `multicast {1, 2}`
    Multicast(Vec<Expr>),
    /// `multicast listeners` or `multicast listeners[i]`: to all members of a group
    MulticastGroup(Name, Option<Expr>),
    /// `drop reason`
    Drop(Name),
    /// `punt reason`
    Punt(Name),
    /// `recirculate 4`: the packet starts again, at most so many times.
    Recirculate(Expr),
    /// `steer key`: the worker of the packet is this number modulo the number of workers.
    Steer(Expr),
}

/// `t[k, l] = v`; the value is absent where the table is a set. In rules chosen by priority,
/// `t[k, l] = v priority 5`; with a lifetime of its own, `t[k, l] = v for 5s`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableWrite {
    /// The table.
    pub table: Name,
    /// The key.
    pub keys: Vec<Expr>,
    /// The value.
    pub value: Option<Expr>,
    /// The priority.
    pub priority: Option<Expr>,
    /// How long the entry lives: `for 5s`.
    pub lifetime: Option<Box<Expr>>,
    /// The whole of it.
    pub span: Span,
}

/// `pattern if guard => body`; in an expression the body is one too.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm<B = Block> {
    /// What the value must look like.
    pub pattern: Pattern,
    /// A further condition.
    pub guard: Option<Expr>,
    /// What is done then; one statement stands as a block of one.
    pub body: B,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// Its place.
    pub span: Span,
}

/// What a pattern is.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    /// `_` or `else`
    Any,
    /// A literal, a prefix, a constant or a member of an enum (`ip_protocol.tcp`).
    Value(Expr),
    /// `1..5` or `1024..` (both ends belong to the range)
    Range(Expr, Option<Expr>),
    /// `a | b`
    Either(Vec<Pattern>),
    /// `(a, b)`
    Tuple(Vec<Pattern>),
    /// `some p`
    Some(Box<Pattern>),
    /// `none`
    None,
    /// `mirror(to)`: a variant with names for its parameters. A bare word is [`PatternKind::Word`].
    Variant(Name, Vec<Pattern>),
    /// A bare word: a variant without parameters, a constant, or a new name for the value.
    Word(Name),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `42`, `0x0800`, `64k`
    Int(u128),
    /// `true`, `false`
    Bool(bool),
    /// `10.0.0.1`
    Ip4(u32),
    /// `2001:db8::1`
    Ip6(u128),
    /// `02:00:00:00:00:01`
    Mac(u64),
    /// `10.0.0.0/8`: address and length
    Prefix4(u32, u8),
    /// `2001:db8::/32`
    Prefix6(u128, u8),
    /// `300s`, in nanoseconds
    Duration(u64),
    /// A word: local, parameter, constant, `in_port`, `now`, `length`, `payload`
    Word(String),
    /// `ip.src`, `ip.flags.df`, `protocol.tcp`
    Field(Box<Expr>, Name),
    /// `t[k, l]`: the entry, as `some` or `none`
    Lookup(Name, Vec<Expr>),
    /// `f(a, b)`; also a variant with its parameters
    Call(Name, Vec<Expr>),
    /// `!a`, `~a`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a as u16`, `a as% u8`, `a as| u8`
    Cast(Box<Expr>, CastMode, Type),
    /// `a in 1..5` (both ends belong to the range); without an upper end, `a in 1024..`
    InRange(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    /// `a in 10.0.0.0/8`
    InPrefix(Box<Expr>, Box<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `if c { a } else { b }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match e { pattern => value, … }`
    Match(Box<Expr>, Vec<Arm<Expr>>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    Complement,
}

/// Operators with two operands, all on unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`, proven not to overflow
    Add,
    /// `+%`
    AddWrap,
    /// `+|`
    AddSaturate,
    /// `-`, proven not to go below zero
    Sub,
    /// `-%`
    SubWrap,
    /// `-|`
    SubSaturate,
    /// `*`, proven not to overflow
    Mul,
    /// `*%`
    MulWrap,
    /// `*|`
    MulSaturate,
    /// `/`, the divisor proven not to be zero
    Div,
    /// `%`, the divisor proven not to be zero
    Rem,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`, the distance proven smaller than the width; bits fall off the top
    ShiftLeft,
    /// `>>`, the distance proven smaller than the width
    ShiftRight,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// What `as` does with a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastMode {
    /// `as`: proven to fit
    Exact,
    /// `as%`: keeps the low bits
    Wrap,
    /// `as|`: the largest value
    Saturate,
}
