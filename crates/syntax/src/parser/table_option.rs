//! Options of tables.

use super::*;
use Keyword as K;

/// Options with a value, by their words in capitals.
const OPTIONS: [&str; 45] = [
    "ENGINE",
    "TYPE",
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHECKSUM",
    "TABLE_CHECKSUM",
    "PAGE_CHECKSUM",
    "COMMENT",
    "CONNECTION",
    "DATA DIRECTORY",
    "INDEX DIRECTORY",
    "DELAY_KEY_WRITE",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "PASSWORD",
    "ROW_FORMAT",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLESPACE",
    "TRANSACTIONAL",
    "UNION",
    "SEQUENCE",
    "COMPRESSION",
    "COMPRESSED",
    "ENCRYPTED",
    "ENCRYPTION",
    "ENCRYPTION_KEY_ID",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_ALGORITHM",
    "PAGE_COMPRESSION_LEVEL",
    "ATOMIC_WRITES",
    "STORAGE",
    "ITEF_QUOTES",
    "SECONDARY_ENGINE",
    "AUTOEXTEND_SIZE",
    "ENGINE_ATTRIBUTE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "IETF_QUOTES",
    "NODEGROUP",
    "CODEC",
    "START TRANSACTION",
];

impl Parser<'_> {
    /// Table options, with commas between them allowed. In ALTER TABLE the comma may belong to
    /// the next action, so it is only taken when an option follows.
    pub(super) fn table_options(&mut self, alter: bool) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        loop {
            match self.table_option()? {
                Some(option) => options.push(option),
                None if options.is_empty() => return Ok(options),
                None => return Ok(options),
            }
            if self.at(Symbol::Comma) && (!alter || self.option_follows_comma()) {
                self.advance();
            }
        }
    }

    fn option_follows_comma(&self) -> bool {
        let mut lexer = self.lexer;
        let first = lexer.next();
        let second = lexer.next();
        let word = self.to_utf8_lossy(self.bytes(first)).to_ascii_uppercase();
        match first.kind {
            Kind::Word(K::DEFAULT | K::CHARSET | K::COLLATE) => true,
            Kind::Word(K::CHARACTER) => second.kind == Kind::Word(K::SET),
            Kind::Word(_) => {
                OPTIONS.contains(&word.as_str()) && second.kind != Kind::Word(K::FOREIGN)
            }
            _ => false,
        }
    }

    /// One table option, if one follows.
    pub(super) fn table_option(&mut self) -> Result<Option<TableOption>> {
        let option = |name: &str, value| {
            Ok(Some(TableOption { name: name.into(), written: name.into(), value }))
        };
        if self.at(K::DEFAULT) {
            let next = self.peek().kind;
            if !matches!(next, Kind::Word(K::CHARSET | K::CHARACTER | K::CHAR | K::COLLATE)) {
                return Err(self.unexpected());
            }
            self.advance();
        }
        if self.at_charset_words() {
            self.advance_charset_words()?;
            self.eat(Symbol::Equal);
            if self.eat(K::DEFAULT) {
                return option("CHARSET", OptionValue::Default);
            }
            let charset = self.charset_name()?;
            return option("CHARSET", OptionValue::Word(charset));
        }
        if self.eat(K::COLLATE) {
            self.eat(Symbol::Equal);
            let collation = self.name_or_binary()?;
            return option("COLLATE", OptionValue::Word(collation));
        }
        if self.at(K::WITH) && self.peek_is(K::SYSTEM) {
            self.advance();
            self.advance();
            self.expect(K::VERSIONING)?;
            return option("WITH SYSTEM VERSIONING", OptionValue::Default);
        }
        let written = self.to_utf8_lossy(self.bytes(self.token)).trim_matches('`').to_owned();
        let (name, words) = match self.token.kind {
            Kind::Word(K::UNION) if !self.union_is_option() => return Ok(None),
            Kind::Word(K::DATA | K::INDEX) if self.peek_is(K::DIRECTORY) => {
                let word = self.to_utf8_lossy(self.bytes(self.token)).to_ascii_uppercase();
                (format!("{word} DIRECTORY"), 2)
            }
            Kind::Word(_) => (self.to_utf8_lossy(self.bytes(self.token)).to_ascii_uppercase(), 1),
            Kind::QuotedName => {
                let name = self.to_utf8_lossy(self.bytes(self.token));
                (name.trim_matches('`').to_ascii_uppercase(), 1)
            }
            _ => return Ok(None),
        };
        if !OPTIONS.contains(&name.as_str()) && !self.engine_option_follows(words) {
            return Ok(None);
        }
        for _ in 0..words {
            self.advance();
        }
        if !self.eat(Symbol::Equal) && !OPTIONS.contains(&name.as_str()) {
            return Err(self.unexpected());
        }
        let value = self.option_value()?;
        Ok(Some(TableOption { name, written, value }))
    }

    fn union_is_option(&self) -> bool {
        matches!(self.peek().kind, Kind::Symbol(Symbol::Equal | Symbol::LeftParenthesis))
    }

    /// `word = value` with a word the grammar does not know is an engine's own option.
    fn engine_option_follows(&self, words: usize) -> bool {
        words == 1 && matches!(self.token.kind, Kind::Word(K::NONE) | Kind::QuotedName)
    }

    pub(super) fn option_value(&mut self) -> Result<OptionValue> {
        match self.token.kind {
            Kind::Integer => self.number().map(OptionValue::Number),
            Kind::Text => self.text_literal().map(OptionValue::Text),
            Kind::Word(K::DEFAULT) => {
                self.advance();
                Ok(OptionValue::Default)
            }
            Kind::Word(K::ON | K::NO | K::BINARY) => self.word().map(OptionValue::Word),
            Kind::Symbol(Symbol::LeftParenthesis) => {
                self.parenthesized_list(Self::table_name).map(OptionValue::Names)
            }
            _ => self.name().map(OptionValue::Word),
        }
    }
}
