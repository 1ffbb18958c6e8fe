//! JSON made of values, and what the JSON functions share.

use super::typing::{connection_text, joined_text, json_text, resolve_as_first};
use super::{Frame, Function, MANY, Nature};
use crate::builder::{Builder, convert_to_json_text};
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::json::{self, Fault, Kind, Node, Parsed, Path};
use crate::result_type::ResultType;
use types::error::ErrorCode;
use types::{Charset, SqlError, TypeKind, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("json_array", 0, MANY, resolve_make, json_array),
    Function::new("json_object", 0, MANY, resolve_object, json_object),
    Function::new("json_quote", 1, 1, resolve_quote, json_quote),
];

/// No name finds it, and it is not printed.
static PRINTED: Function = Function::new("", 1, 1, resolve_as_first, printed);

impl Expr {
    /// The value of a derived table's column: JSON is taken as the table printed it.
    pub fn as_printed(self) -> Self {
        if self.nature() != Nature::PrintedJson {
            return self;
        }
        let result = self.result;
        let kind = ExprKind::Call { function: &PRINTED, arguments: vec![self] };
        Self { kind, result }
    }
}

fn printed(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    frame.value(0)
}

pub(super) type Resolved = Result<ResultType, SqlError>;

/// A result that is JSON.
pub(super) fn as_json(mut result: ResultType) -> ResultType {
    result.is_json = true;
    result.nullable = true;
    result
}

pub(super) fn characters(arguments: &[Expr]) -> u64 {
    let longest = |argument: &Expr| argument.result.characters().saturating_mul(6) + 4;
    arguments.iter().map(longest).fold(2, u64::saturating_add)
}

/// JSON of all arguments in one character set.
pub(super) fn resolve_make(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    if arguments.is_empty() {
        return Ok(as_json(connection_text(builder, 2)));
    }
    let characters = characters(arguments);
    Ok(as_json(joined_text(builder, function, arguments, characters)?))
}

