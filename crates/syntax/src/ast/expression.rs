//! Expressions.

use super::{OrderItem, Query, TypeName};

/// An expression.
#[derive(Clone, PartialEq)]
pub enum Expression {
    /// A constant.
    Literal(Literal),
    /// A column, possibly qualified.
    Column(ColumnName),
    /// `?`, counted from 0.
    Parameter(u32),
    /// `@name`; names are compared without regard to case.
    UserVariable(String),
    /// `@name := value`.
    AssignUserVariable(String, Box<Expression>),
    /// `@@name`, `@@session.name`, `@@global.name`, `@@cache.key_buffer_size`.
    SystemVariable(SystemVariable),
    /// Prefix operator.
    Unary(UnaryOperator, Box<Expression>),
    /// Infix operator.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `a AND b AND c`, `a OR b OR c`: two or more operands, so that long chains are flat.
    Logical(LogicalOperator, Vec<Expression>),
    /// `operand [NOT] IN (list)`.
    In {
        /// Left side.
        operand: Box<Expression>,
        /// Right side.
        list: Vec<Expression>,
        /// NOT IN.
        negated: bool,
    },
    /// `operand [NOT] IN (SELECT ...)`.
    InSubquery {
        /// Left side.
        operand: Box<Expression>,
        /// Right side.
        query: Box<Query>,
        /// NOT IN.
        negated: bool,
    },
    /// `operand [NOT] BETWEEN low AND high`.
    Between {
        /// Tested value.
        operand: Box<Expression>,
        /// Low end, included.
        low: Box<Expression>,
        /// High end, included.
        high: Box<Expression>,
        /// NOT BETWEEN.
        negated: bool,
    },
    /// `operand [NOT] LIKE pattern [ESCAPE escape]`.
    Like {
        /// Tested value.
        operand: Box<Expression>,
        /// Pattern.
        pattern: Box<Expression>,
        /// Escape character.
        escape: Option<Box<Expression>>,
        /// NOT LIKE.
        negated: bool,
    },
    /// `operand [NOT] REGEXP pattern` (RLIKE).
    Regexp {
        /// Tested value.
        operand: Box<Expression>,
        /// Pattern.
        pattern: Box<Expression>,
        /// NOT REGEXP.
        negated: bool,
    },
    /// `operand IS [NOT] NULL | TRUE | FALSE | UNKNOWN`.
    Is {
        /// Tested value.
        operand: Box<Expression>,
        /// What it is tested for.
        test: IsTest,
        /// IS NOT.
        negated: bool,
    },
    /// CASE.
    Case {
        /// `CASE operand WHEN`.
        operand: Option<Box<Expression>>,
        /// WHEN and THEN.
        branches: Vec<(Expression, Expression)>,
        /// ELSE.
        otherwise: Option<Box<Expression>>,
    },
    /// `CAST(operand AS type)`, `CONVERT(operand, type)`, `BINARY operand`.
    Cast {
        /// Value.
        operand: Box<Expression>,
        /// Wanted type.
        target: Box<TypeName>,
    },
    /// `CONVERT(operand USING charset)`.
    ConvertUsing {
        /// Value.
        operand: Box<Expression>,
        /// Character set.
        charset: String,
    },
    /// `operand COLLATE collation`.
    Collate {
        /// Value.
        operand: Box<Expression>,
        /// Collation.
        collation: String,
    },
    /// A call of a function that is not an aggregate. Built-in names with their own syntax are
    /// brought to plain arguments: `EXTRACT(u FROM x)` is `extract(u, x)`, `TRIM(LEADING a FROM
    /// b)` is `trim_leading(b, a)`, `POSITION(a IN b)` is `locate(a, b)`, `SUBSTRING(a FROM b FOR
    /// c)` is `substring(a, b, c)`, `CURRENT_TIMESTAMP` is `now()`, `CHAR(a USING c)` is
    /// `char(a, ...)` under `ConvertUsing`.
    Function(Box<FunctionCall>),
    /// A call of an aggregate function.
    Aggregate(Box<AggregateCall>),
    /// `function OVER (...)`.
    Window(Box<WindowCall>),
    /// `base + INTERVAL amount unit` (and `-`, `DATE_ADD`, `DATE_SUB`, `ADDDATE`, `SUBDATE`).
    DateArithmetic {
        /// Date.
        base: Box<Expression>,
        /// How much.
        amount: Box<Expression>,
        /// Of what.
        unit: IntervalUnit,
        /// Minus.
        subtract: bool,
    },
    /// A unit as an argument of `extract`, `timestampadd`, `timestampdiff`.
    Unit(IntervalUnit),
    /// `(SELECT ...)` as a value.
    Subquery(Box<Query>),
    /// `[NOT] EXISTS (SELECT ...)`; NOT is a `Unary`.
    Exists(Box<Query>),
    /// `left op ANY|ALL (SELECT ...)`.
    Quantified {
        /// Left side.
        operand: Box<Expression>,
        /// Comparison.
        operator: BinaryOperator,
        /// ALL rather than ANY.
        all: bool,
        /// Right side.
        query: Box<Query>,
    },
    /// `(a, b)`, `ROW(a, b)`: two or more.
    Row(Vec<Expression>),
    /// `DEFAULT` (as a value of INSERT or UPDATE) or `DEFAULT(column)`.
    Default(Option<ColumnName>),
    /// `VALUES(column)`, `VALUE(column)` in ON DUPLICATE KEY UPDATE.
    Values(ColumnName),
    /// `MATCH (columns) AGAINST (text mode)`.
    Match {
        /// Columns.
        columns: Vec<ColumnName>,
        /// Text searched for.
        against: Box<Expression>,
        /// Words of the mode in capitals, empty by default.
        mode: String,
    },
    /// `NEXT VALUE FOR sequence`, `PREVIOUS VALUE FOR sequence`.
    SequenceValue {
        /// The sequence.
        sequence: super::TableName,
        /// PREVIOUS.
        previous: bool,
    },
}

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// An integer that fits 64 bits without a sign.
    Integer(u64),
    /// An exact number with a point or too large for 64 bits, as written.
    Decimal(String),
    /// A number with an exponent, as written.
    Float(String),
    /// `'text'`, `"text"`, `N'text'`, `_charset'text'`, adjacent strings joined.
    String {
        /// Unescaped bytes.
        bytes: Vec<u8>,
        /// Introducer without the underscore; `utf8mb3` for `N''`.
        charset: Option<String>,
    },
    /// `0x4142`, `x'4142'`, and `_charset b'01'`.
    Hex {
        /// The bytes.
        bytes: Vec<u8>,
        /// Written `0x`: a number in numeric context.
        number: bool,
        /// Introducer.
        charset: Option<String>,
    },
    /// `b'01'`, `0b01`: the bytes.
    Bits(Vec<u8>),
    /// `DATE 'text'`.
    Date(String),
    /// `TIME 'text'`.
    Time(String),
    /// `TIMESTAMP 'text'`.
    Timestamp(String),
    /// `{d 'text'}`, `{t 'text'}`, `{ts 'text'}`: a date or time, or the text if it is none.
    Escaped(OdbcEscape, String),
}

