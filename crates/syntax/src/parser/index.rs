//! Indexes of CREATE TABLE, ALTER TABLE and CREATE INDEX.

use super::*;
use Keyword as K;

impl Parser<'_> {
    pub(super) fn eat_index_word(&mut self) {
        if !self.eat(K::INDEX) {
            self.eat(K::KEY);
        }
    }

    /// An index behind its kind: name, USING, columns, options.
    pub(super) fn index_rest(
        &mut self,
        kind: IndexKind,
        symbol: Option<String>,
    ) -> Result<IndexSpecification> {
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_name() && !self.at(K::USING) { Some(self.new_name()?) } else { None };
        let mut index = IndexSpecification {
            kind,
            symbol,
            name,
            if_not_exists,
            parts: Vec::new(),
            using: None,
            comment: None,
            key_block_size: None,
            ignored: None,
            other: Vec::new(),
        };
        self.index_columns(&mut index)?;
        Ok(index)
    }

    /// `[USING type] (columns) options`.
    pub(super) fn index_columns(&mut self, index: &mut IndexSpecification) -> Result<()> {
        self.index_using(index)?;
        index.parts = self.index_parts()?;
        self.index_options(index)
    }

    /// USING BTREE.
    pub(super) fn index_using(&mut self, index: &mut IndexSpecification) -> Result<bool> {
        if !self.eat(K::USING) && !self.eat(K::TYPE) {
            return Ok(false);
        }
        let token = self.token;
        let word = self.word()?;
        if !["BTREE", "HASH", "RTREE"].contains(&word.as_str()) {
            return Err(self.unexpected_at(token));
        }
        index.using = Some(word);
        Ok(true)
    }

    /// `(column[(n)] [ASC|DESC], ...)`.
    pub(super) fn index_parts(&mut self) -> Result<Vec<IndexPartSpecification>> {
        self.parenthesized_list(|parser| {
            let column = parser.name()?;
            let prefix = if parser.eat(Symbol::LeftParenthesis) {
                let length = parser.number()?;
                parser.expect(Symbol::RightParenthesis)?;
                Some(length)
            } else {
                None
            };
            let descending = parser.eat(K::DESC);
            if !descending {
                parser.eat(K::ASC);
            }
            Ok(IndexPartSpecification { column, prefix, descending })
        })
    }

    fn index_options(&mut self, index: &mut IndexSpecification) -> Result<()> {
        loop {
            match self.token.kind {
                Kind::Word(K::USING | K::TYPE) => {
                    self.index_using(index)?;
                }
                Kind::Word(K::COMMENT) => {
                    self.advance();
                    index.comment = Some(self.text_literal()?);
                }
                Kind::Word(K::KEY_BLOCK_SIZE) => {
                    self.advance();
                    self.eat(Symbol::Equal);
                    index.key_block_size = Some(self.number()?);
                }
                Kind::Word(K::IGNORED) => {
                    self.advance();
                    index.ignored = Some(true);
                }
                Kind::Word(K::NOT) if self.peek_is(K::IGNORED) => {
                    self.advance();
                    self.advance();
                    index.ignored = Some(false);
                }
                Kind::Word(K::WITH) if self.peek_is(K::PARSER) => {
                    self.advance();
                    self.advance();
                    let parser = self.name()?;
                    index.other.push(("WITH PARSER".into(), parser));
                }
                _ => return Ok(()),
            }
        }
    }
}
