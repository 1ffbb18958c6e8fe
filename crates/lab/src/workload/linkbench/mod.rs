//! LinkBench: a social graph of nodes and of typed, directed links between them, with a count of
//! visible links for each id and type.
//!
//! 1. The degree of an id is a function of the id, the same in the load and in the requests.
//! 2. For every id and type `counttable.count` is the number of links with visibility 1. Requests
//!    keep this, whatever they meet; `verify` checks it.
//! 3. Only ids of the load are asked for: nodes added later are never read, deleted ones are
//!    missed.
//! 4. [`Compatibility::Quirks`] does what the program does whose results were published,
//!    [`Compatibility::Documented`] what its documentation says.

mod client;
mod graph;
mod load;
mod requests;
mod statements;
mod verify;

pub use load::Load;
pub use verify::verify;

use crate::workload::{self, Which, Workload};
use graph::Graph;
use std::sync::Arc;

/// Which of two programs to be: see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// The program's faults included.
    Quirks,
    /// As documented.
    Documented,
}

/// Shares of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// The default of the program, of 2013: 31 % writes.
    Original,
    /// What a cache in front leaves over, of 2015: 17 % writes.
    Cached,
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first id.
    pub first_id: u64,
    /// Above the last id of the load.
    pub end_id: u64,
    /// Types of links.
    pub link_types: u64,
    /// Links of an id at most. The published graph has no bound: its first id has 961,963 links,
    /// however few ids there are.
    pub degree_max: u64,
    /// The shares of operations.
    pub mix: Mix,
    /// See the module.
    pub compatibility: Compatibility,
    /// Decides the graph and what clients ask.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            first_id: 1,
            end_id: 10_000_001,
            link_types: 2,
            degree_max: u64::MAX,
            mix: Mix::Original,
            compatibility: Compatibility::Quirks,
            seed: 1,
        }
    }
}

/// Number of the first type of links.
pub(crate) const FIRST_LINK_TYPE: u64 = 123_456_789;
/// The type of all nodes.
pub(crate) const NODE_TYPE: u64 = 2048;
/// Payloads are bytes of latin1, as the tables have them.
pub(crate) const SESSION: &str = "SET NAMES latin1";
/// Rows of a list at most.
pub(crate) const LIST_ROWS_MAX: u64 = 10_000;

/// See the module.
pub struct LinkBench {
    graph: Arc<Graph>,
}

impl LinkBench {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        Self { graph: Arc::new(Graph::new(options)) }
    }
}

impl Workload for LinkBench {
    fn operations(&self) -> Vec<&'static str> {
        requests::Kind::ALL.iter().map(|kind| kind.name()).collect()
    }

    fn statements(&self) -> Vec<String> {
        statements::texts()
    }

    fn connections(&self) -> usize {
        2
    }

    fn client(&self, which: Which) -> Box<dyn workload::Client> {
        Box::new(client::Client::new(self.graph.clone(), which))
    }
}
