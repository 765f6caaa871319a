//! The tokens of a program's text and the steps by which the reader takes them.

use super::IrReadError;

/// The smallest part of the text that means something.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A word: letters, digits and underscores.
    Word(&'a str),
    /// A number, decimal or hexadecimal.
    Number(u128),
    /// Text in quotes, escapes resolved.
    Text(String),
    /// A punctuation mark.
    Symbol(&'a str),
    /// The end of the text.
    End,
}

/// All tokens with their places, and how far the reader has come.
pub(super) struct Tokens<'a> {
    tokens: Vec<(Token<'a>, u32, u32)>,
    next: usize,
}

impl<'a> Tokens<'a> {
    /// Splits a text.
    pub(super) fn of(text: &'a str) -> Result<Self, IrReadError> {
        let mut scanner = Scanner { rest: text, line: 1, column: 1 };
        let mut tokens = Vec::new();
        loop {
            scanner.skip_space();
            let (line, column) = (scanner.line, scanner.column);
            let token = scanner.token()?;
            let ended = token == Token::End;
            tokens.push((token, line, column));
            if ended {
                return Ok(Self { tokens, next: 0 });
            }
        }
    }

    pub(super) fn peek(&self) -> &Token<'a> {
        // The end stands last and is never passed.
        &self.tokens[self.next].0
    }

    pub(super) fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Makes the token that was taken last the next one again.
    pub(super) fn step_back(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    /// A word with a number behind it, if the word comes next.
    pub(super) fn number_after<N: TryFrom<u128>>(&mut self, word: &str) -> Result<Option<N>, IrReadError> {
        if self.accept_word(word) { self.number().map(Some) } else { Ok(None) }
    }

    /// The name and the size of something that consists of cells: `"name" size 4`.
    pub(super) fn sized(&mut self) -> Result<(String, u32), IrReadError> {
        let name = self.text()?;
        self.word("size")?;
        Ok((name, self.number()?))
    }

    pub(super) fn at_end(&self) -> bool {
        *self.peek() == Token::End
    }

    /// An error at the next token.
    pub(super) fn error(&self, message: String) -> IrReadError {
        let (_, line, column) = self.tokens[self.next];
        IrReadError { line, column, message }
    }

    /// An error at the next token: something else was expected.
    pub(super) fn expected(&self, what: &str) -> IrReadError {
        let found = match self.peek() {
            Token::Word(word) => format!("`{word}`"),
            Token::Number(number) => format!("the number {number}"),
            Token::Text(text) => format!("{text:?}"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end".to_owned(),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    pub(super) fn accept(&mut self, symbol: &str) -> bool {
        let fits = matches!(self.peek(), Token::Symbol(found) if *found == symbol);
        if fits {
            self.advance();
        }
        fits
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Result<(), IrReadError> {
        if self.accept(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let fits = matches!(self.peek(), Token::Word(found) if *found == word);
        if fits {
            self.advance();
        }
        fits
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), IrReadError> {
        if self.accept_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn text(&mut self) -> Result<String, IrReadError> {
        let Token::Text(text) = self.peek() else { return Err(self.expected("text in quotes")) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// Text in quotes that lists bytes by two hexadecimal digits each.
    pub(super) fn hexadecimal(&mut self) -> Result<Vec<u8>, IrReadError> {
        let Token::Text(text) = self.peek() else { return Err(self.expected("bytes in quotes")) };
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let Some(digits) = digits.filter(|digits| digits.len().is_multiple_of(2)) else {
            return Err(self.error("expected pairs of hexadecimal digits".to_owned()));
        };
        self.advance();
        Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
    }

    /// A number that fits the type asked for.
    pub(super) fn number<N: TryFrom<u128>>(&mut self) -> Result<N, IrReadError> {
        let Token::Number(number) = *self.peek() else { return Err(self.expected("a number")) };
        let Ok(fitting) = N::try_from(number) else {
            let bits = size_of::<N>() * 8;
            return Err(self.error(format!("{number} does not fit {bits} bits")));
        };
        self.advance();
        Ok(fitting)
    }

    /// A word of one letter and an index, such as `t0`.
    pub(super) fn index<N: TryFrom<u128>>(&mut self, letter: char) -> Result<N, IrReadError> {
        let digits = match self.peek() {
            Token::Word(word) => word.strip_prefix(letter),
            _ => None,
        };
        let index = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .and_then(|index: u128| N::try_from(index).ok());
        let Some(index) = index else {
            return Err(self.expected(&format!("`{letter}` with an index, such as `{letter}0`")));
        };
        self.advance();
        Ok(index)
    }

    /// The index that comes next in a list of declarations.
    pub(super) fn index_is(&mut self, letter: char, due: usize) -> Result<(), IrReadError> {
        let place = self.next;
        let index: u64 = self.index(letter)?;
        if index == due as u64 {
            return Ok(());
        }
        self.next = place;
        Err(self.expected(&format!("`{letter}{due}`, which comes next")))
    }

    /// Items with commas between them, in brackets.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, IrReadError>,
    ) -> Result<Vec<T>, IrReadError> {
        self.symbol(open)?;
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.accept(",") {
                self.symbol(close)?;
                return Ok(items);
            }
        }
    }
}

struct Scanner<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Scanner<'a> {
    fn error(&self, message: impl Into<String>) -> IrReadError {
        IrReadError { line: self.line, column: self.column, message: message.into() }
    }

    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(character)
    }

    fn skip_space(&mut self) {
        let mut remark = false;
        while let Some(character) = self.rest.chars().next() {
            remark = (remark || character == '#') && character != '\n';
            if !remark && !character.is_whitespace() {
                return;
            }
            self.next();
        }
    }

    /// Takes ASCII bytes as long as they fit.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest.bytes().take_while(|&byte| byte.is_ascii() && fits(byte)).count();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.column += length as u32;
        taken
    }

    fn token(&mut self) -> Result<Token<'a>, IrReadError> {
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if first == '"' {
            return self.text();
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(Token::Word(self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_')));
        }
        for symbol in ["=>", "..", "%", ":", ",", "(", ")", "{", "}", "[", "]", "=", "+", "@"] {
            if self.rest.starts_with(symbol) {
                let taken = &self.rest[..symbol.len()];
                self.rest = &self.rest[symbol.len()..];
                self.column += symbol.len() as u32;
                return Ok(Token::Symbol(taken));
            }
        }
        Err(self.error(format!("`{}` has no meaning here", first.escape_default())))
    }

    fn number(&mut self) -> Result<Token<'a>, IrReadError> {
        let place = self.error("the number does not fit 128 bits, or `0x` has no digits after it");
        let number = if self.rest.starts_with("0x") {
            let digits = self.take(|byte| byte.is_ascii_hexdigit() || byte == b'x');
            u128::from_str_radix(&digits[2..], 16)
        } else {
            self.take(|byte| byte.is_ascii_digit()).parse()
        };
        number.map(Token::Number).map_err(|_| place)
    }

    fn text(&mut self) -> Result<Token<'a>, IrReadError> {
        let unfinished = self.error("the text that begins here has no end; close it with `\"`");
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(unfinished),
                Some('"') => return Ok(Token::Text(text)),
                Some('\\') => text.push(self.escape()?),
                Some(character) => text.push(character),
            }
        }
    }

    fn escape(&mut self) -> Result<char, IrReadError> {
        let place = self.error("expected `\\\"`, `\\\\` or `\\u{…}` with a character's number");
        match self.next() {
            Some(character @ ('"' | '\\')) => Ok(character),
            Some('u') if self.next() == Some('{') => {
                let digits = self.take(|byte| byte.is_ascii_hexdigit());
                let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                match (character, self.next()) {
                    (Some(character), Some('}')) => Ok(character),
                    _ => Err(place),
                }
            }
            _ => Err(place),
        }
    }
}
