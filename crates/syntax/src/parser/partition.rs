//! PARTITION BY.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// PARTITION BY: HASH and KEY are taken apart, others kept as written.
    pub(super) fn partition_by(&mut self) -> Result<PartitionBy> {
        let start = (self.lexer, self.token, self.previous_end);
        self.advance();
        self.expect(K::BY)?;
        let linear = self.eat(K::LINEAR);
        let kind = if self.eat(K::HASH) {
            self.expect(Symbol::LeftParenthesis)?;
            let value = self.expression()?;
            self.expect(Symbol::RightParenthesis)?;
            PartitionKind::Hash(value)
        } else if self.eat(K::KEY) {
            let mut algorithm = None;
            if self.eat(K::ALGORITHM) {
                self.expect(Symbol::Equal)?;
                algorithm = Some(self.number()?);
            }
            self.expect(Symbol::LeftParenthesis)?;
            let mut columns = Vec::new();
            if !self.at(Symbol::RightParenthesis) {
                columns = self.list(Self::name)?;
            }
            self.expect(Symbol::RightParenthesis)?;
            PartitionKind::Key { algorithm, columns }
        } else {
            (self.lexer, self.token, self.previous_end) = start;
            return self.other_partition();
        };
        let count = if self.eat(K::PARTITIONS) { Some(self.number()?) } else { None };
        if self.at(K::SUBPARTITION) {
            (self.lexer, self.token, self.previous_end) = start;
            return self.other_partition();
        }
        let mut names = Vec::new();
        if self.at(Symbol::LeftParenthesis) && self.peek_is(K::PARTITION) {
            self.advance();
            names = self.list(Self::partition_name)?;
            self.expect(Symbol::RightParenthesis)?;
        }
        Ok(PartitionBy { linear, kind, count, names })
    }

    fn other_partition(&mut self) -> Result<PartitionBy> {
        let kind = PartitionKind::Other(self.partition_text()?);
        Ok(PartitionBy { linear: false, kind, count: None, names: Vec::new() })
    }

    /// `PARTITION name [ENGINE = word]`.
    fn partition_name(&mut self) -> Result<String> {
        self.expect(K::PARTITION)?;
        let name = self.name()?;
        if self.eat(K::ENGINE) {
            self.eat(Symbol::Equal);
            self.name()?;
        }
        Ok(name)
    }
}
