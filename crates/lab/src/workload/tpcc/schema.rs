//! The nine tables (clause 1.3), their indexes and foreign keys.

use super::Options;
use super::statements::DISTRICT_COLUMNS;

/// The tables, in an order in which they can be dropped.
pub const TABLES: [&str; 9] = [
    "order_line",
    "new_order",
    "orders",
    "history",
    "stock",
    "customer",
    "item",
    "district",
    "warehouse",
];

fn address(prefix: &str) -> String {
    format!(
        "{prefix}street_1 VARCHAR(20), {prefix}street_2 VARCHAR(20), {prefix}city VARCHAR(20), \
         {prefix}state CHAR(2), {prefix}zip CHAR(9)"
    )
}

/// Makes the tables; `options` are appended to each.
pub(super) fn tables(options: &str) -> Vec<String> {
    let distributions: Vec<String> =
        (1..=DISTRICT_COLUMNS).map(|district| format!("s_dist_{district:02} CHAR(24)")).collect();
    let definitions = [
        format!(
            "warehouse (w_id INT NOT NULL, w_name VARCHAR(10), {}, w_tax DECIMAL(4,4), \
             w_ytd DECIMAL(12,2), PRIMARY KEY (w_id))",
            address("w_")
        ),
        format!(
            "district (d_id TINYINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10), {}, \
             d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id))",
            address("d_")
        ),
        format!(
            "customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL, \
             c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), {}, c_phone CHAR(16), \
             c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), \
             c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), \
             c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), \
             PRIMARY KEY (c_w_id, c_d_id, c_id))",
            address("c_")
        ),
        "history (h_c_id INT, h_c_d_id TINYINT, h_c_w_id INT, h_d_id TINYINT, h_w_id INT, \
         h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24))"
            .into(),
        "orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT, \
         o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, \
         PRIMARY KEY (o_w_id, o_d_id, o_id))"
            .into(),
        "new_order (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL, \
         PRIMARY KEY (no_w_id, no_d_id, no_o_id))"
            .into(),
        "order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL, \
         ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d DATETIME, \
         ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))"
            .into(),
        format!(
            "stock (s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT, {}, \
             s_ytd DECIMAL(8,0), s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), \
             PRIMARY KEY (s_w_id, s_i_id))",
            distributions.join(", ")
        ),
        "item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), \
         i_data VARCHAR(50), PRIMARY KEY (i_id))"
            .into(),
    ];
    definitions.into_iter().map(|table| format!("CREATE TABLE {table} {options}")).collect()
}

/// Indexes beyond the primary keys.
pub(super) fn indexes() -> Vec<String> {
    let index = |sql: &str| format!("CREATE INDEX {sql}");
    vec![
        index("customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)"),
        index("orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)"),
    ]
}

/// Foreign keys if they are wanted; groups one after the other.
pub(super) fn foreign_keys(options: &Options) -> Vec<Vec<String>> {
    if !options.foreign_keys {
        return Vec::new();
    }
    let keys = [
        ("district", "d_w_id", "warehouse (w_id)"),
        ("customer", "c_w_id, c_d_id", "district (d_w_id, d_id)"),
        ("history", "h_c_w_id, h_c_d_id, h_c_id", "customer (c_w_id, c_d_id, c_id)"),
        ("history", "h_w_id, h_d_id", "district (d_w_id, d_id)"),
        ("new_order", "no_w_id, no_d_id, no_o_id", "orders (o_w_id, o_d_id, o_id)"),
        ("orders", "o_w_id, o_d_id, o_c_id", "customer (c_w_id, c_d_id, c_id)"),
        ("order_line", "ol_w_id, ol_d_id, ol_o_id", "orders (o_w_id, o_d_id, o_id)"),
        ("order_line", "ol_supply_w_id, ol_i_id", "stock (s_w_id, s_i_id)"),
        ("stock", "s_w_id", "warehouse (w_id)"),
        ("stock", "s_i_id", "item (i_id)"),
    ];
    let add = |(number, (table, columns, parent)): (usize, &(&str, &str, &str))| {
        vec![format!(
            "ALTER TABLE {table} ADD CONSTRAINT tpcc_{number} FOREIGN KEY ({columns}) \
             REFERENCES {parent}"
        )]
    };
    keys.iter().enumerate().map(add).collect()
}
