//! CREATE VIEW, ALTER VIEW, DROP VIEW, SHOW CREATE VIEW.

use crate::Session;
use crate::statement::{Answer, Failure};
use catalog::information_schema::VirtualType;
use catalog::show::ShowAnswer;
use catalog::{
    CatalogError, CheckOption, Privilege, TableEntry, TableRef, ViewAlgorithm, ViewDefinition,
};
use engine_api::{ColumnDefault, ColumnDefinition, IndexDefinition, TableDefinition, TableOptions};
use plan::physical::ResultColumn;
use std::sync::Arc;
use syntax::ast::{CreateView, DropTable, ShowKind, TableName};
use syntax::canonical::quoted;
use types::{CollationId, Level, SqlError, Value, Warning, codes};

impl Session {
    /// CREATE VIEW and ALTER VIEW.
    pub(crate) fn create_view(&mut self, create: &CreateView) -> Result<Answer, Failure> {
        self.check_may_write()?;
        self.require(Privilege::CreateView, &create.name)?;
        if create.or_replace || create.alter {
            self.require(Privilege::Drop, &create.name)?;
        }
        let (schema, name) = self.full_name(&create.name)?;
        self.commit_implicitly()?;
        self.begin_write(None)?;
        let if_not_exists = create.attributes.iter().any(|(word, _)| word == "IF NOT EXISTS");
        let known = self.server.catalog.find(&schema, &name);
        match &known {
            Ok(TableRef::View(_)) | Err(_) => {}
            Ok(_) if create.or_replace || create.alter => {
                return Err(CatalogError::NotView(schema, name).into());
            }
            Ok(_) => {}
        }
        if let Err(error) = &known
            && create.alter
        {
            return Err(error.clone().into());
        }
        if known.is_ok() && if_not_exists {
            self.note(&CatalogError::TableExists(name).into());
            return Ok(Answer::ok());
        }
        if known.is_ok() && !create.or_replace && !create.alter {
            return Err(CatalogError::TableExists(name).into());
        }
        let view = self.view_attributes(create)?;
        let how = (view.algorithm, view.check_option);
        let defined = self.define_view(create, (&schema, &name), how);
        self.locks.release_all();
        let defined = defined?;
        let columns = defined.columns.iter().enumerate();
        let columns = columns.map(|(at, column)| self.view_column(at, column)).collect();
        let table = definition(&schema, &name, columns);
        let view =
            ViewDefinition { query: defined.query, is_updatable: defined.is_updatable, ..view };
        let replace = create.or_replace || create.alter;
        let server = self.server.clone();
        let made = server.catalog.create_view(&mut self.locks, table, view, replace);
        self.locks.release_all();
        made?;
        Ok(Answer::ok())
    }

    fn note(&self, error: &SqlError) {
        self.eval.push_warning(Warning { level: Level::Note, ..Warning::from(error) });
    }

    fn full_name(&self, name: &TableName) -> Result<(String, String), SqlError> {
        let schema = match &name.schema {
            Some(schema) => schema.clone(),
            None => self.current_database()?,
        };
        Ok((schema, name.name.clone()))
    }

