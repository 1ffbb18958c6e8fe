//! The nine tables and their first rows.

use super::scale::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, WAREHOUSES};
use crate::Outcome;
use crate::random::Random;
use sqltest::client::{Connection, Options};

const ADDRESS: &str = "street_1 VARCHAR(20), {}street_2 VARCHAR(20), {}city VARCHAR(20), \
                       {}state CHAR(2), {}zip CHAR(9)";

const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "stock",
    "item",
];

fn address(prefix: &str) -> String {
    format!("{prefix}{}", ADDRESS.replace("{}", prefix))
}

fn definitions() -> Vec<String> {
    let distributions: Vec<String> =
        (1..=DISTRICTS).map(|district| format!("s_dist_{district:02} CHAR(24)")).collect();
    vec![
        format!(
            "CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), {}, \
             w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id)) ENGINE=InnoDB",
            address("w_")
        ),
        format!(
            "CREATE TABLE district (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, \
             d_name VARCHAR(10), {}, d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT, \
             PRIMARY KEY (d_w_id, d_id)) ENGINE=InnoDB",
            address("d_")
        ),
        format!(
            "CREATE TABLE customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, \
             c_w_id SMALLINT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), \
             c_last VARCHAR(16), {}, c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), \
             c_credit_lim BIGINT, c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), \
             c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, \
             c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id)) ENGINE=InnoDB",
            address("c_")
        ),
        "CREATE TABLE history (h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_d_id TINYINT, \
         h_w_id SMALLINT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24)) \
         ENGINE=InnoDB"
            .into(),
        "CREATE TABLE orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, \
         o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME, o_carrier_id TINYINT, \
         o_ol_cnt TINYINT, o_all_local TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id)) ENGINE=InnoDB"
            .into(),
        "CREATE TABLE new_order (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, \
         no_w_id SMALLINT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)) ENGINE=InnoDB"
            .into(),
        "CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, \
         ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL, ol_i_id INT, \
         ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, ol_quantity TINYINT, \
         ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) ENGINE=InnoDB"
            .into(),
        format!(
            "CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, \
             s_quantity SMALLINT, {}, s_ytd DECIMAL(8,0), s_order_cnt SMALLINT, \
             s_remote_cnt SMALLINT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)) \
             ENGINE=InnoDB",
            distributions.join(", ")
        ),
        "CREATE TABLE item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), \
         i_price DECIMAL(5,2), i_data VARCHAR(50), PRIMARY KEY (i_id)) ENGINE=InnoDB"
            .into(),
        "CREATE INDEX idx_customer ON customer (c_w_id, c_d_id, c_last, c_first)".into(),
        "CREATE INDEX idx_orders ON orders (o_w_id, o_d_id, o_c_id, o_id)".into(),
        "CREATE INDEX fkey_stock_2 ON stock (s_i_id)".into(),
        "CREATE INDEX fkey_order_line_2 ON order_line (ol_supply_w_id, ol_i_id)".into(),
    ]
}

/// Last name of a number from 0 to 999.
pub(crate) fn last_name(number: u64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.iter().map(|digit| SYLLABLES[*digit as usize]).collect()
}

/// Rows of one INSERT.
struct Batch {
    table: &'static str,
    rows: Vec<String>,
}

impl Batch {
    fn new(table: &'static str) -> Self {
        Self { table, rows: Vec::new() }
    }

