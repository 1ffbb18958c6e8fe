//! Names to positions, syntax to bound expressions, clauses to a logical block.
//!
//! Positions while a block is being bound are *virtual*, since the numbers of its outer columns
//! and subqueries are known only at its end:
//! * `0..` columns of its tables in the order of FROM;
//! * from [`OUTER`] columns of the enclosing block, in order of first use;
//! * from [`APPLY`] subqueries;
//! * from [`AGGREGATE`] aggregates;
//! * from [`window::WINDOW`] window functions.
//!
//! [`select`] brings them to the frame's positions that `physical` describes.

mod aggregate;
mod change;
mod change_join;
mod expression;
mod from;
mod function;
mod grouping;
mod guard;
mod insert;
mod items;
mod join_tree;
mod load;
pub(crate) mod merge;
mod name;
pub(crate) mod order;
mod partition;
mod query;
mod recursive;
mod select;
pub(crate) mod semijoin;
pub(crate) mod set;
pub(crate) mod source;
mod subquery;
pub(crate) mod table;
pub(crate) mod view;
pub(crate) mod view_text;
mod window;

use crate::context::PlanContext;
use crate::physical::{Apply, EntryHandle};
use catalog::Privilege;
use expr::aggregate::Aggregate;
use expr::{Builder, Expr, ResultType};
use std::sync::Arc;
use syntax::ast;
use types::{SqlError, SqlMode, codes};

/// First virtual position of outer columns.
pub(crate) const OUTER: usize = 1 << 24;
/// First virtual position of subqueries.
pub(crate) const APPLY: usize = 1 << 25;
/// First virtual position of aggregates.
pub(crate) const AGGREGATE: usize = 1 << 26;

/// Result of a binder function.
pub(crate) type Result<T> = std::result::Result<T, SqlError>;

/// The clause that an expression stands in, named as in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    Select,
    From,
    On,
    Where,
    GroupBy,
    Having,
    OrderBy,
    InsertInto,
    Values,
    OnDuplicate,
    Set,
    Returning,
}

impl Clause {
    /// MariaDB's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::From => "FROM",
            Self::On => "ON",
            Self::Where => "WHERE",
            Self::GroupBy => "GROUP BY",
            Self::Having => "HAVING",
            Self::OrderBy => "ORDER BY",
            Self::InsertInto => "INSERT INTO",
            Self::Values => "VALUES",
            Self::OnDuplicate => "UPDATE",
            Self::Set => "SET",
            Self::Returning => "RETURNING",
        }
    }

    /// Whether aggregates may stand here.
    fn allows_aggregates(self) -> bool {
        matches!(self, Self::Select | Self::Having | Self::OrderBy)
    }
}

/// A column that names can mean.
#[derive(Clone, Debug)]
pub(crate) struct NamedColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub result: ResultType,
    /// As messages print it.
    pub printed: Arc<str>,
    /// Name in the table that it comes from; empty for an expression.
    pub org_name: String,
    /// Table that it comes from, and its database; empty for an expression.
    pub org_table: String,
    /// See `org_table`.
    pub schema: String,
    /// Flags of the column definition.
    pub flags: u16,
}

/// The columns of a table that names can mean; those of a base table are described when they
/// are asked for.
#[derive(Clone, Debug)]
pub(crate) enum ColumnList {
    /// A table of the engine.
    Base(EntryHandle),
    /// A table of information_schema.
    Virtual(&'static catalog::information_schema::VirtualTable),
    /// Columns of a table under the names of a view.
    Mapped(view::MappedColumns),
    /// Columns as they are.
    Listed(Vec<NamedColumn>),
    /// Columns of a view over the tables that it became.
    Merged(Vec<merge::MergedColumn>),
}

/// A table as names see it.
#[derive(Clone, Debug)]
pub(crate) struct NamedTable {
    /// Alias or name.
    pub alias: String,
    /// Database; empty for a derived table.
    pub schema: String,
    /// Virtual position of its first column.
    pub first: usize,
    /// Columns.
    pub columns: ColumnList,
    /// Columns merged into others by USING or NATURAL: found only when qualified.
    pub hidden: Vec<usize>,
    /// On the inner side of an outer join: every column can be NULL.
    pub nullable: bool,
    /// The user may not read all of its columns.
    pub guard: Option<Arc<guard::Guard>>,
    /// PARTITION (...) behind its name; empty without.
    pub partitions: Vec<String>,
}

/// A select alias that other clauses may use.
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// Name of the item.
    pub name: String,
    /// Its value.
    pub expr: Expr,
}

