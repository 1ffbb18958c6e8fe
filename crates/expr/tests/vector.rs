//! Kernels give what the row evaluator gives: expressions made at random, over random rows.
//! `GANNET_SIM_SEEDS` is the number of expressions, in hundreds.

mod support;

use expr::vector::{Batch, Condition, Kernel, Overflow, Shape, Truth};
use support::{Fixture, context, parse};
use types::row::{Lane, LayoutColumn, Numbers, RowBytes, RowLayout, RowView};
use types::{TypeKind, Value, ValueRef};

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 33) as usize) % limit
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const NUMBERS: &[&str] = &["ti", "tu", "si", "mi", "i", "iu", "b", "d", "du", "dd", "y", "n", "g"];
const INTEGERS: &[&str] = &["0", "1", "-1", "7", "100", "255", "70000", "9223372036854775807"];
const DECIMALS: &[&str] = &["0.0", "1.5", "-2.25", "123.45", "0.005", "99999.999999"];
const DATES: &[&str] = &["da", "dt", "dt6", "ts"];
const MOMENTS: &[&str] = &["'2020-02-29'", "'2021-03-04 05:06:07'", "'1999-12-31'", "'0000-00-00'"];
const TEXTS: &[&str] = &["c", "v", "vb", "x", "l1"];
const WORDS: &[&str] = &["'Abc'", "'abc '", "'Hello'", "''", "'z'", "'some text'", "'e'"];
const PATTERNS: &[&str] = &["'%b%'", "'A%'", "'%c'", "'%'", "'a_c'", "'h%l%o'", "'abc'", "''"];
const OPERATORS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];

fn constant(dice: &mut Dice) -> String {
    let list = if dice.below(2) == 0 { INTEGERS } else { DECIMALS };
    dice.pick(list).to_string()
}

fn number(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return if dice.below(3) == 0 { constant(dice) } else { dice.pick(NUMBERS).to_string() };
    }
    match dice.below(9) {
        0..=3 => {
            let operator = dice.pick(&["+", "-", "*", "+", "-"]);
            format!("({} {operator} {})", number(dice, depth - 1), number(dice, depth - 1))
        }
        4 => format!("({} / {})", number(dice, depth - 1), constant(dice)),
        5 => format!("({} % {})", number(dice, depth - 1), dice.pick(INTEGERS)),
        6 => {
            let part = dice.pick(&["year", "month", "day"]);
            format!("{part}({})", dice.pick(DATES))
        }
        _ => {
            let when = condition(dice, depth - 1);
            let (a, b) = (number(dice, depth - 1), number(dice, depth - 1));
            match dice.below(2) {
                0 => format!("case when {when} then {a} else {b} end"),
                _ => format!("case when {when} then {a} end"),
            }
        }
    }
}

fn condition(dice: &mut Dice, depth: usize) -> String {
    let operator = dice.pick(OPERATORS);
    let not = dice.pick(&["", "not "]);
    let below = depth.saturating_sub(1);
    match dice.below(if depth == 0 { 9 } else { 12 }) {
        0 | 1 => format!("{} {operator} {}", number(dice, below), number(dice, below)),
        2 => {
            let (low, high) = (constant(dice), constant(dice));
            format!("{} {not}between {low} and {high}", number(dice, below))
        }
        3 => {
            let list: Vec<String> = (0..1 + dice.below(20)).map(|_| constant(dice)).collect();
            format!("{} {not}in ({})", number(dice, below), list.join(", "))
        }
        4 => format!("{} {operator} {}", dice.pick(DATES), dice.pick(MOMENTS)),
        5 => {
            let (low, high) = (dice.pick(MOMENTS), dice.pick(MOMENTS));
            format!("{} {not}between {low} and {high}", dice.pick(DATES))
        }
        6 => format!("{} {operator} {}", dice.pick(TEXTS), dice.pick(WORDS)),
        7 => format!("{} {not}like {}", dice.pick(TEXTS), dice.pick(PATTERNS)),
        8 => {
            let words = [dice.pick(WORDS), dice.pick(WORDS), dice.pick(&["null", "'B'"])];
            format!("{} {not}in ({})", dice.pick(TEXTS), words.join(", "))
        }
        9 => format!("({} is {not}null)", dice.pick(&["ti", "c", "n", "dt", "i"])),
        10 => format!("not ({})", condition(dice, below)),
        _ => {
            let and = dice.pick(&["and", "or"]);
            format!("({} {and} {})", condition(dice, below), condition(dice, below))
        }
    }
}

struct Rows {
    layout: RowLayout,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RowBytes for Rows {
    fn key(&self, row: usize) -> &[u8] {
        &self.rows[row].0
    }
    fn payload(&self, row: usize) -> &[u8] {
        &self.rows[row].1
    }
}

impl Shape for Rows {
    fn lane(&self, position: usize) -> Option<Lane> {
        self.layout.lane(position)
    }
    fn holds(&self, position: usize) -> bool {
        position < self.layout.columns().len()
    }
}

impl Batch for Rows {
    fn numbers(&self, position: usize, selected: &[u32], out: &mut Numbers) {
        self.layout.read_numbers(position, self, selected, out);
    }
    fn texts<'b>(&'b self, position: usize, selected: &[u32], out: &mut Vec<Option<&'b [u8]>>) {
        self.layout.read_texts(position, self, selected, out);
    }
    fn value(&self, position: usize, row: u32) -> ValueRef<'_> {
        let (key, payload) = &self.rows[row as usize];
        RowView::new(&self.layout, key, payload).get(position)
    }
}

