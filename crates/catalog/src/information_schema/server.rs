//! Tables about the server itself.

use super::{Emit, number, optional_text, text, yes_no};
use crate::{VirtualContext, VirtualFilter};
use types::{Charset, Decimal, SqlError, Value, collation};

type Rows = Result<(), SqlError>;

/// Character sets with what SHOW CHARACTER SET says of them.
pub(crate) const CHARSETS: &[(Charset, &str)] = &[
    (Charset::Latin1, "cp1252 West European"),
    (Charset::Ascii, "US ASCII"),
    (Charset::Utf8mb3, "UTF-8 Unicode"),
    (Charset::Utf8mb4, "UTF-8 Unicode"),
    (Charset::Binary, "Binary pseudo charset"),
];

pub(super) fn character_sets(
    _: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for (charset, description) in CHARSETS {
        let row = [
            text(charset.name()),
            text(collation::default_of(*charset).name),
            text(description),
            number(charset.max_bytes() as usize),
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

pub(super) fn collations(_: &VirtualContext<'_>, _: &VirtualFilter, emit: &mut Emit<'_>) -> Rows {
    for collation in collation::all() {
        let row = [
            text(collation.name),
            text(collation.charset.name()),
            number(usize::from(collation.id.0)),
            text(if collation.is_default { "Yes" } else { "" }),
            text("Yes"),
            number(1),
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

pub(super) fn applicability(
    _: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for collation in collation::all() {
        let row = [
            text(collation.name),
            text(collation.charset.name()),
            text(collation.name),
            number(usize::from(collation.id.0)),
            text(if collation.is_default { "Yes" } else { "" }),
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

pub(super) fn engines(_: &VirtualContext<'_>, _: &VirtualFilter, emit: &mut Emit<'_>) -> Rows {
    let comment = "Supports transactions, row-level locking and compressed pages for flash";
    emit(&[text("InnoDB"), text("DEFAULT"), text(comment), text("YES"), text("NO"), text("YES")]);
    Ok(())
}

pub(super) fn plugins(_: &VirtualContext<'_>, _: &VirtualFilter, emit: &mut Emit<'_>) -> Rows {
    for (name, kind) in [("mysql_native_password", "AUTHENTICATION"), ("InnoDB", "STORAGE ENGINE")]
    {
        let row = [
            text(name),
            text("1.0"),
            text("ACTIVE"),
            text(kind),
            text("1.0"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            text("MIT OR Apache-2.0"),
            text("FORCE"),
            text("Stable"),
            text("1.0"),
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

pub(super) fn processlist(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for process in context.server.processes() {
        let row = [
            number(process.id as usize),
            text(&process.user),
            text(&process.host),
            optional_text(process.database.as_deref()),
            text(&process.command),
            number((process.time_ms / 1000) as usize),
            text(&process.state),
            optional_text(process.query.as_deref()),
            Value::Decimal(Decimal::new(i128::from(process.time_ms), 3)),
            number(0),
            number(0),
            Value::Decimal(Decimal::new(0, 3)),
            number(0),
            number(0),
            number(0),
            number(process.query_id as usize),
            optional_text(process.query.as_deref()),
            number(0),
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

fn pairs(pairs: Vec<(String, String)>, emit: &mut Emit<'_>) -> Rows {
    for (name, value) in pairs {
        if !emit(&[text(name.to_ascii_uppercase()), text(value)]) {
            break;
        }
    }
    Ok(())
}

pub(super) fn global_variables(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    pairs(context.server.variables(true), emit)
}

pub(super) fn session_variables(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    pairs(context.server.variables(false), emit)
}

pub(super) fn global_status(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    pairs(context.server.status(true), emit)
}

pub(super) fn session_status(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    pairs(context.server.status(false), emit)
}

pub(super) fn system_variables(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for variable in context.server.system_variables() {
        let (minimum, maximum, block) = match variable.range {
            Some((minimum, maximum, block)) => (text(minimum), text(maximum), text(block)),
            None => (Value::Null, Value::Null, Value::Null),
        };
        let row = [
            text(&variable.name),
            optional_text(variable.session_value.as_deref()),
            optional_text(variable.global_value.as_deref()),
            text("COMPILE-TIME"),
            text(&variable.default_value),
            text(variable.scope),
            text(variable.kind),
            text(""),
            minimum,
            maximum,
            block,
            optional_text(variable.words.as_deref()),
            yes_no(variable.read_only),
            text("OPTIONAL"),
            Value::Null,
        ];
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}

pub(super) fn innodb_metrics(
    context: &VirtualContext<'_>,
    _: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    for (name, value) in context.catalog.engine().status() {
        let short = name.strip_prefix("Innodb_").unwrap_or(name).to_ascii_lowercase();
        let subsystem = short.split('_').next().unwrap_or("server").to_owned();
        let mut row = vec![Value::Null; 17];
        row[0] = text(&short);
        row[1] = text(subsystem);
        row[2] = number(value as usize);
        row[6] = number(value as usize);
        row[14] = number(1);
        row[15] = text("counter");
        row[16] = text(name);
        if !emit(&row) {
            break;
        }
    }
    Ok(())
}