/// A column of a block: the number of its table in [`Block::tables`], its offset there.
pub(crate) type Place = (usize, usize);

/// A block being bound.
pub(crate) struct Block {
    /// Tables of FROM.
    pub tables: Vec<NamedTable>,
    /// Virtual positions handed out to tables.
    pub columns: usize,
    /// Positions of the enclosing block, one per outer column.
    pub outer: Vec<usize>,
    /// Subqueries; `Apply::position` and all positions in them are virtual.
    pub applies: Vec<Apply>,
    /// Other forms of subqueries, by number.
    pub forms: Vec<(usize, semijoin::Forms)>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
    /// Window functions.
    pub windows: Vec<window::BoundWindow>,
    /// Select items by name.
    pub aliases: Vec<Alias>,
    /// Joins with USING or NATURAL: their tables, and the order in which `*` gives their columns.
    pub orders: Vec<(std::ops::Range<usize>, Vec<Place>)>,
    /// Clause being bound.
    pub clause: Clause,
    /// Inside of an aggregate's arguments.
    pub in_aggregate: bool,
    /// Columns that HAVING can name: selected ones, and those that are grouped by.
    pub having: Vec<usize>,
    /// Inside of a window function.
    pub in_window: bool,
    /// In ON DUPLICATE KEY UPDATE: virtual position of the first column of the row that was to
    /// be inserted.
    pub inserted_row: Option<usize>,
    /// Tables of merged views: they have columns, but no names.
    pub merged_tables: Vec<NamedTable>,
    /// Views that rows may be changed through.
    pub views: Vec<merge::ViewSource>,
}

impl Block {
    pub(crate) fn new() -> Self {
        Self {
            tables: Vec::new(),
            columns: 0,
            outer: Vec::new(),
            applies: Vec::new(),
            forms: Vec::new(),
            aggregates: Vec::new(),
            windows: Vec::new(),
            aliases: Vec::new(),
            having: Vec::new(),
            orders: Vec::new(),
            clause: Clause::Select,
            in_aggregate: false,
            in_window: false,
            inserted_row: None,
            merged_tables: Vec::new(),
            views: Vec::new(),
        }
    }

    /// A block whose names are bound already.
    pub(crate) fn of(columns: usize, outer: Vec<usize>, applies: Vec<Apply>) -> Self {
        Self { columns, outer, applies, ..Self::new() }
    }

    /// The virtual position of the enclosing block's `position`.
    fn outer_position(&mut self, position: usize) -> usize {
        let found = self.outer.iter().position(|known| *known == position);
        let number = found.unwrap_or_else(|| {
            self.outer.push(position);
            self.outer.len() - 1
        });
        OUTER + number
    }
}

/// A table of WITH that names can mean.
#[derive(Clone)]
struct CommonTableScope<'q> {
    table: &'q ast::CommonTable,
    /// Number of common tables visible to its definition.
    visible: usize,
    /// Its definition reads it.
    recursive: bool,
}