    /// What is written before VIEW and behind the query.
    fn view_attributes(&self, create: &CreateView) -> Result<ViewDefinition, SqlError> {
        let written = |name: &str| {
            let found = create.attributes.iter().find(|(word, _)| word == name);
            found.map(|(_, value)| value.as_str())
        };
        let own = &self.user.account;
        let definer = match written("DEFINER") {
            None => (own.user.clone(), own.host.0.clone()),
            Some(text) if text.to_ascii_uppercase().starts_with("CURRENT_USER") => {
                (own.user.clone(), own.host.0.clone())
            }
            Some(text) => parse_account(text),
        };
        let is_own = definer.0 == own.user && definer.1 == own.host.0;
        if !is_own && !self.user.global.has(Privilege::Super) {
            let needed = "SUPER, SET USER";
            return Err(SqlError::new(&codes::SPECIFIC_ACCESS_DENIED_ERROR, &[&needed]));
        }
        let account = catalog::Account::new(&definer.0, &definer.1);
        if !is_own && self.server.catalog.user(&account).is_none() {
            let error = SqlError::new(&codes::NO_SUCH_USER, &[&definer.0, &definer.1]);
            self.note(&error);
        }
        Ok(ViewDefinition {
            query: String::new(),
            algorithm: written("ALGORITHM")
                .and_then(ViewAlgorithm::from_word)
                .unwrap_or(ViewAlgorithm::Undefined),
            definer,
            invoker: written("SQL SECURITY").is_some_and(|w| w.eq_ignore_ascii_case("INVOKER")),
            check_option: match create.check_option.as_deref() {
                None => CheckOption::None,
                Some("LOCAL") => CheckOption::Local,
                Some(_) => CheckOption::Cascaded,
            },
            is_updatable: false,
            charset_client: self.settings.client.name().to_owned(),
            collation_connection: self.settings.connection.name().to_owned(),
        })
    }

    /// A column of a view as DESCRIBE shows it: one of a table keeps its default.
    fn view_column(&self, position: usize, column: &ResultColumn) -> ColumnDefinition {
        let base = self.server.catalog.find_base(&column.schema, &column.org_table);
        let origin = base.and_then(|entry| {
            let definition = entry.definition();
            let at = definition.column_position(&column.org_name)?;
            Some(definition.columns[at].clone())
        });
        let nullable = column.result.nullable;
        let column_type = column.result.column_type;
        let zero = match () {
            () if nullable => ColumnDefault::Null,
            () if catalog::describe::is_number(column_type.kind) => {
                ColumnDefault::Constant(b"0".to_vec())
            }
            () if column_type.kind.is_string() => ColumnDefault::Constant(Vec::new()),
            () => ColumnDefault::None,
        };
        let mut made = origin.unwrap_or_else(|| ColumnDefinition {
            default: zero,
            ..ColumnDefinition::plain(position as u32 + 1, &column.name, column_type)
        });
        made.id = position as u32 + 1;
        made.name.clone_from(&column.name);
        made.column_type = column_type;
        made.nullable = nullable;
        made.auto_increment = false;
        made
    }

    /// A view with its columns as they are now; none if the name is no view.
    pub(crate) fn described_view(
        &mut self,
        schema: &str,
        name: &str,
    ) -> Result<Option<Arc<TableEntry>>, SqlError> {
        let server = self.server.clone();
        let Ok(TableRef::View(entry)) = server.catalog.find(schema, name) else { return Ok(None) };
        let Some(view) = entry.view().cloned() else { return Ok(None) };
        let columns = self.view_columns(&entry)?;
        let columns = columns.iter().enumerate();
        let columns = columns.map(|(at, column)| self.view_column(at, column)).collect();
        Ok(Some(server.catalog.described_view(definition(schema, name, columns), view)))
    }

    /// DROP VIEW: those that are there are dropped, the others told.
    pub(crate) fn drop_views(&mut self, drop: &DropTable) -> Result<Answer, Failure> {
        self.check_may_write()?;
        for name in &drop.names {
            self.require(Privilege::Drop, name)?;
        }
        self.commit_implicitly()?;
        self.begin_write(None)?;
        let mut unknown = Vec::new();
        for name in &drop.names {
            let (schema, name) = self.full_name(name)?;
            let server = self.server.clone();
            match server.catalog.drop_view(&mut self.locks, &schema, &name) {
                Ok(()) => {}
                Err(error @ (CatalogError::UnknownView(..) | CatalogError::UnknownDatabase(_))) => {
                    if let Ok(TableRef::Base(_)) = server.catalog.find(&schema, &name) {
                        let error = CatalogError::NotView(schema.clone(), name.clone());
                        self.eval.push_warning(Warning {
                            level: Level::Warning,
                            ..Warning::from(&SqlError::from(error))
                        });
                    }
                    unknown.push((format!("{schema}.{name}"), error));
                }
                Err(error) => {
                    self.locks.release_all();
                    return Err(error.into());
                }
            }
        }
        self.locks.release_all();
        if unknown.is_empty() {
            return Ok(Answer::ok());
        }
        let names: Vec<String> = unknown.into_iter().map(|(name, _)| name).collect();
        let error = SqlError::new(&codes::UNKNOWN_VIEW, &[&names.join(",")]);
        if !drop.if_exists {
            return Err(error.into());
        }
        self.note(&error);
        Ok(Answer::ok())
    }

