//! Privileges and roles as information_schema and the tables of the database `mysql` show them.
//!
//! 1. Who holds SELECT on the database `mysql` sees every account, everybody else their own.
//! 2. Roles are among the grantees (with an empty host), but not in USER_PRIVILEGES.

use super::VirtualType::{BigInt, BigIntUnsigned, Char, DateTime, Decimal, LongText, Varchar};
use super::columns::{optional, required};
use super::{ACCOUNTS_SCHEMA, Row, Scope, VirtualColumn};
use crate::{
    Authentication, PasswordLifetime, Privilege, PrivilegeSet, Result, TlsRequirement,
    UserPrivileges,
};
use std::sync::Arc;
use types::Value;

fn text(value: impl AsRef<[u8]>) -> Value {
    Value::text(value)
}

fn yes_no(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

fn y_n(value: bool) -> Value {
    text(if value { "Y" } else { "N" })
}

/// Accounts that the reader may see the grants of.
fn grantees(scope: &Scope<'_>) -> Vec<Arc<UserPrivileges>> {
    let sees_all = scope.user.on_schema(ACCOUNTS_SCHEMA).has(Privilege::Select);
    let mut users = scope.catalog.users();
    users.retain(|user| sees_all || user.account == scope.user.account);
    users
}

fn grantee(user: &UserPrivileges) -> Value {
    text(format!("'{}'@'{}'", user.account.user, user.account.host.0))
}

/// A row for each privilege of the set, or one for USAGE; `row` is what stands before it.
fn rows_of(set: PrivilegeSet, row: &[Value], rows: &mut Vec<Row>) {
    let names = set.iter().filter(|p| *p != Privilege::GrantOption).map(Privilege::name);
    let mut names: Vec<&str> = names.collect();
    if names.is_empty() {
        names.push("USAGE");
    }
    let grantable = set.has(Privilege::GrantOption);
    for name in names {
        let mut row = row.to_vec();
        row.extend([text(name), yes_no(grantable)]);
        rows.push(row);
    }
}

pub(super) fn user_privileges(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in grantees(scope).iter().filter(|user| !user.is_role) {
        rows_of(user.global, &[grantee(user), text("def")], &mut rows);
    }
    Ok(rows)
}

pub(super) fn schema_privileges(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in grantees(scope) {
        for (schema, set) in &user.schemas {
            rows_of(*set, &[grantee(&user), text("def"), text(schema)], &mut rows);
        }
    }
    Ok(rows)
}

pub(super) fn table_privileges(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in grantees(scope) {
        for (schema, table, set) in &user.tables {
            let row = [grantee(&user), text("def"), text(schema), text(table)];
            rows_of(*set, &row, &mut rows);
        }
    }
    Ok(rows)
}

pub(super) fn column_privileges(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in grantees(scope) {
        for grant in &user.columns {
            let of_table = user.on_table(&grant.schema, &grant.table);
            let grantable = of_table.has(Privilege::GrantOption);
            for privilege in grant.set.iter() {
                rows.push(vec![
                    grantee(&user),
                    text("def"),
                    text(&grant.schema),
                    text(&grant.table),
                    text(&grant.column),
                    text(privilege.name()),
                    yes_no(grantable),
                ]);
            }
        }
    }
    Ok(rows)
}

/// Roles that the reader can enable, by whom they are held.
pub(super) fn applicable_roles(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let account = &scope.user.account;
    let Some(own) = scope.catalog.user(account) else { return Ok(Vec::new()) };
    let names = scope.catalog.applicable_roles(account);
    let held = names.iter().filter_map(|name| scope.catalog.role(name));
    let mut rows = Vec::new();
    for holder in std::iter::once(own.clone()).chain(held) {
        let name = match holder.is_role {
            true => holder.account.user.clone(),
            false => format!("{}@{}", account.user, account.host.0),
        };
        for grant in &holder.roles {
            let is_default = match holder.is_role {
                true => Value::Null,
                false => yes_no(own.default_role.as_deref() == Some(&*grant.role)),
            };
            rows.push(vec![text(&name), text(&grant.role), yes_no(grant.admin), is_default]);
        }
    }
    Ok(rows)
}

/// The enabled role and all of its own; NULL without one.
pub(super) fn enabled_roles(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let Some(role) = scope.session.role() else { return Ok(vec![vec![Value::Null]]) };
    let names = scope.catalog.roles_below(&role);
    Ok(names.into_iter().map(|name| vec![text(name)]).collect())
}

/// Columns and the privileges they show.
type Flags = &'static [(&'static str, Privilege)];

