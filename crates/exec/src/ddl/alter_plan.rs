//! ALTER TABLE as written becomes what is to be done.

use super::column::{self, column};
use super::computed;
use super::table::options;
use super::{
    DdlContext, alter_check, alter_partition, collation_of, compression, foreign, index,
    unsupported,
};
use crate::ExecError;
use engine_api::{ColumnDefinition, TableDefinition};
use plan::physical::Computed;
use syntax::ast::{
    AlterAction, AlterTable, Check, ColumnPlace, ColumnSpecification, Expression, ForeignKey,
    IndexSpecification, TableOption,
};
use types::{SqlError, TypeKind, codes};

/// What the actions amount to.
#[derive(Default)]
pub(super) struct Work {
    /// The definition as it will be, without the indexes to be added.
    pub(super) columns: Vec<(ColumnDefinition, Option<usize>)>,
    pub(super) copy: bool,
    /// IGNORE: rows that do not fit are left out or adjusted.
    pub(super) ignore: bool,
    pub(super) drop_primary: bool,
    /// MariaDB would copy the rows, and tells how many.
    pub(super) reports: bool,
    pub(super) add: Vec<IndexSpecification>,
    pub(super) drop: Vec<String>,
    pub(super) rename_indexes: Vec<(String, String)>,
    pub(super) auto_increment: Option<u64>,
    pub(super) add_foreign: Vec<ForeignKey>,
    pub(super) drop_foreign: Vec<String>,
    /// Partitions whose rows are to go.
    pub(super) leave_out: Vec<usize>,
    /// Only rows of these partitions count as copied; empty for all.
    pub(super) counted: Vec<usize>,
    /// What the rows of the new columns compute.
    pub(super) computed: Option<Box<Computed>>,
    /// CHECK of columns, to be read when all columns are known.
    pub(super) column_checks: Vec<ColumnSpecification>,
    /// CHECK constraints of the table.
    pub(super) add_checks: Vec<Check>,
}

/// What the actions of an ALTER TABLE amount to; `table` gets its new options.
pub(super) fn plan(
    context: &DdlContext<'_>,
    alter: &AlterTable,
    table: &mut TableDefinition,
) -> Result<Work, ExecError> {
    let kept = table.columns.iter().cloned().enumerate().map(|(at, c)| (c, Some(at)));
    let mut work = Work { columns: kept.collect(), ignore: alter.ignore, ..Work::default() };
    for action in &alter.actions {
        plan_action(context, action, table, &mut work)?;
    }
    let written = alter.actions.iter().filter_map(|action| match action {
        AlterAction::Options(options) => Some(options.as_slice()),
        _ => None,
    });
    for options in written {
        compression::apply(context, options, table, compression::Operation::Alter)?;
    }
    alter_check::add_checks(context, table, &mut work)?;
    computed::put_altered(context, alter, table, &mut work)?;
    let copies = |action: &AlterAction| match action {
        AlterAction::Hint(name, value) => name == "ALGORITHM" && value == "COPY",
        _ => false,
    };
    if alter.actions.iter().any(copies) {
        (work.copy, work.reports) = (true, true);
    }
    let adds_primary = work.add.iter().any(|index| index.kind == syntax::ast::IndexKind::Primary);
    work.reports |= work.drop_primary && !adds_primary;
    Ok(work)
}

