//! Tokens: the words, literals and signs a program text consists of, each with its place.

use ir::source::Span;

/// A token with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its place.
    pub span: Span,
    /// No other token stands before it on its line.
    pub first_on_line: bool,
}

/// What a token is; literals carry their value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word: a name or a word of the grammar, told apart by where it stands.
    Word,
    /// `42`, `0x0800`, `0b101`, `64k`, `1_000`
    Int(u128),
    /// `300s`, in nanoseconds
    Duration(u64),
    /// `10.0.0.1`
    Ip4(u32),
    /// `2001:db8::1`
    Ip6(u128),
    /// `02:00:00:00:00:01`
    Mac(u64),
    /// `10.0.0.0/8`: address and length in bits
    Prefix4(u32, u8),
    /// `2001:db8::/32`: address and length in bits
    Prefix6(u128, u8),
    /// `"text"`, its escapes resolved
    Text(String),
    /// A bracket, separator or operator.
    Sign(Sign),
    /// `// …` up to the end of its line
    Comment,
    /// The end of the text; an empty span.
    End,
}

macro_rules! signs {
    ($($name:ident = $text:literal,)*) => {
        /// Brackets, separators and operators.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sign {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl Sign {
            /// Every sign, in the order of declaration.
            pub const ALL: &'static [Sign] = &[$(Sign::$name,)*];

            /// How it is written.
            pub fn text(self) -> &'static str {
                match self { $(Sign::$name => $text,)* }
            }
        }
    };
}

signs! {
    BraceOpen = "{",
    BraceClose = "}",
    ParenOpen = "(",
    ParenClose = ")",
    BracketOpen = "[",
    BracketClose = "]",
    Comma = ",",
    Semicolon = ";",
    Colon = ":",
    Dot = ".",
    Range = "..",
    Arrow = "->",
    Gives = "=>",
    Assign = "=",
    Equal = "==",
    NotEqual = "!=",
    Less = "<",
    LessEqual = "<=",
    Greater = ">",
    GreaterEqual = ">=",
    ShiftLeft = "<<",
    ShiftRight = ">>",
    Plus = "+",
    PlusWrap = "+%",
    PlusSaturate = "+|",
    Minus = "-",
    MinusWrap = "-%",
    MinusSaturate = "-|",
    Star = "*",
    StarWrap = "*%",
    StarSaturate = "*|",
    Slash = "/",
    Percent = "%",
    And = "&",
    Or = "|",
    Xor = "^",
    AndAnd = "&&",
    OrOr = "||",
    Not = "!",
    Complement = "~",
    AsWrap = "as%",
    AsSaturate = "as|",
}

impl TokenKind {
    /// A number, address, prefix, duration or text.
    pub fn is_literal(&self) -> bool {
        !matches!(self, TokenKind::Word | TokenKind::Sign(_) | TokenKind::Comment | TokenKind::End)
    }

    /// The class in the user's words, for listings and messages.
    pub fn class(&self) -> &'static str {
        match self {
            TokenKind::Word => "word",
            TokenKind::Int(_) => "number",
            TokenKind::Duration(_) => "duration",
            TokenKind::Ip4(_) => "IPv4 address",
            TokenKind::Ip6(_) => "IPv6 address",
            TokenKind::Mac(_) => "MAC address",
            TokenKind::Prefix4(..) => "IPv4 prefix",
            TokenKind::Prefix6(..) => "IPv6 prefix",
            TokenKind::Text(_) => "text",
            TokenKind::Sign(_) => "sign",
            TokenKind::Comment => "comment",
            TokenKind::End => "end of the file",
        }
    }
}