/// The three columns that each table begins with.
fn names(user: &UserPrivileges, between: Option<&str>) -> Row {
    let mut row = vec![text(&user.account.host.0)];
    row.extend(between.map(text));
    row.push(text(&user.account.user));
    row
}

const USER_FLAGS: Flags = &[
    ("Select_priv", Privilege::Select),
    ("Insert_priv", Privilege::Insert),
    ("Update_priv", Privilege::Update),
    ("Delete_priv", Privilege::Delete),
    ("Create_priv", Privilege::Create),
    ("Drop_priv", Privilege::Drop),
    ("Reload_priv", Privilege::Reload),
    ("Shutdown_priv", Privilege::Shutdown),
    ("Process_priv", Privilege::Process),
    ("File_priv", Privilege::File),
    ("Grant_priv", Privilege::GrantOption),
    ("References_priv", Privilege::References),
    ("Index_priv", Privilege::Index),
    ("Alter_priv", Privilege::Alter),
    ("Show_db_priv", Privilege::ShowDatabases),
    ("Super_priv", Privilege::Super),
    ("Create_tmp_table_priv", Privilege::CreateTemporaryTables),
    ("Lock_tables_priv", Privilege::LockTables),
    ("Execute_priv", Privilege::Execute),
    ("Repl_slave_priv", Privilege::ReplicationSlave),
    ("Repl_client_priv", Privilege::BinlogMonitor),
    ("Create_view_priv", Privilege::CreateView),
    ("Show_view_priv", Privilege::ShowView),
    ("Create_routine_priv", Privilege::CreateRoutine),
    ("Alter_routine_priv", Privilege::AlterRoutine),
    ("Create_user_priv", Privilege::CreateUser),
    ("Event_priv", Privilege::Event),
    ("Trigger_priv", Privilege::Trigger),
    ("Create_tablespace_priv", Privilege::CreateTablespace),
    ("Delete_history_priv", Privilege::DeleteHistory),
];

const DB_FLAGS: Flags = &[
    ("Select_priv", Privilege::Select),
    ("Insert_priv", Privilege::Insert),
    ("Update_priv", Privilege::Update),
    ("Delete_priv", Privilege::Delete),
    ("Create_priv", Privilege::Create),
    ("Drop_priv", Privilege::Drop),
    ("Grant_priv", Privilege::GrantOption),
    ("References_priv", Privilege::References),
    ("Index_priv", Privilege::Index),
    ("Alter_priv", Privilege::Alter),
    ("Create_tmp_table_priv", Privilege::CreateTemporaryTables),
    ("Lock_tables_priv", Privilege::LockTables),
    ("Create_view_priv", Privilege::CreateView),
    ("Show_view_priv", Privilege::ShowView),
    ("Create_routine_priv", Privilege::CreateRoutine),
    ("Alter_routine_priv", Privilege::AlterRoutine),
    ("Execute_priv", Privilege::Execute),
    ("Event_priv", Privilege::Event),
    ("Trigger_priv", Privilege::Trigger),
    ("Delete_history_priv", Privilege::DeleteHistory),
];

pub(super) const USER: &[VirtualColumn] = &[
    required("Host", Char(255)),
    required("User", Char(128)),
    optional("Password", LongText),
    required("Select_priv", Varchar(1)),
    required("Insert_priv", Varchar(1)),
    required("Update_priv", Varchar(1)),
    required("Delete_priv", Varchar(1)),
    required("Create_priv", Varchar(1)),
    required("Drop_priv", Varchar(1)),
    required("Reload_priv", Varchar(1)),
    required("Shutdown_priv", Varchar(1)),
    required("Process_priv", Varchar(1)),
    required("File_priv", Varchar(1)),
    required("Grant_priv", Varchar(1)),
    required("References_priv", Varchar(1)),
    required("Index_priv", Varchar(1)),
    required("Alter_priv", Varchar(1)),
    required("Show_db_priv", Varchar(1)),
    required("Super_priv", Varchar(1)),
    required("Create_tmp_table_priv", Varchar(1)),
    required("Lock_tables_priv", Varchar(1)),
    required("Execute_priv", Varchar(1)),
    required("Repl_slave_priv", Varchar(1)),
    required("Repl_client_priv", Varchar(1)),
    required("Create_view_priv", Varchar(1)),
    required("Show_view_priv", Varchar(1)),
    required("Create_routine_priv", Varchar(1)),
    required("Alter_routine_priv", Varchar(1)),
    required("Create_user_priv", Varchar(1)),
    required("Event_priv", Varchar(1)),
    required("Trigger_priv", Varchar(1)),
    required("Create_tablespace_priv", Varchar(1)),
    required("Delete_history_priv", Varchar(1)),
    required("ssl_type", Varchar(9)),
    required("ssl_cipher", LongText),
    required("x509_issuer", LongText),
    required("x509_subject", LongText),
    required("max_questions", BigIntUnsigned(20)),
    required("max_updates", BigIntUnsigned(20)),
    required("max_connections", BigIntUnsigned(20)),
    required("max_user_connections", BigInt(21)),
    required("plugin", LongText),
    required("authentication_string", LongText),
    required("password_expired", Varchar(1)),
    required("is_role", Varchar(1)),
    required("default_role", LongText),
    required("max_statement_time", Decimal(12, 6)),
];

