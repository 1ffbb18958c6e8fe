//! Lexer, parser and syntax tree of the MySQL/MariaDB dialect.
//!
//! [`parse`] turns the bytes of one statement into an [`ast::Statement`]; the text may hold
//! several statements, [`Parsed::end`] tells where the next one begins. [`Fingerprint`] is a
//! statement without its literals, for the plan cache.
//!
//! Invariants:
//! 1. No input panics and recursion is bounded (`ParseErrorKind::TooDeep`).
//! 2. Nothing that was written is silently dropped: what the parser takes is in the tree, what
//!    it does not know is error 1064 with MariaDB's text.
//! 3. The room knows no types, no catalog and no values: literals are kept as written (numbers)
//!    or unescaped (strings), types as their names.
//!
//! Text is bytes in the client's character set. String literals are kept as bytes; the binder
//! gives them the connection's collation. Identifiers are UTF-8.

pub mod ast;
pub mod canonical;
mod error;
mod fingerprint;
mod keyword;
mod lexer;
mod parser;
mod style;

pub use error::{ParseError, ParseErrorKind};
pub use fingerprint::{Fingerprint, LiteralKind, LiteralRange};

/// How to read the text; from `sql_mode` and the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// ANSI_QUOTES: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// PIPES_AS_CONCAT: `a || b` concatenates.
    pub pipes_as_concat: bool,
    /// NO_BACKSLASH_ESCAPES: a backslash in a string is itself.
    pub no_backslash_escapes: bool,
    /// HIGH_NOT_PRECEDENCE: NOT binds like `!`.
    pub high_not_precedence: bool,
    /// IGNORE_SPACE: a blank may stand between a built-in function's name and its parenthesis.
    pub ignore_space: bool,
    /// `?` is a parameter: the text is being prepared. Elsewhere it is an error.
    pub parameters: bool,
    /// character_set_client is latin1: identifiers are converted to UTF-8.
    pub latin1_identifiers: bool,
    /// The text is kept in a definition: its strings are utf8mb4, whatever the connection's
    /// character set is.
    pub kept: bool,
}

/// One parsed statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The tree.
    pub statement: ast::Statement,
    /// Number of `?` in it; `Expression::Parameter` counts them from 0 in text order.
    pub parameters: u32,
    /// Offset in bytes behind the statement and its `;`. What follows, if it is not blank, is
    /// the next statement.
    pub end: usize,
}

/// Parses the first statement of `text`. Error 1065 if there is none.
pub fn parse(text: &[u8], options: &ParseOptions) -> Result<Parsed, ParseError> {
    parser::parse(text, options)
}
