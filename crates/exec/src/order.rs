//! Order and identity of values of one type: what ORDER BY, DISTINCT and GROUP BY compare.

use std::cmp::Ordering;
use types::collation::{self, Collation};
use types::{ColumnType, TypeKind, ValueRef};

/// Orders two values of the same type; NULL comes first.
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collation: &Collation) -> Ordering {
    match (a, b) {
        (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
        (ValueRef::Null, _) => Ordering::Less,
        (_, ValueRef::Null) => Ordering::Greater,
        (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(&b),
        (ValueRef::UInt(a), ValueRef::UInt(b)) => a.cmp(&b),
        (ValueRef::Int(a), ValueRef::UInt(b)) => i128::from(a).cmp(&i128::from(b)),
        (ValueRef::UInt(a), ValueRef::Int(b)) => i128::from(a).cmp(&i128::from(b)),
        (ValueRef::Double(a), ValueRef::Double(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (ValueRef::Float(a), ValueRef::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(&b),
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => collation.compare(a, b),
        (ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
        (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (ValueRef::Time(a), ValueRef::Time(b)) => a.cmp(&b),
        // The values of one column have one type; what is left is told apart by its variant.
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Null => 0,
        ValueRef::Int(_) => 1,
        ValueRef::UInt(_) => 2,
        ValueRef::Float(_) => 3,
        ValueRef::Double(_) => 4,
        ValueRef::Decimal(_) => 5,
        ValueRef::Bytes(_) => 6,
        ValueRef::Date(_) => 7,
        ValueRef::DateTime(_) => 8,
        ValueRef::Timestamp(_) => 9,
        ValueRef::Time(_) => 10,
    }
}

/// Appends bytes that are equal exactly when the values are equal under their type: of a DECIMAL
/// digits count that the type has.
pub fn push_identity(value: ValueRef<'_>, column_type: &ColumnType, out: &mut Vec<u8>) {
    out.push(rank(value));
    match value {
        ValueRef::Null => {}
        ValueRef::Int(v) => out.extend_from_slice(&v.to_le_bytes()),
        ValueRef::UInt(v) => out.extend_from_slice(&v.to_le_bytes()),
        // Adding zero makes the two zeros one.
        ValueRef::Float(v) => out.extend_from_slice(&(v + 0.0).to_bits().to_le_bytes()),
        ValueRef::Double(v) => out.extend_from_slice(&(v + 0.0).to_bits().to_le_bytes()),
        ValueRef::Decimal(v) => {
            let start = out.len();
            let has_more = column_type.kind == TypeKind::Decimal && v.scale() > column_type.scale;
            let v = if has_more { v.with_scale(column_type.scale) } else { v };
            v.write_text(out);
            if v.scale() > 0 {
                let zeros = out[start..].iter().rev().take_while(|b| **b == b'0').count();
                out.truncate(out.len() - zeros);
            }
            out.push(0);
        }
        ValueRef::Bytes(text) => {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            collation::push_sort_key(column_type.collation.info(), text, out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        ValueRef::Date(v) => out.extend_from_slice(&v.0.to_le_bytes()),
        ValueRef::DateTime(v) => out.extend_from_slice(&v.0.to_le_bytes()),
        ValueRef::Timestamp(v) => out.extend_from_slice(&v.0.to_le_bytes()),
        ValueRef::Time(v) => out.extend_from_slice(&v.0.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{CollationId, Decimal};

    fn identity(value: ValueRef<'_>) -> Vec<u8> {
        let collation = CollationId::UTF8MB4_GENERAL_CI;
        let column_type = ColumnType::text(TypeKind::VarChar, 10, collation);
        let mut out = Vec::new();
        push_identity(value, &column_type, &mut out);
        out
    }

    #[test]
    fn equal_values_have_one_identity() {
        assert_eq!(identity(ValueRef::Bytes(b"Abc ")), identity(ValueRef::Bytes(b"aBC")));
        assert_ne!(identity(ValueRef::Bytes(b"abc")), identity(ValueRef::Bytes(b"abd")));
        let one = |scale: u8| ValueRef::Decimal(Decimal::new(10i128.pow(scale.into()), scale));
        assert_eq!(identity(one(1)), identity(one(3)));
        assert_eq!(identity(ValueRef::Double(0.0)), identity(ValueRef::Double(-0.0)));
        assert_ne!(identity(ValueRef::Null), identity(ValueRef::Int(0)));
    }

    #[test]
    fn null_comes_first() {
        let collation = CollationId::UTF8MB4_GENERAL_CI.info();
        assert_eq!(compare(ValueRef::Null, ValueRef::Int(-5), collation), Ordering::Less);
        assert_eq!(compare(ValueRef::UInt(5), ValueRef::Int(-5), collation), Ordering::Greater);
    }
}