fn resolve_object(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Resolved {
    if !arguments.len().is_multiple_of(2) {
        let name = function.name();
        return Err(SqlError::new(&codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
    }
    resolve_make(builder, function, arguments)
}

fn resolve_quote(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    convert_to_json_text(builder, &mut arguments[0]);
    Ok(json_text(arguments[0].result.characters() * 12 + 2))
}

/// From which character set the text of an operand is.
fn charset_of(result: &ResultType) -> Charset {
    match result.column_type.kind {
        TypeKind::Bit => Charset::Binary,
        kind if kind.is_string() => result.collation().charset(),
        _ => Charset::Ascii,
    }
}

/// Appends a value as JSON in a character set.
pub(crate) fn push_value(
    context: &EvalContext,
    row: &dyn Columns,
    expr: &Expr,
    charset: Charset,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    if let ExprKind::Call { arguments, .. } = &expr.kind
        && expr.nature() == Nature::PrintedJson
    {
        // Only the text of a document counts, not how it was to be printed.
        return push_document(context, row, &arguments[0], out);
    }
    let value = expr.eval(context, row)?;
    let result = &expr.result;
    let way = (charset_of(result), charset);
    let is_text = result.column_type.kind.is_string() || result.column_type.kind.is_temporal();
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Int(number) if result.is_truth => {
            out.extend_from_slice(if number != 0 { b"true" } else { b"false" });
        }
        ValueRef::Bytes(text) if result.is_json => out.extend_from_slice(text),
        value if result.column_type.kind == TypeKind::Bit => {
            json::escape(coerce::to_text(context, value, result), way, out);
        }
        value if is_text => json::quote(coerce::to_text(context, value, result), way, out),
        value => coerce::write_text(context, value, result, out),
    }
    Ok(())
}

/// Appends the text of a document as it is.
fn push_document(
    context: &EvalContext,
    row: &dyn Columns,
    expr: &Expr,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match expr.eval(context, row)? {
        ValueRef::Null => out.extend_from_slice(b"null"),
        value => out.extend_from_slice(coerce::to_text(context, value, &expr.result)),
    }
    Ok(())
}

fn json_array(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let mut out = vec![b'['];
    for (number, argument) in frame.arguments.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        push_value(frame.context, frame.row, argument, frame.collation().charset, &mut out)?;
    }
    out.push(b']');
    frame.keep_limited(&out)
}

fn json_object(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let charset = frame.collation().charset;
    let mut out = vec![b'{'];
    for number in (0..frame.count()).step_by(2) {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        let way = (charset_of(frame.result(number)), charset);
        json::quote(frame.text(number)?.unwrap_or_default(), way, &mut out);
        out.extend_from_slice(b": ");
        push_value(frame.context, frame.row, &frame.arguments[number + 1], charset, &mut out)?;
    }
    out.push(b'}');
    frame.keep_limited(&out)
}

fn json_quote(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let kind = frame.result(0).column_type.kind;
    match frame.text(0)? {
        Some(text) if kind.is_string() || kind.is_temporal() => {
            let mut out = Vec::with_capacity(text.len() + 2);
            let way = (charset_of(frame.result(0)), frame.collation().charset);
            json::quote(text, way, &mut out);
            Ok(frame.keep(&out))
        }
        _ => Ok(ValueRef::Null),
    }
}

fn name(frame: &Frame<'_>) -> &'static str {
    match &frame.expr.kind {
        ExprKind::Call { function, .. } if function.name() == "json_merge" => "json_merge_preserve",
        ExprKind::Call { function, .. } => function.name(),
        _ => "",
    }
}

/// A warning about an argument.
pub(super) fn warn(frame: &Frame<'_>, code: &ErrorCode, argument: usize) -> Result<(), SqlError> {
    frame.context.warn(code, &[&(argument + 1), &name(frame)])
}

/// The warning of a path function that must be told "one" or "all".
pub(super) fn warn_one_or_all(frame: &Frame<'_>) -> Result<(), SqlError> {
    frame.context.warn(&codes::JSON_ONE_OR_ALL, &[&name(frame)])
}

/// The warning about an argument that is no JSON or no path.
pub(super) fn told(frame: &Frame<'_>, argument: usize, fault: Fault, in_path: bool) -> Warning {
    let (argument, name) = (argument + 1, name(frame));
    let at = |code: &ErrorCode, position: usize| Warning::new(code, &[&argument, &name, &position]);
    match (fault, in_path) {
        (Fault::End, true) => Warning::new(&codes::JSON_PATH_EOS, &[&argument, &name]),
        (Fault::End, false) => Warning::new(&codes::JSON_EOS, &[&argument, &name]),
        (Fault::Syntax(position), true) => at(&codes::JSON_PATH_SYNTAX, position),
        (Fault::Syntax(position), false) => at(&codes::JSON_SYNTAX, position),
        (Fault::Character(position), _) => at(&codes::JSON_NOT_JSON_CHR, position),
        (Fault::Broken(position), _) => at(&codes::JSON_BAD_CHR, position),
        (Fault::Escape(position), _) => at(&codes::JSON_ESCAPING, position),
        (Fault::Depth(position), _) => {
            let most = json::DEPTH_LIMIT;
            Warning::new(&codes::JSON_DEPTH, &[&most, &argument, &name, &position])
        }
    }
}

/// The text of an argument that is JSON: not as another function was to print it.
pub(super) fn json_text_of<'a>(
    frame: &Frame<'a>,
    argument: usize,
) -> Result<Option<&'a [u8]>, SqlError> {
    let mut expr = &frame.arguments[argument];
    while let ExprKind::Call { arguments, .. } = &expr.kind
        && expr.nature() == Nature::PrintedJson
    {
        expr = &arguments[0];
    }
    let value = expr.eval(frame.context, frame.row)?;
    Ok((!value.is_null()).then(|| coerce::to_text(frame.context, value, &expr.result)))
}

/// An argument as JSON; none for NULL, and with a warning for what is no JSON.
pub(super) fn document<'a>(
    frame: &Frame<'a>,
    argument: usize,
) -> Result<Option<Node<'a>>, SqlError> {
    let Some(text) = json_text_of(frame, argument)? else { return Ok(None) };
    document_of(frame, argument, text)
}

