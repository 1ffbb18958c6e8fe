//! The error table, numbers below 1300 (the rest is in `codes_more`, re-exported here).
//! Generated from the server's own message file.

use super::ErrorCode;

pub use super::codes_more::*;

/// Declares rows as statics: `NAME = number, "state", "text";`.
macro_rules! error_codes {
    ($($name:ident = $number:literal, $sqlstate:literal, $template:literal;)*) => {
        $(
            #[doc = concat!("Error ", stringify!($number), ".")]
            pub static $name: ErrorCode = ErrorCode {
                number: $number,
                sqlstate: $sqlstate,
                name: stringify!($name),
                template: $template,
            };
        )*
        /// The rows declared here, by number.
        pub(super) static ROWS: &[&ErrorCode] = &[$(&$name),*];
    };
}

pub(super) use error_codes;

/// Finds a row by number.
pub fn by_number(number: u16) -> Option<&'static ErrorCode> {
    let rows =
        if number < super::codes_more::ROWS[0].number { ROWS } else { super::codes_more::ROWS };
    rows.binary_search_by_key(&number, |row| row.number).ok().map(|i| rows[i])
}

error_codes! {
    CANT_CREATE_FILE = 1004, "HY000", "Can't create file '{}' (errno: {})";
    CANT_CREATE_TABLE = 1005, "HY000", "Can't create table {Q}.{Q} (errno: {})";
    CANT_CREATE_DB = 1006, "HY000", "Can't create database '{}' (errno: {})";
    DB_CREATE_EXISTS = 1007, "HY000", "Can't create database '{}'; database exists";
    DB_DROP_EXISTS = 1008, "HY000", "Can't drop database '{}'; database doesn't exist";
    DB_DROP_RMDIR = 1010, "HY000", "Error dropping database (can't rmdir '{}', errno: {})";
    CANT_OPEN_FILE = 1016, "HY000", "Can't open file: '{}' (errno: {})";
    FILE_NOT_FOUND = 1017, "HY000", "Can't find file: '{}' (errno: {})";
    CHECKREAD = 1020, "HY000",
        "Record has changed since last read in table '{}'; try restarting transaction";
    DISK_FULL = 1021, "HY000",
        "Disk full ({}); waiting for someone to free some space... (errno: {})";
    DUP_KEY = 1022, "23000", "Can't write; duplicate key in table '{}'";
    GET_ERRNO = 1030, "HY000", "Got error {} from storage engine {}";
    ILLEGAL_HA = 1031, "HY000", "Storage engine {} of the table {Q}.{Q} doesn't have this option";
    KEY_NOT_FOUND = 1032, "HY000", "Can't find record in '{}'";
    NOT_KEYFILE = 1034, "HY000", "Index for table '{}' is corrupt; try to repair it";
    OPEN_AS_READONLY = 1036, "HY000", "Table '{}' is read only";
    OUTOFMEMORY = 1037, "HY001", "Out of memory; restart server and try again (needed {} bytes)";
    OUT_OF_SORTMEMORY = 1038, "HY001",
        "Out of sort memory, consider increasing server sort buffer size";
    CON_COUNT_ERROR = 1040, "08004", "Too many connections";
    OUT_OF_RESOURCES = 1041, "HY000", "Out of memory.";
    BAD_HOST_ERROR = 1042, "08S01", "Can't get hostname for your address";
    HANDSHAKE_ERROR = 1043, "08S01", "Bad handshake";
    DBACCESS_DENIED_ERROR = 1044, "42000", "Access denied for user '{}'@'{}' to database '{}'";
    ACCESS_DENIED_ERROR = 1045, "28000", "Access denied for user '{}'@'{}' (using password: {})";
    NO_DB_ERROR = 1046, "3D000", "No database selected";
    UNKNOWN_COM_ERROR = 1047, "08S01", "Unknown command";
    BAD_NULL_ERROR = 1048, "23000", "Column '{}' cannot be null";
    BAD_DB_ERROR = 1049, "42000", "Unknown database '{}'";
    TABLE_EXISTS_ERROR = 1050, "42S01", "Table '{}' already exists";
    BAD_TABLE_ERROR = 1051, "42S02", "Unknown table '{T100}'";
    NON_UNIQ_ERROR = 1052, "23000", "Column '{}' in {} is ambiguous";
    SERVER_SHUTDOWN = 1053, "08S01", "Server shutdown in progress";
    BAD_FIELD_ERROR = 1054, "42S22", "Unknown column '{}' in '{}'";
    WRONG_FIELD_WITH_GROUP = 1055, "42000", "'{}' isn't in GROUP BY";
    WRONG_GROUP_FIELD = 1056, "42000", "Can't group on '{}'";
    WRONG_SUM_SELECT = 1057, "42000", "Statement has sum functions and columns in same statement";
    WRONG_VALUE_COUNT = 1058, "21S01", "Column count doesn't match value count";
    TOO_LONG_IDENT = 1059, "42000", "Identifier name '{T100}' is too long";
    DUP_FIELDNAME = 1060, "42S21", "Duplicate column name '{}'";
    DUP_KEYNAME = 1061, "42000", "Duplicate key name '{}'";
    DUP_ENTRY = 1062, "23000", "Duplicate entry '{T192}' for key '{T192}'";
    WRONG_FIELD_SPEC = 1063, "42000", "Incorrect column specifier for column '{}'";
    PARSE_ERROR = 1064, "42000", "{} near '{T80}' at line {}";
    EMPTY_QUERY = 1065, "42000", "Query was empty";
    NONUNIQ_TABLE = 1066, "42000", "Not unique table/alias: '{}'";
    INVALID_DEFAULT = 1067, "42000", "Invalid default value for '{}'";
    MULTIPLE_PRI_KEY = 1068, "42000", "Multiple primary key defined";
    TOO_MANY_KEYS = 1069, "42000", "Too many keys specified; max {} keys allowed";
    TOO_MANY_KEY_PARTS = 1070, "42000", "Too many key parts specified; max {} parts allowed";
    TOO_LONG_KEY = 1071, "42000", "Specified key was too long; max key length is {} bytes";
    KEY_COLUMN_DOES_NOT_EXIST = 1072, "42000", "Key column '{}' doesn't exist in table";
    BLOB_USED_AS_KEY = 1073, "42000",
        "BLOB column {Q} can't be used in key specification in the {} table";
    TOO_BIG_FIELDLENGTH = 1074, "42000",
        "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    WRONG_AUTO_KEY = 1075, "42000",
        "Incorrect table definition; there can be only one auto column and it must be defined \
         as a key";
    NORMAL_SHUTDOWN = 1077, "HY000", "{} (initiated by: {}): Normal shutdown";
    NO_SUCH_INDEX = 1082, "42S12",
        "Table '{}' has no index like the one used in CREATE INDEX; recreate the table";
    WRONG_FIELD_TERMINATORS = 1083, "42000",
        "Field separator argument is not what is expected; check the manual";
    BLOBS_AND_NO_TERMINATED = 1084, "42000",
        "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
    FILE_EXISTS_ERROR = 1086, "HY000", "File '{}' already exists";
    WRONG_SUB_KEY = 1089, "HY000",
        "Incorrect prefix key; the used key part isn't a string, the used length is longer \
         than the key part, or the storage engine doesn't support unique prefix keys";
    CANT_REMOVE_ALL_FIELDS = 1090, "42000",
        "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CANT_DROP_FIELD_OR_KEY = 1091, "42000", "Can't DROP {} {Q}; check that it exists";
    UPDATE_TABLE_USED = 1093, "HY000",
        "Table '{}' is specified twice, both as a target for '{}' and as a separate source \
         for data";
    NO_SUCH_THREAD = 1094, "HY000", "Unknown thread id: {}";
    KILL_DENIED_ERROR = 1095, "HY000", "You are not owner of thread {}";
    NO_TABLES_USED = 1096, "HY000", "No tables used";
    TOO_BIG_SET = 1097, "HY000", "Too many strings for column {} and SET";
    TABLE_NOT_LOCKED_FOR_WRITE = 1099, "HY000",
        "Table '{}' was locked with a READ lock and can't be updated";
    TABLE_NOT_LOCKED = 1100, "HY000", "Table '{}' was not locked with LOCK TABLES";
    WRONG_DB_NAME = 1102, "42000", "Incorrect database name '{T100}'";
    WRONG_TABLE_NAME = 1103, "42000", "Incorrect table name '{}'";
    TOO_BIG_SELECT = 1104, "42000",
        "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET \
         SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    UNKNOWN_ERROR = 1105, "HY000", "Unknown error";
    WRONG_PARAMETERS_TO_PROCEDURE = 1108, "HY000", "Incorrect parameters to procedure '{}'";
    UNKNOWN_TABLE = 1109, "42S02", "Unknown table '{}' in {}";
    FIELD_SPECIFIED_TWICE = 1110, "42000", "Column '{}' specified twice";
    INVALID_GROUP_FUNC_USE = 1111, "HY000", "Invalid use of group function";
    UNSUPPORTED_EXTENSION = 1112, "42000",
        "Table '{}' uses an extension that doesn't exist in this MariaDB version";
    TABLE_MUST_HAVE_COLUMNS = 1113, "42000", "A table must have at least 1 column";
    RECORD_FILE_FULL = 1114, "HY000", "The table '{}' is full";
    UNKNOWN_CHARACTER_SET = 1115, "42000", "Unknown character set: '{}'";
    TOO_MANY_TABLES = 1116, "HY000", "Too many tables; MariaDB can only use {} tables in a join";
    TOO_MANY_FIELDS = 1117, "HY000", "Too many columns";
    TOO_BIG_ROWSIZE = 1118, "42000",
        "Row size too large. The maximum row size for the used table type, not counting \
         BLOBs, is {}. This includes storage overhead, check the manual. You have to change \
         some columns to TEXT or BLOBs";
    STACK_OVERRUN = 1119, "HY000",
        "Thread stack overrun:  Used: {} of a {} stack.  Use 'mariadbd --thread_stack=#' to \
         specify a bigger stack if needed";
    WRONG_OUTER_JOIN = 1120, "42000",
        "Cross dependency found in OUTER JOIN; examine your ON conditions";
    NULL_COLUMN_IN_INDEX = 1121, "42000",
        "Table handler doesn't support NULL in given index. Please change column '{}' to be \
         NOT NULL or use another handler";
    FUNCTION_NOT_DEFINED = 1128, "HY000", "Function '{}' is not defined";
    HOST_IS_BLOCKED = 1129, "HY000",
        "Host '{}' is blocked because of many connection errors; unblock with 'mariadb-admin \
         flush-hosts'";
    HOST_NOT_PRIVILEGED = 1130, "HY000",
        "Host '{}' is not allowed to connect to this MariaDB server";
    PASSWORD_NOT_ALLOWED = 1132, "42000",
        "You must have privileges to update tables in the mysql database to be able to change \
         passwords for others";
    PASSWORD_NO_MATCH = 1133, "28000", "Can't find any matching row in the user table";
    WRONG_VALUE_COUNT_ON_ROW = 1136, "21S01", "Column count doesn't match value count at row {}";
    CANT_REOPEN_TABLE = 1137, "HY000", "Can't reopen table: '{}'";
    INVALID_USE_OF_NULL = 1138, "22004", "Invalid use of NULL value";
    REGEXP_ERROR = 1139, "42000", "Regex error '{}'";
    MIX_OF_GROUP_FUNC_AND_FIELDS = 1140, "42000",
        "Mixing of GROUP columns (MIN(),MAX(),COUNT(),...) with no GROUP columns is illegal \
         if there is no GROUP BY clause";
    NONEXISTING_GRANT = 1141, "42000", "There is no such grant defined for user '{}' on host '{}'";
    TABLEACCESS_DENIED_ERROR = 1142, "42000",
        "{T100} command denied to user '{}'@'{}' for table {Q}.{Q}";
    COLUMNACCESS_DENIED_ERROR = 1143, "42000",
        "{} command denied to user '{}'@'{}' for column '{}' in table '{}'";
    ILLEGAL_GRANT_FOR_TABLE = 1144, "42000",
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can \
         be used";
    NO_SUCH_TABLE = 1146, "42S02", "Table '{}.{}' doesn't exist";
    NONEXISTING_TABLE_GRANT = 1147, "42000",
        "There is no such grant defined for user '{}' on host '{}' on table '{}'";
    NOT_ALLOWED_COMMAND = 1148, "42000",
        "The used command is not allowed with this MariaDB version";
    SYNTAX_ERROR = 1149, "42000",
        "You have an error in your SQL syntax; check the manual that corresponds to your \
         MariaDB server version for the right syntax to use";
    ABORTING_CONNECTION = 1152, "08S01", "Aborted connection {} to db: '{}' user: '{}' ({})";
    NET_PACKET_TOO_LARGE = 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes";
    NET_PACKETS_OUT_OF_ORDER = 1156, "08S01", "Got packets out of order";
    NET_UNCOMPRESS_ERROR = 1157, "08S01", "Couldn't uncompress communication packet";
    NET_READ_ERROR = 1158, "08S01", "Got an error reading communication packets";
    NET_READ_INTERRUPTED = 1159, "08S01", "Got timeout reading communication packets";
    NET_ERROR_ON_WRITE = 1160, "08S01", "Got an error writing communication packets";
    NET_WRITE_INTERRUPTED = 1161, "08S01", "Got timeout writing communication packets";
    TOO_LONG_STRING = 1162, "42000", "Result string is longer than 'max_allowed_packet' bytes";
    TABLE_CANT_HANDLE_BLOB = 1163, "42000", "Storage engine {} doesn't support BLOB/TEXT columns";
    TABLE_CANT_HANDLE_AUTO_INCREMENT = 1164, "42000",
        "Storage engine {} doesn't support AUTO_INCREMENT columns";
    WRONG_COLUMN_NAME = 1166, "42000", "Incorrect column name '{}'";
    WRONG_KEY_COLUMN = 1167, "42000", "The storage engine {} can't index column {Q}";
    BLOB_KEY_WITHOUT_LENGTH = 1170, "42000",
        "BLOB/TEXT column '{}' used in key specification without a key length";
    PRIMARY_CANT_HAVE_NULL = 1171, "42000",
        "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE \
         instead";
    TOO_MANY_ROWS = 1172, "42000", "Result consisted of more than one row";
    REQUIRES_PRIMARY_KEY = 1173, "42000", "This table type requires a primary key";
    UPDATE_WITHOUT_KEY_IN_SAFE_MODE = 1175, "HY000",
        "You are using safe update mode and you tried to update a table without a WHERE that \
         uses a KEY column";
    KEY_DOES_NOT_EXISTS = 1176, "42000", "Key '{}' doesn't exist in table '{}'";
    CHECK_NOT_IMPLEMENTED = 1178, "42000", "The storage engine for the table doesn't support {}";
    CANT_DO_THIS_DURING_AN_TRANSACTION = 1179, "25000",
        "You are not allowed to execute this command in a transaction";
    ERROR_DURING_COMMIT = 1180, "HY000", "Got error {} during COMMIT";
    ERROR_DURING_ROLLBACK = 1181, "HY000", "Got error {} during ROLLBACK";
    MASTER_NET_WRITE = 1190, "08S01", "Net error writing to master";
    LOCK_OR_ACTIVE_TRANSACTION = 1192, "HY000",
        "Can't execute the given command because you have active locked tables or an active \
         transaction";
    UNKNOWN_SYSTEM_VARIABLE = 1193, "HY000", "Unknown system variable '{}'";
    CRASHED_ON_USAGE = 1194, "HY000", "Table '{}' is marked as crashed and should be repaired";
    WARNING_NOT_COMPLETE_ROLLBACK = 1196, "HY000",
        "Some non-transactional changed tables couldn't be rolled back";
    TOO_MANY_USER_CONNECTIONS = 1203, "42000",
        "User {} already has more than 'max_user_connections' active connections";
    SET_CONSTANTS_ONLY = 1204, "HY000", "You may only use constant expressions in this statement";
    LOCK_WAIT_TIMEOUT = 1205, "HY000", "Lock wait timeout exceeded; try restarting transaction";
    LOCK_TABLE_FULL = 1206, "HY000", "The total number of locks exceeds the lock table size";
    READ_ONLY_TRANSACTION = 1207, "25000",
        "Update locks cannot be acquired during a READ UNCOMMITTED transaction";
    WRONG_ARGUMENTS = 1210, "HY000", "Incorrect arguments to {}";
    NO_PERMISSION_TO_CREATE_USER = 1211, "42000", "'{}'@'{}' is not allowed to create new users";
    LOCK_DEADLOCK = 1213, "40001",
        "Deadlock found when trying to get lock; try restarting transaction";
    TABLE_CANT_HANDLE_FT = 1214, "HY000", "The storage engine {} doesn't support FULLTEXT indexes";
    CANNOT_ADD_FOREIGN = 1215, "HY000", "Cannot add foreign key constraint for `{}`";
    NO_REFERENCED_ROW = 1216, "23000",
        "Cannot add or update a child row: a foreign key constraint fails";
    ROW_IS_REFERENCED = 1217, "23000",
        "Cannot delete or update a parent row: a foreign key constraint fails";
    WRONG_USAGE = 1221, "HY000", "Incorrect usage of {} and {}";
    WRONG_NUMBER_OF_COLUMNS_IN_SELECT = 1222, "21000",
        "The used SELECT statements have a different number of columns";
    CANT_UPDATE_WITH_READLOCK = 1223, "HY000",
        "Can't execute the query because you have a conflicting read lock";
    DUP_ARGUMENT = 1225, "HY000", "Option '{}' used twice in statement";
    USER_LIMIT_REACHED = 1226, "42000",
        "User '{}' has exceeded the '{}' resource (current value: {})";
    SPECIFIC_ACCESS_DENIED_ERROR = 1227, "42000",
        "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    LOCAL_VARIABLE = 1228, "HY000",
        "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    GLOBAL_VARIABLE = 1229, "HY000",
        "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    NO_DEFAULT = 1230, "42000", "Variable '{}' doesn't have a default value";
    WRONG_VALUE_FOR_VAR = 1231, "42000", "Variable '{}' can't be set to the value of '{T200}'";
    WRONG_TYPE_FOR_VAR = 1232, "42000", "Incorrect argument type to variable '{}'";
    VAR_CANT_BE_READ = 1233, "HY000", "Variable '{}' can only be set, not read";
    CANT_USE_OPTION_HERE = 1234, "42000", "Incorrect usage/placement of '{}'";
    NOT_SUPPORTED_YET = 1235, "42000", "This version of MariaDB doesn't yet support '{}'";
    INCORRECT_GLOBAL_LOCAL_VAR = 1238, "HY000", "Variable '{}' is a {} variable";
    WRONG_FK_DEF = 1239, "42000", "Incorrect foreign key definition for '{}': {}";
    KEY_REF_DO_NOT_MATCH_TABLE_REF = 1240, "HY000", "Key reference and table reference don't match";
    OPERAND_COLUMNS = 1241, "21000", "Operand should contain {} column(s)";
    SUBQUERY_NO_1_ROW = 1242, "21000", "Subquery returns more than 1 row";
    UNKNOWN_STMT_HANDLER = 1243, "HY000", "Unknown prepared statement handler ({}) given to {}";
    AUTO_CONVERT = 1246, "HY000", "Converting column '{}' from {} to {}";
    ILLEGAL_REFERENCE = 1247, "42S22", "Reference '{}' not supported ({})";
    DERIVED_MUST_HAVE_ALIAS = 1248, "42000", "Every derived table must have its own alias";
    SELECT_REDUCED = 1249, "01000", "Select {} was reduced during optimization";
    TABLENAME_NOT_ALLOWED_HERE = 1250, "42000",
        "Table '{}' from one of the SELECTs cannot be used in {}";
    NOT_SUPPORTED_AUTH_MODE = 1251, "08004",
        "Client does not support authentication protocol requested by server; consider \
         upgrading MariaDB client";
    COLLATION_CHARSET_MISMATCH = 1253, "42000",
        "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    ZLIB_Z_BUF_ERROR = 1258, "HY000",
        "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data \
         was corrupted)";
    TOO_BIG_FOR_UNCOMPRESS = 1256, "HY000",
        "Uncompressed data size too large; the maximum size is {} (probably, length of \
         uncompressed data was corrupted)";
    ZLIB_Z_DATA_ERROR = 1259, "HY000", "ZLIB: Input data corrupted";
    CUT_VALUE_GROUP_CONCAT = 1260, "HY000", "Row {} was cut by {})";
    WARN_TOO_FEW_RECORDS = 1261, "01000", "Row {} doesn't contain data for all columns";
    WARN_TOO_MANY_RECORDS = 1262, "01000",
        "Row {} was truncated; it contained more data than there were input columns";
    WARN_NULL_TO_NOTNULL = 1263, "22004",
        "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    WARN_DATA_OUT_OF_RANGE = 1264, "22003", "Out of range value for column '{}' at row {}";
    WARN_DATA_TRUNCATED = 1265, "01000", "Data truncated for column '{}' at row {}";
    CANT_AGGREGATE_2COLLATIONS = 1267, "HY000",
        "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    CANT_AGGREGATE_3COLLATIONS = 1270, "HY000",
        "Illegal mix of collations ({},{}), ({},{}), ({},{}) for operation '{}'";
    CANT_AGGREGATE_NCOLLATIONS = 1271, "HY000", "Illegal mix of collations for operation '{}'";
    UNKNOWN_COLLATION = 1273, "HY000", "Unknown collation: '{}'";
    SERVER_IS_IN_SECURE_AUTH_MODE = 1275, "HY000",
        "Server is running in --secure-auth mode, but '{}'@'{}' has a password in the old \
         format; please change the password to the new format";
    WRONG_NAME_FOR_INDEX = 1280, "42000", "Incorrect index name '{}'";
    UNKNOWN_STORAGE_ENGINE = 1286, "42000", "Unknown storage engine '{}'";
    WARN_DEPRECATED_SYNTAX = 1287, "HY000",
        "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    NON_UPDATABLE_TABLE = 1288, "HY000", "The target table {} of the {} is not updatable";
    FEATURE_DISABLED = 1289, "HY000",
        "The '{}' feature is disabled; you need MariaDB built with '{}' to have it working";
    OPTION_PREVENTS_STATEMENT = 1290, "HY000",
        "The MariaDB server is running with the {} option so it cannot execute this statement";
    DUPLICATED_VALUE_IN_TYPE = 1291, "HY000", "Column '{}' has duplicated value '{}' in {}";
    TRUNCATED_WRONG_VALUE = 1292, "22007", "Truncated incorrect {T32} value: '{T128}'";
    INVALID_ON_UPDATE = 1294, "HY000", "Invalid ON UPDATE clause for '{}' column";
    UNSUPPORTED_PS = 1295, "HY000",
        "This command is not supported in the prepared statement protocol yet";
    GET_ERRMSG = 1296, "HY000", "Got error {} '{}' from {}";
}
