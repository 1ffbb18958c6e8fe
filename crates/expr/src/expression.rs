//! The tree of bound expressions.

use crate::compare::CompareRule;
use crate::context::{Columns, EvalContext, NoColumns};
use crate::functions::Function;
pub use crate::operator::{ArithmeticOperator, BitOperator, CompareOperator, Test};
use crate::result_type::ResultType;
use std::fmt::Debug;
use std::sync::Arc;
use types::temporal::IntervalUnit;
use types::{SqlError, Value, ValueRef};

/// A bound expression: names are resolved, types are known. Immutable once built; shared by
/// all executions of a plan.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it does.
    pub kind: ExprKind,
    /// Type of its value.
    pub result: ResultType,
}

/// What an expression does. Built by [`crate::Builder`], which decides types and conversions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A column of the row given to `eval`.
    Column {
        /// Position in the row.
        position: usize,
        /// As messages print it: `` `db`.`table`.`column` ``.
        name: Arc<str>,
    },
    /// A parameter of the prepared statement.
    Parameter(usize),
    /// `@name`.
    UserVariable(String),
    /// `@name := value`.
    Assign(String, Box<Expr>),
    /// `(a, b)`.
    Row(Vec<Expr>),
    /// NOT.
    Not(Box<Expr>),
    /// Conjunction of two or more.
    And(Vec<Expr>),
    /// Disjunction of two or more.
    Or(Vec<Expr>),
    /// XOR.
    Xor(Box<Expr>, Box<Expr>),
    /// IS [NOT] NULL, TRUE, FALSE, UNKNOWN.
    Is {
        /// Tested value.
        operand: Box<Expr>,
        /// Test.
        test: Test,
        /// NOT.
        negated: bool,
    },
    /// Comparison of two scalars.
    Compare {
        /// Operator.
        operator: CompareOperator,
        /// As what the sides are compared.
        rule: CompareRule,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// Comparison of two rows of the same width.
    CompareRows {
        /// Operator.
        operator: CompareOperator,
        /// As what each pair is compared.
        rules: Vec<CompareRule>,
        /// Left side, a `Row`.
        left: Box<Expr>,
        /// Right side, a `Row`.
        right: Box<Expr>,
    },
    /// BETWEEN.
    Between {
        /// Tested value.
        operand: Box<Expr>,
        /// Low end.
        low: Box<Expr>,
        /// High end.
        high: Box<Expr>,
        /// Rule of all three.
        rule: CompareRule,
        /// NOT.
        negated: bool,
    },
    /// IN a list (of scalars, or of rows when the operand is a row).
    In {
        /// Tested value.
        operand: Box<Expr>,
        /// Candidates with the rules to compare them by: one, or one a row's element.
        list: Vec<(Expr, Vec<CompareRule>)>,
        /// NOT.
        negated: bool,
    },
    /// LIKE.
    Like {
        /// Tested value.
        operand: Box<Expr>,
        /// Pattern.
        pattern: Box<Expr>,
        /// Escape character; `None` for ESCAPE ''.
        escape: Option<u32>,
        /// Collation of the match.
        collation: types::CollationId,
        /// NOT.
        negated: bool,
    },
    /// CASE.
    Case {
        /// `CASE operand WHEN value`: the operand and the rule for each WHEN.
        operand: Option<(Box<Expr>, Vec<CompareRule>)>,
        /// WHEN and THEN.
        branches: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// `+ - * / DIV %`.
    Arithmetic {
        /// Operator.
        operator: ArithmeticOperator,
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
    },
    /// `base ± INTERVAL amount unit`.
    DateArithmetic {
        /// Date, time or text.
        base: Box<Expr>,
        /// How much.
        amount: Box<Expr>,
        /// Of what.
        unit: IntervalUnit,
        /// Minus.
        subtract: bool,
    },
    /// EXTRACT, TIMESTAMPDIFF, TIMESTAMPADD: a function of a unit.
    UnitCall {
        /// Function.
        function: &'static Function,
        /// Unit.
        unit: IntervalUnit,
        /// Arguments.
        arguments: Vec<Expr>,
    },
    /// CAST and CONVERT.
    Cast {
        /// Value.
        operand: Box<Expr>,
        /// BINARY(n): filled up with 0x00.
        pads: bool,
        /// CHAR(n), BINARY(n): cut to the length.
        cuts: bool,
        /// Name of the select item that it is, for messages.
        name: Option<Arc<str>>,
    },
    /// Text in another character set, or with another collation.
    ConvertText(Box<Expr>),
    /// A constant's text in another character set, or the error where it loses characters.
    ConvertSafely(Box<Expr>, Arc<SqlError>),
    /// A function of the registry.
    Call {
        /// Function.
        function: &'static Function,
        /// Arguments.
        arguments: Vec<Expr>,
    },
    /// Constant text converted to what it is compared as: once in a statement, and warning
    /// once, however many rows there are.
    Converted {
        /// The constant as written, or a parameter; clones share it and warn together.
        original: Arc<Expr>,
        /// Its value as converted; none for a parameter.
        value: Option<Value>,
        /// What it was converted for.
        rule: CompareRule,
    },
    /// A value that another room computes (a subquery).
    External(Arc<dyn External>),
}

/// A constant's value and how it was written, where that matters.
#[derive(Clone, Debug)]
pub struct Literal {
    /// Value.
    pub value: Value,
    /// Form.
    pub form: LiteralForm,
    /// A number with an exponent as it was written.
    pub written: Option<Arc<str>>,
}

impl Literal {
    /// A constant of a form.
    pub fn new(value: Value, form: LiteralForm) -> Self {
        Self { value, form, written: None }
    }
}

/// How a constant was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiteralForm {
    /// Nothing special.
    Plain,
    /// TRUE or FALSE.
    Boolean,
    /// x'41', 0x41 or b'1': text that counts as an unsigned number in numeric context.
    Hex,
    /// Made by constant folding or by the planner.
    Computed,
    /// The value of a parameter.
    Bound,
}

