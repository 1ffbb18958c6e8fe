//! The twelve consistency conditions (clause 3.3.2), as queries for rows that violate them.

use super::Scale;
use crate::client::{Connection, Failure};
use crate::workload::Violation;

/// A condition's number, queries whose rows violate it, and a change that makes it do so.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Of clause 3.3.2.
    pub number: u32,
    violations: &'static [&'static str],
    /// A change that violates it, in the data of the load of any scale.
    pub planted: &'static str,
}

/// All of them.
pub const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        violations: &["SELECT w_id, w_ytd, total FROM warehouse, \
             (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) d \
             WHERE d_w_id = w_id AND w_ytd <> total"],
        planted: "UPDATE district SET d_ytd = d_ytd + 0.01 WHERE d_w_id = 1 AND d_id = 3",
    },
    Condition {
        number: 2,
        violations: &[
            "SELECT d_w_id, d_id, d_next_o_id, newest FROM district, \
             (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o \
             WHERE o_w_id = d_w_id AND o_d_id = d_id AND d_next_o_id - 1 <> newest",
            "SELECT d_w_id, d_id, d_next_o_id, newest FROM district, \
             (SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest FROM new_order \
             GROUP BY no_w_id, no_d_id) o \
             WHERE no_w_id = d_w_id AND no_d_id = d_id AND d_next_o_id - 1 <> newest",
        ],
        planted: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3",
    },
    Condition {
        number: 3,
        violations: &["SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id \
             HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)"],
        planted: "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 3 AND no_o_id = 25",
    },
    Condition {
        number: 4,
        violations: &["SELECT o_w_id, o_d_id, ordered, found FROM \
             (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS ordered FROM orders \
             GROUP BY o_w_id, o_d_id) o, \
             (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line \
             GROUP BY ol_w_id, ol_d_id) l \
             WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ordered <> found"],
        planted: "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 25 \
             AND ol_number = 2",
    },
    Condition {
        number: 5,
        violations: &[
            "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order \
             ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
            "SELECT no_w_id, no_d_id, no_o_id FROM new_order LEFT JOIN orders \
             ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id WHERE o_id IS NULL",
        ],
        planted: "UPDATE orders SET o_carrier_id = 5 WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 25",
    },
    Condition {
        number: 6,
        violations: &[
            "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found FROM orders LEFT JOIN \
             (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found FROM order_line \
             GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
             WHERE o_ol_cnt <> COALESCE(found, 0)",
            "SELECT ol_w_id, ol_d_id, ol_o_id FROM order_line LEFT JOIN orders \
             ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id WHERE o_id IS NULL",
        ],
        planted: "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 3 \
             AND o_id = 25",
    },
    Condition {
        number: 7,
        violations: &["SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line, orders \
             WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
             AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"],
        planted: "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = 1 AND ol_d_id = 3 \
             AND ol_o_id = 25 AND ol_number = 2",
    },
    Condition {
        number: 8,
        violations: &["SELECT w_id, w_ytd, total FROM warehouse, \
             (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) h \
             WHERE h_w_id = w_id AND w_ytd <> total"],
        planted: "UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 1",
    },
    Condition {
        number: 9,
        violations: &["SELECT d_w_id, d_id, d_ytd, total FROM district, \
             (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history \
             GROUP BY h_w_id, h_d_id) h \
             WHERE h_w_id = d_w_id AND h_d_id = d_id AND d_ytd <> total"],
        planted: "DELETE FROM history WHERE h_w_id = 1 AND h_d_id = 3 LIMIT 1",
    },
    Condition {
        number: 10,
        violations: &["SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer \
             LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered \
             FROM orders, order_line \
             WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
             AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
             ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
             LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
             GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
             ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
             WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)"],
        planted: "UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 3 \
             AND c_id = 7",
    },
    Condition {
        // Of the load TPC-C asks for 2,100 a district; each delivery since then counts one more.
        number: 11,
        violations: &["SELECT o_w_id, o_d_id, ordered, waiting, delivered FROM \
             (SELECT o_w_id, o_d_id, COUNT(*) AS ordered FROM orders GROUP BY o_w_id, o_d_id) o \
             JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS delivered FROM customer \
             GROUP BY c_w_id, c_d_id) c ON c_w_id = o_w_id AND c_d_id = o_d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waiting FROM new_order \
             GROUP BY no_w_id, no_d_id) n ON no_w_id = o_w_id AND no_d_id = o_d_id \
             WHERE ordered - COALESCE(waiting, 0) <> {delivered} + delivered"],
        planted: "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 \
             AND c_d_id = 3 AND c_id = 7",
    },
    Condition {
        number: 12,
        violations: &["SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered \
             FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered \
             FROM orders, order_line \
             WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
             AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o \
             ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
             WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)"],
        planted: "UPDATE customer SET c_ytd_payment = c_ytd_payment + 5 WHERE c_w_id = 1 \
             AND c_d_id = 3 AND c_id = 7",
    },
];

impl Condition {
    /// The queries; `delivered` are the orders of a district that the load has delivered.
    pub fn queries(&self, delivered: u64) -> impl Iterator<Item = String> {
        let delivered = delivered.to_string();
        self.violations.iter().map(move |sql| sql.replace("{delivered}", &delivered))
    }
}

/// Checks all conditions in one snapshot.
pub fn verify(connection: &mut Connection, scale: &Scale) -> Result<Vec<Violation>, Failure> {
    connection.command("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    connection.command("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let violations = violations(connection, scale)?;
    connection.command("COMMIT")?;
    Ok(violations)
}

/// Checks all conditions in the transaction that the connection is in.
pub fn violations(connection: &mut Connection, scale: &Scale) -> Result<Vec<Violation>, Failure> {
    let mut violations = Vec::new();
    for condition in &CONDITIONS {
        let rule = format!("consistency condition {}", condition.number);
        for sql in condition.queries(scale.delivered()) {
            violations.extend(Violation::check(connection, &rule, &sql)?);
        }
    }
    Ok(violations)
}