    /// SHOW CREATE VIEW and SHOW CREATE TABLE of a view; none for a table.
    pub(crate) fn show_created_view(
        &mut self,
        kind: &ShowKind,
        schema: Option<&str>,
        table: Option<&str>,
    ) -> Result<Option<ShowAnswer>, SqlError> {
        let (schema, table) = (schema.unwrap_or_default(), table.unwrap_or_default());
        let found = self.server.catalog.find(schema, table)?;
        match (found, kind) {
            (TableRef::View(entry), _) => {
                let name = TableName { schema: Some(schema.into()), name: table.into() };
                self.require_all(&[Privilege::Select, Privilege::ShowView], &name)?;
                let columns = self.view_columns(&entry);
                if let Err(error) = &columns {
                    self.eval
                        .push_warning(Warning { level: Level::Warning, ..Warning::from(error) });
                }
                self.show_create_view(&entry, columns.is_err()).map(Some)
            }
            (_, ShowKind::CreateView(_)) => {
                let error = CatalogError::NotView(schema.into(), table.into());
                Err(error.into())
            }
            _ => Ok(None),
        }
    }

    /// SHOW CREATE VIEW, also by SHOW CREATE TABLE.
    pub(crate) fn show_create_view(
        &self,
        entry: &TableEntry,
        is_broken: bool,
    ) -> Result<ShowAnswer, SqlError> {
        let definition = entry.definition();
        let (schema, name) = (&definition.schema, &definition.name);
        let Some(view) = entry.view() else {
            return Err(CatalogError::NotView(schema.clone(), name.clone()).into());
        };
        let shown_name = match self.database() == Some(schema.as_str()) {
            true => quoted(name),
            false => format!("{}.{}", quoted(schema), quoted(name)),
        };
        let query = plan::shown_query(&view.query, self.database(), is_broken);
        let text = view.create_text(&shown_name, &query);
        let column = |name: &str, length| (name.to_owned(), VirtualType::Varchar(length), false);
        Ok(ShowAnswer {
            columns: vec![
                column("View", 64),
                column("Create View", text.len().max(1024) as u32),
                column("character_set_client", 32),
                column("collation_connection", 64),
            ],
            rows: vec![vec![
                Value::text(name),
                Value::text(text),
                Value::text(&view.charset_client),
                Value::text(&view.collation_connection),
            ]],
        })
    }
}

/// The parts of an account as it was written.
fn parse_account(text: &str) -> (String, String) {
    let bare = |part: &str| {
        let part = part.trim();
        let quote = part.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
        match quote {
            Some(quote) => {
                let inner = part.trim_matches(quote);
                inner.replace(&format!("{quote}{quote}"), &quote.to_string())
            }
            None => part.to_owned(),
        }
    };
    match text.rsplit_once('@') {
        Some((user, host)) => (bare(user), bare(host)),
        None => (bare(text), "%".to_owned()),
    }
}

/// Describes the columns of a view as if it were a table without trees.
fn definition(schema: &str, name: &str, columns: Vec<ColumnDefinition>) -> TableDefinition {
    TableDefinition {
        id: base::TableId(0),
        version: 1,
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns,
        indexes: vec![IndexDefinition::hidden()],
        hidden_row_id: true,
        collation: CollationId::UTF8MB4_GENERAL_CI,
        foreign_keys: Vec::new(),
        options: TableOptions::default(),
        created_micros: runtime::wall_clock_micros(),
    }
}
