//! Rows of two kinds: digits by chance, as sysbench's, and documents with text, as applications
//! keep them.

use crate::random::Random;
use std::fmt::Write;

/// Words that texts are made of.
const WORDS: usize = 3000;
const SYLLABLES: [&str; 24] = [
    "an", "ber", "con", "der", "el", "for", "gen", "hal", "in", "jo", "ka", "lin", "mer", "no",
    "or", "pre", "qui", "res", "sta", "ter", "un", "ver", "wil", "zo",
];
const STATES: [&str; 5] = ["new", "paid", "packed", "shipped", "returned"];

/// What the rows are like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Groups of eleven random digits: nothing to gain but the digits' own redundancy.
    Digits,
    /// An order as JSON of some 500 bytes, and a note of 5 to 60 words of a language's
    /// distribution.
    Documents,
}

impl Kind {
    /// How the table is called.
    pub fn table(self) -> &'static str {
        match self {
            Kind::Digits => "digits",
            Kind::Documents => "documents",
        }
    }

    /// The table without its options.
    pub fn create(self) -> String {
        let columns = match self {
            Kind::Digits => {
                "k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k)"
            }
            Kind::Documents => {
                "customer INT NOT NULL, document JSON NOT NULL, note TEXT NOT NULL, \
                 created DATETIME NOT NULL, KEY customer (customer), KEY created (created)"
            }
        };
        format!("CREATE TABLE {} (id INT PRIMARY KEY, {columns})", self.table())
    }
}

/// Makes one row after the other.
pub struct Rows {
    kind: Kind,
    random: Random,
    words: Vec<String>,
    next: u64,
}

impl Rows {
    /// The same rows for every server.
    pub fn new(kind: Kind) -> Self {
        let mut random = Random::new(20);
        let words = (0..WORDS).map(|_| word(&mut random)).collect();
        Self { kind, random, words, next: 1 }
    }

    /// Appends the values of the next row.
    pub fn push(&mut self, sql: &mut String) {
        let id = self.next;
        self.next += 1;
        match self.kind {
            Kind::Digits => {
                let k = self.random.below(1 << 22);
                let (c, pad) = (self.digits(10), self.digits(5));
                write!(sql, "({id},{k},'{c}','{pad}')")
            }
            Kind::Documents => {
                let customer = self.random.below(50_000);
                let (document, created) = (self.order(id, customer), self.moment(id));
                let words = 5 + self.random.below(56);
                let note = self.text(words);
                write!(sql, "({id},{customer},'{document}','{note}','{created}')")
            }
        }
        .unwrap_or_default();
    }

    fn digits(&mut self, groups: usize) -> String {
        let group = |_| format!("{:011}", self.random.below(100_000_000_000));
        (0..groups).map(group).collect::<Vec<_>>().join("-")
    }

    fn moment(&mut self, id: u64) -> String {
        let second = id * 7 + self.random.below(7);
        let (day, hour) = (second / 86_400, second / 3600 % 24);
        let (month, day) = (day / 28 % 12 + 1, day % 28 + 1);
        format!("2026-{month:02}-{day:02} {hour:02}:{:02}:{:02}", second / 60 % 60, second % 60)
    }

    fn order(&mut self, id: u64, customer: u64) -> String {
        let (name, city) = (self.text(2), self.text(1));
        let state = STATES[self.random.below(5) as usize];
        let mut json =
            format!(r#"{{"order": {id}, "customer": {{"id": {customer}, "name": "{name}", "#);
        let zip = self.random.below(100_000);
        let _ = write!(json, r#""city": "{city}", "zip": "{zip:05}"}}, "items": ["#);
        for item in 0..1 + self.random.below(6) {
            let (sku, title) = (self.random.below(1 << 34), self.text(4));
            let (quantity, cents) = (1 + self.random.below(4), self.random.below(20_000));
            let comma = if item == 0 { "" } else { ", " };
            let price = format!("{}.{:02}", cents / 100, cents % 100);
            let _ = write!(json, r#"{comma}{{"sku": "{sku:010X}", "title": "{title}", "#);
            let _ = write!(json, r#""quantity": {quantity}, "price": {price}}}"#);
        }
        let _ =
            write!(json, r#"], "state": "{state}", "weight_grams": {}}}"#, self.random.below(9000));
        json
    }

    /// Words, the n-th of them as often as 1 / n, by the inverse of that distribution.
    fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for number in 0..words {
            let uniform = self.random.below(1 << 24) as f64 / f64::from(1 << 24);
            let rank = (WORDS as f64).powf(uniform) as usize - 1;
            if number > 0 {
                text.push(' ');
            }
            text.push_str(&self.words[rank.min(WORDS - 1)]);
        }
        text
    }
}

fn word(random: &mut Random) -> String {
    (0..1 + random.below(4)).map(|_| SYLLABLES[random.below(24) as usize]).collect()
}
