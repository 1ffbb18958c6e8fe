//! What terminals ask for (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1).

use super::Options;
use crate::distribution::between;
use crate::distribution::deck::Deck;
use crate::distribution::nonuniform::{NonUniform, last_name};
use base::Random;

/// Names of the operations, by number. A New-Order that must roll back is one of its own.
pub(super) const NAMES: [&str; 6] =
    ["new_order", "payment", "order_status", "delivery", "stock_level", "new_order_rolled_back"];

/// A line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) supply_warehouse: u64,
    pub(super) item: u64,
    pub(super) quantity: u64,
}

/// Whom a transaction is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Customer {
    Number(u64),
    LastName(String),
}

/// A transaction's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The last item of one that must roll back does not exist.
    NewOrder {
        district: u64,
        customer: u64,
        lines: Vec<Line>,
        rolls_back: bool,
    },
    Payment {
        district: u64,
        customer_warehouse: u64,
        customer_district: u64,
        customer: Customer,
        cents: u64,
    },
    OrderStatus {
        district: u64,
        customer: Customer,
    },
    Delivery {
        carrier: u64,
    },
    StockLevel {
        threshold: u64,
    },
}

impl Request {
    /// Its number in [`NAMES`].
    pub(super) fn operation(&self) -> usize {
        match self {
            Self::NewOrder { rolls_back: false, .. } => 0,
            Self::Payment { .. } => 1,
            Self::OrderStatus { .. } => 2,
            Self::Delivery { .. } => 3,
            Self::StockLevel { .. } => 4,
            Self::NewOrder { rolls_back: true, .. } => 5,
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// Draws the requests of one terminal.
pub(super) struct Requests {
    warehouses: u64,
    districts: u64,
    items: u64,
    home: u64,
    deck: Deck<Kind>,
    customer: NonUniform,
    item: NonUniform,
    last_name: NonUniform,
}

/// The mask of a range, in proportion to that of the full scale.
pub(super) fn mask(full_mask: u64, full_range: u64, range: u64) -> u64 {
    match range {
        range if range >= full_range => full_mask,
        range => ((full_mask + 1) * range / full_range).next_power_of_two().max(2) - 1,
    }
}

impl Requests {
    pub(super) fn new(options: &Options, home: u64) -> Self {
        let (scale, constants) = (options.scale, options.constants());
        let names = scale.last_names();
        let numbers = |full_mask, full_range, constant, low, high: u64| {
            NonUniform::new(mask(full_mask, full_range, high), constant, low, high)
        };
        Self {
            warehouses: scale.warehouses,
            districts: scale.districts,
            items: scale.items,
            home,
            deck: Deck::new(&[
                (Kind::NewOrder, 45),
                (Kind::Payment, 43),
                (Kind::OrderStatus, 4),
                (Kind::Delivery, 4),
                (Kind::StockLevel, 4),
            ]),
            customer: numbers(1023, 3000, constants.customer, 1, scale.customers),
            item: numbers(8191, 100_000, constants.item, 1, scale.items),
            last_name: NonUniform::new(
                mask(255, 1000, names),
                constants.last_name_run,
                0,
                names - 1,
            ),
        }
    }

    pub(super) fn draw(&mut self, random: &mut Random) -> Request {
        match self.deck.draw(random) {
            Kind::NewOrder => self.new_order(random),
            Kind::Payment => self.payment(random),
            Kind::OrderStatus => {
                let district = between(random, 1, self.districts);
                Request::OrderStatus { district, customer: self.choose(random) }
            }
            Kind::Delivery => Request::Delivery { carrier: between(random, 1, 10) },
            Kind::StockLevel => Request::StockLevel { threshold: between(random, 10, 20) },
        }
    }

    fn new_order(&self, random: &mut Random) -> Request {
        let district = between(random, 1, self.districts);
        let customer = self.customer.draw(random);
        let count = between(random, 5, 15);
        let rolls_back = random.one_in(100);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| {
                let item = self.item.draw(random);
                let is_remote = random.one_in(100) && self.warehouses > 1;
                let supply_warehouse = if is_remote { self.other(random) } else { self.home };
                Line { supply_warehouse, item, quantity: between(random, 1, 10) }
            })
            .collect();
        lines.sort_unstable();
        if let (true, Some(last)) = (rolls_back, lines.last_mut()) {
            last.item = self.items + 1;
        }
        Request::NewOrder { district, customer, lines, rolls_back }
    }

    fn payment(&self, random: &mut Random) -> Request {
        let district = between(random, 1, self.districts);
        let is_remote = random.below(100) < 15 && self.warehouses > 1;
        let (customer_warehouse, customer_district) = if is_remote {
            (self.other(random), between(random, 1, self.districts))
        } else {
            (self.home, district)
        };
        let customer = self.choose(random);
        let cents = between(random, 100, 500_000);
        Request::Payment { district, customer_warehouse, customer_district, customer, cents }
    }

    /// By last name in 60 of 100 cases.
    fn choose(&self, random: &mut Random) -> Customer {
        if random.below(100) < 60 {
            Customer::LastName(last_name(self.last_name.draw(random)))
        } else {
            Customer::Number(self.customer.draw(random))
        }
    }

    /// Any warehouse but the home.
    fn other(&self, random: &mut Random) -> u64 {
        let other = between(random, 1, self.warehouses - 1);
        if other >= self.home { other + 1 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    fn draw(count: usize) -> Vec<Request> {
        let options =
            Options { scale: Scale::full(10), foreign_keys: false, think_times: false, seed: 3 };
        let (mut requests, mut random) = (Requests::new(&options, 4), Random::new(8));
        (0..count).map(|_| requests.draw(&mut random)).collect()
    }

    fn near(what: &str, found: usize, of: usize, percent: f64) {
        let expected = of as f64 * percent / 100.0;
        let deviation = (found as f64 - expected).abs() / expected.sqrt();
        assert!(deviation < 5.0, "{what}: {found} of {of} instead of {percent} %");
    }

    #[test]
    fn shares_are_those_of_the_specification() {
        let requests = draw(100_000);
        let count = |operation| requests.iter().filter(|r| r.operation() == operation).count();
        assert_eq!(count(0) + count(5), 45_000);
        assert_eq!([1, 2, 3, 4].map(count), [43_000, 4000, 4000, 4000]);
        near("rolled back", count(5), 45_000, 1.0);
        let (mut lines, mut remote, mut by_name, mut chosen, mut away) = (0, 0, 0, 0, 0);
        for request in &requests {
            let customer = match request {
                Request::NewOrder { lines: of_order, .. } => {
                    assert!((5..=15).contains(&of_order.len()));
                    lines += of_order.len();
                    remote += of_order.iter().filter(|line| line.supply_warehouse != 4).count();
                    continue;
                }
                Request::Payment { customer, customer_warehouse, cents, .. } => {
                    assert!((100..=500_000).contains(cents));
                    away += usize::from(*customer_warehouse != 4);
                    customer
                }
                Request::OrderStatus { customer, .. } => customer,
                _ => continue,
            };
            chosen += 1;
            by_name += usize::from(matches!(customer, Customer::LastName(_)));
        }
        near("remote lines", remote, lines, 1.0);
        near("remote payments", away, 43_000, 15.0);
        near("customers by name", by_name, chosen, 60.0);
        assert!((lines as f64 / 45_000.0 - 10.0).abs() < 0.05);
    }

    #[test]
    fn remote_warehouses_are_all_the_others_evenly() {
        let mut counts = [0usize; 11];
        for request in draw(200_000) {
            if let Request::Payment { customer_warehouse, .. } = request {
                counts[customer_warehouse as usize] += 1;
            }
        }
        let remote: usize = counts.iter().sum::<usize>() - counts[4];
        for warehouse in (1..=10).filter(|warehouse| *warehouse != 4) {
            near("one of nine", counts[warehouse], remote, 100.0 / 9.0);
        }
    }

    #[test]
    fn lines_are_sorted_and_an_unused_item_is_the_last() {
        for request in draw(20_000) {
            let Request::NewOrder { lines, rolls_back, .. } = request else { continue };
            assert!(lines.is_sorted() || rolls_back);
            let unused = lines.iter().filter(|line| line.item > 100_000).count();
            assert_eq!(unused, usize::from(rolls_back));
            assert_eq!(lines.last().is_some_and(|line| line.item > 100_000), rolls_back);
        }
    }

    #[test]
    fn masks_shrink_with_their_range() {
        assert_eq!([3000, 300, 30].map(|range| mask(1023, 3000, range)), [1023, 127, 15]);
    }
}
