//! LOAD DATA: where the fields of a file's lines go.

use super::*;
use crate::foreign::Effect;
use crate::physical::{FieldTarget, FileRows, InsertPlan, InsertRows, InsertValue, LineFormat};
use catalog::{Privilege, TableEntry};
use types::{Charset, Value, collation};

impl<'q> Binder<'_, '_, 'q> {
    pub(crate) fn bind_load(&mut self, load: &'q ast::LoadData) -> Result<InsertPlan> {
        let target =
            self.open_for_change(&load.table.name, &load.table.name.name, Privilege::Insert)?;
        if !load.table.partitions.is_empty() {
            return Err(unsupported("PARTITION"));
        }
        if load.replace {
            self.require_all(Privilege::Delete.into(), &load.table.name)?;
        }
        let name = match &self.target_view {
            None => target.definition().name.clone(),
            Some(view) => view.name.clone(),
        };
        let fields = self.field_targets(load, &target, &name)?;
        let assignments = self.load_assignments(load, &target, &name)?;
        let format = self.line_format(&load.format)?;
        if format.field_end.is_empty() && format.enclosed.is_none() {
            return Err(unsupported("LOAD DATA with fields of fixed length"));
        }
        let mut columns: Vec<usize> = Vec::new();
        let given = fields.iter().filter_map(|field| match field {
            FieldTarget::Column(column) => Some(*column),
            FieldTarget::Variable(_) => None,
        });
        for column in given.chain(assignments.iter().map(|(column, _)| *column)) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        self.check_written(Privilege::Insert, &target, columns.iter().copied())?;
        let effect = if load.replace { Effect::Change } else { Effect::Insert };
        let foreign_keys = self.foreign_keys(&target, effect, None)?;
        let check = self.view_check(&target, &name)?;
        let checks = crate::check::checks(self.context, target.definition())?;
        self.reusable = false;
        let skipped_lines = load.ignore_lines;
        let rows = FileRows { fields, assignments, format, skipped_lines };
        let view = self.target_view.as_ref();
        let view = view.map(|view| Box::new((view.schema.clone(), view.name.clone())));
        let computed = crate::computed::computed(self.context, target.definition())?;
        Ok(InsertPlan {
            computed,
            view,
            check,
            foreign_keys,
            checks,
            target: EntryHandle(target),
            columns,
            source: InsertRows::File(Box::new(rows)),
            replace: load.replace,
            // Nobody can stop a client that sends its file: what is wrong with a row leaves it out.
            ignore: load.ignore || load.local && !load.replace,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
            returning_columns: Vec::new(),
            subqueries: None,
        })
    }

    fn field_targets(
        &self,
        load: &'q ast::LoadData,
        target: &TableEntry,
        alias: &str,
    ) -> Result<Vec<FieldTarget>> {
        if load.columns.is_empty() {
            return Ok(match &self.target_view {
                Some(view) => view.columns.iter().map(|(_, at)| FieldTarget::Column(*at)).collect(),
                None => (0..target.definition().columns.len()).map(FieldTarget::Column).collect(),
            });
        }
        let field = |expression: &ast::Expression| match expression {
            ast::Expression::Column(name) => {
                self.target_column(target, alias, name, Clause::Select).map(FieldTarget::Column)
            }
            ast::Expression::UserVariable(name) => Ok(FieldTarget::Variable(name.to_lowercase())),
            _ => Err(unsupported("this target of a field")),
        };
        load.columns.iter().map(field).collect()
    }

    fn load_assignments(
        &mut self,
        load: &'q ast::LoadData,
        target: &Arc<TableEntry>,
        alias: &str,
    ) -> Result<Vec<(usize, InsertValue)>> {
        if load.assignments.is_empty() {
            return Ok(Vec::new());
        }
        self.in_target_block(target, alias, |binder| {
            let mut bound = Vec::with_capacity(load.assignments.len());
            for assignment in &load.assignments {
                let clause = Clause::Select;
                let column = binder.target_column(target, alias, &assignment.column, clause)?;
                binder.block().clause = clause;
                let value = match &assignment.value {
                    ast::Expression::Default(None) => InsertValue::Default,
                    value => InsertValue::Expr(binder.bind_for_column(value, target, column)?),
                };
                bound.push((column, value));
            }
            binder.no_subqueries("a subquery in SET of LOAD DATA")?;
            Ok(bound)
        })
    }

    /// How a file is written, of LOAD DATA and of INTO OUTFILE.
    pub(crate) fn line_format(&mut self, format: &ast::FileFormat) -> Result<LineFormat> {
        let charset = match &format.charset {
            Some(name) => {
                let unknown = || SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[name]);
                Charset::by_name(name).ok_or_else(unknown)?
            }
            None => self.database_charset()?,
        };
        let single = |text: &Option<Vec<u8>>| match text.as_deref() {
            None | Some([]) => Ok(None),
            Some([byte]) => Ok(Some(*byte)),
            Some(_) => Err(SqlError::new(&codes::WRONG_FIELD_TERMINATORS, &[])),
        };
        let escape = match &format.fields_escaped {
            Some(_) => single(&format.fields_escaped)?,
            None => (!self.has_mode(SqlMode::NO_BACKSLASH_ESCAPES)).then_some(b'\\'),
        };
        let text = |text: &Option<Vec<u8>>, default: &[u8]| {
            text.clone().unwrap_or_else(|| default.to_vec())
        };
        let field_end = text(&format.fields_terminated, b"\t");
        let mut line_end = text(&format.lines_terminated, b"\n");
        if line_end == field_end {
            line_end.clear();
        }
        Ok(LineFormat {
            collation: collation::default_of(charset).id,
            field_end,
            enclosed: single(&format.fields_enclosed)?,
            optionally: format.optionally_enclosed,
            escape,
            line_start: text(&format.lines_starting, b""),
            line_end,
        })
    }

    /// character_set_database.
    fn database_charset(&self) -> Result<Charset> {
        let scope = ast::VariableScope::Session;
        let name = "character_set_database".to_string();
        let variable = ast::SystemVariable { scope, instance: None, name };
        let (value, _) = self.context.variables.read(&variable)?;
        let Value::Bytes(name) = value else { return Ok(Charset::Utf8mb4) };
        Ok(Charset::by_name(&String::from_utf8_lossy(&name)).unwrap_or(Charset::Utf8mb4))
    }
}