/// A value computed outside this room for a row, such as a subquery's.
pub trait External: Debug + Send + Sync {
    /// Its value for `row`; text may be put into the context's arena.
    fn eval<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError>;
    /// Text for messages.
    fn print(&self) -> String;
    /// Columns of the row that it reads.
    fn columns(&self, visit: &mut dyn FnMut(usize));
}

impl Expr {
    /// Calls `visit` with each direct operand.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Column { .. }
            | ExprKind::Parameter(_)
            | ExprKind::UserVariable(_)
            | ExprKind::Converted { .. }
            | ExprKind::External(_) => {}
            ExprKind::Assign(_, operand)
            | ExprKind::Not(operand)
            | ExprKind::Cast { operand, .. }
            | ExprKind::ConvertText(operand)
            | ExprKind::ConvertSafely(operand, _)
            | ExprKind::Is { operand, .. } => visit(operand),
            ExprKind::Row(list) | ExprKind::And(list) | ExprKind::Or(list) => {
                list.iter().for_each(visit);
            }
            ExprKind::Xor(left, right)
            | ExprKind::Compare { left, right, .. }
            | ExprKind::CompareRows { left, right, .. }
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::Like { operand: left, pattern: right, .. }
            | ExprKind::DateArithmetic { base: left, amount: right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Between { operand, low, high, .. } => {
                visit(operand);
                visit(low);
                visit(high);
            }
            ExprKind::In { operand, list, .. } => {
                visit(operand);
                list.iter().for_each(|(candidate, _)| visit(candidate));
            }
            ExprKind::Case { operand, branches, otherwise } => {
                if let Some((operand, _)) = operand {
                    visit(operand);
                }
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
            ExprKind::Call { arguments, .. } | ExprKind::UnitCall { arguments, .. } => {
                arguments.iter().for_each(visit);
            }
        }
    }

    /// Calls `visit` with each direct operand for changing it.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ExprKind::Literal(_)
            | ExprKind::Column { .. }
            | ExprKind::Parameter(_)
            | ExprKind::UserVariable(_)
            | ExprKind::Converted { .. }
            | ExprKind::External(_) => {}
            ExprKind::Assign(_, operand)
            | ExprKind::Not(operand)
            | ExprKind::Cast { operand, .. }
            | ExprKind::ConvertText(operand)
            | ExprKind::ConvertSafely(operand, _)
            | ExprKind::Is { operand, .. } => visit(operand),
            ExprKind::Row(list) | ExprKind::And(list) | ExprKind::Or(list) => {
                list.iter_mut().for_each(visit);
            }
            ExprKind::Xor(left, right)
            | ExprKind::Compare { left, right, .. }
            | ExprKind::CompareRows { left, right, .. }
            | ExprKind::Arithmetic { left, right, .. }
            | ExprKind::Like { operand: left, pattern: right, .. }
            | ExprKind::DateArithmetic { base: left, amount: right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Between { operand, low, high, .. } => {
                visit(operand);
                visit(low);
                visit(high);
            }
            ExprKind::In { operand, list, .. } => {
                visit(operand);
                list.iter_mut().for_each(|(candidate, _)| visit(candidate));
            }
            ExprKind::Case { operand, branches, otherwise } => {
                if let Some((operand, _)) = operand {
                    visit(operand);
                }
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
            ExprKind::Call { arguments, .. } | ExprKind::UnitCall { arguments, .. } => {
                arguments.iter_mut().for_each(visit);
            }
        }
    }

