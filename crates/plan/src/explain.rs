//! EXPLAIN in MariaDB's columns.
use crate::physical::Plan;
/// x
pub fn explain(_plan: &Plan) {}