/// What an ODBC escape of a text asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OdbcEscape {
    /// `{d 'text'}`.
    Date,
    /// `{t 'text'}`.
    Time,
    /// `{ts 'text'}`.
    Timestamp,
}

/// A column's name with what qualifies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnName {
    /// Database.
    pub schema: Option<String>,
    /// Table or alias.
    pub table: Option<String>,
    /// Column.
    pub name: String,
}

/// Where a system variable is read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// Nothing written.
    Default,
    /// `@@session.`, `@@local.`.
    Session,
    /// `@@global.`.
    Global,
}

/// A system variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemVariable {
    /// Scope.
    pub scope: VariableScope,
    /// First part of a structured name such as `hot_cache.key_buffer_size`.
    pub instance: Option<String>,
    /// Name as written.
    pub name: String,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`.
    Minus,
    /// `+`.
    Plus,
    /// `NOT`, `!`.
    Not,
    /// `~`.
    BitNot,
}

/// Connectives of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOperator {
    /// `AND`, `&&`.
    And,
    /// `OR`, `||`.
    Or,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `XOR`.
    Xor,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>`, `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `|`.
    BitOr,
    /// `&`.
    BitAnd,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `DIV`.
    IntegerDivide,
    /// `%`, `MOD`.
    Modulo,
    /// `^`.
    BitXor,
    /// `||` under PIPES_AS_CONCAT.
    Concat,
    /// `SOUNDS LIKE`.
    SoundsLike,
}

/// What IS tests for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsTest {
    /// NULL.
    Null,
    /// TRUE.
    True,
    /// FALSE.
    False,
    /// UNKNOWN.
    Unknown,
}

/// A call of an ordinary function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// Database of a stored function.
    pub schema: Option<String>,
    /// Name as written; compared without regard to case.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Expression>,
}

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// Which one.
    pub function: AggregateFunction,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments; empty for `COUNT(*)`.
    pub arguments: Vec<Expression>,
    /// ORDER BY of GROUP_CONCAT.
    pub order_by: Vec<OrderItem>,
    /// SEPARATOR of GROUP_CONCAT.
    pub separator: Option<Vec<u8>>,
    /// LIMIT of GROUP_CONCAT.
    pub limit: Option<super::Limit>,
}

/// Aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// COUNT.
    Count,
    /// SUM.
    Sum,
    /// AVG.
    Average,
    /// MIN.
    Minimum,
    /// MAX.
    Maximum,
    /// GROUP_CONCAT.
    GroupConcat,
    /// STD, STDDEV, STDDEV_POP.
    StandardDeviation,
    /// STDDEV_SAMP.
    SampleStandardDeviation,
    /// VARIANCE, VAR_POP.
    Variance,
    /// VAR_SAMP.
    SampleVariance,
    /// BIT_AND.
    BitAnd,
    /// BIT_OR.
    BitOr,
    /// BIT_XOR.
    BitXor,
    /// JSON_ARRAYAGG.
    JsonArray,
    /// JSON_OBJECTAGG.
    JsonObject,
}

/// A window function call.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// `Expression::Function` or `Expression::Aggregate`.
    pub function: Expression,
    /// `OVER name`.
    pub name: Option<String>,
    /// `OVER (...)`.
    pub window: WindowDefinition,
}

/// The inside of OVER (...).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowDefinition {
    /// Window it is based on.
    pub base: Option<String>,
    /// PARTITION BY.
    pub partition_by: Vec<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// ROWS or RANGE.
    pub bounds: Option<WindowFrame>,
}

/// ROWS and RANGE of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// ROWS rather than RANGE.
    pub rows: bool,
    /// Where it begins.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
    /// EXCLUDE of anything.
    pub exclusion: bool,
}

/// A bound of a window's frame.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the words")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expression),
    CurrentRow,
    Following(Expression),
    UnboundedFollowing,
}

/// Units of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the units")]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}
