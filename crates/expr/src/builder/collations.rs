//! Which collation an operation on several texts uses.

use super::Builder;
use crate::context::{EvalContext, NoColumns};
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::functions::Nature;
use crate::result_type::{Coercibility, ResultType};
use types::{Charset, CollationId, SqlError, TypeKind, Value, codes, collation};

/// What the collation is needed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CollationUse {
    /// Joining text: two different collations of equal strength become the `_bin` one.
    Join,
    /// Joining text whose parts are also compared: they are an error.
    JoinComparing,
    /// Comparing: they are an error.
    Compare,
    /// Rows of several queries in one column: as joining, but nothing is converted.
    Union,
}

impl CollationUse {
    /// Whether two different collations of equal strength are an error.
    fn compares(self) -> bool {
        matches!(self, CollationUse::Compare | CollationUse::JoinComparing)
    }
}

/// A collation with its strength.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strength {
    /// Collation.
    pub collation: CollationId,
    /// How strongly it is meant.
    pub coercibility: Coercibility,
    /// Only ASCII characters are possible.
    pub ascii: bool,
}

impl Strength {
    /// What an operand brings. Numbers and dates are latin1, NULL and BIT are bytes.
    pub fn of(result: &ResultType) -> Self {
        let bytes =
            |coercibility, ascii| Self { collation: CollationId::BINARY, coercibility, ascii };
        match result.column_type.kind {
            kind if kind.is_string() => Self {
                collation: result.collation(),
                coercibility: result.coercibility,
                ascii: result.ascii || result.collation().charset() == Charset::Ascii,
            },
            TypeKind::Null => bytes(Coercibility::Ignorable, true),
            TypeKind::Bit => bytes(Coercibility::Implicit, false),
            _ if result.is_variable => bytes(Coercibility::Numeric, true),
            // EXISTS.
            _ if result.coercibility == Coercibility::Coercible => {
                bytes(Coercibility::Coercible, false)
            }
            _ => Self {
                collation: collation::default_of(Charset::Latin1).id,
                coercibility: Coercibility::Numeric,
                ascii: true,
            },
        }
    }

    /// That of a text made of it alone: numbers come in the connection's collation.
    pub fn of_text(builder: &Builder<'_>, result: &ResultType) -> Self {
        Self::of(result).joined(builder)
    }

    fn joined(self, builder: &Builder<'_>) -> Self {
        if self.coercibility != Coercibility::Numeric {
            return self;
        }
        let collation = builder.connection_collation();
        Self { collation, coercibility: Coercibility::Coercible, ascii: true }
    }
}

/// Decides the collation of `operands` and wraps those of another character set in
/// conversions. Text made of numbers and dates alone is in the connection's collation.
pub(crate) fn aggregate_collations(
    builder: &Builder<'_>,
    operation: &str,
    operands: &mut [Expr],
    usage: CollationUse,
) -> Result<(CollationId, Coercibility, bool), SqlError> {
    let strengths = operands.iter().map(|operand| Strength::of(&operand.result));
    let sum = sum_of(strengths, usage).ok_or_else(|| mix_error(operation, operands))?;
    let sum = match (sum, usage) {
        (None, _) => Strength {
            collation: builder.connection_collation(),
            coercibility: Coercibility::Coercible,
            ascii: true,
        },
        (Some(sum), CollationUse::Compare | CollationUse::Union) => sum,
        (Some(sum), _) => sum.joined(builder),
    };
    if usage != CollationUse::Union {
        let refusal = || mix_error(operation, operands);
        let mut converted = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            if let Some(conversion) = conversion(builder, operand, sum.collation, &refusal)? {
                converted.push((at, conversion));
            }
        }
        for (at, conversion) in converted {
            operands[at] = conversion;
        }
    }
    Ok((sum.collation, sum.coercibility, sum.ascii))
}

/// The collation of several operands; none inside where there are none, none outside where they
/// do not go together. An explicit collation decides also between those that do not.
fn sum_of(
    strengths: impl Iterator<Item = Strength>,
    usage: CollationUse,
) -> Option<Option<Strength>> {
    let mut sum: Option<Strength> = None;
    let mut unknown = false;
    for next in strengths {
        sum = Some(match sum {
            None => next,
            Some(sum) => match combine(sum, next) {
                Ok(sum) => sum,
                Err(Clash::Collations) => return None,
                Err(Clash::Charsets(ascii)) => {
                    unknown = true;
                    let coercibility = Coercibility::None;
                    Strength { collation: CollationId::BINARY, coercibility, ascii }
                }
            },
        });
    }
    let coercibility = sum.map(|sum| sum.coercibility);
    let undecided = unknown && coercibility != Some(Coercibility::Explicit);
    let refused = usage.compares() && coercibility == Some(Coercibility::None);
    if undecided || refused { None } else { Some(sum) }
}

