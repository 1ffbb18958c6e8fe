//! Values as text, and text as flags.

use types::Value;

/// Names and states of `name=on|off,...`.
pub(super) fn flags_of(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, state)| (name.to_owned(), state.to_owned())).collect()
}

/// As errors and warnings show it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Decimal(number) => {
            let mut text = Vec::new();
            number.write_text(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) | Value::Time(_) => {
            "temporal value".to_owned()
        }
    }
}
