//! ALTER TABLE.

use super::{
    Check, ColumnSpecification, Expression, ForeignKey, IndexSpecification, PartitionBy,
    PartitionSpecification, TableMaintenance, TableName, TableOption,
};

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// ONLINE.
    pub online: bool,
    /// IGNORE.
    pub ignore: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Table.
    pub table: TableName,
    /// WAIT n, NOWAIT (0): seconds.
    pub wait_seconds: Option<u64>,
    /// What to do, in order.
    pub actions: Vec<AlterAction>,
}

/// Where a column goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    /// At the end (ADD) or where it is (MODIFY).
    Default,
    /// FIRST.
    First,
    /// AFTER column.
    After(String),
}

/// One action of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumn {
        /// Definition.
        column: Box<ColumnSpecification>,
        /// Place.
        place: ColumnPlace,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// MODIFY COLUMN (name is the column's own) and CHANGE COLUMN.
    ChangeColumn {
        /// Present name.
        name: String,
        /// New definition.
        column: Box<ColumnSpecification>,
        /// Place.
        place: ColumnPlace,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// DROP COLUMN.
    DropColumn {
        /// Column.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// RENAME COLUMN.
    RenameColumn {
        /// Present name.
        name: String,
        /// New name.
        to: String,
    },
    /// ALTER COLUMN SET DEFAULT, DROP DEFAULT.
    AlterDefault {
        /// Column.
        name: String,
        /// SET; none for DROP.
        default: Option<Expression>,
    },
    /// ADD INDEX, ADD PRIMARY KEY, ...
    AddIndex(Box<IndexSpecification>),
    /// DROP INDEX.
    DropIndex {
        /// Index.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// DROP PRIMARY KEY.
    DropPrimaryKey,
    /// RENAME INDEX.
    RenameIndex {
        /// Present name.
        name: String,
        /// New name.
        to: String,
    },
    /// ALTER INDEX name [NOT] IGNORED.
    AlterIndexIgnored {
        /// Index.
        name: String,
        /// IGNORED.
        ignored: bool,
    },
    /// ADD FOREIGN KEY.
    AddForeignKey(Box<ForeignKey>),
    /// DROP FOREIGN KEY.
    DropForeignKey {
        /// Constraint.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// ADD CHECK.
    AddCheck(Box<Check>),
    /// DROP CONSTRAINT.
    DropConstraint {
        /// Constraint.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// RENAME TO.
    Rename(TableName),
    /// CONVERT TO CHARACTER SET.
    ConvertCharset {
        /// Character set; none for DEFAULT.
        charset: Option<String>,
        /// COLLATE.
        collation: Option<String>,
    },
    /// Table options.
    Options(Vec<TableOption>),
    /// ORDER BY.
    OrderBy(Vec<String>),
    /// DISABLE KEYS (false), ENABLE KEYS (true).
    Keys(bool),
    /// PARTITION BY.
    PartitionBy(Box<PartitionBy>),
    /// ADD PARTITION.
    AddPartitions {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// PARTITIONS n.
        count: u64,
        /// Partitions that were written out.
        partitions: Vec<PartitionSpecification>,
    },
    /// DROP PARTITION.
    DropPartitions {
        /// IF EXISTS.
        if_exists: bool,
        /// Names.
        names: Vec<String>,
    },
    /// TRUNCATE PARTITION; no names for ALL.
    TruncatePartitions(Vec<String>),
    /// REBUILD PARTITION; no names for ALL.
    RebuildPartitions(Vec<String>),
    /// ANALYZE, CHECK, OPTIMIZE and REPAIR PARTITION: a statement of its own, whose table is that
    /// of the ALTER TABLE.
    MaintainPartitions(Box<TableMaintenance>),
    /// REORGANIZE PARTITION names INTO (...).
    ReorganizePartitions {
        /// Names.
        names: Vec<String>,
        /// What they become.
        partitions: Vec<PartitionSpecification>,
    },
    /// COALESCE PARTITION n.
    CoalescePartitions(u64),
    /// FORCE.
    Force,
    /// ALGORITHM = word, LOCK = word: name and value in capitals.
    Hint(String, String),
    /// DISCARD TABLESPACE, IMPORT TABLESPACE, partition and versioning actions, as written.
    Other(String),
}
