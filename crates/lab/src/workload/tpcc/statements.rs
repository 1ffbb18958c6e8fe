//! The statements.

/// A statement; those that read the stock follow, by district.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    CustomerAndTax,
    LockDistrict,
    NextOrder,
    AddOrder,
    AddNewOrder,
    Item,
    UpdateStock,
    AddLine,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    CustomersByName,
    LockCustomer,
    CustomerData,
    PayCustomer,
    PayBadCustomer,
    AddHistory,
    Customer,
    NewestOrder,
    Lines,
    OldestNewOrder,
    DeleteNewOrder,
    OrderCustomer,
    Carry,
    DeliverLines,
    SumLines,
    DeliverCustomer,
    DistrictOrders,
    StockLevel,
}

const TEXTS: [&str; 30] = [
    "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
     WHERE w_id=? AND c_w_id=w_id AND c_d_id=? AND c_id=?",
    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id=? AND d_id=? FOR UPDATE",
    "UPDATE district SET d_next_o_id=d_next_o_id+1 WHERE d_w_id=? AND d_id=?",
    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
     VALUES (?, ?, ?, ?, NOW(), ?, ?)",
    "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
    "SELECT i_price, i_name, i_data FROM item WHERE i_id=?",
    "UPDATE stock SET s_quantity=?, s_ytd=s_ytd+?, s_order_cnt=s_order_cnt+1, \
     s_remote_cnt=s_remote_cnt+? WHERE s_w_id=? AND s_i_id=?",
    "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
     ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "UPDATE warehouse SET w_ytd=w_ytd+? WHERE w_id=?",
    "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id=?",
    "UPDATE district SET d_ytd=d_ytd+? WHERE d_w_id=? AND d_id=?",
    "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
     WHERE d_w_id=? AND d_id=?",
    "SELECT c_id FROM customer WHERE c_w_id=? AND c_d_id=? AND c_last=? ORDER BY c_first",
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
     c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer \
     WHERE c_w_id=? AND c_d_id=? AND c_id=? FOR UPDATE",
    "SELECT c_data FROM customer WHERE c_w_id=? AND c_d_id=? AND c_id=?",
    "UPDATE customer SET c_balance=c_balance-?, c_ytd_payment=c_ytd_payment+?, \
     c_payment_cnt=c_payment_cnt+1 WHERE c_w_id=? AND c_d_id=? AND c_id=?",
    "UPDATE customer SET c_balance=c_balance-?, c_ytd_payment=c_ytd_payment+?, \
     c_payment_cnt=c_payment_cnt+1, c_data=? WHERE c_w_id=? AND c_d_id=? AND c_id=?",
    "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
     VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
    "SELECT c_balance, c_first, c_middle, c_last FROM customer \
     WHERE c_w_id=? AND c_d_id=? AND c_id=?",
    "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id=? AND o_d_id=? AND o_c_id=? \
     ORDER BY o_id DESC LIMIT 1",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
     WHERE ol_w_id=? AND ol_d_id=? AND ol_o_id=?",
    "SELECT no_o_id FROM new_order WHERE no_w_id=? AND no_d_id=? ORDER BY no_o_id LIMIT 1 \
     FOR UPDATE",
    "DELETE FROM new_order WHERE no_w_id=? AND no_d_id=? AND no_o_id=?",
    "SELECT o_c_id FROM orders WHERE o_w_id=? AND o_d_id=? AND o_id=?",
    "UPDATE orders SET o_carrier_id=? WHERE o_w_id=? AND o_d_id=? AND o_id=?",
    "UPDATE order_line SET ol_delivery_d=NOW() WHERE ol_w_id=? AND ol_d_id=? AND ol_o_id=?",
    "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id=? AND ol_d_id=? AND ol_o_id=?",
    "UPDATE customer SET c_balance=c_balance+?, c_delivery_cnt=c_delivery_cnt+1 \
     WHERE c_w_id=? AND c_d_id=? AND c_id=?",
    "SELECT d_next_o_id FROM district WHERE d_w_id=? AND d_id=?",
    "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id=? AND ol_d_id=? \
     AND ol_o_id>=? AND ol_o_id<? AND s_w_id=ol_w_id AND s_i_id=ol_i_id AND s_quantity<?",
];

/// Columns `s_dist_01`... of the stock.
pub(super) const DISTRICT_COLUMNS: u64 = 10;

/// The number of the statement that locks the stock and reads a district's column.
pub(super) fn lock_stock(district: u64) -> usize {
    TEXTS.len() + district as usize - 1
}

/// All texts, by number.
pub(super) fn texts() -> Vec<String> {
    let stock = (1..=DISTRICT_COLUMNS).map(|district| {
        format!(
            "SELECT s_quantity, s_data, s_dist_{district:02} FROM stock \
             WHERE s_w_id=? AND s_i_id=? FOR UPDATE"
        )
    });
    TEXTS.iter().map(|text| text.to_string()).chain(stock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_texts() {
        let texts = texts();
        let begins = [
            (Statement::CustomerAndTax, "SELECT c_discount"),
            (Statement::Item, "SELECT i_price"),
            (Statement::PayBadCustomer, "UPDATE customer SET c_balance=c_balance-?"),
            (Statement::OldestNewOrder, "SELECT no_o_id"),
            (Statement::StockLevel, "SELECT COUNT(DISTINCT"),
        ];
        for (statement, begin) in begins {
            assert!(texts[statement as usize].starts_with(begin), "{statement:?}");
        }
        assert!(texts[lock_stock(10)].contains("s_dist_10"));
        assert_eq!(texts.len(), lock_stock(DISTRICT_COLUMNS) + 1);
    }
}
