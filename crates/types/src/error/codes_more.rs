//! The upper half of the error table; see `codes`.

use super::ErrorCode;
use super::codes::error_codes;

error_codes! {
    UNKNOWN_TIME_ZONE = 1298, "HY000", "Unknown or incorrect time zone: '{}'";
    WARN_INVALID_TIMESTAMP = 1299, "HY000", "Invalid TIMESTAMP value in column '{}' at row {}";
    INVALID_CHARACTER_STRING = 1300, "HY000", "Invalid {} character string: '{T64}'";
    WARN_ALLOWED_PACKET_OVERFLOWED = 1301, "HY000",
        "Result of {}() was larger than max_allowed_packet ({}) - truncated";
    SP_DOES_NOT_EXIST = 1305, "42000", "{} {} does not exist";
    QUERY_INTERRUPTED = 1317, "70100", "Query execution was interrupted";
    SP_WRONG_NO_OF_ARGS = 1318, "42000",
        "Incorrect number of arguments for {} {}; expected {}, got {}";
    SP_FETCH_NO_DATA = 1329, "02000", "No data - zero rows fetched, selected, or processed";
    SP_SUBSELECT_NYI = 1335, "0A000", "Subquery value not supported";
    STMT_NOT_ALLOWED_IN_SF_OR_TRG = 1336, "0A000",
        "{} is not allowed in stored function or trigger";
    FPARSER_BAD_HEADER = 1341, "HY000", "Malformed file type header in file '{}'";
    WRONG_OBJECT = 1347, "HY000", "'{}.{}' is not of type '{}'";
    NONUPDATEABLE_COLUMN = 1348, "HY000", "Column '{}' is not updatable";
    VIEW_SELECT_DERIVED = 1349, "HY000", "View's SELECT contains a subquery in the FROM clause";
    VIEW_SELECT_VARIABLE = 1351, "HY000", "View's SELECT contains a variable or parameter";
    VIEW_WRONG_LIST = 1353, "HY000",
        "View's SELECT and view's field list have different column counts";
    VIEW_INVALID = 1356, "HY000",
        "View '{}.{}' references invalid table(s) or column(s) or function(s) or \
         definer/invoker of view lack rights to use them";
    NO_DEFAULT_FOR_FIELD = 1364, "HY000", "Field '{}' doesn't have a default value";
    DIVISION_BY_ZERO = 1365, "22012", "Division by 0";
    TRUNCATED_WRONG_VALUE_FOR_FIELD = 1366, "22007",
        "Incorrect {} value: '{T128}' for column `{}`.`{}`.`{}` at row {}";
    ILLEGAL_VALUE_FOR_TYPE = 1367, "22007", "Illegal {} '{T192}' value found during parsing";
    VIEW_NONUPD_CHECK = 1368, "HY000", "CHECK OPTION on non-updatable view {Q}.{Q}";
    VIEW_CHECK_FAILED = 1369, "44000", "CHECK OPTION failed {Q}.{Q}";
    PASSWD_LENGTH = 1372, "HY000", "Password hash should be a {}-digit hexadecimal number";
    RESERVED_SYNTAX = 1382, "HY000",
        "The '{}' syntax is reserved for purposes internal to the MariaDB server";
    PS_MANY_PARAM = 1390, "HY000", "Prepared statement contains too many placeholders";
    KEY_PART_0 = 1391, "HY000", "Key part '{}' length cannot be 0";
    VIEW_MULTIUPDATE = 1393, "HY000",
        "Can not modify more than one base table through a join view '{}.{}'";
    VIEW_NO_INSERT_FIELD_LIST = 1394, "HY000",
        "Can not insert into join view '{}.{}' without fields list";
    VIEW_DELETE_MERGE_VIEW = 1395, "HY000", "Can not delete from join view '{}.{}'";
    CANNOT_USER = 1396, "HY000", "Operation {} failed for {}";
    XAER_NOTA = 1397, "XAE04", "XAER_NOTA: Unknown XID";
    XAER_INVAL = 1398, "XAE05", "XAER_INVAL: Invalid arguments (or unsupported command)";
    XAER_RMFAIL = 1399, "XAE07",
        "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {} \
         state";
    XAER_OUTSIDE = 1400, "XAE09", "XAER_OUTSIDE: Some work is done outside global transaction";
    XA_RBROLLBACK = 1402, "XA100", "XA_RBROLLBACK: Transaction branch was rolled back";
    DATA_TOO_LONG = 1406, "22001", "Data too long for column '{}' at row {}";
    WRONG_VALUE_FOR_TYPE = 1411, "HY000", "Incorrect {} value: '{T128}' for function {}";
    TABLE_DEF_CHANGED = 1412, "HY000", "Table definition has changed, please retry transaction";
    SP_DUP_HANDLER = 1413, "42000", "Duplicate handler declared in the same block";
    SP_NOT_VAR_ARG = 1414, "42000",
        "OUT or INOUT argument {} for routine {} is not a variable or NEW pseudo-variable in \
         BEFORE trigger";
    BINLOG_CREATE_ROUTINE_NEED_SUPER = 1419, "HY000",
        "You do not have the SUPER privilege and binary logging is enabled (you *might* want \
         to use the less safe log_bin_trust_function_creators variable)";
    NO_DEFAULT_FOR_VIEW_FIELD = 1423, "HY000",
        "Field of view '{}.{}' underlying table doesn't have a default value";
    TOO_BIG_SCALE = 1425, "42000", "Too big scale specified for '{}'. Maximum is {}";
    TOO_BIG_PRECISION = 1426, "42000", "Too big precision specified for '{}'. Maximum is {}";
    M_BIGGER_THAN_D = 1427, "42000",
        "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}')";
    STACK_OVERRUN_NEED_MORE = 1436, "HY000",
        "Thread stack overrun:  {} bytes used of a {} byte stack, and {} bytes needed. \
         Consider increasing the thread_stack system variable.";
    TOO_BIG_DISPLAYWIDTH = 1439, "42000", "Display width out of range for '{}' (max = {})";
    XAER_DUPID = 1440, "XAE08", "XAER_DUPID: The XID already exists";
    DATETIME_FUNCTION_OVERFLOW = 1441, "22008", "Datetime function: {} field overflow";
    NO_SUCH_USER = 1449, "HY000", "The user specified as a definer ('{}'@'{}') does not exist";
    ROW_IS_REFERENCED_2 = 1451, "23000",
        "Cannot delete or update a parent row: a foreign key constraint fails ({})";
    NO_REFERENCED_ROW_2 = 1452, "23000",
        "Cannot add or update a child row: a foreign key constraint fails ({})";
    SP_WRONG_NAME = 1458, "42000", "Incorrect routine name '{}'";
    MAX_PREPARED_STMT_COUNT_REACHED = 1461, "42000",
        "Can't create more than max_prepared_stmt_count statements (current value: {})";
    VIEW_RECURSIVE = 1462, "HY000", "`{}`.`{}` contains view recursion";
    NON_GROUPING_FIELD_USED = 1463, "42000", "Non-grouping field '{}' is used in {} clause";
    WRONG_STRING_LENGTH = 1470, "HY000",
        "String '{T70}' is too long for {} (should be no longer than {})";
    NON_INSERTABLE_TABLE = 1471, "HY000", "The target table {} of the {} is not insertable-into";
    AMBIGUOUS_FIELD_TERM = 1475, "HY000",
        "First character of the FIELDS TERMINATED string is ambiguous; please use non-\
         optional and non-empty FIELDS ENCLOSED BY";
    ILLEGAL_HA_CREATE_OPTION = 1478, "HY000",
        "Table storage engine '{}' does not support the create option '{}'";
    PARTITION_REQUIRES_VALUES_ERROR = 1479, "HY000",
        "Syntax error: {} PARTITIONING requires definition of VALUES {} for each partition";
    PARTITION_WRONG_VALUES_ERROR = 1480, "HY000",
        "Only {} PARTITIONING can use VALUES {} in partition definition";
    PARTITION_MAXVALUE_ERROR = 1481, "HY000",
        "MAXVALUE can only be used in last partition definition";
    WRONG_EXPR_IN_PARTITION_FUNC_ERROR = 1486, "HY000",
        "Constant, random or timezone-dependent expressions in (sub)partitioning function are \
         not allowed";
    FIELD_NOT_FOUND_PART_ERROR = 1488, "HY000",
        "Field in list of fields for partition function not found in table";
    PARTITIONS_MUST_BE_DEFINED_ERROR = 1492, "HY000",
        "For {} partitions each partition must be defined";
    RANGE_NOT_INCREASING_ERROR = 1493, "HY000",
        "VALUES LESS THAN value must be strictly increasing for each partition";
    MULTIPLE_DEF_CONST_IN_LIST_PART_ERROR = 1495, "HY000",
        "Multiple definition of same constant in list partitioning";
    TOO_MANY_PARTITIONS_ERROR = 1499, "HY000",
        "Too many partitions (including subpartitions) were defined";
    BLOB_FIELD_IN_PART_FUNC_ERROR = 1502, "HY000",
        "A BLOB field is not allowed in partition function";
    UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF = 1503, "HY000",
        "A {} must include all columns in the table's partitioning function";
    NO_PARTS_ERROR = 1504, "HY000", "Number of {} = 0 is not an allowed value";
    PARTITION_MGMT_ON_NONPARTITIONED = 1505, "HY000",
        "Partition management on a not partitioned table is not possible";
    DROP_PARTITION_NON_EXISTENT = 1507, "HY000", "Wrong partition name or partition list";
    DROP_LAST_PARTITION = 1508, "HY000",
        "Cannot remove all partitions, use DROP TABLE instead";
    COALESCE_ONLY_ON_HASH_PARTITION = 1509, "HY000",
        "COALESCE PARTITION can only be used on HASH/KEY partitions";
    ONLY_ON_RANGE_LIST_PARTITION = 1512, "HY000",
        "{} PARTITION can only be used on RANGE/LIST partitions";
    COALESCE_PARTITION_NO_PARTITION = 1515, "HY000",
        "At least one partition must be coalesced";
    SAME_NAME_PARTITION = 1517, "HY000", "Duplicate partition name {}";
    CONSECUTIVE_REORG_PARTITIONS = 1519, "HY000",
        "When reorganizing a set of partitions they must be in consecutive order";
    REORG_OUTSIDE_RANGE = 1520, "HY000",
        "Reorganize of range partitions cannot change total ranges except for last partition \
         where it can extend the range";
    WRONG_VALUE = 1525, "HY000", "Incorrect {} value: '{T128}'";
    NO_PARTITION_FOR_GIVEN_VALUE = 1526, "HY000", "Table has no partition for value {}";
    CREATE_FILEGROUP_FAILED = 1528, "HY000", "Failed to create {}";
    ALTER_FILEGROUP_FAILED = 1533, "HY000", "Failed to alter: {}";
    DROP_INDEX_FK = 1553, "HY000", "Cannot drop index '{}': needed in a foreign key constraint";
    WARN_DEPRECATED_SYNTAX_WITH_VER = 1554, "HY000",
        "The syntax '{}' is deprecated and will be removed in MariaDB {}. Please use {} \
         instead";
    COL_COUNT_DOESNT_MATCH_PLEASE_UPDATE = 1558, "HY000",
        "Column count of mysql.{} is wrong. Expected {}, found {}. Created with MariaDB {}, \
         now running {}. Please use mariadb-upgrade to fix this error";
    TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR = 1559, "HY000",
        "Cannot switch out of the row-based binary log format when the session has open \
         temporary tables";
    PARTITION_CONST_DOMAIN_ERROR = 1563, "HY000",
        "Partition constant is out of partition function domain";
    PARTITION_FUNCTION_IS_NOT_ALLOWED = 1564, "HY000", "This partition function is not allowed";
    NULL_IN_VALUES_LESS_THAN = 1566, "HY000",
        "Not allowed to use NULL value in VALUES LESS THAN";
    CANT_CHANGE_TX_CHARACTERISTICS = 1568, "25001",
        "Transaction characteristics can't be changed while a transaction is in progress";
    EVENT_MODIFY_QUEUE_ERROR = 1570, "HY000", "Internal scheduler error {}";
    ONLY_INTEGERS_ALLOWED = 1578, "HY000", "Only integers allowed as number here";
    BAD_LOG_STATEMENT = 1580, "HY000", "You cannot '{}' a log table if logging is enabled";
    WRONG_PARAMCOUNT_TO_NATIVE_FCT = 1582, "42000",
        "Incorrect parameter count in the call to native function '{}'";
    WRONG_PARAMETERS_TO_NATIVE_FCT = 1583, "42000",
        "Incorrect parameters in the call to native function '{}'";
    WRONG_PARAMETERS_TO_STORED_FCT = 1584, "42000",
        "Incorrect parameters in the call to stored function '{}'";
    DUP_ENTRY_WITH_KEY_NAME = 1586, "23000", "Duplicate entry '{T64}' for key '{}'";
    BINLOG_UNSAFE_STATEMENT = 1592, "HY000",
        "Unsafe statement written to the binary log using statement format since \
         BINLOG_FORMAT = STATEMENT. {}";
    TRG_CANT_OPEN_TABLE = 1606, "HY000", "Cannot open table for trigger {Q}.{Q}";
    XA_RBDEADLOCK = 1614, "XA102",
        "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected";
    NEED_REPREPARE = 1615, "HY000", "Prepared statement needs to be re-prepared";
    WARN_OPTION_IGNORED = 1618, "HY000", "<{}> option ignored";
    VARIABLE_IS_READONLY = 1621, "HY000",
        "{} variable '{}' is read-only. Use SET {} to assign the value";
    WARN_ENGINE_TRANSACTION_ROLLBACK = 1622, "HY000",
        "Storage engine {} does not support rollback for this statement. Transaction rolled \
         back and must be restarted";
    TOO_LONG_TABLE_COMMENT = 1628, "HY000", "Comment for table '{}' is too long (max = {})";
    TOO_LONG_FIELD_COMMENT = 1629, "HY000", "Comment for field '{}' is too long (max = {})";
    FUNC_INEXISTENT_NAME_COLLISION = 1630, "42000",
        "FUNCTION {} does not exist. Check the 'Function Name Parsing and Resolution' section \
         in the Reference Manual";
    TOO_MANY_CONCURRENT_TRXS = 1637, "HY000", "Too many active concurrent transactions";
    SIGNAL_WARN = 1642, "01000", "Unhandled user-defined warning condition";
    SIGNAL_EXCEPTION = 1644, "HY000", "Unhandled user-defined exception condition";
    QUERY_CACHE_DISABLED = 1651, "HY000",
        "Query cache is disabled; set query_cache_type to ON or DEMAND to enable it";
    WRONG_TYPE_COLUMN_VALUE_ERROR = 1654, "HY000",
        "Partition column values of incorrect type";
    TOO_MANY_VALUES_ERROR = 1657, "HY000",
        "Cannot have more than one value for this type of {} partitioning";
    FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD = 1659, "HY000",
        "Field '{}' is of a not allowed type for this type of partitioning";
    WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT = 1681, "HY000",
        "'{}' is deprecated and will be removed in a future release";
    TOO_LONG_INDEX_COMMENT = 1688, "HY000", "Comment for index '{}' is too long (max = {})";
    DATA_OUT_OF_RANGE = 1690, "22003", "{} value is out of range in '{}'";
    BINLOG_UNSAFE_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE = 1692, "HY000",
        "Mixing self-logging and non-self-logging engines in a statement is unsafe";
    VALUES_IS_NOT_INT_TYPE_ERROR = 1697, "HY000",
        "VALUES value for partition '{}' must have type INT";
    ACCESS_DENIED_NO_PASSWORD_ERROR = 1698, "28000", "Access denied for user '{}'@'{}'";
    SET_PASSWORD_AUTH_PLUGIN = 1699, "HY000",
        "SET PASSWORD is not applicable for users authenticating via {} plugin";
    TRUNCATE_ILLEGAL_FK = 1701, "42000",
        "Cannot truncate a table referenced in a foreign key constraint ({})";
    MULTI_UPDATE_KEY_CONFLICT = 1706, "HY000",
        "Primary key/partition key update is not allowed since the table is updated both as \
         '{}' and '{}'";
    INDEX_COLUMN_TOO_LONG = 1709, "HY000",
        "Index column size too large. The maximum column size is {} bytes";
    INDEX_CORRUPT = 1712, "HY000", "Index {} is corrupted";
    UNDO_RECORD_TOO_BIG = 1713, "HY000", "Undo log record is too big";
    UNKNOWN_PARTITION = 1735, "HY000", "Unknown partition '{}' in table '{}'";
    WARN_INDEX_NOT_APPLICABLE = 1739, "HY000",
        "Cannot use {} access on index '{}' due to type or collation conversion on field '{}'";
    PARTITION_EXCHANGE_FOREIGN_KEY = 1740, "HY000",
        "Table to exchange with partition has foreign key references: '{}'";
    PARTITION_CLAUSE_ON_NONPARTITIONED = 1747, "HY000",
        "PARTITION () clause on non partitioned table";
    ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET = 1748, "HY000",
        "Found a row not matching the given partition set";
    VARIABLE_NOT_SETTABLE_IN_TRANSACTION = 1766, "HY000",
        "The system variable {} cannot be set when there is an ongoing transaction";
    GTID_NEXT_IS_NOT_IN_GTID_NEXT_LIST = 1767, "HY000",
        "The system variable @@SESSION.GTID_NEXT has the value {}, which is not listed in \
         @@SESSION.GTID_NEXT_LIST";
    UNKNOWN_XA_RECOVER_FORMAT = 1791, "HY000", "Unknown XA RECOVER format name: '{}'";
    UNKNOWN_EXPLAIN_FORMAT = 1791, "HY000", "Unknown EXPLAIN/ANALYZE format name: '{}'";
    CANT_EXECUTE_IN_READ_ONLY_TRANSACTION = 1792, "25006",
        "Cannot execute statement in a READ ONLY transaction";
    INNODB_ONLINE_LOG_TOO_BIG = 1799, "HY000",
        "Creating index '{}' required more than 'innodb_online_alter_log_max_size' bytes of \
         modification log. Please try again";
    UNKNOWN_ALTER_ALGORITHM = 1800, "HY000", "Unknown ALGORITHM '{}'";
    INTERNAL_ERROR = 1815, "HY000", "Internal error: {}";
    NOT_VALID_PASSWORD = 1819, "HY000",
        "Your password does not satisfy the current policy requirements ({})";
    MUST_CHANGE_PASSWORD = 1820, "HY000", "You must SET PASSWORD before executing this statement";
    FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO = 1761, "23000",
        "Foreign key constraint for table '{}', record '{}' would lead to a duplicate entry in \
         table '{}', key '{}'";
    FK_NO_INDEX_CHILD = 1821, "HY000",
        "Failed to add the foreign key constraint. Missing index for constraint '{}' in the \
         foreign table '{}'";
    FK_NO_INDEX_PARENT = 1822, "HY000",
        "Failed to add the foreign key constraint. Missing index for constraint '{}' in the \
         referenced table '{}'";
    FK_FAIL_ADD_SYSTEM = 1823, "HY000",
        "Failed to add the foreign key constraint '{}' to system tables";
    FK_CANNOT_OPEN_PARENT = 1824, "HY000", "Failed to open the referenced table '{}'";
    DUP_CONSTRAINT_NAME = 1826, "HY000", "Duplicate {} constraint name '{}'";
    PASSWORD_FORMAT = 1827, "HY000",
        "The password hash doesn't have the expected format. Check if the correct password \
         algorithm is being used with the PASSWORD() function";
    FK_COLUMN_CANNOT_DROP = 1828, "HY000",
        "Cannot drop column '{}': needed in a foreign key constraint '{}'";
    FK_COLUMN_CANNOT_DROP_CHILD = 1829, "HY000",
        "Cannot drop column '{}': needed in a foreign key constraint '{}' of table {}";
    FK_COLUMN_NOT_NULL = 1830, "HY000",
        "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL";
    DUP_INDEX = 1831, "HY000",
        "Duplicate index {Q}. This is deprecated and will be disallowed in a future release";
    FK_COLUMN_CANNOT_CHANGE = 1832, "HY000",
        "Cannot change column '{}': used in a foreign key constraint '{}'";
    FK_COLUMN_CANNOT_CHANGE_CHILD = 1833, "HY000",
        "Cannot change column '{}': used in a foreign key constraint '{}' of table '{}'";
    FK_CANNOT_DELETE_PARENT = 1834, "HY000",
        "Cannot delete rows from table which is parent in a foreign key constraint '{}' of \
         table '{}'";
    ALTER_OPERATION_NOT_SUPPORTED = 1845, "0A000", "{} is not supported for this operation. Try {}";
    ALTER_OPERATION_NOT_SUPPORTED_REASON = 1846, "0A000", "{} is not supported. Reason: {}. Try {}";
    ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE = 1850, "HY000", "Cannot change column type";
    ALTER_OPERATION_NOT_SUPPORTED_REASON_AUTOINC = 1854, "HY000",
        "Adding an auto-increment column requires a lock";
    ALTER_OPERATION_NOT_SUPPORTED_REASON_HIDDEN_FTS = 1855, "HY000",
        "Cannot replace hidden FTS_DOC_ID with a user-visible one";
    ALTER_OPERATION_NOT_SUPPORTED_REASON_FTS = 1857, "HY000",
        "Fulltext index creation requires a lock";
    SQL_SLAVE_SKIP_COUNTER_NOT_SETTABLE_IN_GTID_MODE = 1858, "HY000",
        "sql_slave_skip_counter can not be set when the server is running with GTID_MODE = \
         ON. Instead, for each transaction that you want to skip, generate an empty \
         transaction with the same GTID as the transaction";
    DUP_UNKNOWN_IN_INDEX = 1859, "23000", "Duplicate entry for key '{}'";
    ALTER_OPERATION_NOT_SUPPORTED_REASON_NOT_NULL = 1861, "HY000",
        "cannot convert NULL to non-constant DEFAULT";
    MUST_CHANGE_PASSWORD_LOGIN = 1862, "HY000",
        "Your password has expired. To log in you must change it using a client that supports \
         expired passwords";
    MTS_EVENT_BIGGER_PENDING_JOBS_SIZE_MAX = 1864, "HY000",
        "Cannot schedule event {}, relay-log name {}, position {} to Worker thread because \
         its size {} exceeds {} of slave_pending_jobs_size_max";
    GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED = 1901, "HY000",
        "Function or expression '{}' cannot be used in the {} clause of {Q}";
    PRIMARY_KEY_BASED_ON_GENERATED_COLUMN = 1903, "HY000",
        "Primary key cannot be defined upon a generated column";
    KEY_BASED_ON_GENERATED_VIRTUAL_COLUMN = 1904, "HY000",
        "Key/Index cannot be defined on a virtual generated column";
    WRONG_FK_OPTION_FOR_GENERATED_COLUMN = 1905, "HY000",
        "Cannot define foreign key with {} clause on a generated column";
    WARNING_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN = 1906, "HY000",
        "The value specified for generated column '{}' in table '{}' has been ignored";
    UNSUPPORTED_ACTION_ON_GENERATED_COLUMN = 1907, "HY000",
        "This is not yet supported for generated columns";
    UNSUPPORTED_ENGINE_FOR_GENERATED_COLUMNS = 1910, "HY000",
        "{} storage engine does not support generated columns";
    BAD_OPTION_VALUE = 1912, "HY000", "Incorrect value '{T64}' for option '{}'";
    DATA_OVERFLOW = 1916, "22003", "Got overflow when converting '{}' to {}. Value truncated";
    BAD_DATA = 1918, "22007", "Encountered illegal value '{}' when converting to {}";
    DYN_COL_WRONG_FORMAT = 1919, "HY000", "Encountered illegal format of dynamic column string";
    DYN_COL_DATA = 1921, "22007", "Illegal value used as argument of dynamic column function";
    DYN_COL_WRONG_CHARSET = 1922, "HY000", "Dynamic column contains unknown character set";
    QUERY_CACHE_IS_DISABLED = 1924, "HY000",
        "Query cache is disabled (resize or similar command in progress); repeat this command \
         later";
    QUERY_CACHE_IS_GLOBALY_DISABLED = 1925, "HY000",
        "Query cache is globally disabled and you can't enable it only for this session";
    CONNECTION_KILLED = 1927, "70100", "Connection was killed";
    STORED_FUNCTION_PREVENTS_SWITCH_SKIP_REPLICATION = 1930, "HY000",
        "Cannot modify @@session.skip_replication inside a stored function or trigger";
    QUERY_RESULT_INCOMPLETE = 1931, "HY000",
        "Query execution was interrupted. The query exceeded {} = {}. The query result may be \
         incomplete";
    NO_SUCH_TABLE_IN_ENGINE = 1932, "42S02", "Table '{}.{}' doesn't exist in engine";
    FAILED_GTID_STATE_INIT = 1940, "HY000", "Failed initializing replication GTID state";
    CANNOT_LOAD_SLAVE_GTID_STATE = 1946, "HY000",
        "Failed to load replication slave GTID position from table {}.{}";
    MASTER_GTID_POS_MISSING_DOMAIN = 1948, "HY000",
        "Specified value for @@gtid_slave_pos contains no value for replication domain {}. \
         This conflicts with the binary log which contains GTID {}-{}-{}. If \
         MASTER_GTID_POS=CURRENT_POS is used, the binlog position will override the new value \
         of @@gtid_slave_pos";
    UNTIL_REQUIRES_USING_GTID = 1949, "HY000",
        "START SLAVE UNTIL master_gtid_pos requires that slave is using GTID";
    SLAVE_UNEXPECTED_MASTER_SWITCH = 1952, "HY000",
        "Unexpected GTID received from master after reconnect. This normally indicates that \
         the master server was replaced without restarting the slave threads. {}";
    NO_SUCH_QUERY = 1957, "HY000", "Unknown query id: {}";
    BAD_BASE64_DATA = 1958, "HY000", "Bad base64 data as position {}";
    INVALID_ROLE = 1959, "OP000", "Invalid role specification {Q}";
    INVALID_CURRENT_USER = 1960, "0L000", "The current user is invalid";
    CANNOT_GRANT_ROLE = 1961, "HY000", "Cannot grant role '{}' to: {}";
    CANNOT_REVOKE_ROLE = 1962, "HY000", "Cannot revoke role '{}' from: {}";
    IT_IS_A_VIEW = 1965, "42S02", "'{}' is a view";
    TABLE_DEFINITION_TOO_BIG = 1967, "HY000", "The definition for table {Q} is too big";
    STATEMENT_TIMEOUT = 1969, "70100",
        "Query execution was interrupted (max_statement_time exceeded)";
    SUBQUERIES_NOT_SUPPORTED = 1970, "42000", "{} does not support subqueries or stored functions";
    USER_CREATE_EXISTS = 1973, "HY000", "Can't create user '{}'@'{}'; it already exists";
    USER_DROP_EXISTS = 1974, "HY000", "Can't drop user '{}'@'{}'; it doesn't exist";
    ROLE_CREATE_EXISTS = 1975, "HY000", "Can't create role '{}'; it already exists";
    ROLE_DROP_EXISTS = 1976, "HY000", "Can't drop role '{}'; it doesn't exist";
    CANNOT_CONVERT_CHARACTER = 1977, "HY000",
        "Cannot convert '{}' character 0x{} to '{}'";
    WITH_COL_WRONG_LIST = 4002, "HY000",
        "WITH column list and SELECT field list have different column counts";
    TOO_MANY_DEFINITIONS_IN_WITH_CLAUSE = 4003, "HY000", "Too many WITH elements in WITH clause";
    DUP_QUERY_NAME = 4004, "HY000", "Duplicate query name {Q} in WITH clause";
    RECURSIVE_WITHOUT_ANCHORS = 4005, "HY000", "No anchors for recursive WITH element '{}'";
    UNACCEPTABLE_MUTUAL_RECURSION = 4006, "HY000",
        "Unacceptable mutual recursion with anchored table '{}'";
    REF_TO_RECURSIVE_WITH_TABLE_IN_DERIVED = 4007, "HY000",
        "Reference to recursive WITH table '{}' in materialized derived";
    NOT_STANDARD_COMPLIANT_RECURSIVE = 4008, "HY000",
        "Restrictions imposed on recursive definitions are violated for table '{}'";
    WRONG_WINDOW_SPEC_NAME = 4009, "HY000",
        "Window specification with name '{}' is not defined";
    DUP_WINDOW_NAME = 4010, "HY000", "Multiple window specifications with the same name '{}'";
    PARTITION_LIST_IN_REFERENCING_WINDOW_SPEC = 4011, "HY000",
        "Window specification referencing another one '{}' cannot contain partition list";
    ORDER_LIST_IN_REFERENCING_WINDOW_SPEC = 4012, "HY000",
        "Referenced window specification '{}' already contains order list";
    WINDOW_FRAME_IN_REFERENCED_WINDOW_SPEC = 4013, "HY000",
        "Referenced window specification '{}' cannot contain window frame";
    BAD_COMBINATION_OF_WINDOW_FRAME_BOUND_SPECS = 4014, "HY000",
        "Unacceptable combination of window frame bound specifications";
    WRONG_PLACEMENT_OF_WINDOW_FUNCTION = 4015, "HY000",
        "Window function is allowed only in SELECT list and ORDER BY clause";
    WINDOW_FUNCTION_IN_WINDOW_SPEC = 4016, "HY000",
        "Window function is not allowed in window specification";
    NOT_ALLOWED_WINDOW_FRAME = 4017, "HY000", "Window frame is not allowed with '{}'";
    NO_ORDER_LIST_IN_WINDOW_SPEC = 4018, "HY000",
        "No order list in window specification for '{}'";
    RANGE_FRAME_NEEDS_SIMPLE_ORDERBY = 4019, "HY000",
        "RANGE-type frame requires ORDER BY clause with single sort key";
    WRONG_TYPE_FOR_ROWS_FRAME = 4020, "HY000", "Integer is required for ROWS-type frame";
    WRONG_TYPE_FOR_RANGE_FRAME = 4021, "HY000",
        "Numeric datatype is required for RANGE-type frame";
    FRAME_EXCLUSION_NOT_SUPPORTED = 4022, "HY000", "Frame exclusion is not supported yet";
    WINDOW_FUNCTION_DONT_HAVE_FRAME = 4023, "HY000",
        "This window function may not have a window frame";
    INVALID_NTILE_ARGUMENT = 4024, "HY000", "Argument of NTILE must be greater than 0";
    CONSTRAINT_FAILED = 4025, "23000", "CONSTRAINT {Q} failed for {Q}.{Q}";
    CALCULATING_DEFAULT_VALUE = 4028, "HY000",
        "Got an error when calculating default value for {Q}";
    PARTITION_DEFAULT_ERROR = 4030, "HY000", "Only one DEFAULT partition allowed";
    REFERENCED_TRG_DOES_NOT_EXIST = 4031, "HY000",
        "Referenced trigger '{}' for the given action time and event type does not exist";
    INVALID_DEFAULT_PARAM = 4032, "HY000",
        "Default/ignore value is not supported for such parameter usage";
    BINLOG_NON_SUPPORTED_BULK = 4033, "HY000",
        "Only row based replication supported for bulk operations";
    JSON_BAD_CHR = 4035, "HY000",
        "Broken JSON string in argument {} to function '{}' at position {}";
    JSON_NOT_JSON_CHR = 4036, "HY000",
        "Character disallowed in JSON in argument {} to function '{}' at position {}";
    JSON_EOS = 4037, "HY000", "Unexpected end of JSON text in argument {} to function '{}'";
    JSON_SYNTAX = 4038, "HY000",
        "Syntax error in JSON text in argument {} to function '{}' at position {}";
    JSON_ESCAPING = 4039, "HY000",
        "Incorrect escaping in JSON text in argument {} to function '{}' at position {}";
    JSON_DEPTH = 4040, "HY000",
        "Limit of {} on JSON nested structures depth is reached in argument {} to function '{}' \
         at position {}";
    JSON_PATH_EOS = 4041, "HY000",
        "Unexpected end of JSON path in argument {} to function '{}'";
    JSON_PATH_SYNTAX = 4042, "HY000",
        "Syntax error in JSON path in argument {} to function '{}' at position {}";
    JSON_PATH_DEPTH = 4043, "HY000",
        "Limit of {} on JSON path depth is reached in argument {} to function '{}' at \
         position {}";
    JSON_PATH_NO_WILDCARD = 4044, "HY000",
        "Wildcards or range in JSON path not allowed in argument {} to function '{}'";
    JSON_ONE_OR_ALL = 4046, "HY000",
        "Argument 2 to function '{}' must be \"one\" or \"all\".";
    UNSUPPORTED_COMPRESSED_TABLE = 4047, "HY000",
        "InnoDB refuses to write tables with ROW_FORMAT=COMPRESSED or KEY_BLOCK_SIZE.";
    JSON_PATH_EMPTY = 4051, "HY000",
        "Path expression '$' is not allowed in argument {} to function '{}'.";
    SUM_FUNC_WITH_WINDOW_FUNC_AS_ARG = 4074, "HY000",
        "Window functions can not be used as arguments to group functions.";
    ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION = 4078, "HY000",
        "Illegal parameter data types {} and {} for operation '{}'";
    ILLEGAL_PARAMETER_DATA_TYPE_FOR_OPERATION = 4079, "HY000",
        "Illegal parameter data type {} for operation '{}'";
    SEQUENCE_RUN_OUT = 4084, "HY000", "Sequence '{}.{}' has run out";
    SEQUENCE_INVALID_DATA = 4085, "HY000", "Sequence '{}.{}' has out of range value for options";
    SEQUENCE_INVALID_TABLE_STRUCTURE = 4086, "HY000",
        "Sequence '{}.{}' table structure is invalid ({})";
    EXPRESSION_REFERS_TO_UNINIT_FIELD = 4029, "01000",
        "Expression for field {Q} is referring to uninitialized field {Q}";
    SEQUENCE_ACCESS_ERROR = 4087, "HY000", "Sequence '{}.{}' access error";
    NOT_SEQUENCE = 4089, "42S02", "'{}.{}' is not a SEQUENCE";
    UNKNOWN_SEQUENCES = 4091, "42S02", "Unknown SEQUENCE: '{}'";
    UNKNOWN_VIEW = 4092, "42S02", "Unknown VIEW: '{}'";
    SP_STACK_TRACE = 4094, "HY000", "At line {} in {}";
    PACKAGE_ROUTINE_IN_SPEC_NOT_DEFINED_IN_BODY = 4095, "HY000",
        "Subroutine '{}' is declared in the package specification but is not defined in the \
         package body";
    PACKAGE_ROUTINE_FORWARD_DECLARATION_NOT_DEFINED = 4096, "HY000",
        "Subroutine '{}' has a forward declaration but is not defined";
    INVALID_VALUE_TO_LIMIT = 4107, "HY000", "Limit only accepts integer values";
    INVISIBLE_NOT_NULL_WITHOUT_DEFAULT = 4108, "HY000",
        "Invisible column {Q} must have a default value";
    UPDATE_INFO_WITH_SYSTEM_VERSIONING = 4109, "HY000",
        "Rows matched: {}  Changed: {}  Inserted: {}  Warnings: {}";
    EMPTY_ROW_IN_TVC = 4141, "HY000",
        "Row with no elements is not allowed in table value constructor in this context";
    VERS_QUERY_IN_PARTITION = 4142, "HY000",
        "SYSTEM_TIME partitions in table {Q} does not support historical query";
    BACKUP_WRONG_STAGE = 4147, "HY000",
        "Backup stage '{}' is same or before current backup stage '{}'";
    USER_IS_BLOCKED = 4150, "HY000",
        "User is blocked because of too many credential errors; unblock with 'ALTER USER / \
         FLUSH PRIVILEGES'";
    ACCOUNT_HAS_BEEN_LOCKED = 4151, "HY000", "Access denied, this account is locked";
    UNKNOWN_DATA_TYPE = 4161, "HY000", "Unknown data type: '{}'";
    LOAD_INFILE_CAPABILITY_DISABLED = 4166, "HY000",
        "The used command is not allowed because the MariaDB server or client has disabled the \
         local infile capability";
}