fn plan_action(
    context: &DdlContext<'_>,
    action: &AlterAction,
    table: &mut TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    match action {
        AlterAction::AddColumn { column: written, place, if_not_exists } => {
            add_column(context, table, work, (written, place), *if_not_exists)?;
        }
        AlterAction::ChangeColumn { name, column: written, place, if_exists } => {
            change_column(context, table, work, name, (written, place), *if_exists)?;
        }
        AlterAction::DropColumn { name, if_exists } => {
            let Some(at) = find(work, name) else {
                return missing_column(context, name, *if_exists);
            };
            if work.columns.len() == 1 {
                return Err(SqlError::new(&codes::CANT_REMOVE_ALL_FIELDS, &[]).into());
            }
            let dropped = work.columns.remove(at).0;
            alter_check::drop_own_checks(table, work, &dropped.name);
            work.copy = true;
        }
        AlterAction::RenameColumn { name, to } => {
            let Some(at) = find(work, name) else { return Err(unknown(name, table)) };
            check_free(work, at, to)?;
            let from = work.columns[at].0.name.clone();
            alter_check::rename_in_checks(table, work, &from, to);
            work.columns[at].0.name.clone_from(to);
            computed::rename(work.columns.iter_mut().map(|(column, _)| column), &from, to);
            work.copy = true;
        }
        AlterAction::AlterDefault { name, default } => {
            alter_default(context, table, work, name, default.as_ref())?;
        }
        AlterAction::AddIndex(_)
        | AlterAction::DropIndex { .. }
        | AlterAction::DropPrimaryKey
        | AlterAction::RenameIndex { .. } => plan_index(context, action, table, work)?,
        AlterAction::ConvertCharset { charset, collation } => {
            convert(context, table, work, charset.as_deref(), collation.as_deref())?;
        }
        AlterAction::OrderBy(columns) => order_by(context, table, work, columns)?,
        AlterAction::Options(written) => read_options(table, work, written)?,
        AlterAction::Force => work.copy = true,
        AlterAction::Keys(_) => {
            let arguments: [&dyn std::fmt::Display; 3] = [&"InnoDB", &table.schema, &table.name];
            context.note_sql(&SqlError::new(&codes::ILLEGAL_HA, &arguments));
        }
        AlterAction::AddForeignKey(written) => work.add_foreign.push((**written).clone()),
        AlterAction::DropForeignKey { name, if_exists } => {
            drop_foreign(context, table, work, (name, "FOREIGN KEY"), *if_exists)?;
        }
        AlterAction::AddCheck(_) | AlterAction::DropConstraint { .. } => {
            alter_check::plan_constraint(context, action, table, work)?;
        }
        AlterAction::PartitionBy(_)
        | AlterAction::AddPartitions { .. }
        | AlterAction::DropPartitions { .. }
        | AlterAction::TruncatePartitions(_)
        | AlterAction::RebuildPartitions(_)
        | AlterAction::ReorganizePartitions { .. }
        | AlterAction::CoalescePartitions(_)
        | AlterAction::Other(_) => alter_partition::plan(context, action, table, work)?,
        AlterAction::Rename(_) | AlterAction::Hint(..) => {}
        other => return Err(unsupported(&format!("ALTER TABLE {other:?}"))),
    }
    Ok(())
}

/// ALTER COLUMN SET DEFAULT, DROP DEFAULT.
fn alter_default(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &mut Work,
    name: &str,
    default: Option<&Expression>,
) -> Result<(), ExecError> {
    let Some(at) = find(work, name) else { return Err(unknown(name, table)) };
    let made = &mut work.columns[at].0;
    if made.is_generated() {
        return Ok(());
    }
    let (column_type, nullable) = (made.column_type, made.nullable && default.is_some());
    made.default = column::default(context.eval, name, &column_type, nullable, default)?;
    if default.is_none() && made.nullable {
        made.default = engine_api::ColumnDefault::Null;
    }
    Ok(())
}

/// What is to be done with indexes.
fn plan_index(
    context: &DdlContext<'_>,
    action: &AlterAction,
    table: &TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    match action {
        AlterAction::AddIndex(written) if written.if_not_exists && has_index(table, written) => {
            let name = written.name.as_deref().unwrap_or("PRIMARY");
            context.note_sql(&SqlError::new(&codes::DUP_KEYNAME, &[&name]));
        }
        AlterAction::AddIndex(written) => {
            let primary = written.kind == syntax::ast::IndexKind::Primary;
            if primary {
                computed::check_primary(work, written)?;
            }
            work.copy |= primary;
            note_same_index(context, table, work, written);
            work.add.push((**written).clone());
        }
        AlterAction::DropIndex { name, if_exists } if name.eq_ignore_ascii_case("primary") => {
            match drop_primary(table, work, name) {
                Err(error) if *if_exists => context.note_sql(&error),
                dropped => dropped?,
            }
        }
        AlterAction::DropPrimaryKey => drop_primary(table, work, "PRIMARY")?,
        AlterAction::DropIndex { name, if_exists } => {
            if index::position(table, name).is_none() && *if_exists {
                context.note_sql(&missing("INDEX", name));
            } else {
                work.drop.push(name.clone());
            }
        }
        AlterAction::RenameIndex { name, to } => {
            work.rename_indexes.push((name.clone(), to.clone()));
        }
        _ => {}
    }
    Ok(())
}