/// The text of an argument as JSON; none with a warning for what is no JSON.
pub(super) fn document_of<'a>(
    frame: &Frame<'a>,
    argument: usize,
    text: &'a [u8],
) -> Result<Option<Node<'a>>, SqlError> {
    match json::parse(text) {
        Ok(node) => Ok(Some(node)),
        Err(fault) => refuse(frame, argument, fault),
    }
}

/// An argument as JSON, as far as that goes; none for NULL.
pub(super) fn parsed<'a>(
    frame: &Frame<'a>,
    argument: usize,
) -> Result<Option<Parsed<'a>>, SqlError> {
    Ok(json_text_of(frame, argument)?.map(Parsed::of))
}

/// Warns of a fault in an argument; there is nothing then.
pub(super) fn refuse<T>(
    frame: &Frame<'_>,
    argument: usize,
    fault: Fault,
) -> Result<Option<T>, SqlError> {
    frame.context.raise(told(frame, argument, fault, false))?;
    Ok(None)
}

/// The value that an argument begins with, whatever stands behind it; none for NULL, and with a
/// warning where it does not end.
pub(super) fn leading<'a>(
    frame: &Frame<'a>,
    argument: usize,
) -> Result<Option<Node<'a>>, SqlError> {
    match parsed(frame, argument)? {
        Some(parsed) => leading_of(frame, argument, parsed),
        None => Ok(None),
    }
}

/// The same of an argument that was parsed.
pub(super) fn leading_of<'a>(
    frame: &Frame<'a>,
    argument: usize,
    parsed: Parsed<'a>,
) -> Result<Option<Node<'a>>, SqlError> {
    Ok(match parsed.fault {
        None => parsed.node,
        Some(fault) => refuse(frame, argument, fault)?,
    })
}

/// An argument as a path; none for NULL, and with a warning for what is no path.
pub(super) fn path(frame: &Frame<'_>, argument: usize) -> Result<Option<Path>, SqlError> {
    let Some(text) = frame.text(argument)? else { return Ok(None) };
    match Path::parse(text) {
        Ok(path) => Ok(Some(path)),
        Err(fault) => {
            frame.context.raise(told(frame, argument, fault, true))?;
            Ok(None)
        }
    }
}

/// A path to one place.
pub(super) fn plain_path(frame: &Frame<'_>, argument: usize) -> Result<Option<Path>, SqlError> {
    let found = path(frame, argument)?;
    if found.as_ref().is_some_and(Path::is_wild) {
        warn(frame, &codes::JSON_PATH_NO_WILDCARD, argument)?;
        return Ok(None);
    }
    Ok(found)
}

/// An argument as a value within JSON. What is no JSON stays as it is, and is not whole.
pub(super) fn value_node<'a>(frame: &Frame<'a>, argument: usize) -> Result<Node<'a>, SqlError> {
    let mut text = Vec::new();
    let charset = frame.collation().charset;
    push_value(frame.context, frame.row, &frame.arguments[argument], charset, &mut text)?;
    let text = frame.context.keep(&text);
    Ok(json::parse(text).unwrap_or(Node { raw: text, kind: Kind::Number, whole: false }))
}

/// Keeps a changed document as text; it is read once more, and refused if a value that was put
/// into it is no JSON, such as a number with leading zeros.
pub(super) fn changed<'a>(
    frame: &Frame<'a>,
    node: &Node<'_>,
    is_whole: bool,
) -> Result<ValueRef<'a>, SqlError> {
    if is_whole {
        return loose(frame, node);
    }
    let mut out = Vec::new();
    json::push_loose(node, &mut out);
    match json::parse(&out) {
        Ok(_) => frame.keep_limited(&out),
        Err(fault) => Ok(refuse(frame, 0, fault)?.unwrap_or(ValueRef::Null)),
    }
}

/// Keeps a document as text.
pub(super) fn loose<'a>(frame: &Frame<'a>, node: &Node<'_>) -> Result<ValueRef<'a>, SqlError> {
    let mut out = Vec::new();
    json::push_loose(node, &mut out);
    frame.keep_limited(&out)
}