    fn send(self, connection: &mut Connection) -> Outcome {
        for rows in self.rows.chunks(500) {
            let sql = format!("INSERT INTO {} VALUES {}", self.table, rows.join(","));
            connection.execute(&sql).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Creates the database `tpcc` and fills it.
pub(crate) fn load(port: u16, random: &mut Random) -> Outcome {
    let options = Options::local(port);
    let mut connection = Connection::open(&options).map_err(|e| e.to_string())?;
    let mut statements = vec!["CREATE DATABASE tpcc".to_string(), "USE tpcc".to_string()];
    statements.extend(definitions());
    for sql in &statements {
        connection.execute(sql).map_err(|e| e.to_string())?;
    }
    let mut items = Batch::new("item");
    for item in 1..=ITEMS {
        let data = if random.below(10) == 0 { "xx ORIGINAL xx" } else { "nothing of note" };
        let (cents, image) = (100 + random.below(9901), random.below(10_000) + 1);
        items.rows.push(format!("({item},{image},'item {item}',{cents}/100,'{data}')"));
    }
    items.send(&mut connection)?;
    for warehouse in 1..=WAREHOUSES {
        load_warehouse(&mut connection, warehouse, random)?;
    }
    Ok(())
}

fn load_warehouse(connection: &mut Connection, warehouse: u64, random: &mut Random) -> Outcome {
    let ytd = 10 * CUSTOMERS * DISTRICTS;
    let mut warehouses = Batch::new("warehouse");
    warehouses.rows.push(format!(
        "({warehouse},'W{warehouse}','one','two','city','st','123411111',0.1234,{ytd})"
    ));
    warehouses.send(connection)?;
    let mut stock = Batch::new("stock");
    for item in 1..=ITEMS {
        let distributions: Vec<String> =
            (1..=DISTRICTS).map(|district| format!("'distribution {district}'")).collect();
        stock.rows.push(format!(
            "({item},{warehouse},{},{},0,0,0,'stock data')",
            10 + random.below(91),
            distributions.join(",")
        ));
    }
    stock.send(connection)?;
    for district in 1..=DISTRICTS {
        load_district(connection, warehouse, district, random)?;
    }
    Ok(())
}

fn load_district(
    connection: &mut Connection,
    warehouse: u64,
    district: u64,
    random: &mut Random,
) -> Outcome {
    let mut districts = Batch::new("district");
    districts.rows.push(format!(
        "({district},{warehouse},'D{district}','one','two','city','st','123411111',\
         0.0{district:02},{},{})",
        10 * CUSTOMERS,
        CUSTOMERS + 1
    ));
    let (mut customers, mut history) = (Batch::new("customer"), Batch::new("history"));
    let mut permutation: Vec<u64> = (1..=CUSTOMERS).collect();
    for customer in 1..=CUSTOMERS {
        let last = last_name((customer - 1) % super::scale::LAST_NAMES);
        let credit = if random.below(10) == 0 { "BC" } else { "GC" };
        customers.rows.push(format!(
            "({customer},{district},{warehouse},'first {customer}','OE','{last}','one','two',\
             'city','st','123411111','0123456789012345',NOW(),'{credit}',50000,0.1,-10,10,1,0,\
             'customer data')"
        ));
        history.rows.push(format!(
            "({customer},{district},{warehouse},{district},{warehouse},NOW(),10,'load')"
        ));
        permutation.swap(customer as usize - 1, random.below(customer) as usize);
    }
    let (mut orders, mut new_orders) = (Batch::new("orders"), Batch::new("new_order"));
    let mut lines = Batch::new("order_line");
    for (order, customer) in (1..).zip(permutation) {
        let delivered = order <= DELIVERED;
        let carrier =
            if delivered { (random.below(10) + 1).to_string() } else { "NULL".to_string() };
        let count = 5 + random.below(11);
        orders
            .rows
            .push(format!("({order},{district},{warehouse},{customer},NOW(),{carrier},{count},1)"));
        if !delivered {
            new_orders.rows.push(format!("({order},{district},{warehouse})"));
        }
        for number in 1..=count {
            let item = random.below(ITEMS) + 1;
            let cents = if delivered { 0 } else { 1 + random.below(999_999) };
            let date = if delivered { "NOW()" } else { "NULL" };
            lines.rows.push(format!(
                "({order},{district},{warehouse},{number},{item},{warehouse},{date},5,\
                 {cents}/100,'distribution')"
            ));
        }
    }
    for batch in [districts, customers, history, orders, new_orders, lines] {
        batch.send(connection)?;
    }
    Ok(())
}

/// CHECK TABLE of all.
pub(crate) fn check_tables(port: u16) -> Outcome {
    let mut connection = super::connect(port)?;
    let sql = format!("CHECK TABLE {}", TABLES.join(", "));
    for row in connection.execute(&sql).map_err(|e| e.to_string())? {
        if row[3].as_deref() != Some(b"OK") {
            return Err(format!("CHECK TABLE: {row:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_three_syllables() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
    }
}
