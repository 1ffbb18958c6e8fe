//! Recursive descent over the tokens; binary operators by precedence climbing.
//!
//! 1. `token` is the next token not yet taken; errors are reported at it.
//! 2. Every function that can call itself through others goes through [`Parser::deeper`].
//! 3. A function takes exactly the tokens of its construct.
//! 4. Functions on the way of the recursion are not inlined: a frame that holds the locals of all
//!    constructs would make every level as deep as all of them together.

mod access;
mod account;
mod administration;
mod aggregate;
mod alter_table;
mod create_table;
mod data;
mod definition;
mod expression;
mod file_format;
mod function;
mod index;
mod literal;
mod partition;
mod query;
mod set;
mod show;
mod statement;
mod table;
mod table_option;
mod type_name;
mod variable;
mod xa;

use crate::ast::*;
use crate::keyword::Keyword;
use crate::lexer::{Kind, Lexer, Symbol, Token, unquote};
use crate::{ParseError, ParseOptions, Parsed};

/// Result of a parser function.
pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// Deepest nesting of expressions and queries. Each level costs the parser and later the binder
/// and the evaluator some hundred bytes of a fiber's stack.
const DEPTH_MAX: u32 = 72;
/// What a query inside of another counts, since it takes more functions to get there.
const QUERY_DEPTH: u32 = 3;
/// Longest name in characters.
const NAME_CHARACTERS: usize = 64;
/// Longest alias in characters.
const ALIAS_CHARACTERS: usize = 256;

pub(crate) struct Parser<'a> {
    text: &'a [u8],
    options: ParseOptions,
    lexer: Lexer<'a>,
    token: Token,
    previous_end: usize,
    parameters: u32,
    depth: u32,
}

/// Parses the first statement of `text`.
pub(crate) fn parse(text: &[u8], options: &ParseOptions) -> Result<Parsed> {
    let mut parser = Parser::new(text, options);
    if parser.at(Kind::End) || parser.only_semicolons() {
        return Err(ParseError::empty());
    }
    let statement = parser.statement()?;
    let mut end = parser.token.start;
    if parser.at(Symbol::Semicolon) {
        end = parser.token.end;
    } else if !parser.at(Kind::End) {
        return Err(parser.unexpected());
    }
    Ok(Parsed { statement, parameters: parser.parameters, end })
}

/// Error 1059 for a name of more than 64 characters.
fn check_length(name: &str) -> Result<()> {
    if name.len() > NAME_CHARACTERS && name.chars().count() > NAME_CHARACTERS {
        return Err(ParseError::identifier_too_long(name));
    }
    Ok(())
}

/// What a token can be compared with.
pub(crate) trait Expected: Copy {
    fn matches(self, kind: Kind) -> bool;
}

impl Expected for Kind {
    fn matches(self, kind: Kind) -> bool {
        self == kind
    }
}

impl Expected for Keyword {
    fn matches(self, kind: Kind) -> bool {
        kind == Kind::Word(self)
    }
}

