//! What a column name means.

use super::*;

impl Block {
    /// A column of the block's tables; 1052 if several match.
    fn find_column(&self, name: &ast::ColumnName) -> Result<Option<(&NamedTable, usize)>> {
        let mut found: Option<(&NamedTable, usize)> = None;
        for table in self.tables.iter().filter(|table| table.answers_to(name)) {
            let mut next = 0;
            while let Some(offset) = table.find(&name.name, next) {
                next = offset + 1;
                if name.table.is_none() && table.hidden.contains(&offset) {
                    continue;
                }
                if found.is_some() {
                    let clause = self.clause.name();
                    return Err(SqlError::new(&codes::NON_UNIQ_ERROR, &[&name, &clause]));
                }
                found = Some((table, offset));
            }
        }
        Ok(found)
    }

    /// A select item by its name, for an unqualified name.
    fn find_alias(&self, name: &ast::ColumnName) -> Option<&Alias> {
        if name.table.is_some() {
            return None;
        }
        self.aliases.iter().find(|alias| alias.name.eq_ignore_ascii_case(&name.name))
    }

    /// The description of a column by its virtual position.
    pub(crate) fn column_at(&self, position: usize) -> Option<(&NamedTable, NamedColumn)> {
        let found = |table: &'_ NamedTable| table.offset_of(position);
        let table = self.tables.iter().find(|table| found(table).is_some())?;
        Some((table, table.column(found(table)?)))
    }
}

impl NamedTable {
    /// Whether the qualifiers of a column's name can mean this table.
    pub(crate) fn answers_to(&self, name: &ast::ColumnName) -> bool {
        let table = name.table.as_ref().is_none_or(|table| self.is_named(table));
        table && name.schema.as_ref().is_none_or(|schema| *schema == self.schema)
    }

    /// Aliases are compared byte by byte, as table names are; information_schema's in any case.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.alias == name
            || (self.schema == catalog::information_schema::SCHEMA_NAME
                && self.alias.eq_ignore_ascii_case(name))
    }
}

impl Binder<'_, '_, '_> {
    /// A column's name as an expression.
    pub(super) fn bind_column(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let clause = self.block().clause;
        let in_aggregate = self.block().in_aggregate;
        // HAVING prefers the select list; elsewhere an alias counts only when no table has it.
        if clause == Clause::Having
            && !in_aggregate
            && let Some(alias) = self.block().find_alias(name)
        {
            return Ok(alias.expr.clone());
        }
        for level in (0..self.blocks.len()).rev() {
            if let Some((table, offset)) = self.blocks[level].find_column(name)? {
                self.check_readable(table, offset)?;
                if let ColumnList::Merged(columns) = &table.columns {
                    let (mut value, nullable) = (columns[offset].value.clone(), table.nullable);
                    value.map_columns(&mut |position| self.pass_inward(level, position));
                    value.result.nullable |= nullable;
                    return Ok(value);
                }
                let (position, result) = (table.position(offset), table.result(offset));
                let own = level + 1 == self.blocks.len();
                let hidden = own && clause == Clause::Having && !in_aggregate;
                if hidden && !self.blocks[level].having.contains(&position) {
                    return Err(SqlError::new(&codes::BAD_FIELD_ERROR, &[&name, &clause.name()]));
                }
                let printed = table.printed(offset);
                let position = self.pass_inward(level, position);
                return Ok(self.builder().column(position, result, printed));
            }
            // A subquery behind the grouping sees the select list around it.
            let outside = level + 1 < self.blocks.len()
                && matches!(self.blocks[level].clause, Clause::Having | Clause::OrderBy);
            if outside && let Some(alias) = self.blocks[level].find_alias(name) {
                let mut value = alias.expr.clone();
                value.map_columns(&mut |position| self.pass_inward(level, position));
                return Ok(value);
            }
            let aliases_count = !in_aggregate
                && (clause == Clause::OrderBy || clause == Clause::GroupBy)
                && level + 1 == self.blocks.len();
            if aliases_count && let Some(alias) = self.blocks[level].find_alias(name) {
                return Ok(alias.expr.clone());
            }
        }
        // Who may not read all of a table does not learn which columns it has.
        let mut guarded = self.blocks.last().into_iter().flat_map(|block| &block.tables);
        if let Some(guard) = guarded.find_map(|table| table.guard.as_ref()) {
            let table = (guard.schema.as_str(), guard.table.as_str());
            self.check_column(catalog::Privilege::Select, table, &name.name)?;
        }
        if let Some(level) = self.blocks.iter().rposition(|block| block.inserted_row.is_some())
            && let Some((position, result)) = self.source.find(name)
        {
            let position = self.pass_inward(level, position);
            return Ok(self.builder().column(position, result, name.to_string()));
        }
        Err(SqlError::new(&codes::BAD_FIELD_ERROR, &[&name, &clause.name()]))
    }

    /// ORDER BY and GROUP BY of a bare name: ORDER BY prefers the select list.
    pub(super) fn bind_alias(&mut self, name: &ast::ColumnName) -> Option<Expr> {
        self.block().find_alias(name).map(|alias| alias.expr.clone())
    }

    /// Makes a column of block `level` known to all blocks inside; its position in the
    /// innermost.
    pub(super) fn pass_inward(&mut self, level: usize, position: usize) -> usize {
        let mut position = position;
        for inner in level + 1..self.blocks.len() {
            position = self.blocks[inner].outer_position(position);
        }
        position
    }
}
