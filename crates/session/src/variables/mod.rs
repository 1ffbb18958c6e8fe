//! System variables: which there are, what they may be, what they are now.
//!
//! Invariants:
//! 1. `data/variables/*.tsv` are the one list; every name, scope, type, range and default comes
//!    from them.
//! 2. A value is stored only after [`Definition::check`]: numbers out of range are clamped with
//!    a warning (1292), words that do not exist refused (1231), wrong types refused (1232).
//! 3. A session's values are a copy of the globals at login, shared until it sets one.

mod definition;
mod option;
mod origin;
mod text;
mod value;

pub use definition::{Definition, Kind, Registry, Scope, registry};
pub use option::parse_number;
pub use origin::Origin;
pub use value::{GlobalVariables, SessionVariables, SetInput, VariableValue};
