//! PARTITION BY, and what ALTER TABLE does with partitions.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// PARTITION BY; subpartitions and methods that are unknown are kept as written.
    pub(super) fn partition_by(&mut self) -> Result<PartitionBy> {
        let start = (self.lexer, self.token, self.previous_end);
        self.advance();
        self.expect(K::BY)?;
        let linear = self.eat(K::LINEAR);
        let Some(kind) = self.partition_kind(linear)? else {
            (self.lexer, self.token, self.previous_end) = start;
            return self.other_partition();
        };
        let count = if self.eat(K::PARTITIONS) { Some(self.number()?) } else { None };
        if self.at(K::SUBPARTITION) {
            (self.lexer, self.token, self.previous_end) = start;
            return self.other_partition();
        }
        let mut partitions = Vec::new();
        if self.at(Symbol::LeftParenthesis) && self.peek_is(K::PARTITION) {
            partitions = self.partition_specifications()?;
        }
        Ok(PartitionBy { linear, kind, count, partitions })
    }

    fn partition_kind(&mut self, linear: bool) -> Result<Option<PartitionKind>> {
        if self.eat(K::HASH) {
            return Ok(Some(PartitionKind::Hash(self.parenthesized_expression()?)));
        }
        if self.eat(K::KEY) {
            let mut algorithm = None;
            if self.eat(K::ALGORITHM) {
                self.expect(Symbol::Equal)?;
                algorithm = Some(self.number()?);
            }
            let columns = self.partition_columns()?;
            return Ok(Some(PartitionKind::Key { algorithm, columns }));
        }
        if linear || !self.at_any(&[K::RANGE, K::LIST]) {
            return Ok(None);
        }
        let range = self.advance().kind == Kind::Word(K::RANGE);
        if self.eat(K::COLUMNS) {
            let columns = self.partition_columns()?;
            return Ok(Some(match range {
                true => PartitionKind::RangeColumns(columns),
                false => PartitionKind::ListColumns(columns),
            }));
        }
        let value = self.parenthesized_expression()?;
        Ok(Some(if range { PartitionKind::Range(value) } else { PartitionKind::List(value) }))
    }

    fn partition_columns(&mut self) -> Result<Vec<String>> {
        self.expect(Symbol::LeftParenthesis)?;
        let mut columns = Vec::new();
        if !self.at(Symbol::RightParenthesis) {
            columns = self.list(Self::name)?;
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(columns)
    }

    fn other_partition(&mut self) -> Result<PartitionBy> {
        let kind = PartitionKind::Other(self.partition_text()?);
        Ok(PartitionBy { linear: false, kind, count: None, partitions: Vec::new() })
    }

    /// `(PARTITION name ..., ...)`.
    pub(super) fn partition_specifications(&mut self) -> Result<Vec<PartitionSpecification>> {
        self.expect(Symbol::LeftParenthesis)?;
        let partitions = self.list(Self::partition_specification)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(partitions)
    }

    /// `PARTITION name [VALUES ...] [options]`.
    fn partition_specification(&mut self) -> Result<PartitionSpecification> {
        self.expect(K::PARTITION)?;
        let name = self.name()?;
        let values = if self.eat(K::VALUES) {
            self.partition_values()?
        } else if self.eat(K::DEFAULT) {
            PartitionValues::Default
        } else {
            PartitionValues::None
        };
        let mut comment = None;
        loop {
            if self.eat(K::COMMENT) {
                self.eat(Symbol::Equal);
                comment = Some(self.text_literal()?);
            } else if self.at_any(&[K::STORAGE, K::ENGINE]) {
                self.eat(K::STORAGE);
                self.expect(K::ENGINE)?;
                self.eat(Symbol::Equal);
                self.name_or_text()?;
            } else if self.at_any(&[K::MAX_ROWS, K::MIN_ROWS]) {
                self.advance();
                self.eat(Symbol::Equal);
                self.number()?;
            } else {
                return Ok(PartitionSpecification { name, values, comment });
            }
        }
    }

    fn partition_values(&mut self) -> Result<PartitionValues> {
        if self.eat(K::LESS) {
            self.expect(K::THAN)?;
            if self.eat(K::MAXVALUE) {
                return Ok(PartitionValues::LessThan(vec![None]));
            }
            return Ok(PartitionValues::LessThan(self.partition_tuple()?));
        }
        self.expect(K::IN)?;
        self.expect(Symbol::LeftParenthesis)?;
        let lists = self.list(|parser| {
            if parser.at(Symbol::LeftParenthesis) {
                return parser.partition_tuple();
            }
            parser.partition_value().map(|value| vec![value])
        })?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(PartitionValues::In(lists))
    }

    fn partition_tuple(&mut self) -> Result<Vec<Option<Expression>>> {
        self.expect(Symbol::LeftParenthesis)?;
        let values = self.list(Self::partition_value)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(values)
    }

    /// An expression; none is MAXVALUE.
    fn partition_value(&mut self) -> Result<Option<Expression>> {
        if self.eat(K::MAXVALUE) { Ok(None) } else { self.expression().map(Some) }
    }

    /// ADD PARTITION; `ADD` has been taken.
    pub(super) fn alter_add_partition(&mut self) -> Result<AlterAction> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        if self.eat(K::PARTITIONS) {
            let count = self.number()?;
            return Ok(AlterAction::AddPartitions { if_not_exists, count, partitions: Vec::new() });
        }
        let partitions = self.partition_specifications()?;
        let count = partitions.len() as u64;
        Ok(AlterAction::AddPartitions { if_not_exists, count, partitions })
    }

    /// DROP PARTITION; `DROP` has been taken.
    pub(super) fn alter_drop_partition(&mut self) -> Result<AlterAction> {
        self.advance();
        let if_exists = self.if_exists()?;
        let names = self.list(Self::name)?;
        Ok(AlterAction::DropPartitions { if_exists, names })
    }

    /// ANALYZE, CHECK, OPTIMIZE and REPAIR PARTITION.
    pub(super) fn alter_maintain_partitions(&mut self) -> Result<AlterAction> {
        let operation = match self.advance().kind {
            Kind::Word(K::ANALYZE) => MaintenanceOperation::Analyze,
            Kind::Word(K::CHECK) => MaintenanceOperation::Check,
            Kind::Word(K::OPTIMIZE) => MaintenanceOperation::Optimize,
            _ => MaintenanceOperation::Repair,
        };
        self.expect(K::PARTITION)?;
        let names = if self.eat(K::ALL) { Vec::new() } else { self.list(Self::name)? };
        Ok(AlterAction::MaintainPartitions(Box::new(TableMaintenance {
            operation,
            local: false,
            tables: Vec::new(),
            partitions: Some(names),
            options: self.maintenance_options(operation)?,
        })))
    }

    /// TRUNCATE, REBUILD, REORGANIZE and COALESCE PARTITION.
    pub(super) fn alter_partitions(&mut self) -> Result<AlterAction> {
        let operation = self.advance().kind;
        self.expect(K::PARTITION)?;
        if operation == Kind::Word(K::COALESCE) {
            return self.number().map(AlterAction::CoalescePartitions);
        }
        if let Kind::Word(word @ (K::TRUNCATE | K::REBUILD)) = operation {
            let names = if self.eat(K::ALL) { Vec::new() } else { self.list(Self::name)? };
            return Ok(match word {
                K::TRUNCATE => AlterAction::TruncatePartitions(names),
                _ => AlterAction::RebuildPartitions(names),
            });
        }
        let names = self.list(Self::name)?;
        self.expect(K::INTO)?;
        let partitions = self.partition_specifications()?;
        Ok(AlterAction::ReorganizePartitions { names, partitions })
    }
}
