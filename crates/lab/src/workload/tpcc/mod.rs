//! A workload like TPC-C's: five transactions on nine tables. It is not TPC-C: nothing is audited
//! or priced, terminals do not wait between transactions unless asked to, and results are NOPM (new
//! orders per minute), never tpmC.
//!
//! 1. A terminal has a home warehouse, and a district for its Stock-Level.
//! 2. The mix is a shuffled deck of 100 per terminal: 45 New-Order, 43 Payment, 4 of each other.
//! 3. Amounts are decimals from end to end, never binary fractions.
//! 4. Lines of a New-Order are worked on in the order of (warehouse, item), so that two of them do
//!    not wait for each other.
//! 5. The twelve consistency conditions of clause 3.3.2 hold after any run and any crash.
//!
//! Clauses are those of TPC-C revision 5.11.

mod acceptance;
mod client;
mod conditions;
mod load;
mod requests;
mod schema;
mod statements;

pub use conditions::{CONDITIONS, Condition, verify, violations};
pub use load::Load;
pub use schema::TABLES;

use crate::distribution::nonuniform::Constants;
use crate::driver::Operation;
use crate::workload::{self, Finding, Which, Workload};
use base::Random;
use std::sync::Arc;
use std::time::Duration;

/// Rows of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses, about 100 MB each at the full scale.
    pub warehouses: u64,
    /// Of a warehouse.
    pub districts: u64,
    /// Of a district, and its orders.
    pub customers: u64,
    /// Items, and stock of a warehouse.
    pub items: u64,
}

impl Scale {
    /// What TPC-C asks for.
    pub fn full(warehouses: u64) -> Self {
        Self { warehouses, districts: 10, customers: 3000, items: 100_000 }
    }

    /// Orders of a district that the load has delivered: seven tenths.
    pub fn delivered(&self) -> u64 {
        self.customers * 7 / 10
    }

    /// Numbers that last names are made of: three customers of a district share one.
    pub fn last_names(&self) -> u64 {
        (self.customers / 3).clamp(1, 1000)
    }
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much there is.
    pub scale: Scale,
    /// With the foreign keys of the specification.
    pub foreign_keys: bool,
    /// Keying and think times of clause 5.2.5; at most 12.86 new orders a minute and warehouse.
    pub think_times: bool,
    /// Decides the rows and what terminals do.
    pub seed: u64,
}

impl Options {
    fn constants(&self) -> Constants {
        Constants::draw(&mut Random::new(self.seed))
    }
}

/// See the module.
pub struct Tpcc {
    options: Arc<Options>,
}

impl Tpcc {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        Self { options: Arc::new(options) }
    }
}

impl Workload for Tpcc {
    fn operations(&self) -> Vec<&'static str> {
        requests::NAMES.to_vec()
    }

    fn statements(&self) -> Vec<String> {
        statements::texts()
    }

    fn client(&self, which: Which) -> Box<dyn workload::Client> {
        Box::new(client::Terminal::new(self.options.clone(), which))
    }

    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        acceptance::findings(operations, measured)
    }
}