/// The fixture's row with values changed here and there.
fn changed(fixture: &Fixture, dice: &mut Dice) -> Vec<Value> {
    let mut row = fixture.values.clone();
    for (value, result) in row.iter_mut().zip(&fixture.results) {
        let small = dice.below(7) as i64 - 2;
        match dice.below(4) {
            0 if result.nullable => *value = Value::Null,
            1 => match value {
                Value::Int(v) => *v = if dice.below(4) == 0 { *v / 3 } else { small },
                Value::UInt(v) if result.column_type.kind == TypeKind::Year => {
                    *v = 2000 + small.unsigned_abs()
                }
                Value::UInt(v) => *v = small.unsigned_abs(),
                Value::Decimal(v) => {
                    let scale = result.column_type.scale;
                    *v = types::Decimal::new(i128::from(small) * 25, scale)
                }
                Value::Bytes(v) if result.column_type.kind != TypeKind::Binary => {
                    let words: [&[u8]; 5] = [b"abc", b"ABC ", b"hello", b"", "é".as_bytes()];
                    let last = if result.is_string() { 5 } else { 4 };
                    *v = words[dice.below(last)].to_vec();
                }
                Value::Date(v) => v.0 = [v.0 + 1, v.0 - 1, 0, 2020 << 9, v.0 - 28][dice.below(5)],
                Value::DateTime(v) => v.0 = (v.0 >> 37) << 37,
                _ => {}
            },
            _ => {}
        }
    }
    row
}

#[test]
fn kernels_give_what_the_row_evaluator_gives() {
    let fixture = Fixture::new();
    let column = |result: &expr::ResultType| LayoutColumn {
        column_type: result.column_type,
        nullable: result.nullable,
    };
    let columns: Vec<LayoutColumn> = fixture.results.iter().map(column).collect();
    let mut rows = Rows { layout: RowLayout::new(&columns, &[], 1), rows: Vec::new() };
    let mut dice = Dice(11);
    let mut values = Vec::new();
    for _ in 0..60 {
        let row = changed(&fixture, &mut dice);
        let references: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        rows.layout.encode(&references, &mut key, &mut payload).expect("values of the types");
        rows.rows.push((key, payload));
        // As they come back: zeros behind BINARY, digits of DECIMAL.
        let (key, payload) = rows.rows.last().expect("just pushed");
        let view = RowView::new(&rows.layout, key, payload);
        values.push((0..columns.len()).map(|at| view.get(at).to_owned()).collect::<Vec<_>>());
    }
    let selected: Vec<u32> = (0..60).filter(|row| row % 5 != 2).collect();
    let hundreds: usize =
        std::env::var("GANNET_SIM_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let mut compiled = [0; 3];
    for seed in 0..100 * hundreds {
        let text = match seed % 2 {
            0 => condition(&mut dice, 2),
            _ => number(&mut dice, 2),
        };
        let context = context();
        let settings = context.settings.clone();
        let Ok(expr) = parse(&text, &fixture, &settings) else { continue };
        if seed % 2 == 0 {
            let (mut found, length) =
                Condition::leading(std::slice::from_ref(&expr), &context, &rows);
            let Some(condition) = found.first_mut().filter(|_| length == 1) else { continue };
            let mut truths = Vec::new();
            if condition.eval(&rows, &selected, &mut truths) == Err(Overflow) {
                compiled[2] += 1;
                continue;
            }
            for (truth, &row) in truths.iter().zip(&selected) {
                let expected = expr.eval_bool(&context, &values[row as usize]);
                let expected = match expected.unwrap_or_else(|e| panic!("{text}: {e}")) {
                    Some(true) => Truth::True,
                    Some(false) => Truth::False,
                    None => Truth::Unknown,
                };
                assert_eq!(*truth, expected, "{text} of {:?}", values[row as usize]);
            }
            compiled[0] += 1;
        } else {
            let Some(mut kernel) = Kernel::of_result(&expr, &context, &rows) else { continue };
            let mut numbers = Numbers::default();
            if kernel.eval(&rows, &selected, &mut numbers) == Err(Overflow) {
                compiled[2] += 1;
                assert!(!kernel.is_exact(), "{text}");
                continue;
            }
            for (at, &row) in selected.iter().enumerate() {
                let expected = expr.eval_result(&context, &values[row as usize]);
                let expected = expected.unwrap_or_else(|e| panic!("{text}: {e}"));
                let found = kernel.lane().value(numbers.values[at]);
                let found = if numbers.is_null(at) { ValueRef::Null } else { found };
                assert_eq!(found, expected, "{text} of {:?}", values[row as usize]);
            }
            compiled[1] += 1;
        }
        assert_eq!(context.warning_count(), 0, "{text}");
    }
    assert!(compiled[0] > 4 * hundreds && compiled[1] > 4 * hundreds, "{compiled:?}");
    println!("{compiled:?} of {}", 100 * hundreds);
}
