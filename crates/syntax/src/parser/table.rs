//! Tables and joins in FROM.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// A table with the joins that follow it.
    pub(super) fn table_reference(&mut self) -> Result<TableReference> {
        self.deeper(|parser| {
            let left = parser.table_factor()?;
            parser.joins(left)
        })
    }

    #[inline(never)]
    fn joins(&mut self, mut left: TableReference) -> Result<TableReference> {
        let mut count = 0;
        while let Some(kind) = self.join_words()? {
            count += 1;
            if count > DEPTH_MAX {
                return Err(ParseError::too_deep());
            }
            left = self.join(left, kind)?;
        }
        Ok(left)
    }

    /// The words of a join, taken.
    fn join_words(&mut self) -> Result<Option<JoinKind>> {
        let Kind::Word(keyword) = self.token.kind else { return Ok(None) };
        match keyword {
            K::JOIN => {
                self.advance();
                Ok(Some(JoinKind::Inner))
            }
            K::INNER | K::CROSS => {
                self.advance();
                self.expect(K::JOIN)?;
                Ok(Some(JoinKind::Inner))
            }
            K::STRAIGHT_JOIN => {
                self.advance();
                Ok(Some(JoinKind::Straight))
            }
            K::LEFT | K::RIGHT => {
                self.advance();
                self.eat(K::OUTER);
                self.expect(K::JOIN)?;
                Ok(Some(if keyword == K::LEFT { JoinKind::Left } else { JoinKind::Right }))
            }
            K::NATURAL => {
                self.advance();
                let kind = if self.eat(K::LEFT) {
                    self.eat(K::OUTER);
                    JoinKind::NaturalLeft
                } else if self.eat(K::RIGHT) {
                    self.eat(K::OUTER);
                    JoinKind::NaturalRight
                } else {
                    self.eat(K::INNER);
                    JoinKind::NaturalInner
                };
                self.expect(K::JOIN)?;
                Ok(Some(kind))
            }
            _ => Ok(None),
        }
    }

    #[inline(never)]
    fn join(&mut self, left: TableReference, kind: JoinKind) -> Result<TableReference> {
        let mut right = self.table_factor()?;
        let outer = matches!(kind, JoinKind::Left | JoinKind::Right);
        // `a LEFT JOIN b JOIN c ON .. ON ..`: the inner condition comes first.
        while outer && !self.at(K::ON) && !self.at(K::USING) {
            match self.join_words()? {
                Some(inner) => right = self.join(right, inner)?,
                None => return Err(self.unexpected()),
            }
        }
        let natural =
            matches!(kind, JoinKind::NaturalInner | JoinKind::NaturalLeft | JoinKind::NaturalRight);
        let condition = if natural {
            JoinCondition::None
        } else if self.eat(K::ON) {
            JoinCondition::On(self.expression()?)
        } else if self.eat(K::USING) {
            JoinCondition::Using(self.name_list()?)
        } else {
            JoinCondition::None
        };
        Ok(TableReference::Join { kind, left: Box::new(left), right: Box::new(right), condition })
    }

    #[inline(never)]
    fn table_factor(&mut self) -> Result<TableReference> {
        if self.at(Symbol::LeftBrace) {
            self.advance();
            self.name()?;
            let inner = self.table_reference()?;
            self.expect(Symbol::RightBrace)?;
            return Ok(inner);
        }
        if self.begins_query_in_parentheses() {
            let query = self.parenthesized_query()?;
            let alias = self.alias(false)?.ok_or_else(|| self.unexpected())?;
            return Ok(TableReference::Derived { query, alias });
        }
        if self.eat(Symbol::LeftParenthesis) {
            let mut inner = self.list(Self::table_reference)?;
            self.expect(Symbol::RightParenthesis)?;
            return Ok(if inner.len() == 1 {
                inner.remove(0)
            } else {
                TableReference::Nested(inner)
            });
        }
        self.named_table()
    }

    #[inline(never)]
    fn named_table(&mut self) -> Result<TableReference> {
        let name = self.table_name()?;
        let partitions = self.partition_list()?;
        if self.at(K::FOR) && self.peek_is(K::SYSTEM_TIME) {
            return Err(self.unexpected());
        }
        let alias = self.table_alias()?;
        let hints = self.index_hints()?;
        Ok(TableReference::Table { name, partitions, alias, hints })
    }

    /// PARTITION (a, b), if it follows.
    pub(super) fn partition_list(&mut self) -> Result<Vec<String>> {
        if !self.at(K::PARTITION) {
            return Ok(Vec::new());
        }
        self.advance();
        self.name_list()
    }

    /// A table's alias; words that go on with the statement are none.
    pub(super) fn table_alias(&mut self) -> Result<Option<String>> {
        if self.at_any(&[K::WINDOW]) {
            return Ok(None);
        }
        self.alias(false)
    }

    #[inline(never)]
    fn index_hints(&mut self) -> Result<Vec<IndexHint>> {
        let mut hints = Vec::new();
        loop {
            let kind = match self.token.kind {
                Kind::Word(K::USE) => IndexHintKind::Use,
                Kind::Word(K::FORCE) => IndexHintKind::Force,
                Kind::Word(K::IGNORE) if self.ignore_is_hint() => IndexHintKind::Ignore,
                _ => return Ok(hints),
            };
            self.advance();
            if !self.eat(K::INDEX) {
                self.expect(K::KEY)?;
            }
            let purpose = self.hint_purpose()?;
            self.expect(Symbol::LeftParenthesis)?;
            let mut indexes = Vec::new();
            if !(kind == IndexHintKind::Use && self.at(Symbol::RightParenthesis)) {
                indexes = self.list(|parser| {
                    if parser.eat(K::PRIMARY) { Ok("PRIMARY".into()) } else { parser.name() }
                })?;
            }
            self.expect(Symbol::RightParenthesis)?;
            hints.push(IndexHint { kind, purpose, indexes });
        }
    }

    fn ignore_is_hint(&self) -> bool {
        matches!(self.peek().kind, Kind::Word(K::INDEX | K::KEY))
    }

    fn hint_purpose(&mut self) -> Result<IndexHintPurpose> {
        if !self.eat(K::FOR) {
            return Ok(IndexHintPurpose::All);
        }
        if self.eat(K::JOIN) {
            return Ok(IndexHintPurpose::Join);
        }
        let order = self.eat(K::ORDER);
        if !order {
            self.expect(K::GROUP)?;
        }
        self.expect(K::BY)?;
        Ok(if order { IndexHintPurpose::OrderBy } else { IndexHintPurpose::GroupBy })
    }
}