pub(super) const DB: &[VirtualColumn] = &[
    required("Host", Char(255)),
    required("Db", Char(64)),
    required("User", Char(128)),
    required("Select_priv", Char(1)),
    required("Insert_priv", Char(1)),
    required("Update_priv", Char(1)),
    required("Delete_priv", Char(1)),
    required("Create_priv", Char(1)),
    required("Drop_priv", Char(1)),
    required("Grant_priv", Char(1)),
    required("References_priv", Char(1)),
    required("Index_priv", Char(1)),
    required("Alter_priv", Char(1)),
    required("Create_tmp_table_priv", Char(1)),
    required("Lock_tables_priv", Char(1)),
    required("Create_view_priv", Char(1)),
    required("Show_view_priv", Char(1)),
    required("Create_routine_priv", Char(1)),
    required("Alter_routine_priv", Char(1)),
    required("Execute_priv", Char(1)),
    required("Event_priv", Char(1)),
    required("Trigger_priv", Char(1)),
    required("Delete_history_priv", Char(1)),
];

pub(super) const TABLES_PRIV: &[VirtualColumn] = &[
    required("Host", Char(255)),
    required("Db", Char(64)),
    required("User", Char(128)),
    required("Table_name", Char(64)),
    required("Grantor", Varchar(384)),
    required("Timestamp", DateTime(0)),
    required("Table_priv", Char(512)),
    required("Column_priv", Char(64)),
];

pub(super) const COLUMNS_PRIV: &[VirtualColumn] = &[
    required("Host", Char(255)),
    required("Db", Char(64)),
    required("User", Char(128)),
    required("Table_name", Char(64)),
    required("Column_name", Char(64)),
    required("Timestamp", DateTime(0)),
    required("Column_priv", Char(64)),
];

pub(super) const ROLES_MAPPING: &[VirtualColumn] = &[
    required("Host", Char(255)),
    required("User", Char(128)),
    required("Role", Char(128)),
    required("Admin_option", Char(1)),
];

pub(super) const GLOBAL_PRIV: &[VirtualColumn] =
    &[required("Host", Char(255)), required("User", Char(128)), required("Priv", LongText)];

fn put_flags(flags: Flags, set: PrivilegeSet, row: &mut Row) {
    row.extend(flags.iter().map(|(_, privilege)| y_n(set.has(*privilege))));
}

/// The plugin and what it compares with.
fn plugin(authentication: &Authentication) -> (&'static str, String) {
    match authentication {
        Authentication::CachingSha2(hash) => ("caching_sha2_password", hash.clone()),
        Authentication::Ed25519(_) => ("ed25519", String::new()),
        _ => ("mysql_native_password", authentication.hash_text()),
    }
}

pub(super) fn user(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let rows = scope.catalog.users().into_iter().map(|user| {
        let (plugin, hash) = match user.is_role {
            true => ("", String::new()),
            false => plugin(&user.authentication),
        };
        let attributes = &user.attributes;
        let limits = &attributes.limits;
        let mut row = names(&user, None);
        row.push(text(&hash));
        put_flags(USER_FLAGS, user.global, &mut row);
        row.push(text(match attributes.tls {
            TlsRequirement::Nothing => "",
            TlsRequirement::Tls => "ANY",
            TlsRequirement::Certificate => "X509",
        }));
        row.extend([text(""), text(""), text("")]);
        row.push(Value::UInt(limits.queries_per_hour.into()));
        row.push(Value::UInt(limits.updates_per_hour.into()));
        row.push(Value::UInt(limits.connections_per_hour.into()));
        row.push(Value::Int(limits.user_connections.into()));
        row.extend([text(plugin), text(&hash)]);
        row.extend([y_n(attributes.expired), y_n(user.is_role)]);
        row.push(text(user.default_role.as_deref().unwrap_or_default()));
        row.push(Value::Decimal(types::Decimal::new(i128::from(limits.statement_micros), 6)));
        row
    });
    Ok(rows.collect())
}