/// ORDER BY: rows lie in the order of the primary key anyway.
fn order_by(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &mut Work,
    columns: &[String],
) -> Result<(), ExecError> {
    for name in columns {
        if find(work, name).is_none() {
            let arguments: [&dyn std::fmt::Display; 2] = [name, &"order clause"];
            return Err(SqlError::new(&codes::BAD_FIELD_ERROR, &arguments).into());
        }
    }
    if table.hidden_row_id {
        return Err(unsupported("ALTER TABLE ... ORDER BY without a primary key"));
    }
    work.copy = true;
    work.reports = true;
    let text = format!(
        "ORDER BY ignored as there is a user-defined clustered index in the table '{}'",
        table.name
    );
    let warning = types::Warning::from(&SqlError::with_message(&codes::UNKNOWN_ERROR, text));
    context.eval.push_warning(types::Warning { level: types::Level::Warning, ..warning });
    Ok(())
}

fn read_options(
    table: &mut TableDefinition,
    work: &mut Work,
    written: &[TableOption],
) -> Result<(), ExecError> {
    let read = options(written, table.collation, table.options.clone())?;
    table.collation = read.collation;
    table.options = read.kept;
    work.auto_increment = read.auto_increment;
    Ok(())
}

pub(super) fn drop_foreign(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    (name, kind): (&str, &str),
    if_exists: bool,
) -> Result<(), ExecError> {
    let known = table.foreign_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
    if let Some(at) = known {
        let key = table.foreign_keys.remove(at);
        work.drop_foreign.push(key.name);
        return Ok(());
    }
    if !if_exists {
        return Err(missing(kind, name).into());
    }
    context.note_sql(&missing(kind, name));
    Ok(())
}

fn add_column(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &mut Work,
    (written, place): (&ColumnSpecification, &ColumnPlace),
    if_not_exists: bool,
) -> Result<(), ExecError> {
    if find(work, &written.name).is_some() {
        if if_not_exists {
            context.note_sql(&SqlError::new(&codes::DUP_FIELDNAME, &[&written.name]));
            return Ok(());
        }
        return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&written.name]).into());
    }
    if !written.checks.is_empty() {
        work.column_checks.push(written.clone());
    }
    let mut made = column(context.eval, written, table.collation)?;
    made.id = next_id(work);
    let end = work.columns.len();
    let at = place_of(work, place, end, table)?;
    work.columns.insert(at, (made, None));
    work.add_foreign.extend(foreign::of_column(written));
    work.add.extend(index::of_column(written));
    work.copy = true;
    Ok(())
}

fn change_column(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    name: &str,
    (written, place): (&ColumnSpecification, &ColumnPlace),
    if_exists: bool,
) -> Result<(), ExecError> {
    let Some(at) = find(work, name) else {
        let error = unknown(name, table);
        if if_exists {
            context.note_sql(&error.sql);
            return Ok(());
        }
        return Err(error);
    };
    check_free(work, at, &written.name)?;
    if !written.checks.is_empty() {
        work.column_checks.push(written.clone());
    }
    let mut made = column(context.eval, written, table.collation)?;
    made.id = work.columns[at].0.id;
    computed::check_change(&work.columns[at].0, &made)?;
    let former = work.columns[at].0.name.clone();
    alter_check::rename_in_checks(table, work, &former, &made.name);
    work.reports |= needs_copy(&work.columns[at].0, &made);
    let (former, source) = work.columns.remove(at);
    if !former.name.eq_ignore_ascii_case(&made.name) {
        let columns = work.columns.iter_mut().map(|(column, _)| column);
        computed::rename(columns, &former.name, &made.name);
    }
    let to = place_of(work, place, at, table)?;
    work.columns.insert(to, (made, source));
    work.add.extend(index::of_column(written));
    work.copy = true;
    Ok(())
}

/// Whether MariaDB copies the rows to change a column so.
fn needs_copy(old: &ColumnDefinition, new: &ColumnDefinition) -> bool {
    let (from, to) = (&old.column_type, &new.column_type);
    let grows = from.kind == TypeKind::VarChar
        && to.kind == TypeKind::VarChar
        && from.collation == to.collation
        && from.length <= to.length;
    let same = types::ColumnType { zerofill: from.zerofill, ..*to } == *from || grows;
    !same || new.auto_increment && !old.auto_increment
}

/// That no other column than the one at a position has a name: error 1060.
fn check_free(work: &Work, at: usize, name: &str) -> Result<(), ExecError> {
    match find(work, name) {
        Some(other) if other != at => Err(SqlError::new(&codes::DUP_FIELDNAME, &[&name]).into()),
        _ => Ok(()),
    }
}

pub(super) fn find(work: &Work, name: &str) -> Option<usize> {
    work.columns.iter().position(|(column, _)| column.name.eq_ignore_ascii_case(name))
}

