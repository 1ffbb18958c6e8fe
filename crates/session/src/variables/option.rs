//! Values as the command line and option files write them.

use super::{Definition, Kind, SetInput, VariableValue};
use types::Value;
use types::error::Warning;

/// A number with an optional suffix K, M, G, T, P or E (powers of 1024).
pub fn parse_number(text: &str) -> Option<i128> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        b'P' => (&text[..text.len() - 1], 50),
        b'E' => (&text[..text.len() - 1], 60),
        _ => (text, 0),
    };
    let number: i128 = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

impl Definition {
    /// The value that an option's text means; none given means ON for a boolean. Numbers out of
    /// range are clamped with a warning. The error is a sentence for the operator.
    pub fn parse_option(
        &self,
        text: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, String> {
        let unusable =
            || format!("option '{}' cannot have the value '{}'", self.name, text.unwrap_or(""));
        let value = match (&self.kind, text) {
            (Kind::Boolean, None | Some("")) => Value::Int(1),
            (Kind::Boolean, Some(text)) => match parse_number(text) {
                Some(number) => Value::Int(i64::from(number != 0)),
                None if text.eq_ignore_ascii_case("true") => Value::Int(1),
                None if text.eq_ignore_ascii_case("false") => Value::Int(0),
                None => Value::text(text),
            },
            (_, None) => return Err(format!("option '{}' needs a value", self.name)),
            (Kind::Integer | Kind::Unsigned, Some(text)) => {
                let number = parse_number(text).ok_or_else(unusable)?;
                match u64::try_from(number) {
                    Ok(number) => Value::UInt(number),
                    Err(_) => Value::Int(i64::try_from(number).map_err(|_| unusable())?),
                }
            }
            (Kind::Double, Some(text)) => Value::Double(text.parse().map_err(|_| unusable())?),
            (Kind::Enumeration, Some(text)) => match text.parse() {
                Ok(number) => Value::UInt(number),
                Err(_) => Value::text(text),
            },
            (_, Some(text)) => Value::text(text),
        };
        let input = SetInput::Value(value);
        self.check(&input, &self.default, warnings).map_err(|_| unusable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::registry;

    fn option(name: &str, text: Option<&str>) -> Result<String, String> {
        let definition = registry().find(name).unwrap();
        definition.parse_option(text, &mut Vec::new()).map(|value| value.show())
    }

    #[test]
    fn options_are_read_as_mysqld_reads_them() {
        assert_eq!(option("innodb-buffer-pool-size", Some("512M")).unwrap(), "536870912");
        assert_eq!(option("innodb_flush_log_at_trx_commit", Some("1")).unwrap(), "1");
        assert_eq!(option("skip_name_resolve", None).unwrap(), "ON");
        assert_eq!(option("skip_name_resolve", Some("0")).unwrap(), "OFF");
        assert_eq!(option("skip_name_resolve", Some("False")).unwrap(), "OFF");
        assert_eq!(option("tx_isolation", Some("READ-COMMITTED")).unwrap(), "READ-COMMITTED");
        assert_eq!(option("long_query_time", Some("0.5")).unwrap(), "0.500000");
        assert!(option("max_connections", Some("many")).is_err());
        assert!(option("max_connections", None).is_err());
    }

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!(parse_number("2k"), Some(2048));
        assert_eq!(parse_number("-1"), Some(-1));
        assert_eq!(parse_number("1.5G"), None);
        assert_eq!(parse_number(""), None);
    }
}
