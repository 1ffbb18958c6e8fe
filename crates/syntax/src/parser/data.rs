//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA.

use super::*;
use Keyword as K;
use std::sync::Arc;

/// Rows of literals in a text of so many bytes are packed ([`LiteralRows`]). Such a text is no
/// longer one whose plan is kept.
const PACKED_TEXT_BYTES: usize = 1 << 16;

impl Parser<'_> {
    /// INSERT or REPLACE.
    pub(super) fn insert(&mut self) -> Result<Insert> {
        let replace = self.advance().kind == Kind::Word(K::REPLACE);
        let priority = self.priority(!replace);
        let ignore = !replace && self.eat(K::IGNORE);
        self.eat(K::INTO);
        let table = self.insert_target()?;
        let mut insert = Insert {
            replace,
            priority,
            ignore,
            table,
            columns: None,
            source: InsertSource::Values(Vec::new()),
            on_duplicate: Vec::new(),
            returning: Vec::new(),
        };
        if self.eat(K::SET) {
            self.insert_set(&mut insert)?;
        } else {
            if self.at(Symbol::LeftParenthesis) && !self.begins_query_in_parentheses() {
                insert.columns = Some(self.insert_columns()?);
            }
            insert.source = self.insert_source()?;
        }
        if !replace && self.at(K::ON) {
            self.advance();
            self.expect(K::DUPLICATE)?;
            self.expect(K::KEY)?;
            self.expect(K::UPDATE)?;
            insert.on_duplicate = self.list(Self::assignment)?;
        }
        insert.returning = self.returning()?;
        Ok(insert)
    }

    fn insert_target(&mut self) -> Result<TargetTable> {
        let name = self.table_name()?;
        let partitions = self.partition_list()?;
        Ok(TargetTable { name, partitions, alias: None })
    }

    fn priority(&mut self, high: bool) -> Priority {
        if self.eat(K::LOW_PRIORITY) {
            Priority::Low
        } else if self.eat(K::DELAYED) {
            Priority::Delayed
        } else if high && self.eat(K::HIGH_PRIORITY) {
            Priority::High
        } else {
            Priority::Default
        }
    }

    fn insert_columns(&mut self) -> Result<Vec<ColumnName>> {
        self.advance();
        if self.eat(Symbol::RightParenthesis) {
            return Ok(Vec::new());
        }
        let columns = self.list(Self::column_name)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(columns)
    }

    fn insert_set(&mut self, insert: &mut Insert) -> Result<()> {
        let mut columns = Vec::new();
        let mut row = Vec::new();
        for Assignment { column, value } in self.list(Self::assignment)? {
            columns.push(column);
            row.push(value);
        }
        insert.columns = Some(columns);
        insert.source = InsertSource::Values(vec![row]);
        Ok(())
    }

    fn insert_source(&mut self) -> Result<InsertSource> {
        if self.at_any(&[K::VALUES, K::VALUE]) {
            self.advance();
            return match self.text.len() >= PACKED_TEXT_BYTES {
                true => self.packed_rows(),
                false => self.list(Self::value_row).map(InsertSource::Values),
            };
        }
        if self.begins_query() {
            return Ok(InsertSource::Query(Box::new(self.query()?)));
        }
        Err(self.unexpected())
    }

    /// The rows of a large statement; packed if there are several, of literals only.
    fn packed_rows(&mut self) -> Result<InsertSource> {
        let expected_bytes = self.text.len().saturating_sub(self.token.start);
        let first = self.value_row()?;
        let mut packed = LiteralRows::new(first.len(), expected_bytes);
        if first.is_empty() || !self.at(Symbol::Comma) || !packed.push(&first) {
            return self.more_rows(vec![first]);
        }
        while self.eat(Symbol::Comma) {
            let row = self.value_row()?;
            if !packed.push(&row) {
                let mut rows = packed.unpack();
                rows.push(row);
                return self.more_rows(rows);
            }
        }
        Ok(InsertSource::Literals(Arc::new(packed)))
    }

    fn more_rows(&mut self, mut rows: Vec<Vec<Expression>>) -> Result<InsertSource> {
        while self.eat(Symbol::Comma) {
            rows.push(self.value_row()?);
        }
        Ok(InsertSource::Values(rows))
    }

    fn value_row(&mut self) -> Result<Vec<Expression>> {
        self.expect(Symbol::LeftParenthesis)?;
        if self.eat(Symbol::RightParenthesis) {
            return Ok(Vec::new());
        }
        let row = self.list(Self::expression)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(row)
    }

    /// `column = value`, `column := value`.
    pub(super) fn assignment(&mut self) -> Result<Assignment> {
        let column = self.column_name()?;
        if !self.eat(Symbol::Assign) {
            self.expect(Symbol::Equal)?;
        }
        Ok(Assignment { column, value: self.expression()? })
    }

    fn returning(&mut self) -> Result<Vec<SelectItem>> {
        if self.eat(K::RETURNING) { self.select_items() } else { Ok(Vec::new()) }
    }

    fn filter(&mut self) -> Result<Option<Expression>> {
        if self.eat(K::WHERE) { self.expression().map(Some) } else { Ok(None) }
    }

    /// UPDATE.
    pub(super) fn update(&mut self) -> Result<Update> {
        self.advance();
        let low_priority = self.eat(K::LOW_PRIORITY);
        let ignore = self.eat(K::IGNORE);
        let tables = self.list(Self::table_reference)?;
        self.expect(K::SET)?;
        let assignments = self.list(Self::assignment)?;
        let filter = self.filter()?;
        let order_by = self.order_by()?;
        let limit = self.delete_limit()?;
        Ok(Update { low_priority, ignore, tables, assignments, filter, order_by, limit })
    }

    /// DELETE.
    pub(super) fn delete(&mut self) -> Result<Delete> {
        self.advance();
        let mut delete = Delete {
            low_priority: false,
            quick: false,
            ignore: false,
            targets: Vec::new(),
            tables: Vec::new(),
            filter: None,
            order_by: Vec::new(),
            limit: None,
            returning: Vec::new(),
        };
        loop {
            if self.eat(K::LOW_PRIORITY) {
                delete.low_priority = true;
            } else if self.eat(K::QUICK) {
                delete.quick = true;
            } else if self.eat(K::IGNORE) {
                delete.ignore = true;
            } else {
                break;
            }
        }
        if self.eat(K::FROM) {
            self.delete_from(&mut delete)?;
        } else {
            delete.targets = self.delete_targets()?;
            self.expect(K::FROM)?;
            delete.tables = self.list(Self::table_reference)?;
        }
        delete.filter = self.filter()?;
        if delete.targets.is_empty() {
            delete.order_by = self.order_by()?;
            delete.limit = self.delete_limit()?;
            delete.returning = self.returning()?;
        }
        Ok(delete)
    }

    /// LIMIT n, without an offset.
    fn delete_limit(&mut self) -> Result<Option<Limit>> {
        let limit = self.token;
        let mut lexer = self.lexer;
        lexer.next();
        let comma = lexer.next();
        if limit.kind == Kind::Word(K::LIMIT)
            && matches!(comma.kind, Kind::Symbol(Symbol::Comma) | Kind::Word(K::OFFSET))
        {
            return Err(self.unexpected_at(comma));
        }
        self.limit()
    }

    /// `FROM t ...` and `FROM a, b USING ...`.
    fn delete_from(&mut self, delete: &mut Delete) -> Result<()> {
        let start = (self.lexer, self.token, self.previous_end);
        if let Ok(targets) = self.delete_targets()
            && self.eat(K::USING)
        {
            delete.targets = targets;
            delete.tables = self.list(Self::table_reference)?;
            return Ok(());
        }
        (self.lexer, self.token, self.previous_end) = start;
        let name = self.table_name()?;
        let partitions = self.partition_list()?;
        delete.tables =
            vec![TableReference::Table { name, partitions, alias: None, hints: Vec::new() }];
        Ok(())
    }

    /// `a, b.*, s.c.*`.
    fn delete_targets(&mut self) -> Result<Vec<TableName>> {
        self.list(|parser| {
            let first = parser.name()?;
            if !parser.eat(Symbol::Dot) {
                return Ok(TableName { schema: None, name: first });
            }
            if parser.eat(Symbol::Star) {
                return Ok(TableName { schema: None, name: first });
            }
            let name = parser.name_after_dot()?;
            if parser.eat(Symbol::Dot) {
                parser.expect(Symbol::Star)?;
            }
            Ok(TableName { schema: Some(first), name })
        })
    }

    /// LOAD DATA, LOAD XML.
    pub(super) fn load_data(&mut self) -> Result<LoadData> {
        self.advance();
        let xml = self.eat(K::XML);
        if !xml {
            self.expect(K::DATA)?;
        }
        let priority = if self.eat(K::CONCURRENT) { Priority::High } else { self.priority(false) };
        let local = self.eat(K::LOCAL);
        self.expect(K::INFILE)?;
        let path = self.text_literal()?;
        let replace = self.eat(K::REPLACE);
        let ignore = !replace && self.eat(K::IGNORE);
        self.expect(K::INTO)?;
        self.expect(K::TABLE)?;
        let table = self.insert_target()?;
        let format = self.file_format()?;
        let mut load = LoadData {
            xml,
            local,
            priority,
            path,
            replace,
            ignore,
            table,
            format,
            ignore_lines: 0,
            columns: Vec::new(),
            assignments: Vec::new(),
        };
        if self.eat(K::IGNORE) {
            load.ignore_lines = self.number()?;
            if !self.eat(K::LINES) {
                self.expect(K::ROWS)?;
            }
        }
        if self.eat(Symbol::LeftParenthesis) && !self.eat(Symbol::RightParenthesis) {
            load.columns = self.list(|parser| {
                if parser.at(Symbol::At) {
                    return parser.user_variable().map(Expression::UserVariable);
                }
                parser.column_name().map(Expression::Column)
            })?;
            self.expect(Symbol::RightParenthesis)?;
        }
        if self.eat(K::SET) {
            load.assignments = self.list(Self::assignment)?;
        }
        Ok(load)
    }
}
