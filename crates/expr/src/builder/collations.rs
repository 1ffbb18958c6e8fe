//! Which collation an operation on several texts uses.

use super::Builder;
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::result_type::Coercibility;
use types::{Charset, CollationId, SqlError, TypeKind, Value, codes, collation};

/// What the collation is needed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CollationUse {
    /// Joining text: two different collations of equal strength become the `_bin` one.
    Join,
    /// Comparing: they are an error.
    Compare,
}

/// A collation with its strength.
#[derive(Clone, Copy, Debug)]
struct Strength {
    collation: CollationId,
    coercibility: Coercibility,
    ascii: bool,
}

/// Decides the collation of `operands` and wraps those of another character set in
/// conversions. Numbers and dates count as text of the connection's collation.
pub(crate) fn aggregate_collations(
    builder: &Builder<'_>,
    operation: &str,
    operands: &mut [Expr],
    usage: CollationUse,
) -> Result<(CollationId, Coercibility, bool), SqlError> {
    let mut sum: Option<Strength> = None;
    for operand in operands.iter() {
        let next = strength(builder, operand);
        sum = Some(match sum {
            None => next,
            Some(sum) => {
                combine(sum, next, usage).ok_or_else(|| mix_error(builder, operation, operands))?
            }
        });
    }
    let sum = sum.unwrap_or(Strength {
        collation: builder.connection_collation(),
        coercibility: Coercibility::Coercible,
        ascii: true,
    });
    if sum.coercibility == Coercibility::None && usage == CollationUse::Compare {
        return Err(mix_error(builder, operation, operands));
    }
    let charset = sum.collation.charset();
    for at in 0..operands.len() {
        let operand = &mut operands[at];
        if operand.result.is_string()
            && operand.result.collation().charset() != charset
            && convert_operand(operand, sum.collation, charset).is_err()
        {
            return Err(mix_error(builder, operation, operands));
        }
    }
    Ok((sum.collation, sum.coercibility, sum.ascii))
}

fn strength(builder: &Builder<'_>, operand: &Expr) -> Strength {
    let result = &operand.result;
    if result.is_string() {
        Strength {
            collation: result.collation(),
            coercibility: result.coercibility,
            ascii: result.ascii,
        }
    } else if result.column_type.kind == TypeKind::Bit {
        // As text it is its bytes.
        let coercibility = Coercibility::Implicit;
        Strength { collation: CollationId::BINARY, coercibility, ascii: false }
    } else {
        let coercibility = result.coercibility.max(Coercibility::Numeric);
        Strength { collation: builder.connection_collation(), coercibility, ascii: true }
    }
}

/// The collation of two operands; `None` if there is none.
fn combine(a: Strength, b: Strength, usage: CollationUse) -> Option<Strength> {
    let ascii = a.ascii && b.ascii;
    let pick = |winner: Strength| Some(Strength { ascii, ..winner });
    let (ca, cb) = (a.collation.info(), b.collation.info());
    if ca.charset != cb.charset {
        return combine_charsets(a, b).and_then(pick);
    }
    if a.coercibility != b.coercibility {
        return pick(if a.coercibility < b.coercibility { a } else { b });
    }
    if a.collation == b.collation {
        return pick(a);
    }
    if a.coercibility == Coercibility::Explicit {
        return None;
    }
    if ca.compares_code_points() {
        return pick(a);
    }
    if cb.compares_code_points() {
        return pick(b);
    }
    let undecided = Strength {
        collation: collation::binary_of(ca.charset).id,
        coercibility: Coercibility::None,
        ascii,
    };
    (usage == CollationUse::Join || a.coercibility > Coercibility::Explicit).then_some(undecided)
}

/// Operands of different character sets: bytes win over text of the same or less strength,
/// then the stronger if the other fits into it, then a superset.
fn combine_charsets(a: Strength, b: Strength) -> Option<Strength> {
    let (ca, cb) = (a.collation.charset(), b.collation.charset());
    if ca == Charset::Binary || cb == Charset::Binary {
        let (binary, text) = if ca == Charset::Binary { (a, b) } else { (b, a) };
        return Some(if binary.coercibility <= text.coercibility { binary } else { text });
    }
    let fits = |part: &Strength, whole: Charset| {
        part.ascii || (whole == Charset::Utf8mb4) || part.coercibility >= Coercibility::Coercible
    };
    let superset = |whole: Charset, part: Charset| {
        matches!((whole, part), (Charset::Utf8mb4, _) | (_, Charset::Ascii))
            || (whole == Charset::Utf8mb3 && part != Charset::Utf8mb4)
    };
    match a.coercibility.cmp(&b.coercibility) {
        std::cmp::Ordering::Less if fits(&b, ca) => Some(a),
        std::cmp::Ordering::Greater if fits(&a, cb) => Some(b),
        _ if b.ascii && !a.ascii => Some(a),
        _ if a.ascii && !b.ascii => Some(b),
        _ if superset(ca, cb) => Some(a),
        _ if superset(cb, ca) => Some(b),
        _ => None,
    }
}

/// Converts an operand to a collation of another character set: a literal at once, which
/// must not lose characters.
fn convert_operand(operand: &mut Expr, target: CollationId, charset: Charset) -> Result<(), ()> {
    let source = operand.result.collation().charset();
    if charset == Charset::Binary || source == Charset::Binary {
        return Ok(());
    }
    let mut result = operand.result;
    result.column_type.collation = target;
    if let Some(Value::Bytes(bytes)) = operand.literal() {
        let mut converted = Vec::with_capacity(bytes.len());
        if source.convert(bytes, charset, &mut converted) > 0 {
            return Err(());
        }
        let literal = Literal::new(Value::Bytes(converted), LiteralForm::Plain);
        *operand = Expr { kind: ExprKind::Literal(literal), result };
        return Ok(());
    }
    let inner = std::mem::replace(
        operand,
        Expr { kind: ExprKind::Literal(Literal::new(Value::Null, LiteralForm::Plain)), result },
    );
    *operand = Expr { kind: ExprKind::ConvertText(Box::new(inner)), result };
    Ok(())
}

/// 1267 for two operands, 1270 for three, 1271 for more.
fn mix_error(builder: &Builder<'_>, operation: &str, operands: &[Expr]) -> SqlError {
    let describe: Vec<[String; 2]> = operands
        .iter()
        .map(|operand| {
            let strength = strength(builder, operand);
            let word = match strength.coercibility {
                Coercibility::Explicit => "EXPLICIT",
                Coercibility::None => "NONE",
                Coercibility::Implicit => "IMPLICIT",
                Coercibility::SystemConstant => "SYSCONST",
                Coercibility::Coercible => "COERCIBLE",
                Coercibility::Numeric => "NUMERIC",
                Coercibility::Ignorable => "IGNORABLE",
            };
            [strength.collation.name().to_string(), word.to_string()]
        })
        .collect();
    let operation = operation.to_string();
    match &describe[..] {
        [a, b] => SqlError::new(
            &codes::CANT_AGGREGATE_2COLLATIONS,
            &[&a[0], &a[1], &b[0], &b[1], &operation],
        ),
        [a, b, c] => SqlError::new(
            &codes::CANT_AGGREGATE_3COLLATIONS,
            &[&a[0], &a[1], &b[0], &b[1], &c[0], &c[1], &operation],
        ),
        _ => SqlError::new(&codes::CANT_AGGREGATE_NCOLLATIONS, &[&operation]),
    }
}
