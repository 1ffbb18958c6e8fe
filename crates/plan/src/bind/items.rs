//! The select list.

use super::*;
use crate::physical::ResultColumn;

impl<'q> Binder<'_, '_, 'q> {
    /// The select list: values, and what the client is told of them.
    pub(super) fn bind_items(
        &mut self,
        items: &'q [ast::SelectItem],
    ) -> Result<(Vec<Expr>, Vec<ResultColumn>)> {
        let mut values = Vec::with_capacity(items.len());
        let mut columns = Vec::with_capacity(items.len());
        let mut later = Vec::new();
        for item in items {
            match item {
                ast::SelectItem::Wildcard => self.expand_all(&mut values, &mut columns)?,
                ast::SelectItem::TableWildcard(table) => {
                    self.expand_table(table, &mut values, &mut columns)?;
                }
                ast::SelectItem::Expression { expression, alias, text } => {
                    let name = alias.clone().unwrap_or_else(|| {
                        let name = item_name(expression, text);
                        cut_name(&name).to_string()
                    });
                    let value = match self.bind_selected(expression) {
                        // A window may be ordered by an item that comes later.
                        Err(error) if error.is(&codes::BAD_FIELD_ERROR) => {
                            self.block().clause = Clause::Select;
                            later.push((values.len(), expression, error));
                            self.builder().null()
                        }
                        bound => bound?,
                    };
                    columns.push(self.result_column(name.clone(), &value));
                    values.push(value.named(&name));
                }
            }
        }
        self.name_items(&values, &columns);
        for (position, expression, error) in later {
            let is_window =
                |message: &str| message.ends_with("'ORDER BY'") || message.ends_with("'GROUP BY'");
            if !is_window(&error.message) {
                return Err(error);
            }
            let name = columns[position].name.clone();
            let value = self.bind_scalar(expression)?;
            columns[position] = self.result_column(name.clone(), &value);
            values[position] = value.named(&name);
            self.name_items(&values, &columns);
        }
        Ok((values, columns))
    }

    /// A value to be selected, or one of several of which one is.
    pub(super) fn bind_selected(&mut self, expression: &'q ast::Expression) -> Result<Expr> {
        match expression {
            ast::Expression::Parameter(number) => Ok(self.bind_parameter(*number)),
            ast::Expression::Function(call) => self.bind_selected_function(call),
            expression => self.bind_scalar(expression),
        }
    }

    fn name_items(&mut self, values: &[Expr], columns: &[ResultColumn]) {
        self.block().aliases = columns
            .iter()
            .zip(values)
            .map(|(column, value)| Alias { name: column.name.clone(), expr: value.clone() })
            .collect();
    }

    fn expand_all(
        &mut self,
        values: &mut Vec<Expr>,
        columns: &mut Vec<ResultColumn>,
    ) -> Result<()> {
        if self.block().tables.is_empty() {
            return Err(SqlError::new(&codes::NO_TABLES_USED, &[]));
        }
        let tables = self.block().tables.len();
        self.check_all_readable(0..tables)?;
        for (table, offset) in self.block().shown(0..tables) {
            let table = &self.block().tables[table];
            let (position, column) = (table.position(offset), table.column(offset));
            self.push_named(position, column, values, columns);
        }
        Ok(())
    }

    fn expand_table(
        &mut self,
        name: &ast::TableName,
        values: &mut Vec<Expr>,
        columns: &mut Vec<ResultColumn>,
    ) -> Result<()> {
        let qualified = ast::ColumnName {
            schema: name.schema.clone(),
            table: Some(name.name.clone()),
            name: String::new(),
        };
        let found = self.block().tables.iter().position(|table| table.answers_to(&qualified));
        let Some(table) = found else {
            let schema = name.schema.clone().or_else(|| self.context.database.map(str::to_owned));
            let name = ast::TableName { schema, name: name.name.clone() };
            return Err(SqlError::new(&codes::BAD_TABLE_ERROR, &[&name]));
        };
        self.check_all_readable(table..table + 1)?;
        for offset in 0..self.block().tables[table].width() {
            let table = &self.block().tables[table];
            let (position, column) = (table.position(offset), table.column(offset));
            self.push_named(position, column, values, columns);
        }
        Ok(())
    }

    fn push_named(
        &mut self,
        position: usize,
        column: NamedColumn,
        values: &mut Vec<Expr>,
        columns: &mut Vec<ResultColumn>,
    ) {
        let builder = self.builder();
        let value = builder.column(position, column.result, column.printed);
        columns.push(self.result_column(column.name, &value));
        values.push(value);
    }

    /// What the client is told of a value.
    pub(super) fn result_column(&mut self, name: String, value: &Expr) -> ResultColumn {
        self.block().result_column(name, value)
    }
}

/// What of an item's text is its name. Characters of four bytes count as the `?` that they are in
/// utf8mb3.
fn cut_name(text: &str) -> &str {
    if text.len() <= ITEM_NAME_BYTES {
        return text;
    }
    let mut room = ITEM_NAME_BYTES;
    let end = text.char_indices().find(|(_, character)| {
        let size = if character.len_utf8() > 3 { 1 } else { character.len_utf8() };
        let fits = size <= room;
        room = room.saturating_sub(size);
        !fits
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Bytes of an item's text that are its name.
const ITEM_NAME_BYTES: usize = 255;

/// The name of an item without an alias: constants have their own, whatever stands around
/// them.
pub(super) fn item_name(expression: &ast::Expression, text: &str) -> String {
    match expression {
        ast::Expression::Column(column) => column.name.clone(),
        ast::Expression::Unary(ast::UnaryOperator::Plus, operand) => item_name(operand, text),
        ast::Expression::Literal(ast::Literal::String { bytes, .. }) => {
            // What is not UTF-8 came from a latin1 client.
            let name = std::str::from_utf8(bytes).map(String::from);
            let name = name.unwrap_or_else(|_| bytes.iter().map(|b| char::from(*b)).collect());
            name.trim_start().to_string()
        }
        ast::Expression::Literal(
            literal @ (ast::Literal::Integer(_)
            | ast::Literal::Decimal(_)
            | ast::Literal::Float(_)
            | ast::Literal::Boolean(_)
            | ast::Literal::Null),
        ) => literal.to_string(),
        _ => text.trim_start().to_string(),
    }
}