    /// Calls `visit` with the position of every column that the expression reads.
    pub fn for_each_column(&self, visit: &mut dyn FnMut(usize)) {
        match &self.kind {
            ExprKind::Column { position, .. } => visit(*position),
            ExprKind::External(external) => external.columns(visit),
            _ => self.for_each_child(&mut |child| child.for_each_column(visit)),
        }
    }

    /// Changes the position of every column (not of those inside `External`).
    pub fn map_columns(&mut self, map: &mut dyn FnMut(usize) -> usize) {
        if let ExprKind::Column { position, .. } = &mut self.kind {
            *position = map(*position);
        }
        self.for_each_child_mut(&mut |child| child.map_columns(map));
    }

    /// The same value for every row of one execution: no columns, nothing from outside,
    /// nothing random, no variables.
    pub fn is_constant(&self) -> bool {
        let own = match &self.kind {
            ExprKind::Column { .. }
            | ExprKind::External(_)
            | ExprKind::UserVariable(_)
            | ExprKind::Assign(..) => false,
            ExprKind::Call { function, .. } => !function.is_volatile(),
            _ => true,
        };
        let mut constant = own;
        self.for_each_child(&mut |child| constant &= child.is_constant());
        constant
    }

    /// Whether its value is the same in every session and at any time: a constant without
    /// parameters, of which nothing reads the clock or the session.
    pub fn is_known_everywhere(&self) -> bool {
        self.is_constant() && !self.has_parameter() && !crate::functions::reads_session(self)
    }

    /// NULL of a type.
    pub(crate) fn null_of(result: &ResultType) -> Self {
        let literal = Literal::new(Value::Null, LiteralForm::Computed);
        Self { kind: ExprKind::Literal(literal), result: *result }
    }

    /// Whether nothing is missed if it is not computed: it assigns nothing and calls nothing that
    /// has an effect.
    pub fn has_no_effect(&self) -> bool {
        let mut none = match &self.kind {
            ExprKind::Assign(..) => false,
            ExprKind::Call { function, .. } => !function.is_volatile(),
            _ => true,
        };
        self.for_each_child(&mut |child| none &= child.has_no_effect());
        none
    }

    /// The constant value, if it is a literal.
    pub fn literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Literal(literal) => Some(&literal.value),
            _ => None,
        }
    }

    /// A literal as it was written.
    pub(crate) fn is_plain_literal(&self) -> bool {
        matches!(&self.kind, ExprKind::Literal(literal) if literal.form == LiteralForm::Plain)
    }

    /// The value of a parameter.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(&self.kind, ExprKind::Literal(literal) if literal.form == LiteralForm::Bound)
    }

    /// The value of an expression without columns, variables and parameters, under these settings;
    /// `None` if it cannot be computed.
    pub(crate) fn known_value(&self, settings: &crate::Settings) -> Option<Value> {
        if let Some(value) = self.literal() {
            return Some(value.clone());
        }
        if !self.is_constant() || self.has_parameter() {
            return None;
        }
        let mut context = EvalContext::new();
        context.settings = settings.clone();
        self.eval(&context, &NoColumns).ok().map(|value| value.to_owned())
    }

    pub(crate) fn has_parameter(&self) -> bool {
        let mut found = match &self.kind {
            ExprKind::Parameter(_) => true,
            ExprKind::Converted { original, value: None, .. } => original.has_parameter(),
            _ => false,
        };
        self.for_each_child(&mut |child| found |= child.has_parameter());
        found
    }

    /// The same as an item of a select list with this name, which some messages show.
    pub fn named(mut self, item: &str) -> Self {
        if let ExprKind::Cast { name, .. } = &mut self.kind {
            *name = Some(item.into());
        }
        self
    }

    /// Whether it is NULL as it is written, without a type.
    pub(crate) fn is_written_null(&self) -> bool {
        self.result.column_type.kind == types::TypeKind::Null
            && self.literal().is_some_and(Value::is_null)
    }

    /// Makes this the error where it is a constant's text that loses characters.
    pub fn refuse_with(&mut self, refusal: &SqlError) {
        if let ExprKind::ConvertSafely(_, own) = &mut self.kind {
            *own = Arc::new(refusal.clone());
        }
    }

    /// Whether it was written as a hexadecimal or bit literal.
    pub fn is_hex_literal(&self) -> bool {
        matches!(&self.kind, ExprKind::Literal(Literal { form: LiteralForm::Hex, .. }))
    }
}
