//! Capability flags of the handshake and status flags of answers.

/// Affected rows are those found, not those changed.
pub const FOUND_ROWS: u64 = 1 << 1;
/// The login names a database.
pub const CONNECT_WITH_DB: u64 = 1 << 3;
/// Packets travel in compressed frames after the login.
pub const COMPRESS: u64 = 1 << 5;
/// The client sends files for LOAD DATA LOCAL.
pub const LOCAL_FILES: u64 = 1 << 7;
/// Protocol 4.1; without it a client is refused.
pub const PROTOCOL_41: u64 = 1 << 9;
/// An interactive client: `interactive_timeout` instead of `wait_timeout`.
pub const INTERACTIVE: u64 = 1 << 10;
/// TLS is asked for.
pub const SSL: u64 = 1 << 11;
/// The authentication response has a length byte.
pub const SECURE_CONNECTION: u64 = 1 << 15;
/// A query may hold several statements.
pub const MULTI_STATEMENTS: u64 = 1 << 16;
/// An answer may hold several results.
pub const MULTI_RESULTS: u64 = 1 << 17;
/// The client names its authentication plugin.
pub const PLUGIN_AUTH: u64 = 1 << 19;
/// The login carries attributes.
pub const CONNECT_ATTRS: u64 = 1 << 20;
/// The authentication response has a length-encoded length.
pub const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
/// OK packets tell of changed session state.
pub const SESSION_TRACK: u64 = 1 << 23;
/// The client can be told to change its password first.
pub const CAN_HANDLE_EXPIRED_PASSWORDS: u64 = 1 << 22;
/// Results end with an OK packet, and no EOF follows the column definitions.
pub const DEPRECATE_EOF: u64 = 1 << 24;
/// MariaDB: one COM_STMT_BULK_EXECUTE carries the parameters of many executions.
pub const STMT_BULK_OPERATIONS: u64 = 1 << 34;
/// MariaDB: the client keeps column definitions of prepared statements.
pub const CACHE_METADATA: u64 = 1 << 36;

/// The flag that a MariaDB server does not set (it says "MySQL" there); its absence tells the
/// client to read the upper 32 flags.
const CLIENT_MYSQL: u64 = 1;

/// What this server offers: everything of MariaDB 10.11 but progress reports and extended
/// metadata. [`SSL`] is added where there is a certificate.
pub const SERVER: u64 = FOUND_ROWS
    | 1 << 2 // LONG_FLAG
    | CONNECT_WITH_DB
    | 1 << 4 // NO_SCHEMA
    | COMPRESS
    | 1 << 6 // ODBC
    | LOCAL_FILES
    | 1 << 8 // IGNORE_SPACE
    | PROTOCOL_41
    | INTERACTIVE
    | 1 << 12 // IGNORE_SIGPIPE
    | 1 << 13 // TRANSACTIONS
    | 1 << 14 // RESERVED, protocol 4.1 of old
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | 1 << 18 // PS_MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | CAN_HANDLE_EXPIRED_PASSWORDS
    | SESSION_TRACK
    | DEPRECATE_EOF
    | STMT_BULK_OPERATIONS
    | CACHE_METADATA;

/// The capabilities in force: what both sides have. The upper half counts only for clients
/// that know MariaDB.
pub fn negotiate(client: u64) -> u64 {
    let known = if client & CLIENT_MYSQL != 0 { client & 0xffff_ffff } else { client };
    known & SERVER
}

/// Status flags of OK and EOF packets.
pub mod status {
    /// A transaction is open.
    pub const IN_TRANS: u16 = 1;
    /// Autocommit is on.
    pub const AUTOCOMMIT: u16 = 2;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 8;
    /// No index was used.
    pub const NO_GOOD_INDEX_USED: u16 = 16;
    /// No index could be used.
    pub const NO_INDEX_USED: u16 = 32;
    /// A cursor has been opened.
    pub const CURSOR_EXISTS: u16 = 64;
    /// The cursor has given its last row.
    pub const LAST_ROW_SENT: u16 = 128;
    /// A database was dropped.
    pub const DB_DROPPED: u16 = 256;
    /// sql_mode has NO_BACKSLASH_ESCAPES.
    pub const NO_BACKSLASH_ESCAPES: u16 = 512;
    /// The metadata of a prepared statement changed.
    pub const METADATA_CHANGED: u16 = 1024;
    /// sql_mode has ANSI_QUOTES.
    pub const ANSI_QUOTES: u16 = 1 << 15;
    /// The OK packet carries changes of session state.
    pub const SESSION_STATE_CHANGED: u16 = 1 << 14;
    /// A read-only transaction is open.
    pub const IN_TRANS_READONLY: u16 = 1 << 13;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_mariadbs() {
        // MariaDB 10.11.19 sends f7fe 81ff 1d; ours lack progress reports and extended metadata.
        assert_eq!(SERVER & 0xffff, 0xf7fe);
        assert_eq!(SERVER >> 16 & 0xffff, 0x01ff);
        assert_eq!(SERVER >> 32, 0x14);
    }

    #[test]
    fn a_mysql_client_gets_no_mariadb_capabilities() {
        assert_eq!(negotiate(u64::MAX) >> 32, 0);
        assert_eq!(negotiate(!1), SERVER);
    }
}
