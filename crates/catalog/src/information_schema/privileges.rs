//! Tables of grants. A user without rights on `mysql` sees his own only.

use super::{Emit, text, yes_no};
use crate::{Privilege, PrivilegeSet, UserPrivileges, VirtualContext, VirtualFilter};
use std::sync::Arc;
use types::{SqlError, Value};

type Rows = Result<(), SqlError>;

fn visible(context: &VirtualContext<'_>) -> Vec<Arc<UserPrivileges>> {
    let all = context.user.may(Privilege::Select, "mysql", "user");
    let users = context.catalog.users().into_iter();
    users.filter(|user| all || user.account == context.user.account).collect()
}

/// Calls `row` for each privilege of a set, or once with USAGE.
fn each_privilege(set: PrivilegeSet, mut row: impl FnMut(&str, Value) -> bool) -> bool {
    let grantable = yes_no(set.has(Privilege::GrantOption));
    let mut named = set.iter().filter(|p| *p != Privilege::GrantOption).peekable();
    if named.peek().is_none() {
        return row("USAGE", grantable);
    }
    named.all(|privilege| row(privilege.name(), grantable.clone()))
}

pub(super) fn user_privileges(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for user in visible(context) {
        let grantee = text(user.account.to_string());
        let more = each_privilege(user.global, |name, grantable| {
            emit(&[grantee.clone(), text("def"), text(name), grantable])
        });
        if !more {
            break;
        }
    }
    Ok(())
}

pub(super) fn schema_privileges(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for user in visible(context) {
        let grantee = text(user.account.to_string());
        for (schema, set) in &user.schemas {
            let more = each_privilege(*set, |name, grantable| {
                emit(&[grantee.clone(), text("def"), text(schema), text(name), grantable])
            });
            if !more {
                return Ok(());
            }
        }
    }
    Ok(())
}

pub(super) fn table_privileges(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for user in visible(context) {
        let grantee = text(user.account.to_string());
        for (schema, table, set) in &user.tables {
            let more = each_privilege(*set, |name, grantable| {
                let (schema, table) = (text(schema), text(table));
                emit(&[grantee.clone(), text("def"), schema, table, text(name), grantable])
            });
            if !more {
                return Ok(());
            }
        }
    }
    Ok(())
}
