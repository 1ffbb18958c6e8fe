//! The registry of functions: name, number of arguments, result type, evaluation.
//!
//! A family is a file; each declares a table of [`Function`]s. Names are lower case.

pub(crate) mod bits;
pub(crate) mod cast;
pub(crate) mod control;
mod crypto;
mod extremes;
mod frame;
mod hash;
mod information;
mod json_change;
pub(crate) mod json_make;
mod json_read;
mod locks;
mod math;
mod network;
mod random;
pub(crate) mod read_date;
pub(crate) mod read_number;
mod regexp;
mod rounding;
mod rounding_temporal;
mod sleep;
mod temporal_make;
mod temporal_now;
pub(crate) mod temporal_parts;
pub(crate) mod temporal_text;
mod temporal_typing;
pub(crate) mod temporal_units;
mod text_basic;
mod text_encode;
mod text_search;
mod typing;

pub(crate) use bits::{
    BIT_AND, BIT_NOT, BIT_OR, BIT_XOR, MEMBER_NUMBER, NEGATE, SHIFT_LEFT, SHIFT_RIGHT,
};
pub(crate) use frame::Frame;
pub use random::RandomGenerator;
pub(crate) use regexp::Pattern;
pub(crate) use temporal_make::eval_moment;
pub(crate) use typing::resolve_as_first;

use crate::builder::Builder;
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use types::{SqlError, TypeKind, ValueRef};

/// Decides the result type; may wrap arguments in conversions.
pub(crate) type Resolve =
    fn(&Builder<'_>, &'static Function, &mut [Expr]) -> Result<ResultType, SqlError>;
/// Computes the value.
pub(crate) type Eval = for<'a> fn(Frame<'a>) -> Result<ValueRef<'a>, SqlError>;

/// What those who look at a call must know of its function, beyond type and value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nature {
    /// Nothing.
    Plain,
    /// The date of a day number: what it refuses is refused without a word.
    DayNumber,
    /// A number within a date or time, which has no sign.
    DatePart,
    /// A difference of times, which is no date where dates must be complete.
    Difference,
    /// A time added: a date or time where one is wanted, also where the result is text.
    LaterMoment,
    /// A time taken away.
    EarlierMoment,
    /// A date read by a format, judged by the rules of who wants it.
    ReadDate,
    /// The greatest or least: of texts, too, a number where one is wanted.
    Extreme,
    /// Bytes that are characters of whatever character set is wanted.
    Characters,
    /// A number that needs no arguments.
    Number,
    /// The place of a number among others.
    Interval,
    /// A document as it is, printed in some way.
    PrintedJson,
    /// What is known of its argument as a statement begins, whatever that is.
    Description,
}

/// A function.
pub struct Function {
    name: &'static str,
    arguments: (usize, usize),
    resolve: Resolve,
    eval: Eval,
    compared: Option<Eval>,
    nature: Nature,
    volatile: bool,
}

impl Function {
    /// A function of `least` to `most` arguments.
    pub(crate) const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        resolve: Resolve,
        eval: Eval,
    ) -> Self {
        let arguments = (least, most);
        let nature = Nature::Plain;
        Self { name, arguments, resolve, eval, compared: None, nature, volatile: false }
    }

    /// The same, of dates or times with another value where it is compared: see
    /// [`crate::compared`].
    pub(crate) const fn compared_by(mut self, eval: Eval) -> Self {
        self.compared = Some(eval);
        self
    }

    /// The same, of a nature.
    pub(crate) const fn being(mut self, nature: Nature) -> Self {
        self.nature = nature;
        self
    }

    /// The same, with another value each time it is called.
    pub(crate) const fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// Name in lower case.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What others must know of it.
    pub(crate) fn nature(&self) -> Nature {
        self.nature
    }

    /// Whether it takes so many arguments.
    pub fn accepts(&self, count: usize) -> bool {
        (self.arguments.0..=self.arguments.1).contains(&count)
    }

    /// How calls of dates or times are evaluated as operands of a comparison, if otherwise.
    pub(crate) fn compared(&self) -> Option<Eval> {
        self.compared
    }

    /// Whether two calls with the same arguments may differ (RAND, UUID, SLEEP).
    pub fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Whether the session and its clock decide what it gives, besides its arguments.
    fn reads_session(&self) -> bool {
        let families = [temporal_now::FUNCTIONS, information::FUNCTIONS, locks::FUNCTIONS];
        families.iter().any(|family| family.iter().any(|other| other.name == self.name))
    }

    pub(crate) fn resolve(
        &'static self,
        builder: &Builder<'_>,
        arguments: &mut [Expr],
    ) -> Result<ResultType, SqlError> {
        (self.resolve)(builder, self, arguments)
    }

    pub(crate) fn eval<'a>(&self, frame: Frame<'a>) -> Result<ValueRef<'a>, SqlError> {
        (self.eval)(frame)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Expr {
    /// The nature of the function that it calls, [`Nature::Plain`] if it calls none.
    pub(crate) fn nature(&self) -> Nature {
        match &self.kind {
            ExprKind::Call { function, .. } => function.nature,
            _ => Nature::Plain,
        }
    }
}

/// Whether an expression reads the session: by a function, or by a time that becomes one of today
/// beside a date.
pub(crate) fn reads_session(expr: &Expr) -> bool {
    let (mut calls, mut has_time, mut has_date) = (false, false, false);
    visit(expr, &mut |part| {
        calls |= matches!(&part.kind, ExprKind::Call { function, .. } if function.reads_session());
        let kind = part.result.column_type.kind;
        has_time |= kind == TypeKind::Time;
        has_date |= kind != TypeKind::Time && kind.is_temporal();
    });
    calls || has_time && has_date
}

fn visit(expr: &Expr, look: &mut dyn FnMut(&Expr)) {
    look(expr);
    if let ExprKind::Converted { original, .. } = &expr.kind {
        visit(original, look);
    }
    expr.for_each_child(&mut |child| visit(child, look));
}

/// Any number of arguments.
pub(crate) const MANY: usize = usize::MAX;

/// The families.
static FAMILIES: &[&[Function]] = &[
    control::FUNCTIONS,
    extremes::FUNCTIONS,
    text_basic::FUNCTIONS,
    text_search::FUNCTIONS,
    text_encode::FUNCTIONS,
    hash::FUNCTIONS,
    rounding::FUNCTIONS,
    math::FUNCTIONS,
    information::FUNCTIONS,
    temporal_now::FUNCTIONS,
    temporal_parts::FUNCTIONS,
    temporal_make::FUNCTIONS,
    temporal_text::FUNCTIONS,
    sleep::FUNCTIONS,
    regexp::FUNCTIONS,
    json_read::FUNCTIONS,
    json_make::FUNCTIONS,
    json_change::FUNCTIONS,
    locks::FUNCTIONS,
    crypto::FUNCTIONS,
    network::FUNCTIONS,
];

/// A function by name, compared without regard to case.
pub fn find(name: &str) -> Option<&'static Function> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Function>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let all = FAMILIES.iter().flat_map(|family| family.iter());
        let mut by_name: HashMap<_, _> = all.map(|f| (f.name, f)).collect();
        // Error texts have this one under its short name only.
        if let Some(pow) = by_name.get("pow").copied() {
            by_name.insert("power", pow);
        }
        by_name
    });
    match by_name.get(name) {
        Some(function) => Some(function),
        None => by_name.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}

/// Whether any argument can be NULL.
pub(crate) fn any_nullable(arguments: &[Expr]) -> bool {
    arguments.iter().any(|argument| argument.result.nullable)
}