/// Why two collations do not go together.
enum Clash {
    /// Two explicit ones of one character set.
    Collations,
    /// Two character sets; whether both texts are ASCII.
    Charsets(bool),
}

/// The collation of two operands.
fn combine(a: Strength, b: Strength) -> Result<Strength, Clash> {
    let ascii = a.ascii && b.ascii;
    let pick = |winner: Strength| Ok(Strength { ascii, ..winner });
    let (ca, cb) = (a.collation.info(), b.collation.info());
    if ca.charset != cb.charset {
        return combine_charsets(a, b).map_or(Err(Clash::Charsets(ascii)), pick);
    }
    if a.coercibility != b.coercibility {
        return pick(if a.coercibility < b.coercibility { a } else { b });
    }
    if a.collation == b.collation {
        return pick(a);
    }
    if a.coercibility == Coercibility::Explicit {
        return Err(Clash::Collations);
    }
    if ca.compares_code_points() {
        return Ok(a);
    }
    if cb.compares_code_points() {
        return Ok(b);
    }
    let collation = collation::binary_of(ca.charset).id;
    Ok(Strength { collation, coercibility: Coercibility::None, ascii })
}

/// Operands of different character sets: bytes win over text of the same or less strength,
/// then a superset of at least the same strength, then the stronger if the other is a constant.
fn combine_charsets(a: Strength, b: Strength) -> Option<Strength> {
    let (ca, cb) = (a.collation.charset(), b.collation.charset());
    if ca == Charset::Binary {
        return Some(if a.coercibility <= b.coercibility { a } else { b });
    }
    if cb == Charset::Binary {
        return Some(if b.coercibility <= a.coercibility { b } else { a });
    }
    let constant = |strength: &Strength| strength.coercibility >= Coercibility::SystemConstant;
    if is_superset(&a, &b) {
        Some(a)
    } else if is_superset(&b, &a) {
        Some(b)
    } else if a.coercibility < b.coercibility && constant(&b) {
        Some(a)
    } else if b.coercibility < a.coercibility && constant(&a) {
        Some(b)
    } else {
        None
    }
}

/// Whether all texts of `part` can be in the character set of `whole`, which is at least as
/// strong.
fn is_superset(whole: &Strength, part: &Strength) -> bool {
    let (stronger, equal) =
        (whole.coercibility < part.coercibility, whole.coercibility == part.coercibility);
    let (all, own) = (whole.collation.charset(), part.collation.charset());
    let unicode = |charset| matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4);
    let wider = !unicode(own) || (all == Charset::Utf8mb4 && own == Charset::Utf8mb3);
    (unicode(all) && (stronger || (equal && wider)))
        || (part.ascii && (stronger || (equal && !whole.ascii)))
}

/// An operand converted to a collation of another character set; none where it stays as it is.
/// Constants must not lose characters, other text must not be able to.
fn conversion(
    builder: &Builder<'_>,
    operand: &Expr,
    target: CollationId,
    refusal: &dyn Fn() -> SqlError,
) -> Result<Option<Expr>, SqlError> {
    let own = Strength::of(&operand.result);
    let (source, charset) = (own.collation.charset(), target.charset());
    let unicode = matches!(charset, Charset::Utf8mb3 | Charset::Utf8mb4);
    // The number of a variable is bytes to Unicode only.
    let is_number = own.coercibility == Coercibility::Numeric
        && (source != Charset::Binary || (operand.result.is_variable && !unicode));
    let is_null = matches!(operand.literal(), Some(Value::Null));
    if source == charset || charset == Charset::Binary || is_number || is_null {
        return Ok(None);
    }
    let mut result = operand.result;
    if !result.is_string() {
        let characters = u64::from(result.text_length());
        let nullable = result.nullable;
        result = ResultType::string(characters, target, own.coercibility, false, nullable);
    }
    result.column_type.collation = target;
    if let Some(Value::Bytes(bytes)) = operand.literal() {
        return converted_literal(bytes, result, source, charset, refusal);
    }
    let is_bytes = source == Charset::Binary && operand.result.is_string();
    if is_bytes && is_known_at_start(operand) {
        // What a constant computes of bytes is taken as it is.
        return Ok(None);
    }
    // In strict modes each function of text may be NULL, this one included.
    result.nullable = true;
    let inner = || Box::new(operand.clone());
    if operand.nature() == Nature::Characters {
        // As bytes, unlike CHAR(... USING ...).
        let kind = ExprKind::ConvertText(inner());
        let bytes = Box::new(Expr { kind, result: operand.result });
        return Ok(Some(Expr { kind: ExprKind::ConvertText(bytes), result }));
    }
    let wrapped = Ok(Some(Expr { kind: ExprKind::ConvertText(inner()), result }));
    if let Some(value) = constant_value(builder, operand) {
        return match value {
            Value::Bytes(bytes) if source.convert(&bytes, charset, &mut Vec::new()) > 0 => {
                if own.ascii { wrapped } else { Err(refusal()) }
            }
            _ => wrapped,
        };
    }
    let constant = match operand.kind {
        // Columns so weak are constants of derived tables.
        ExprKind::External(_) | ExprKind::Column { .. } => {
            own.coercibility >= Coercibility::SystemConstant && !operand.result.is_computed
        }
        _ => is_known_at_start(operand),
    };
    if unicode || source == Charset::Binary || own.ascii {
        wrapped
    } else if constant {
        let kind = ExprKind::ConvertSafely(inner(), std::sync::Arc::new(refusal()));
        Ok(Some(Expr { kind, result }))
    } else {
        Err(refusal())
    }
}

