//! Variables that statements read on their way, decoded once when they are set.

use crate::variables::{SessionVariables, registry};
use engine_api::Isolation;
use exec::Budgets;
use std::time::Duration;
use syntax::ParseOptions;
use types::{Charset, CollationId, SqlMode, TimeZone, collation};

/// Decoded settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// autocommit.
    pub autocommit: bool,
    /// tx_isolation.
    pub isolation: Isolation,
    /// tx_read_only.
    pub read_only: bool,
    /// innodb_snapshot_isolation.
    pub snapshot_isolation: bool,
    /// innodb_lock_wait_timeout.
    pub row_lock_timeout: Duration,
    /// lock_wait_timeout.
    pub metadata_lock_timeout: Duration,
    /// sql_mode.
    pub sql_mode: SqlMode,
    /// How statements are read.
    pub parse: ParseOptions,
    /// character_set_client.
    pub client: Charset,
    /// character_set_results' collation; none leaves text as it is.
    pub results: Option<CollationId>,
    /// collation_connection.
    pub connection: CollationId,
    /// time_zone.
    pub time_zone: TimeZone,
    /// max_statement_time; none is no limit.
    pub statement_limit: Option<Duration>,
    /// sql_select_limit.
    pub select_limit: u64,
    /// max_recursive_iterations.
    pub recursion_limit: u64,
    /// max_allowed_packet, bytes.
    pub packet_bytes_max: usize,
    /// auto_increment_increment.
    pub auto_increment_increment: u64,
    /// auto_increment_offset.
    pub auto_increment_offset: u64,
    /// session_track_schema.
    pub track_schema: bool,
    /// session_track_state_change.
    pub track_state: bool,
    /// thread_pool_priority.
    pub priority: Priority,
    /// completion_type: what follows COMMIT and ROLLBACK.
    pub completion: CompletionType,
    /// net_read_timeout.
    pub read_timeout: Duration,
    /// wait_timeout.
    pub wait_timeout: Duration,
    /// interactive_timeout.
    pub interactive_timeout: Duration,
    /// use_stat_tables, with optimizer_use_condition_selectivity.
    pub stat_tables: plan::StatTables,
    /// sort_buffer_size, join_buffer_size, tmp_table_size with max_heap_table_size.
    pub budgets: Budgets,
}

/// Which statements go first when there are more than the workers can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// All of this session.
    High,
    /// None of this session.
    Low,
    /// Those within open transactions, since others may wait for their locks.
    Auto,
}

/// What COMMIT and ROLLBACK do when they do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionType {
    /// The session goes on.
    NoChain,
    /// The next transaction begins.
    Chain,
    /// The connection ends.
    Release,
}

impl Settings {
    /// Decodes a session's variables.
    pub fn decode(variables: &SessionVariables) -> Self {
        let text = |name| variables.value(name).show();
        let number = |name| variables.value(name).number();
        let on = |name| variables.value(name).is_on();
        let seconds = |name| Duration::from_secs(number(name).max(1));
        let sql_mode = SqlMode::parse(&text("sql_mode")).unwrap_or(SqlMode::DEFAULT);
        let client = Charset::by_name(&text("character_set_client")).unwrap_or(Charset::Utf8mb4);
        let results = Charset::by_name(&text("character_set_results"));
        let statement_limit = match variables.value("max_statement_time") {
            crate::variables::VariableValue::Double(seconds) if *seconds > 0.0 => {
                Some(Duration::from_secs_f64(*seconds))
            }
            _ => None,
        };
        Self {
            autocommit: on("autocommit"),
            isolation: isolation(&text("tx_isolation")),
            read_only: on("tx_read_only"),
            snapshot_isolation: on("innodb_snapshot_isolation"),
            row_lock_timeout: Duration::from_secs(number("innodb_lock_wait_timeout")),
            metadata_lock_timeout: Duration::from_secs(number("lock_wait_timeout")),
            sql_mode,
            parse: parse_options(sql_mode, client),
            client,
            results: results.map(|charset| {
                let chosen = variables.results_collation;
                chosen
                    .filter(|collation| collation.charset() == charset)
                    .unwrap_or_else(|| collation::default_of(charset).id)
            }),
            connection: collation::by_name(&text("collation_connection"))
                .map_or(CollationId::UTF8MB4_GENERAL_CI, |collation| collation.id),
            time_zone: TimeZone::parse(&text("time_zone")).unwrap_or_default(),
            statement_limit,
            select_limit: number("sql_select_limit"),
            recursion_limit: number("max_recursive_iterations"),
            packet_bytes_max: number("max_allowed_packet") as usize,
            auto_increment_increment: number("auto_increment_increment").max(1),
            auto_increment_offset: number("auto_increment_offset").max(1),
            track_schema: on("session_track_schema"),
            track_state: on("session_track_state_change"),
            priority: match text("thread_pool_priority").as_str() {
                "high" => Priority::High,
                "low" => Priority::Low,
                _ => Priority::Auto,
            },
            completion: match text("completion_type").as_str() {
                "CHAIN" => CompletionType::Chain,
                "RELEASE" => CompletionType::Release,
                _ => CompletionType::NoChain,
            },
            read_timeout: seconds("net_read_timeout"),
            wait_timeout: seconds("wait_timeout"),
            interactive_timeout: seconds("interactive_timeout"),
            stat_tables: stat_tables(variables),
            budgets: budgets(variables),
        }
    }

