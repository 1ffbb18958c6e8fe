//! What the foreign keys around a table forbid: DROP, TRUNCATE, changes of columns and indexes.

use super::{DdlContext, Done, are_comparable};
use crate::ExecError;
use catalog::{QualifiedName, constraint_in_table};
use engine_api::{ForeignKeyDefinition, ReferentialAction, TableDefinition};
use types::{Level, SqlError, Warning, codes};

/// A table that comes into being under a name that others refer to must suit them.
pub fn check_waiting_children(context: &DdlContext<'_>, parent: &TableDefinition) -> Done {
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    for (schema, name) in context.catalog.children(&parent.schema, &parent.name) {
        let Some(entry) = context.catalog.find_base(&schema, &name) else { continue };
        let child = entry.definition();
        for key in &child.foreign_keys {
            if key.parent_schema != parent.schema || key.parent_table != parent.name {
                continue;
            }
            let columns: Option<Vec<usize>> =
                key.parent_columns.iter().map(|name| parent.column_position(name)).collect();
            let suits = columns.is_some_and(|columns| {
                let own = child.foreign_key_columns(key);
                let mut pairs = own.iter().zip(&columns);
                parent.index_over(&columns).is_some()
                    && pairs.all(|(own, other)| {
                        let (own, other) = (&child.columns[*own], &parent.columns[*other]);
                        are_comparable(&own.column_type, &other.column_type)
                    })
            });
            if !suits {
                let words = "150 \"Foreign key constraint is incorrectly formed\"";
                let names: [&dyn std::fmt::Display; 3] = [&parent.schema, &parent.name, &words];
                let error = SqlError::new(&codes::CANT_CREATE_TABLE, &names);
                context.eval.push_warning(Warning::from(&error));
                let message = codes::CANNOT_ADD_FOREIGN.message(&[&parent.name]);
                context.eval.push_warning(Warning { level: Level::Warning, code: 1215, message });
                return Err(error.into());
            }
        }
    }
    Ok(())
}

/// Error 1451 in the short form that definitions get.
pub fn is_parent() -> SqlError {
    let text = "Cannot delete or update a parent row: a foreign key constraint fails";
    SqlError::with_message(&codes::ROW_IS_REFERENCED_2, text)
}

/// Fails with 1451 if another table refers to this one.
pub fn check_may_drop(context: &DdlContext<'_>, schema: &str, name: &str) -> Done {
    let checks = context.eval.settings.foreign_key_checks;
    if checks && context.catalog.child_besides((schema, name), &[]).is_some() {
        return Err(is_parent().into());
    }
    Ok(())
}

/// Fails with 1451 if a table outside of the database refers to one inside.
pub fn check_may_drop_schema(context: &DdlContext<'_>, name: &str) -> Done {
    let Some(schema) = context.catalog.schema(name) else { return Ok(()) };
    let inside: Vec<QualifiedName> =
        schema.tables().map(|t| (name.to_string(), t.definition().name.clone())).collect();
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    for table in &inside {
        if context.catalog.child_besides((name, &table.1), &inside).is_some() {
            return Err(is_parent().into());
        }
    }
    Ok(())
}

/// Fails with 1701 if another table refers to this one.
pub fn check_may_truncate(context: &DdlContext<'_>, schema: &str, name: &str) -> Done {
    if !context.eval.settings.foreign_key_checks {
        return Ok(());
    }
    let Some((child, key)) = context.catalog.child_besides((schema, name), &[]) else {
        return Ok(());
    };
    let text = constraint_in_table(child.definition(), &key, true);
    Err(SqlError::new(&codes::TRUNCATE_ILLEGAL_FK, &[&text]).into())
}