/// Whether a value is known as a statement begins: no columns, nothing random, variables that the
/// expression does not set.
pub(crate) fn is_known_at_start(expr: &Expr) -> bool {
    if expr.nature() == Nature::Description {
        return true;
    }
    let mut known = match &expr.kind {
        ExprKind::Column { .. } | ExprKind::External(_) | ExprKind::Assign(..) => false,
        ExprKind::Call { function, .. } => !function.is_volatile(),
        _ => true,
    };
    expr.for_each_child(&mut |child| known = known && is_known_at_start(child));
    known
}

/// As what two texts are compared that were brought to one character set.
pub(crate) fn compared_collation(a: &ResultType, b: &ResultType) -> CollationId {
    let (a, b) = (Strength::of(a), Strength::of(b));
    combine(a, b).map_or(a.collation, |sum| sum.collation)
}

/// Converts text to the character set of a collation where nothing can be lost.
pub(crate) fn convert_if_safe(builder: &Builder<'_>, operand: &mut Expr, target: CollationId) {
    let refusal = || SqlError::new(&codes::CANT_AGGREGATE_NCOLLATIONS, &[&"in"]);
    let converted = conversion(builder, operand, target, &refusal);
    if let Ok(Some(converted)) = converted
        && !matches!(converted.kind, ExprKind::ConvertSafely(..))
    {
        *operand = converted;
    }
}

/// Converts an argument that is text of another character set to that of JSON functions.
pub(crate) fn convert_to_json_text(builder: &Builder<'_>, operand: &mut Expr) {
    if operand.result.is_string() && operand.result.collation() != CollationId::BINARY {
        convert_if_safe(builder, operand, collation::binary_of(Charset::Utf8mb4).id);
    }
}

/// A literal in another character set: bytes must be characters of it (error 1300).
fn converted_literal(
    bytes: &[u8],
    result: ResultType,
    source: Charset,
    charset: Charset,
    refusal: &dyn Fn() -> SqlError,
) -> Result<Option<Expr>, SqlError> {
    if source == Charset::Binary {
        let valid = charset.valid_prefix(bytes);
        if valid == bytes.len() {
            return Ok(None);
        }
        let bad = bytes[valid..].iter().take(3);
        let shown = bad.fold(String::new(), |text, byte| format!("{text}{byte:02X}"));
        return Err(SqlError::new(&codes::INVALID_CHARACTER_STRING, &[&charset.name(), &shown]));
    }
    let mut converted = Vec::with_capacity(bytes.len());
    if source.convert(bytes, charset, &mut converted) > 0 {
        return Err(refusal());
    }
    let literal = Literal::new(Value::Bytes(converted), LiteralForm::Plain);
    Ok(Some(Expr { kind: ExprKind::Literal(literal), result }))
}

/// The value of an expression of literals; none where it has other leaves or fails.
fn constant_value(builder: &Builder<'_>, operand: &Expr) -> Option<Value> {
    if !of_literals(operand) {
        return None;
    }
    let mut context = EvalContext::new();
    context.settings = builder.settings().clone();
    operand.eval(&context, &NoColumns).ok().map(|value| value.to_owned())
}

/// Whether all leaves are literals and nothing in it looks at the session.
fn of_literals(expr: &Expr) -> bool {
    if let ExprKind::Parameter(_) | ExprKind::Converted { .. } = expr.kind {
        return false;
    }
    if let ExprKind::Call { arguments, .. } = &expr.kind
        && arguments.is_empty()
    {
        return expr.nature() == Nature::Number;
    }
    let mut all = expr.is_constant();
    expr.for_each_child(&mut |child| all = all && of_literals(child));
    all
}

/// 1267 for two operands, 1270 for three, 1271 for more.
pub(super) fn mix_error(operation: &str, operands: &[Expr]) -> SqlError {
    let describe: Vec<[String; 2]> = operands
        .iter()
        .map(|operand| {
            let strength = Strength::of(&operand.result);
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