/// Binds one statement.
pub(crate) struct Binder<'c, 'a, 'q> {
    pub(crate) context: &'c mut PlanContext<'a>,
    /// Blocks from the outermost to the one being bound.
    pub(crate) blocks: Vec<Block>,
    /// Tables of WITH, innermost last.
    common: Vec<CommonTableScope<'q>>,
    /// WINDOW of the blocks that have one, with their depth.
    named_windows: Vec<(usize, &'q [(String, ast::WindowDefinition)])>,
    /// Recursive tables of WITH whose definitions are being bound.
    recursions: Vec<recursive::Open>,
    /// Recursive tables so far.
    recursion_count: usize,
    /// Tables of the engine that the statement reads or changes.
    pub(crate) entries: Vec<EntryHandle>,
    /// Those among them that stand in a block inside of the statement's own.
    pub(crate) inner_entries: Vec<EntryHandle>,
    /// The plan may be run again while schema and settings stay.
    pub(crate) reusable: bool,
    /// A parameter stands where the description of a column may depend on its value.
    pub(crate) described: bool,
    /// User variables that the statement assigns, as far as it was bound.
    pub(crate) assigned: std::collections::HashSet<String>,
    /// Deepest number of nested blocks is bounded.
    depth: usize,
    /// Views that are being looked at, the outermost first.
    views: Vec<(String, String)>,
    /// The first of them is being defined.
    defines_view: bool,
    /// The view through which rows are changed.
    target_view: Option<Box<view::SimpleView>>,
    /// The guard of the table opened last, until it stands in its block.
    guard: Option<Arc<guard::Guard>>,
    /// A name is bound as the target of an assignment, not to be read.
    assigns: bool,
    /// Tables of FROM may be opened by the right to update them alone.
    reads_targets: bool,
    /// The table that RETURNING of an INSERT is about, and its name there.
    inserted: Option<(Arc<catalog::TableEntry>, String)>,
    /// What the definer of a view must be allowed on its table.
    view_privilege: Privilege,
    /// Other forms are wanted of the query that is bound next.
    forms_request: Option<semijoin::FormsRequest>,
    /// Other forms of the query bound last.
    forms: Option<semijoin::Forms>,
    /// The query bound last, if it is one block inside of another, before it was planned.
    unplanned: Option<Arc<crate::optimize::merge::Unplanned>>,
    /// The same of the blocks of the set operation bound last; empty if that was something else.
    branches: Vec<Option<Arc<crate::optimize::merge::Unplanned>>>,
    /// Rows of the tables in FROM are changed, so views become their tables.
    merges_views: bool,
    /// The target is a view that is to be merged.
    wants_merge: bool,
    /// Number of merged views around what is being bound.
    inside_views: usize,
    /// The rights of their definer.
    rights: Option<Arc<catalog::UserPrivileges>>,
    /// What ON DUPLICATE KEY UPDATE reads of its SELECT.
    pub(crate) source: source::SourceColumns,
}

/// Most query blocks inside each other.
const BLOCKS_MAX: usize = 63;

impl<'c, 'a, 'q> Binder<'c, 'a, 'q> {
    pub(crate) fn new(context: &'c mut PlanContext<'a>) -> Self {
        Self {
            context,
            blocks: Vec::new(),
            common: Vec::new(),
            named_windows: Vec::new(),
            recursions: Vec::new(),
            recursion_count: 0,
            entries: Vec::new(),
            inner_entries: Vec::new(),
            inserted: None,
            reusable: true,
            described: false,
            assigned: Default::default(),
            depth: 0,
            views: Vec::new(),
            defines_view: false,
            target_view: None,
            guard: None,
            assigns: false,
            reads_targets: false,
            view_privilege: Privilege::Select,
            forms_request: None,
            forms: None,
            unplanned: None,
            branches: Vec::new(),
            merges_views: false,
            wants_merge: false,
            inside_views: 0,
            rights: None,
            source: source::SourceColumns::default(),
        }
    }

    /// The statement defines a view of this name: it is not yet known.
    pub(crate) fn define_view(&mut self, schema: &str, name: &str) {
        self.views.push((schema.to_string(), name.to_string()));
        self.defines_view = true;
    }

    /// Builds expressions under the session's settings.
    pub(crate) fn builder(&self) -> Builder<'a> {
        Builder::within(self.context.eval)
    }

    /// The block being bound.
    pub(crate) fn block(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("a block is pushed before anything is bound in it")
    }

    fn has_mode(&self, mode: SqlMode) -> bool {
        self.context.eval.settings.sql_mode.contains(mode)
    }

    /// Opens a block, bounded in depth.
    pub(crate) fn push_block(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > BLOCKS_MAX {
            return Err(unsupported("more than 63 nested query blocks"));
        }
        self.blocks.push(Block::new());
        Ok(())
    }

    /// Closes the innermost block.
    pub(crate) fn pop_block(&mut self) -> Block {
        self.depth -= 1;
        self.blocks.pop().expect("every pop has its push")
    }
}

/// Error 1235: parsed, but there is nothing that executes it yet.
pub(crate) fn unsupported(feature: &str) -> SqlError {
    SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature])
}
