//! PARTITION (...) behind a table's name: a condition on its rows.

use super::*;
use crate::physical::{RowCheck, RowCheckKind};
use catalog::Partitions;
use engine_api::TableDefinition;
use syntax::ParseOptions;

/// The numbers of the partitions named; 1735 for an unknown one, 1747 for a table without.
fn numbers(table: &TableDefinition, names: &[String]) -> Result<(Partitions, Vec<usize>)> {
    let found = Partitions::of(table);
    let none = || SqlError::new(&codes::PARTITION_CLAUSE_ON_NONPARTITIONED, &[]);
    let partitions = found.ok_or_else(none)?;
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        let unknown = || SqlError::new(&codes::UNKNOWN_PARTITION, &[name, &table.name]);
        let number = partitions.position(name).ok_or_else(unknown)?;
        if !wanted.contains(&number) {
            wanted.push(number);
        }
    }
    Ok((partitions, wanted))
}

impl Binder<'_, '_, '_> {
    /// The condition that rows of the table whose columns begin at `first` are in the partitions
    /// named; none without names.
    pub(super) fn partition_conditions(
        &mut self,
        table: &EntryHandle,
        names: &[String],
        first: usize,
    ) -> Result<Vec<Expr>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        if self.target_view.is_some() {
            return Err(SqlError::new(&codes::PARTITION_CLAUSE_ON_NONPARTITIONED, &[]));
        }
        let definition = table.0.definition();
        let (partitions, wanted) = numbers(definition, names)?;
        let text = format!("DO {}", partitions.condition(&wanted));
        let parsed = syntax::parse(text.as_bytes(), &ParseOptions::default());
        let Ok(ast::Statement::Do(conditions)) = parsed.map(|parsed| parsed.statement) else {
            return Err(unsupported("PARTITION of this table"));
        };
        let columns = ColumnList::Base(table.clone());
        let (alias, schema) = (definition.name.clone(), definition.schema.clone());
        let named = NamedTable::new(alias, schema, first, columns);
        let outside = std::mem::replace(&mut self.block().tables, vec![named]);
        let clause = self.block().clause;
        let bound = self.with_other_text(|binder| {
            let mut bound = Vec::new();
            for condition in &conditions {
                bound.extend(binder.bind_conjuncts(condition, Clause::Where)?);
            }
            Ok(bound)
        });
        let block = self.block();
        block.tables = outside;
        block.clause = clause;
        bound
    }

    /// What rows must fulfil that a statement with PARTITION writes.
    pub(super) fn partition_check(
        &mut self,
        table: &TableDefinition,
        names: &[String],
        checks: &mut Vec<RowCheck>,
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        if self.target_view.is_some() {
            return Err(SqlError::new(&codes::PARTITION_CLAUSE_ON_NONPARTITIONED, &[]));
        }
        let (_, wanted) = numbers(table, names)?;
        let condition = crate::check::partition_condition(self.context, table, &wanted)?;
        checks.push(RowCheck { condition, kind: RowCheckKind::PartitionSet });
        Ok(())
    }
}
