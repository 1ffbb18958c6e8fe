//! The variables `innodb_monitor_*`: each SET does something to the metrics that it names.

use crate::server_state::ServerState;
use crate::variables::{SetInput, VariableValue};
use catalog::MonitorChange;
use types::SqlError;
use types::error::{Level, Warning, codes};

/// The variables and what setting them does.
const VARIABLES: [(&str, MonitorChange); 4] = [
    ("innodb_monitor_disable", MonitorChange::Disable),
    ("innodb_monitor_enable", MonitorChange::Enable),
    ("innodb_monitor_reset", MonitorChange::Reset),
    ("innodb_monitor_reset_all", MonitorChange::ResetAll),
];

/// What setting the variable does, if it is one of them.
fn change_by(name: &str) -> Option<MonitorChange> {
    VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, change)| *change)
}

/// The value that is kept of what SET gives to one of these variables; error 1231 where it names no
/// metric. None if it is another variable.
pub(crate) fn check(
    name: &str,
    value: &VariableValue,
    input: &SetInput,
) -> Result<Option<VariableValue>, SqlError> {
    if change_by(name).is_none() || matches!(input, SetInput::Default) {
        return Ok(None);
    }
    let shown = match value {
        VariableValue::Null => "NULL".to_owned(),
        value => value.show(),
    };
    if *value == VariableValue::Null || catalog::metrics_named(&shown).is_empty() {
        return Err(SqlError::new(&codes::WRONG_VALUE_FOR_VAR, &[&name, &shown]));
    }
    Ok(Some(match shown.contains('%') {
        true => value.clone(),
        false => VariableValue::text(&shown.to_ascii_lowercase()),
    }))
}

/// Does what setting the variable does, if it is one of them; the default names nothing.
pub(crate) fn apply(server: &ServerState, name: &str, value: &str) -> Option<Warning> {
    let change = change_by(name)?;
    let positions = catalog::metrics_named(value);
    let engine = server.catalog.engine();
    server.catalog.monitor().change(change, &positions, &**engine);
    positions.is_empty().then(|| Warning {
        level: Level::Warning,
        code: codes::NO_DEFAULT.number,
        message: "Default value is not defined for this set option. Please specify correct \
                  counter or module name."
            .to_owned(),
    })
}

impl ServerState {
    /// `innodb_monitor_*` given when the server was started; values that name nothing are passed
    /// over.
    pub fn apply_monitors(&self) {
        for (name, _) in VARIABLES {
            let value = self.globals.value(name).show();
            drop(apply(self, name, &value));
        }
    }
}
