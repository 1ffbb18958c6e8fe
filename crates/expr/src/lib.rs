//! Bound expressions: types, evaluation, aggregates.
//!
//! The planner builds [`Expr`] trees with a [`Builder`], which decides result types, conversions
//! and collations by MariaDB's rules; the executor evaluates them against a row
//! ([`Columns`]) in an [`EvalContext`].
//!
//! Architecture invariant: this room knows no SQL text, no tables and no engine.
//!
//! 1. An evaluated value is of the variant that its static [`ResultType`] says (or NULL), text
//!    in the character set of its static collation. A DECIMAL may carry more digits than its
//!    static scale until [`Expr::eval_result`] rounds it.
//! 2. Comparing and computing with numbers allocates nothing; text is borrowed from the row
//!    or lives in the context's arena.
//! 3. Warnings are raised through the context, which makes them errors where the statement
//!    is strict.

pub mod aggregate;
mod allowed;
mod arithmetic;
mod builder;
mod coerce;
mod compare;
mod compared;
mod context;
mod eval;
mod expression;
mod fold;
mod functions;
mod json;
mod kept;
mod operator;
mod predicates;
mod print;
mod result_type;
mod seconds;
mod stored;
mod temporal;
pub mod vector;
mod whole;
mod years;

pub use builder::{Builder, CastTarget, number_of_hex, text_as_double};
pub use builder::{variable_of, variable_type};
pub use compare::{CompareRule, compare_values};
pub use context::{Columns, EvalContext, Hooks, NoColumns, SessionFacts, Settings, UserVariable};
pub use expression::{
    ArithmeticOperator, BitOperator, CompareOperator, Expr, ExprKind, External, Literal,
    LiteralForm, Test,
};
pub use functions::{Function, RandomGenerator, find as find_function};
pub use result_type::{Coercibility, Metadata, ResultType, STRING_DECIMALS, flags};
