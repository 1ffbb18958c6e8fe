//! MariaDB's COM_STMT_BULK_EXECUTE: the parameters of many executions in one packet.
//!
//! After the statement's number and the flags come the types of all parameters (if
//! [`SEND_TYPES`] is set), then one set after the other: for each parameter an indicator and, for
//! [`Indicator::Value`] only, the value as COM_STMT_EXECUTE has it.

use crate::binary::{ParameterType, ParameterTypes, read_types, read_value};
use crate::command::{Fields, MalformedPacket};
use types::Value;

/// Flag: one result for each set is wanted (not offered).
pub const SEND_UNIT_RESULTS: u16 = 64;
/// Flag: the types of the parameters are there.
pub const SEND_TYPES: u16 = 128;

/// What a set has for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Indicator {
    /// A value, perhaps NULL.
    Value(Value),
    /// The column's default.
    Default,
    /// The column is left as it is.
    Ignore,
}

/// Reads set after set.
pub struct BulkParameters<'a> {
    fields: Fields<'a>,
    types: ParameterTypes,
}

impl<'a> BulkParameters<'a> {
    /// Reads the types; `known` are those of a former execution.
    pub fn begin(
        payload: &'a [u8],
        flags: u16,
        count: usize,
        known: &mut ParameterTypes,
    ) -> Result<Self, MalformedPacket> {
        let mut fields = Fields(payload);
        if flags & SEND_TYPES != 0 {
            read_types(&mut fields, count, known)?;
        }
        if known.len() != count || count == 0 {
            return Err(MalformedPacket);
        }
        Ok(Self { fields, types: known.clone() })
    }

    /// The next set, or `None` at the end.
    pub fn next_set(&mut self) -> Result<Option<Vec<Indicator>>, MalformedPacket> {
        if self.fields.0.is_empty() {
            return Ok(None);
        }
        let fields = &mut self.fields;
        let read = |bound: &ParameterType| match fields.u8()? {
            0 => read_value(fields, *bound).map(Indicator::Value),
            1 => Ok(Indicator::Value(Value::Null)),
            2 => Ok(Indicator::Default),
            3 => Ok(Indicator::Ignore),
            _ => Err(MalformedPacket),
        };
        self.types.iter().map(read).collect::<Result<_, _>>().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_one_after_the_other() {
        // Types LONG and STRING, then (1, 'a'), (NULL, DEFAULT), (2, IGNORE).
        let payload = b"\x03\0\xfe\0\0\x01\0\0\0\0\x01a\x01\x02\0\x02\0\0\0\x03";
        let mut types = ParameterTypes::new();
        let mut sets = BulkParameters::begin(payload, SEND_TYPES, 2, &mut types).unwrap();
        let value = Indicator::Value;
        let text = |text: &str| value(Value::text(text));
        assert_eq!(sets.next_set(), Ok(Some(vec![value(Value::Int(1)), text("a")])));
        let second = vec![value(Value::Null), Indicator::Default];
        assert_eq!(sets.next_set(), Ok(Some(second)));
        let third = vec![value(Value::Int(2)), Indicator::Ignore];
        assert_eq!(sets.next_set(), Ok(Some(third)));
        assert_eq!(sets.next_set(), Ok(None));
        assert_eq!(types.len(), 2);
    }

    #[test]
    fn what_is_cut_off_is_malformed() {
        let payload = b"\x03\0\xfe\0\0\x01\0\0\0\0\x01a";
        for length in 0..payload.len() {
            let mut types = ParameterTypes::new();
            let whole = BulkParameters::begin(&payload[..length], SEND_TYPES, 2, &mut types)
                .and_then(|mut sets| sets.next_set());
            assert_eq!(whole.is_ok(), length == 4, "{length}");
        }
    }
}
