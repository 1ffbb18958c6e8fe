//! The variables of flushing: which mean something here, what is said of the others, and those that
//! come in pairs.

use crate::server_state::ServerState;
use crate::variables::{Definition, VariableValue, registry};
use types::error::{Level, Warning, codes};

/// Pages are written by the pace of the log and of the device, so that these say nothing.
const PACED: &str = "the pace of writes follows the log and the device";
/// There is one pool, and nothing in it that instances would take apart.
const ONE_POOL: &str = "there is one buffer pool without a lock that instances would divide";
/// Pages are never overwritten.
const NOT_OVERWRITTEN: &str = "pages are never overwritten, so that none can be torn";

/// Variables without effect, and why they have none.
const WITHOUT_EFFECT: [(&str, &str); 15] = [
    ("innodb_adaptive_flushing", PACED),
    ("innodb_adaptive_flushing_lwm", PACED),
    ("innodb_flush_neighbors", "pages have no neighbours on the device"),
    ("innodb_flush_sync", PACED),
    ("innodb_flushing_avg_loops", PACED),
    ("innodb_io_capacity", PACED),
    ("innodb_io_capacity_max", PACED),
    ("innodb_lru_flush_size", "the reserve of free frames follows what is taken"),
    ("innodb_lru_scan_depth", "the reserve of free frames follows what is taken"),
    ("innodb_max_dirty_pages_pct_lwm", PACED),
    ("innodb_buffer_pool_instances", ONE_POOL),
    ("innodb_doublewrite", NOT_OVERWRITTEN),
    ("innodb_use_atomic_writes", NOT_OVERWRITTEN),
    ("innodb_mtflush_threads", "innodb_page_cleaners says how many fibers write pages"),
    ("innodb_use_mtflush", "pages are written by several fibers in any case"),
];

/// Why a variable of flushing has no effect, if it is one that has none.
pub(crate) fn why_without_effect(name: &str) -> Option<&'static str> {
    WITHOUT_EFFECT.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}

/// The note of SET for such a variable.
pub(crate) fn note(definition: &Definition) -> Option<Warning> {
    let why = why_without_effect(definition.name)?;
    let message = format!("{} has no effect: {why}", definition.name);
    Some(Warning { level: Level::Note, code: codes::UNKNOWN_ERROR.number, message })
}

fn warning(message: String) -> Warning {
    Warning { level: Level::Warning, code: codes::WRONG_ARGUMENTS.number, message }
}

/// What the second of two variables is set to when the first one gets this value, what the first
/// one gets, and what is said of it; as MariaDB keeps its pairs in order.
pub(crate) fn keep_pairs(
    server: &ServerState,
    definition: &Definition,
    value: VariableValue,
) -> (VariableValue, Vec<Warning>) {
    let other = |name| server.globals.value(name);
    match (definition.name, &value) {
        ("innodb_max_dirty_pages_pct", VariableValue::Double(share)) => {
            let low = "innodb_max_dirty_pages_pct_lwm";
            if !matches!(other(low), VariableValue::Double(now) if *share < now) {
                return (value, Vec::new());
            }
            let told = vec![
                warning(format!("innodb_max_dirty_pages_pct cannot be set lower than {low}.")),
                warning(format!("Lowering innodb_max_dirty_page_pct_lwm to {share:.6}")),
            ];
            set(server, low, value.clone());
            (value, told)
        }
        ("innodb_max_dirty_pages_pct_lwm", VariableValue::Double(share)) => {
            match other("innodb_max_dirty_pages_pct") {
                VariableValue::Double(most) if *share > most => {
                    let told = vec![
                        warning(format!(
                            "{} cannot be set higher than innodb_max_dirty_pages_pct.",
                            definition.name
                        )),
                        warning(format!("Setting innodb_max_dirty_page_pct_lwm to {most:.6}")),
                    ];
                    (VariableValue::Double(most), told)
                }
                _ => (value, Vec::new()),
            }
        }
        ("innodb_io_capacity", VariableValue::Unsigned(number)) => {
            let most = other("innodb_io_capacity_max").number();
            if *number <= most {
                return (value, Vec::new());
            }
            let raised = number.saturating_mul(2).min(u64::from(u32::MAX));
            let told = vec![
                warning(format!(
                    "Setting innodb_io_capacity to {number} higher than innodb_io_capacity_max \
                     {most}"
                )),
                warning(format!("Setting innodb_max_io_capacity to {raised}")),
            ];
            set(server, "innodb_io_capacity_max", VariableValue::Unsigned(raised));
            (value, told)
        }
        ("innodb_io_capacity_max", VariableValue::Unsigned(number)) => {
            let least = other("innodb_io_capacity").number();
            if *number >= least {
                return (value, Vec::new());
            }
            let told = vec![
                warning(format!(
                    "Setting innodb_io_capacity_max {number} lower than innodb_io_capacity {least}."
                )),
                warning(format!("Setting innodb_io_capacity to {number}")),
            ];
            set(server, "innodb_io_capacity", value.clone());
            (value, told)
        }
        _ => (value, Vec::new()),
    }
}

fn set(server: &ServerState, name: &'static str, value: VariableValue) {
    if let Some(definition) = registry().find(name) {
        server.globals.set(definition, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_have_no_effect_is_not_marked_as_having_one() {
        for (name, why) in WITHOUT_EFFECT {
            let definition = registry().find(name).expect(name);
            assert!(!definition.has_effect, "{name}");
            assert!(note(definition).expect(name).message.ends_with(why));
        }
        assert!(
            note(registry().find("innodb_max_dirty_pages_pct").expect("it is there")).is_none()
        );
    }
}