pub(super) fn db(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in scope.catalog.users() {
        for (schema, set) in &user.schemas {
            let mut row = names(&user, Some(schema));
            put_flags(DB_FLAGS, *set, &mut row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Privileges as a SET: `Select,Create View`.
fn set_text(set: PrivilegeSet) -> Value {
    let words = set.iter().map(|privilege| match privilege {
        Privilege::GrantOption => "Grant".to_owned(),
        Privilege::ShowView => "Show view".to_owned(),
        Privilege::DeleteHistory => "Delete versioning rows".to_owned(),
        other => {
            let words = other.name().split(' ').map(|word| {
                let mut word = word.to_ascii_lowercase();
                word[..1].make_ascii_uppercase();
                word
            });
            words.collect::<Vec<_>>().join(" ")
        }
    });
    text(words.collect::<Vec<_>>().join(","))
}

fn no_time() -> Value {
    Value::DateTime(types::DateTime::default())
}

pub(super) fn tables_priv(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in scope.catalog.users() {
        let mut tables: Vec<(&str, &str, PrivilegeSet)> =
            user.tables.iter().map(|(schema, table, set)| (&**schema, &**table, *set)).collect();
        for grant in &user.columns {
            if !tables.iter().any(|(s, t, _)| *s == grant.schema && *t == grant.table) {
                tables.push((&grant.schema, &grant.table, PrivilegeSet::NONE));
            }
        }
        for (schema, table, set) in tables {
            let columns = user.columns.iter().filter(|c| c.schema == schema && c.table == table);
            let of_columns = columns.fold(PrivilegeSet::NONE, |all, column| all | column.set);
            let mut row = names(&user, Some(schema));
            row.extend([text(table), text(""), no_time(), set_text(set), set_text(of_columns)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

pub(super) fn columns_priv(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in scope.catalog.users() {
        for grant in &user.columns {
            let mut row = names(&user, Some(&grant.schema));
            row.extend([text(&grant.table), text(&grant.column), no_time(), set_text(grant.set)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

pub(super) fn roles_mapping(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for user in scope.catalog.users() {
        for grant in &user.roles {
            let mut row = names(&user, None);
            row.extend([text(&grant.role), y_n(grant.admin)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// A text in quotes, as JSON has it.
fn json_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", control as u32)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Privileges as the number that MariaDB keeps: its GRANT OPTION stands among the others.
fn access(set: PrivilegeSet) -> u64 {
    const BEFORE_GRANT: u64 = (1 << 10) - 1;
    let own = set.bits() & !(1 << Privilege::GrantOption as u8);
    let grant = u64::from(set.has(Privilege::GrantOption)) << 10;
    own & BEFORE_GRANT | (own & !BEFORE_GRANT) << 1 | grant
}

pub(super) fn global_priv(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let version = scope.session.version_number();
    let rows = scope.catalog.users().into_iter().map(|user| {
        let mut json = format!("{{\"access\":{},\"version_id\":{version}", access(user.global));
        if user.is_role {
            json.push_str(",\"is_role\":true");
        } else {
            let (plugin, hash) = plugin(&user.authentication);
            json.push_str(&format!(",\"plugin\":\"{plugin}\""));
            json.push_str(&format!(",\"authentication_string\":{}", json_text(&hash)));
            let changed = user.attributes.password_set_micros / 1_000_000;
            let changed = if user.attributes.expired { 0 } else { changed };
            json.push_str(&format!(",\"password_last_changed\":{changed}"));
        }
        match user.attributes.lifetime {
            PasswordLifetime::Default => {}
            PasswordLifetime::Never => json.push_str(",\"password_lifetime\":0"),
            PasswordLifetime::Days(days) => {
                json.push_str(&format!(",\"password_lifetime\":{days}"));
            }
        }
        if user.attributes.locked {
            json.push_str(",\"account_locked\":true");
        }
        if let Some(role) = &user.default_role {
            json.push_str(&format!(",\"default_role\":{}", json_text(role)));
        }
        json.push('}');
        let mut row = names(&user, None);
        row.push(text(json));
        row
    });
    Ok(rows.collect())
}