/// What a change of a table means for the foreign keys around it. Fails if one of them needs
/// what is taken away; the children that follow new names of columns come back changed.
pub fn check_altered(
    context: &DdlContext<'_>,
    before: &TableDefinition,
    after: &TableDefinition,
) -> Result<Vec<TableDefinition>, ExecError> {
    for key in &after.foreign_keys {
        check_own_key(context, before, after, key)?;
    }
    let mut changed = Vec::new();
    for (schema, name) in context.catalog.children(&before.schema, &before.name) {
        let Some(entry) = context.catalog.find_base(&schema, &name) else { continue };
        let is_itself = schema == before.schema && name == before.name;
        let mut child = if is_itself { after.clone() } else { (**entry.definition()).clone() };
        let mut differs = false;
        let count = child.foreign_keys.len();
        for number in 0..count {
            let key = &child.foreign_keys[number];
            if key.parent_schema == before.schema && key.parent_table == before.name {
                let names = check_child_key(context, (before, after), &child, key)?;
                differs |= names != key.parent_columns;
                child.foreign_keys[number].parent_columns = names;
            }
        }
        if differs {
            child.version += 1;
            changed.push(child);
        }
    }
    Ok(changed)
}

/// The index that a key uses is gone.
fn needs_index(table: &TableDefinition, columns: &[usize]) -> ExecError {
    let name = table.index_over(columns).map_or("", |at| table.indexes[at].name.as_str());
    SqlError::new(&codes::DROP_INDEX_FK, &[&name]).into()
}

fn check_own_key(
    context: &DdlContext<'_>,
    before: &TableDefinition,
    after: &TableDefinition,
    key: &ForeignKeyDefinition,
) -> Done {
    let old = before.foreign_key_columns(key);
    let new = after.foreign_key_columns(key);
    if new.len() != key.columns.len() {
        let lost = old.iter().find(|at| after.column_of_id(before.columns[**at].id).is_none());
        if before.index_over(&old).is_some() {
            return Err(needs_index(before, &old));
        }
        let name = lost.map_or("", |at| before.columns[*at].name.as_str());
        return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_DROP, &[&name, &key.name]).into());
    }
    if after.index_over(&new).is_none() && before.index_over(&old).is_some() {
        return Err(needs_index(before, &old));
    }
    for (old, new) in old.iter().zip(&new) {
        let (old, new) = (&before.columns[*old], &after.columns[*new]);
        if !are_comparable(&old.column_type, &new.column_type)
            && context.eval.settings.foreign_key_checks
        {
            let arguments: [&dyn std::fmt::Display; 2] = [&old.name, &key.name];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_CHANGE, &arguments).into());
        }
        let sets_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
        if sets_null && !new.nullable {
            let arguments: [&dyn std::fmt::Display; 2] = [&new.name, &key.name];
            return Err(SqlError::new(&codes::FK_COLUMN_NOT_NULL, &arguments).into());
        }
    }
    Ok(())
}

/// The names of the parent's columns after its change.
fn check_child_key(
    context: &DdlContext<'_>,
    (before, after): (&TableDefinition, &TableDefinition),
    child: &TableDefinition,
    key: &ForeignKeyDefinition,
) -> Result<Vec<String>, ExecError> {
    let old: Option<Vec<usize>> =
        key.parent_columns.iter().map(|name| before.column_position(name)).collect();
    let checks = context.eval.settings.foreign_key_checks;
    let Some(old) = old else { return Ok(key.parent_columns.clone()) };
    let mut new = Vec::with_capacity(old.len());
    for at in &old {
        let column = &before.columns[*at];
        let Some(moved) = after.column_of_id(column.id) else {
            if !checks {
                return Ok(key.parent_columns.clone());
            }
            if before.index_over(&old).is_some() {
                return Err(needs_index(before, &old));
            }
            let table = format!("`{}`.`{}`", child.schema, child.name);
            let arguments: [&dyn std::fmt::Display; 3] = [&column.name, &key.name, &table];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_DROP_CHILD, &arguments).into());
        };
        let changed = &after.columns[moved];
        if checks && !are_comparable(&column.column_type, &changed.column_type) {
            let table = format!("{}.{}", child.schema, child.name);
            let arguments: [&dyn std::fmt::Display; 3] = [&column.name, &key.name, &table];
            return Err(SqlError::new(&codes::FK_COLUMN_CANNOT_CHANGE_CHILD, &arguments).into());
        }
        new.push(moved);
    }
    if checks && after.index_over(&new).is_none() && before.index_over(&old).is_some() {
        return Err(needs_index(before, &old));
    }
    Ok(new.iter().map(|at| after.columns[*at].name.clone()).collect())
}