    /// The same for expressions.
    pub fn for_expressions(&self, variables: &SessionVariables) -> expr::Settings {
        let number = |name| variables.value(name).number();
        expr::Settings {
            sql_mode: self.sql_mode,
            collation: self.connection,
            time_zone: self.time_zone,
            div_precision_increment: number("div_precision_increment") as u8,
            default_week_format: number("default_week_format") as u32,
            warnings_max: number("max_error_count") as usize,
            group_concat_max_len: number("group_concat_max_len") as usize,
            max_allowed_packet: self.packet_bytes_max,
            foreign_key_checks: variables.value("foreign_key_checks").is_on(),
            compress_tables: variables.value("innodb_compression_default").is_on(),
            strict_table_options: variables.value("innodb_strict_mode").is_on(),
        }
    }
}

/// COMPLEMENTARY takes what the engine does not have: in MariaDB that is what columns hold.
fn stat_tables(variables: &SessionVariables) -> plan::StatTables {
    let wish = variables.value("use_stat_tables").show().to_ascii_uppercase();
    let level = variables.value("optimizer_use_condition_selectivity").number();
    plan::StatTables {
        counts: wish.starts_with("PREFERABLY"),
        columns: wish != "NEVER" && level >= 3,
    }
}

/// What an operator may keep in memory while its variable has its default, bytes.
const AUTOMATIC_BYTES: u64 = 256 << 20;

/// Variables that were set limit strictly; at their defaults, which are those of a server that
/// allocates them whole, an operator may keep more.
fn budgets(variables: &SessionVariables) -> Budgets {
    let budget = |name: &'static str| {
        let value = variables.value(name);
        let default = registry().find(name).map(|definition| &definition.default);
        match default == Some(value) {
            true => AUTOMATIC_BYTES,
            false => value.number(),
        }
    };
    Budgets {
        sort: budget("sort_buffer_size"),
        join: budget("join_buffer_size"),
        table: budget("tmp_table_size")
            .min(budget("tmp_memory_table_size"))
            .min(budget("max_heap_table_size")),
    }
}

fn parse_options(mode: SqlMode, client: Charset) -> ParseOptions {
    ParseOptions {
        ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
        pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
        no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
        high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        ignore_space: mode.contains(SqlMode::IGNORE_SPACE),
        parameters: false,
        latin1_identifiers: client == Charset::Latin1,
        kept: false,
    }
}

/// The level that a value of tx_isolation names.
pub fn isolation(text: &str) -> Isolation {
    match text {
        "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
        "READ-COMMITTED" => Isolation::ReadCommitted,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => Isolation::RepeatableRead,
    }
}

/// The value of tx_isolation for a level.
pub fn isolation_text(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        Isolation::ReadCommitted => "READ-COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE-READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}
