//! The five transactions.

use super::terminal::{Step, Stop, Terminal, amount, cents, number, text};
use super::{SCALE, Shared, connect};
use crate::random::Random;
use lab::distribution::nonuniform::last_name;
use std::sync::atomic::Ordering;

/// A client: its connection, its home, its dice.
struct Client<'a> {
    terminal: Terminal,
    random: Random,
    warehouse: u64,
    /// Beginning of the texts by which its payments are known.
    mark: String,
    payments: u64,
    shared: &'a Shared,
}

/// Works until told to stop: a shuffled deck of 100, 45 new orders, 43 payments, 4 of the others.
pub(super) fn work(port: u16, client: u64, seed: u64, shared: &Shared) -> Step<()> {
    let connection = connect(port).map_err(Stop::Lost)?;
    let mut client = Client {
        terminal: Terminal::new(connection, client % 2 == 1),
        random: Random::new(seed ^ client.wrapping_mul(0x9e37_79b9)),
        warehouse: client % SCALE.warehouses + 1,
        mark: format!("{:x}-{client}", seed & 0xffff_ffff),
        payments: 0,
        shared,
    };
    client.terminal.command("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    client.terminal.command("SET innodb_lock_wait_timeout = 5")?;
    if let Some(word) = &shared.snapshot_isolation {
        client.terminal.command(&format!("SET innodb_snapshot_isolation = {word}"))?;
    }
    loop {
        for kind in client.deck() {
            loop {
                if shared.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                match client.transaction(kind) {
                    Ok(()) => break,
                    Err(Stop::Again(code)) => {
                        *shared.retried().entry((kind, code)).or_default() += 1;
                        client.terminal.command("ROLLBACK")?;
                    }
                    Err(stop) => return Err(stop),
                }
            }
        }
    }
}

impl Client<'_> {
    fn deck(&mut self) -> Vec<usize> {
        let mut deck = Vec::new();
        for (kind, share) in [45, 43, 4, 4, 4].into_iter().enumerate() {
            deck.extend(std::iter::repeat_n(kind, share));
        }
        for place in (1..deck.len()).rev() {
            deck.swap(place, self.random.below(place as u64 + 1) as usize);
        }
        deck
    }

    fn transaction(&mut self, kind: usize) -> Step<()> {
        let done = match kind {
            0 => self.new_order()?,
            1 => self.payment()?,
            2 => self.order_status()?,
            3 => self.delivery()?,
            _ => self.stock_level()?,
        };
        if done {
            self.shared.committed[kind].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.below(high - low + 1)
    }

    /// TPC-C's non-uniform random number, with its A scaled to the range.
    fn non_uniform(&mut self, mask: u64, low: u64, high: u64) -> u64 {
        let mixed = self.random.below(mask + 1) | self.between(low, high);
        (mixed + 42) % (high - low + 1) + low
    }

    fn customer(&mut self) -> u64 {
        self.non_uniform(15, 1, SCALE.customers)
    }

    fn other_warehouse(&mut self) -> u64 {
        let other = self.between(1, SCALE.warehouses - 1);
        if other >= self.warehouse { other + 1 } else { other }
    }

    /// The customer by number (40 %) or the middle one of those with a last name (60 %).
    fn choose_customer(&mut self, w: &str, d: &str) -> Step<String> {
        if self.random.below(100) >= 60 {
            return Ok(self.customer().to_string());
        }
        let last = last_name(self.non_uniform(7, 0, SCALE.last_names() - 1));
        let rows = self.terminal.run(
            "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
             ORDER BY c_first",
            &[w, d, &last],
        )?;
        let middle = rows.get(rows.len().saturating_sub(1) / 2);
        let middle = middle.ok_or_else(|| Stop::Wrong(format!("nobody is called {last}")))?;
        Ok(text(&middle[0]))
    }

    fn new_order(&mut self) -> Step<bool> {
        let district = self.between(1, SCALE.districts);
        let (w, d) = (self.warehouse.to_string(), district.to_string());
        let c = self.customer().to_string();
        let count = self.between(5, 15);
        let unused_item = self.random.below(100) == 0;
        let mut lines = Vec::new();
        for line in 1..=count {
            let item = self.non_uniform(63, 1, SCALE.items);
            let item = if unused_item && line == count { SCALE.items + 1 } else { item };
            let remote = self.random.below(100) == 0;
            let supply = if remote { self.other_warehouse() } else { self.warehouse };
            lines.push((supply, item, self.between(1, 10)));
        }
        // In the order in which others lock them too.
        lines.sort_unstable();
        let all_local = lines.iter().all(|line| line.0 == self.warehouse);
        self.terminal.command("BEGIN")?;
        self.terminal.row(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
             WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
            &[&w, &d, &c],
        )?;
        let row = self.terminal.row(
            "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            &[&w, &d],
        )?;
        let order = number(&row[0])?;
        let (o, next) = (order.to_string(), (order + 1).to_string());
        self.terminal.run(
            "UPDATE district SET d_next_o_id = ? WHERE d_id = ? AND d_w_id = ?",
            &[&next, &d, &w],
        )?;
        let local = if all_local { "1" } else { "0" };
        self.terminal.run(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES (?, ?, ?, ?, NOW(), ?, ?)",
            &[&o, &d, &w, &c, &count.to_string(), local],
        )?;
        self.terminal.run(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
            &[&o, &d, &w],
        )?;
        for (line, (supply, item, quantity)) in (1..).zip(lines) {
            if !self.order_line(&[&o, &d, &w], line, supply, item, quantity)? {
                self.terminal.command("ROLLBACK")?;
                self.shared.unused_items.fetch_add(1, Ordering::Relaxed);
                return Ok(false);
            }
        }
        self.terminal.command("COMMIT")?;
        self.shared.ledger().orders.insert((self.warehouse, district, order));
        Ok(true)
    }

    /// One line of a new order; false if there is no such item.
    fn order_line(
        &mut self,
        [o, d, w]: &[&str; 3],
        line: u64,
        supply: u64,
        item: u64,
        quantity: u64,
    ) -> Step<bool> {
        let (supply, item) = (supply.to_string(), item.to_string());
        let found = self
            .terminal
            .run("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", &[&item])?;
        let Some(found) = found.first() else { return Ok(false) };
        let price = cents(&found[0])?;
        let column = format!("s_dist_{d:0>2}");
        let sql = format!(
            "SELECT s_quantity, s_data, {column} FROM stock WHERE s_i_id = ? AND s_w_id = ? \
             FOR UPDATE"
        );
        let stock = self.terminal.row(&sql, &[&item, &supply])?;
        let there = number(&stock[0])?;
        let left = if there >= quantity + 10 { there - quantity } else { there + 91 - quantity };
        let remote = if supply == *w { "0" } else { "1" };
        let ordered = quantity.to_string();
        self.terminal.run(
            "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?",
            &[&left.to_string(), &ordered, remote, &item, &supply],
        )?;
        let total = amount(price * quantity);
        self.terminal.run(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            &[o, d, w, &line.to_string(), &item, &supply, &ordered, &total, &text(&stock[2])],
        )?;
        Ok(true)
    }

    fn payment(&mut self) -> Step<bool> {
        let (w, d) = (self.warehouse.to_string(), self.between(1, SCALE.districts).to_string());
        let (mut cw, mut cd) = (w.clone(), d.clone());
        if self.random.below(100) < 15 {
            cw = self.other_warehouse().to_string();
            cd = self.between(1, SCALE.districts).to_string();
        }
        let paid = amount(self.between(100, 500_000));
        self.payments += 1;
        let mark = format!("{}-{}", self.mark, self.payments);
        self.terminal.command("BEGIN")?;
        let t = &mut self.terminal;
        t.run("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", &[&paid, &w])?;
        t.row(
            "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse \
             WHERE w_id = ?",
            &[&w],
        )?;
        let update = "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
        t.run(update, &[&paid, &w, &d])?;
        t.row(
            "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
             WHERE d_w_id = ? AND d_id = ?",
            &[&w, &d],
        )?;
        let c = self.choose_customer(&cw, &cd)?;
        let t = &mut self.terminal;
        let customer = t.row(
            "SELECT c_first, c_middle, c_last, c_credit, c_credit_lim, c_discount, c_balance \
             FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            &[&cw, &cd, &c],
        )?;
        let pay = "UPDATE customer SET c_balance = c_balance - ?, \
                   c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1";
        let which = "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        if text(&customer[3]) == "BC" {
            let data = format!("| {c} {cd} {cw} {d} {w} {paid} ");
            t.run(
                &format!("{pay}, c_data = LEFT(CONCAT(?, c_data), 500) {which}"),
                &[&paid, &paid, &data, &cw, &cd, &c],
            )?;
        } else {
            t.run(&format!("{pay} {which}"), &[&paid, &paid, &cw, &cd, &c])?;
        }
        t.run(
            "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            &[&cd, &cw, &c, &d, &w, &paid, &mark],
        )?;
        self.shared.ledger().payments_sent.insert(mark.clone());
        self.terminal.command("COMMIT")?;
        self.shared.ledger().payments.insert(mark);
        Ok(true)
    }

    fn order_status(&mut self) -> Step<bool> {
        let (w, d) = (self.warehouse.to_string(), self.between(1, SCALE.districts).to_string());
        self.terminal.command("BEGIN")?;
        let c = self.choose_customer(&w, &d)?;
        let t = &mut self.terminal;
        t.row(
            "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? \
             AND c_d_id = ? AND c_id = ?",
            &[&w, &d, &c],
        )?;
        let newest = t.row(
            "SELECT o_id, o_carrier_id, o_entry_d, o_ol_cnt FROM orders WHERE o_w_id = ? \
             AND o_d_id = ? AND o_c_id = ? AND o_id = (SELECT MAX(o_id) FROM orders \
             WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?)",
            &[&w, &d, &c, &w, &d, &c],
        )?;
        let lines = t.run(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
             FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[&w, &d, &text(&newest[0])],
        )?;
        if lines.len() as u64 != number(&newest[3])? {
            return Err(Stop::Wrong(format!("an order has {} lines, not its count", lines.len())));
        }
        self.terminal.command("COMMIT")?;
        Ok(true)
    }

    fn delivery(&mut self) -> Step<bool> {
        let w = self.warehouse.to_string();
        let carrier = self.between(1, 10).to_string();
        self.terminal.command("BEGIN")?;
        for district in 1..=SCALE.districts {
            self.deliver(&w, &district.to_string(), &carrier)?;
        }
        self.terminal.command("COMMIT")?;
        Ok(true)
    }

    fn deliver(&mut self, w: &str, d: &str, carrier: &str) -> Step<()> {
        let t = &mut self.terminal;
        let oldest = t.run(
            "SELECT no_o_id FROM new_order WHERE no_d_id = ? AND no_w_id = ? \
             ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
            &[d, w],
        )?;
        let Some(oldest) = oldest.first() else { return Ok(()) };
        let o = text(&oldest[0]);
        t.run(
            "DELETE FROM new_order WHERE no_o_id = ? AND no_d_id = ? AND no_w_id = ?",
            &[&o, d, w],
        )?;
        let order = t.row(
            "SELECT o_c_id FROM orders WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
            &[&o, d, w],
        )?;
        t.run(
            "UPDATE orders SET o_carrier_id = ? WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
            &[carrier, &o, d, w],
        )?;
        t.run(
            "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_o_id = ? AND ol_d_id = ? \
             AND ol_w_id = ?",
            &[&o, d, w],
        )?;
        let sum = t.row(
            "SELECT SUM(ol_amount) FROM order_line WHERE ol_o_id = ? AND ol_d_id = ? \
             AND ol_w_id = ?",
            &[&o, d, w],
        )?;
        t.run(
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_id = ? AND c_d_id = ? AND c_w_id = ?",
            &[&text(&sum[0]), &text(&order[0]), d, w],
        )?;
        Ok(())
    }

    fn stock_level(&mut self) -> Step<bool> {
        let (w, d) = (self.warehouse.to_string(), self.between(1, SCALE.districts).to_string());
        let threshold = self.between(10, 20).to_string();
        self.terminal.command("BEGIN")?;
        let t = &mut self.terminal;
        let row =
            t.row("SELECT d_next_o_id FROM district WHERE d_id = ? AND d_w_id = ?", &[&d, &w])?;
        let next = number(&row[0])?;
        t.row(
            "SELECT COUNT(DISTINCT (s_i_id)) FROM order_line, stock WHERE ol_w_id = ? \
             AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? \
             AND s_i_id = ol_i_id AND s_quantity < ?",
            &[&w, &d, &next.to_string(), &next.saturating_sub(20).to_string(), &w, &threshold],
        )?;
        self.terminal.command("COMMIT")?;
        Ok(true)
    }
}