fn next_id(work: &Work) -> u32 {
    work.columns.iter().map(|(column, _)| column.id).max().unwrap_or(0) + 1
}

/// Error 1091.
fn missing(kind: &str, name: &str) -> SqlError {
    let arguments: [&dyn std::fmt::Display; 2] = [&kind, &name];
    SqlError::new(&codes::CANT_DROP_FIELD_OR_KEY, &arguments)
}

fn missing_column(context: &DdlContext<'_>, name: &str, if_exists: bool) -> Result<(), ExecError> {
    if if_exists {
        context.note_sql(&missing("COLUMN", name));
        return Ok(());
    }
    Err(missing("COLUMN", name).into())
}

fn has_index(table: &TableDefinition, written: &IndexSpecification) -> bool {
    match &written.name {
        _ if written.kind == syntax::ast::IndexKind::Primary => !table.hidden_row_id,
        Some(name) => index::position(table, name).is_some(),
        None => false,
    }
}

fn drop_primary(table: &TableDefinition, work: &mut Work, name: &str) -> Result<(), SqlError> {
    if table.hidden_row_id {
        return Err(missing("INDEX", name));
    }
    work.drop_primary = true;
    work.copy = true;
    Ok(())
}

/// CONVERT TO CHARACTER SET: every column of text, and the table's default.
fn convert(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    charset: Option<&str>,
    collation: Option<&str>,
) -> Result<(), ExecError> {
    let of_schema = context.catalog.schema(&table.schema);
    let default = of_schema.map_or(table.collation, |schema| schema.options.collation);
    let wanted = collation_of(charset, collation, default)?;
    table.collation = wanted;
    work.reports = true;
    let bytes_of = |id: types::CollationId| u64::from(id.charset().max_bytes());
    for (column, _) in &mut work.columns {
        let column_type = &mut column.column_type;
        if !column_type.kind.is_string() || column_type.collation == types::CollationId::BINARY {
            continue;
        }
        let grows = bytes_of(wanted) > bytes_of(column_type.collation);
        column_type.collation = wanted;
        if grows {
            column_type.kind = match column_type.kind {
                TypeKind::TinyText => TypeKind::Text,
                TypeKind::Text => TypeKind::MediumText,
                TypeKind::MediumText => TypeKind::LongText,
                kind => kind,
            };
        }
    }
    work.copy = true;
    Ok(())
}

/// Error 1054.
fn unknown(name: &str, table: &TableDefinition) -> ExecError {
    let arguments: [&dyn std::fmt::Display; 2] = [&name, &table.name];
    SqlError::new(&codes::BAD_FIELD_ERROR, &arguments).into()
}

fn place_of(
    work: &Work,
    place: &ColumnPlace,
    default: usize,
    table: &TableDefinition,
) -> Result<usize, ExecError> {
    match place {
        ColumnPlace::Default => Ok(default),
        ColumnPlace::First => Ok(0),
        ColumnPlace::After(name) => {
            find(work, name).map(|at| at + 1).ok_or_else(|| unknown(name, table))
        }
    }
}

/// Note 1831 for an index that the table has already, under another name.
fn note_same_index(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    work: &Work,
    written: &IndexSpecification,
) {
    if written.kind != syntax::ast::IndexKind::Plain {
        return;
    }
    let names = |index: &engine_api::IndexDefinition| -> Vec<String> {
        let parts = index.parts.iter();
        parts.map(|part| table.columns[part.column].name.to_lowercase()).collect()
    };
    let wanted: Vec<String> = written.parts.iter().map(|p| p.column.to_lowercase()).collect();
    let of_added = |index: &&IndexSpecification| {
        index.parts.iter().map(|p| p.column.to_lowercase()).collect::<Vec<_>>() == wanted
    };
    let present = table.indexes.iter().skip(1).filter(|index| {
        !index.unique
            && !work.drop.iter().any(|name| name.eq_ignore_ascii_case(&index.name))
            && names(index) == wanted
    });
    let same = present.count() + work.add.iter().filter(of_added).count();
    if same == 0 {
        return;
    }
    let name = match &written.name {
        Some(name) => name.clone(),
        None => format!("{}_{}", written.parts[0].column, same + 1),
    };
    let text = format!(
        "Duplicate index `{name}`. This is deprecated and will be disallowed in a future release"
    );
    context.note_sql(&SqlError::with_message(&codes::DUP_INDEX, text));
}
