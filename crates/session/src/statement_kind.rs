//! What follows from a statement's kind alone.

use exec::phase;
use syntax::ast::{GrantLevel, QueryBody, ShowKind, Statement};

/// What a statement does first, for the process list.
pub(crate) fn phase_of(statement: &Statement) -> u8 {
    match statement {
        Statement::Query(_) => phase::SENDING,
        Statement::Insert(_) | Statement::LoadData(_) => phase::INSERTING,
        Statement::Update(_) | Statement::Delete(_) => phase::UPDATING,
        Statement::AlterTable(_) | Statement::CreateIndex(_) | Statement::DropIndex(_) => {
            phase::DEFINING
        }
        Statement::Commit(_) => phase::COMMITTING,
        _ => phase::INIT,
    }
}

/// Statements that read no table leave the warnings of the one before in SHOW WARNINGS, if they
/// have none of their own.
pub(crate) fn keeps_warnings(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => match &query.body {
            QueryBody::Select(select) => select.from.is_empty(),
            _ => false,
        },
        Statement::Show(show) => matches!(
            show.kind,
            ShowKind::Warnings { .. }
                | ShowKind::Errors { .. }
                | ShowKind::WarningCount
                | ShowKind::ErrorCount
                | ShowKind::CreateDatabase { .. }
                | ShowKind::CreateUser(_)
                | ShowKind::Grants(_)
                | ShowKind::Privileges
                | ShowKind::ProcessList { .. }
                | ShowKind::Engine(..)
                | ShowKind::Other(_)
        ),
        Statement::Flush(flush) => flush.tables.is_empty(),
        Statement::Grant(grant) => !matches!(grant.level, Some(GrantLevel::Table(_))),
        Statement::Revoke(revoke) => !matches!(revoke.level, Some(GrantLevel::Table(_))),
        Statement::Describe(_)
        | Statement::Explain(_)
        | Statement::LockTables(_)
        | Statement::TableMaintenance(_) => false,
        other => !changes_tables(other),
    }
}

/// Statements that change rows, tables or views.
fn changes_tables(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::LoadData(_)
            | Statement::CreateTable(_)
            | Statement::AlterTable(_)
            | Statement::DropTable(_)
            | Statement::RenameTable(_)
            | Statement::TruncateTable(_)
            | Statement::CreateIndex(_)
            | Statement::DropIndex(_)
            | Statement::CreateView(_)
            | Statement::DropView(_)
    )
}

/// Statements that MAX_UPDATES_PER_HOUR counts.
pub(crate) fn is_update(statement: &Statement) -> bool {
    changes_tables(statement)
        || matches!(
            statement,
            Statement::CreateDatabase(_)
                | Statement::AlterDatabase(_)
                | Statement::DropDatabase(_)
                | Statement::CreateUser(_)
                | Statement::AlterUser(_)
                | Statement::DropUser(_)
                | Statement::RenameUser(_)
                | Statement::CreateRole(_)
                | Statement::DropRole(_)
                | Statement::Grant(_)
                | Statement::Revoke(_)
        )
}