impl Expected for Symbol {
    fn matches(self, kind: Kind) -> bool {
        kind == Kind::Symbol(self)
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], options: &ParseOptions) -> Self {
        let mut lexer = Lexer::new(text, options);
        let token = lexer.next();
        Self { text, options: *options, lexer, token, previous_end: 0, parameters: 0, depth: 0 }
    }

    /// Takes the next token and returns it.
    fn advance(&mut self) -> Token {
        let taken = self.token;
        self.previous_end = taken.end;
        self.token = self.lexer.next();
        taken
    }

    /// Whether the next token is `expected`.
    fn at(&self, expected: impl Expected) -> bool {
        expected.matches(self.token.kind)
    }

    /// Whether the next token is one of these words.
    fn at_any(&self, keywords: &[Keyword]) -> bool {
        matches!(self.token.kind, Kind::Word(word) if keywords.contains(&word))
    }

    /// Takes the next token if it is `expected`.
    fn eat(&mut self, expected: impl Expected) -> bool {
        let found = self.at(expected);
        if found {
            self.advance();
        }
        found
    }

    /// Takes two words if both follow.
    fn eat_two(&mut self, first: Keyword, second: Keyword) -> bool {
        let found = self.at(first) && self.peek_is(second);
        if found {
            self.advance();
            self.advance();
        }
        found
    }

    /// Takes `expected` or fails.
    fn expect(&mut self, expected: impl Expected) -> Result<()> {
        if self.eat(expected) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The token behind the next one.
    fn peek(&self) -> Token {
        let mut lexer = self.lexer;
        lexer.next()
    }

    /// Whether the token behind the next one is `expected`.
    fn peek_is(&self, expected: impl Expected) -> bool {
        expected.matches(self.peek().kind)
    }

    /// The kind of the token `count` behind the next one.
    fn peek_kind(&self, count: usize) -> Kind {
        let mut lexer = self.lexer;
        let mut kind = self.token.kind;
        for _ in 0..count {
            kind = lexer.next().kind;
        }
        kind
    }

    /// Whether nothing but semicolons is left.
    fn only_semicolons(&self) -> bool {
        let mut lexer = self.lexer;
        let mut kind = self.token.kind;
        while kind == Kind::Symbol(Symbol::Semicolon) {
            kind = lexer.next().kind;
        }
        kind == Kind::End
    }

    /// Error 1064 at the next token.
    fn unexpected(&self) -> ParseError {
        self.unexpected_at(self.token)
    }

    /// Error 1064 at a token taken before. MariaDB quotes what stands behind a comma.
    fn unexpected_at(&self, token: Token) -> ParseError {
        let comma = token.kind == Kind::Symbol(Symbol::Comma);
        ParseError::syntax(self.text, if comma { token.end } else { token.start })
    }

    /// Runs `parse` one level deeper (invariant 2).
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper_by(1, parse)
    }

    fn deeper_by<T>(
        &mut self,
        levels: u32,
        parse: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth + levels > DEPTH_MAX {
            return Err(ParseError::too_deep());
        }
        self.depth += levels;
        let result = parse(self);
        self.depth -= levels;
        result
    }

    /// The bytes of a token.
    fn bytes(&self, token: Token) -> &'a [u8] {
        &self.text[token.start..token.end]
    }

    /// Source text between two offsets, as UTF-8.
    fn source(&self, start: usize, end: usize) -> String {
        self.to_utf8_lossy(&self.text[start..end.max(start)])
    }

    fn to_utf8_lossy(&self, bytes: &[u8]) -> String {
        if self.options.latin1_identifiers {
            return bytes.iter().map(|byte| char::from(*byte)).collect();
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A name's bytes as UTF-8 (1300 if they are not).
    fn to_utf8(&self, bytes: Vec<u8>) -> Result<String> {
        if self.options.latin1_identifiers {
            return Ok(bytes.iter().map(|byte| char::from(*byte)).collect());
        }
        String::from_utf8(bytes).map_err(|e| {
            ParseError::invalid_characters(&e.as_bytes()[e.utf8_error().valid_up_to()..])
        })
    }

    /// Whether the next token can be a name: quoted, or a word that is not reserved.
    fn at_name(&self) -> bool {
        match self.token.kind {
            Kind::QuotedName => true,
            Kind::Word(keyword) => !keyword.is_reserved(),
            _ => false,
        }
    }

    /// A name.
    fn name(&mut self) -> Result<String> {
        if !self.at_name() {
            return Err(self.unexpected());
        }
        self.take_name()
    }

    /// A name for something new, at most 64 characters long (1059).
    fn new_name(&mut self) -> Result<String> {
        let name = self.name()?;
        check_length(&name)?;
        Ok(name)
    }

    /// The name of a new table.
    fn new_table_name(&mut self) -> Result<TableName> {
        let table = self.table_name()?;
        if check_length(&table.name).is_err() {
            let message = format!("Incorrect table name '{}'", table.name);
            return Err(ParseError::other(1103, "42000", message));
        }
        Ok(table)
    }

    /// A name behind a point, where reserved words are allowed.
    fn name_after_dot(&mut self) -> Result<String> {
        if !matches!(self.token.kind, Kind::QuotedName | Kind::Word(_)) {
            return Err(self.unexpected());
        }
        self.take_name()
    }

    /// A name or a string, as MariaDB takes for aliases, character sets and engines.
    fn name_or_text(&mut self) -> Result<String> {
        if self.at(Kind::Text) {
            let bytes = self.text_literal()?;
            return self.to_utf8(bytes);
        }
        self.name()
    }

    fn take_name(&mut self) -> Result<String> {
        let token = self.advance();
        let name = if token.kind == Kind::QuotedName {
            self.to_utf8(unquote(self.bytes(token), false))?
        } else {
            self.to_utf8(self.bytes(token).to_vec())?
        };
        if token.kind == Kind::QuotedName && name.is_empty() {
            return Err(self.unexpected_at(token));
        }
        Ok(name)
    }

    /// An alias if one follows: `AS name`, `AS 'text'`, or a bare name (or string if `text`).
    fn alias(&mut self, text: bool) -> Result<Option<String>> {
        let explicit = self.eat(Keyword::AS);
        if self.at(Kind::Text) && (text || explicit) {
            let bytes = self.text_literal()?;
            let alias = self.to_utf8(bytes)?;
            if alias.chars().count() > ALIAS_CHARACTERS {
                return Err(ParseError::identifier_too_long(&alias));
            }
            return Ok(Some(alias));
        }
        if explicit || self.at_name() {
            return self.name().map(Some);
        }
        Ok(None)
    }

    /// The bytes of one string token.
    fn text_literal(&mut self) -> Result<Vec<u8>> {
        if !self.at(Kind::Text) {
            return Err(self.unexpected());
        }
        let token = self.advance();
        Ok(unquote(self.bytes(token), !self.options.no_backslash_escapes))
    }

    /// One string token that must be UTF-8.
    fn text_string(&mut self) -> Result<String> {
        let bytes = self.text_literal()?;
        self.to_utf8(bytes)
    }

    /// An unsigned number.
    fn number(&mut self) -> Result<u64> {
        if !self.at(Kind::Integer) {
            return Err(self.unexpected());
        }
        let token = self.token;
        let digits = std::str::from_utf8(self.bytes(token)).unwrap_or("");
        let value = digits.parse().map_err(|_| self.unexpected_at(token))?;
        self.advance();
        Ok(value)
    }

    /// `table`, `schema.table`, `.table`.
    fn table_name(&mut self) -> Result<TableName> {
        if self.eat(Symbol::Dot) {
            return Ok(TableName { schema: None, name: self.name_after_dot()? });
        }
        let first = self.name()?;
        if self.eat(Symbol::Dot) {
            return Ok(TableName { schema: Some(first), name: self.name_after_dot()? });
        }
        Ok(TableName { schema: None, name: first })
    }

    /// `column`, `table.column`, `schema.table.column`, `.table.column`.
    fn column_name(&mut self) -> Result<ColumnName> {
        if self.eat(Symbol::Dot) {
            let table = self.name_after_dot()?;
            self.expect(Symbol::Dot)?;
            let name = self.name_after_dot()?;
            return Ok(ColumnName { schema: None, table: Some(table), name });
        }
        let first = self.name()?;
        self.column_name_after(first)
    }

    /// The rest of a column's name behind its first part.
    fn column_name_after(&mut self, first: String) -> Result<ColumnName> {
        if !self.eat(Symbol::Dot) {
            return Ok(ColumnName { schema: None, table: None, name: first });
        }
        let second = self.name_after_dot()?;
        if !self.eat(Symbol::Dot) {
            return Ok(ColumnName { schema: None, table: Some(first), name: second });
        }
        let third = self.name_after_dot()?;
        Ok(ColumnName { schema: Some(first), table: Some(second), name: third })
    }

    /// One or more of something with commas between.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(a, b, c)`, one or more.
    fn parenthesized_list<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(Symbol::LeftParenthesis)?;
        let items = self.list(item)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(items)
    }

    /// `(name, name)`.
    fn name_list(&mut self) -> Result<Vec<String>> {
        self.parenthesized_list(Self::name)
    }

    /// IF NOT EXISTS.
    fn if_not_exists(&mut self) -> Result<bool> {
        if !self.eat(Keyword::IF) {
            return Ok(false);
        }
        self.expect(Keyword::NOT)?;
        self.expect(Keyword::EXISTS)?;
        Ok(true)
    }

    /// IF EXISTS.
    fn if_exists(&mut self) -> Result<bool> {
        if !self.eat(Keyword::IF) {
            return Ok(false);
        }
        self.expect(Keyword::EXISTS)?;
        Ok(true)
    }

    /// The next word in capitals, taken.
    fn word(&mut self) -> Result<String> {
        if !matches!(self.token.kind, Kind::Word(_)) {
            return Err(self.unexpected());
        }
        let token = self.advance();
        Ok(self.to_utf8_lossy(self.bytes(token)).to_ascii_uppercase())
    }

    /// Everything up to the end of the statement as text, taken; parentheses must match.
    fn rest_as_text(&mut self) -> Result<String> {
        let start = self.token.start;
        while !self.at(Kind::End) && !self.at(Symbol::Semicolon) {
            if self.at(Kind::Invalid) {
                return Err(self.unexpected());
            }
            self.advance();
        }
        Ok(self.source(start, self.previous_end))
    }

    /// Takes `( ... )` with whatever is inside and returns the inside's text.
    fn skip_parenthesized(&mut self) -> Result<String> {
        self.expect(Symbol::LeftParenthesis)?;
        let start = self.token.start;
        let mut depth = 1;
        loop {
            match self.token.kind {
                Kind::Symbol(Symbol::LeftParenthesis) => depth += 1,
                Kind::Symbol(Symbol::RightParenthesis) => depth -= 1,
                Kind::End | Kind::Invalid => return Err(self.unexpected()),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.advance();
        }
        let text = self.source(start, self.token.start);
        self.advance();
        Ok(text.trim_end().to_string())
    }
}
