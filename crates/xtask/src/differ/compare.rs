//! What two servers answered, compared: the first difference, by how much it matters.

use super::difference::Difference;
use super::statements::{Kind, Statement};
use sqltest::client::{Answer, Column, Field};
use sqltest::render;
use std::collections::BTreeSet;

/// Answers to a statement: its own, and after a change the rows of the changed table.
pub type Reply = Result<Vec<Told>, String>;

/// One answer and its warnings (level, number, text).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The answer.
    pub answer: Answer,
    /// What SHOW WARNINGS said.
    pub warnings: Vec<[String; 3]>,
}

/// Flag of a column that is never NULL.
pub(super) const NOT_NULL: u16 = 1;

/// How replies are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// In a strict mode.
    pub strict: bool,
    /// With the lengths of computed columns, and so with the types of computed texts.
    pub lengths: bool,
}

/// The first difference between Gannet's and MariaDB's replies.
pub fn difference(
    statement: &Statement,
    how: Rules,
    ours: &Reply,
    theirs: &[Told],
) -> Option<Difference> {
    let Ok(ours) = ours else { return Some(Difference::Lost) };
    let ordered = statement.is_ordered() || statement.kind == Kind::Change;
    let pairs = || ours.iter().zip(theirs);
    pairs()
        .find_map(|(here, there)| answers(&here.answer, &there.answer, ordered, kind_of(statement)))
        .or_else(|| pairs().find_map(|(a, b)| columns(&a.answer, &b.answer, how)))
        .or_else(|| pairs().find_map(|(here, there)| warnings(here, there, statement)))
}

/// What one server says of values, and the other does not: the number and, of a warning, the
/// text. None where the difference is another one.
pub fn complaints(statement: &Statement, ours: &Reply, theirs: &[Told]) -> Vec<Problem> {
    let Ok(ours) = ours else { return Vec::new() };
    let mut found = Vec::new();
    for (here, there) in ours.iter().zip(theirs) {
        let (a, b) = (problems(statement, here), problems(statement, there));
        if matches!(here.answer, Answer::Error(_)) || matches!(there.answer, Answer::Error(_)) {
            found.extend(a.symmetric_difference(&b).filter(|it| it.1.is_empty()).cloned());
        } else {
            found.extend(a.symmetric_difference(&b).cloned());
        }
    }
    found
}

/// A number, and of a warning its text.
pub type Problem = (String, String);

/// Everything that an answer complains of.
pub(super) fn problems(statement: &Statement, told: &Told) -> BTreeSet<Problem> {
    let (is_query, has_condition) = kind_of(statement);
    if let Answer::Error(error) = &told.answer {
        return BTreeSet::from([(error.code.to_string(), String::new())]);
    }
    let text = |it: &[String; 3]| (it[1].clone(), message(&it[2], is_query, has_condition));
    told.warnings.iter().map(text).collect()
}

/// The rows of a reply to a query.
pub fn rows_of(reply: &Reply) -> Option<&[Row]> {
    match &reply.as_ref().ok()?.first()?.answer {
        Answer::Rows { rows, .. } => Some(rows),
        _ => None,
    }
}

/// The rows of all answers of a reply, in an order of their own.
pub fn sorted_rows(told: &[Told]) -> Vec<Row> {
    let rows = told.iter().filter_map(|one| match &one.answer {
        Answer::Rows { rows, .. } => Some(rows.iter().cloned()),
        _ => None,
    });
    let mut rows: Vec<Row> = rows.flatten().collect();
    rows.sort();
    rows
}

/// The errors, number and text, of Gannet and of MariaDB; none where one of them gives none.
pub fn refusals(statement: &Statement, ours: &Reply, theirs: &[Told]) -> Option<[Problem; 2]> {
    let (is_query, has_condition) = kind_of(statement);
    let refusal = |told: Option<&Told>| match &told?.answer {
        Answer::Error(error) => {
            Some((error.code.to_string(), message(&error.message, is_query, has_condition)))
        }
        _ => None,
    };
    Some([refusal(ours.as_ref().ok()?.first())?, refusal(theirs.first())?])
}

/// Whether two answers are errors of one number and text, or neither is an error.
pub fn is_refused_alike(statement: &Statement, ours: &Reply, theirs: &[Told]) -> bool {
    let is_error =
        |told: Option<&Told>| told.is_some_and(|it| matches!(it.answer, Answer::Error(_)));
    let here = ours.as_ref().is_ok_and(|ours| is_error(ours.first()));
    match refusals(statement, ours, theirs) {
        Some([one, other]) => one == other,
        None => !here && !is_error(theirs.first()),
    }
}

/// What both servers complain of.
pub fn common(statement: &Statement, ours: &Reply, theirs: &[Told]) -> BTreeSet<Problem> {
    let of = |told: &[Told]| -> BTreeSet<Problem> {
        told.iter().flat_map(|told| problems(statement, told)).collect()
    };
    let Ok(ours) = ours else { return BTreeSet::new() };
    of(ours).intersection(&of(theirs)).cloned().collect()
}

/// Whether a problem is among others; of an error the number is enough.
pub fn is_known(known: &BTreeSet<Problem>, (code, text): &Problem) -> bool {
    // What is too long is cut where that is no error.
    let code = if code == "1406" { "1265" } else { code };
    known.iter().any(|(other, known)| other == code && (text.is_empty() || known == text))
}

/// Whether two servers gave the same values, or one of them none because of an error, whatever the
/// columns are described as.
pub fn has_same_values(statement: &Statement, ours: &Reply, theirs: &[Told]) -> bool {
    let Ok(ours) = ours else { return false };
    ours.iter().zip(theirs).all(|(here, there)| {
        let is_error = |told: &Told| matches!(told.answer, Answer::Error(_));
        is_error(here)
            || is_error(there)
            || answers(&here.answer, &there.answer, false, kind_of(statement)).is_none()
    })
}

/// Whether a statement is a query, and whether it has a condition or reads what it inserts.
pub(super) fn kind_of(statement: &Statement) -> (bool, bool) {
    let text = statement.root.sql();
    let reads_rows = [" WHERE ", " SELECT ", "(SELECT "].iter().any(|word| text.contains(word));
    (statement.kind == Kind::Query, reads_rows)
}

pub(super) fn answers(
    ours: &Answer,
    theirs: &Answer,
    ordered: bool,
    (is_query, has_condition): (bool, bool),
) -> Option<Difference> {
    match (ours, theirs) {
        (Answer::Error(here), Answer::Error(there)) => {
            if here.code != there.code {
                return Some(Difference::Errors(here.code, there.code));
            }
            let text = |message: &str| self::message(message, is_query, has_condition);
            let same = here.state == there.state && text(&here.message) == text(&there.message);
            (!same).then_some(Difference::ErrorText(here.code))
        }
        (Answer::Error(here), _) => Some(Difference::OnlyOurs(here.code)),
        (_, Answer::Error(there)) => Some(Difference::OnlyTheirs(there.code)),
        (Answer::Done(here), Answer::Done(there)) => {
            if here.affected_rows != there.affected_rows {
                return Some(Difference::Count);
            }
            // Its last number is that of the warnings, which are compared by themselves.
            let rows = |info: &str| info.split("Warnings").next().map(str::to_string);
            (rows(&here.info) != rows(&there.info)).then_some(Difference::Info)
        }
        (Answer::Rows { rows: our_rows, .. }, Answer::Rows { columns, rows, .. }) => {
            self::rows(our_rows, rows, columns, ordered)
        }
        _ => Some(Difference::Form),
    }
}

/// Descriptions of columns. Outside of strict modes MariaDB knows of more functions of text that
/// they are never NULL.
pub(super) fn columns(ours: &Answer, theirs: &Answer, how: Rules) -> Option<Difference> {
    let (Answer::Rows { columns: ours, .. }, Answer::Rows { columns: theirs, .. }) = (ours, theirs)
    else {
        return None;
    };
    let mut pairs = ours.iter().zip(theirs);
    pairs.find_map(|(here, there)| {
        let found = column(here, there, how.lengths)?;
        let is_said_to_be_null = here.flags & NOT_NULL == 0;
        let allowed = !how.strict
            && is_said_to_be_null
            && matches!(found, Difference::Column("nullability", _));
        (!allowed).then_some(found)
    })
}

/// A row of an answer.
pub type Row = Vec<Field>;

fn rows(ours: &[Row], theirs: &[Row], columns: &[Column], ordered: bool) -> Option<Difference> {
    if ours == theirs {
        return None;
    }
    if ours.len() != theirs.len() {
        return Some(Difference::Count);
    }
    let unsigned = |rows: &[Row]| -> Vec<Row> {
        rows.iter().map(|row| without_signs_of_zero(row, columns)).collect()
    };
    let (ours, theirs) = (&unsigned(ours), &unsigned(theirs));
    if ours == theirs {
        return None;
    }
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let (sorted_ours, sorted_theirs) = (sorted(ours), sorted(theirs));
    if sorted_ours == sorted_theirs {
        return ordered.then_some(Difference::Order);
    }
    let (ours, theirs) =
        if ordered { (ours.to_vec(), theirs.to_vec()) } else { (sorted_ours, sorted_theirs) };
    let cells = ours.iter().zip(&theirs).flat_map(|(a, b)| a.iter().zip(b).zip(columns));
    let mut other = cells.filter(|((here, there), _)| here != there);
    let ((here, there), column) = other.next()?;
    Some(match here.is_some() == there.is_some() {
        true => Difference::Value(render::type_name(column.type_code)),
        false => Difference::Null,
    })
}

/// A row without the signs that a zero may have among times and numbers that are not whole.
fn without_signs_of_zero(row: &Row, columns: &[Column]) -> Row {
    let cell = |(cell, column): (&Field, &Column)| {
        let is_fraction = matches!(column.type_code, 0 | 4 | 5 | 11 | 246);
        let size = cell.as_deref().and_then(|text| text.strip_prefix(b"-"));
        let is_zero = |size: &&[u8]| {
            is_fraction && size.iter().all(|digit| matches!(digit, b'0' | b'.' | b':'))
        };
        size.filter(is_zero).map(<[u8]>::to_vec).or_else(|| cell.clone())
    };
    row.iter().zip(columns).map(cell).collect()
}

/// A name or message as MariaDB tells it: in utf8mb3, which has no characters of four bytes.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it.len_utf8() == 4 { '?' } else { it }).collect()
}

/// How long a computed value is shown, and so whether a computed text is a VARCHAR or a BLOB, is
/// compared only if that is asked for: no client needs what each function thinks that it could
/// make at most.
fn is_text(column: &Column) -> bool {
    matches!(column.type_code, 15 | 249..=254)
}

/// Only numbers have signs: that text or a date is flagged UNSIGNED depends on where it was kept.
fn has_sign(column: &Column) -> bool {
    matches!(column.type_code, 0..=5 | 8 | 9 | 13 | 16 | 246)
}

/// What a column's description says of the column itself.
fn column(ours: &Column, theirs: &Column, lengths: bool) -> Option<Difference> {
    // ZEROFILL, ENUM, AUTO_INCREMENT and SET. Flags of keys and of bytes are those of a temporary
    // table where the answer was put into one.
    const FLAGS: u16 = 64 | 256 | 512 | 2048;
    // A YEAR that is computed is filled with zeros where it was kept in a temporary table, too.
    let is_kept_year = theirs.type_code == 13 && theirs.schema.is_empty();
    let flags = if is_kept_year { FLAGS & !64 } else { FLAGS };
    let kind = render::type_name(theirs.type_code);
    let computed = theirs.schema.is_empty();
    let is_text = is_text(theirs) && computed;
    let both_text = is_text && self::is_text(ours) && !lengths;
    if ours.type_code != theirs.type_code && !both_text {
        return Some(Difference::Type(render::type_name(ours.type_code), kind));
    }
    let what = if ours.collation != theirs.collation {
        "collation"
    } else if ours.decimals.min(31) != theirs.decimals.min(31) && !is_text {
        "decimals"
    } else if (ours.flags ^ theirs.flags) & NOT_NULL != 0 {
        "nullability"
    } else if (ours.flags ^ theirs.flags) & 32 != 0 && has_sign(theirs) {
        "sign"
    } else if (ours.flags ^ theirs.flags) & flags != 0 {
        "flags"
    } else if ours.length != theirs.length && (lengths || !computed) {
        "length"
    } else if plain(&ours.name) != plain(&theirs.name) {
        "name"
    } else {
        return None;
    };
    Some(Difference::Column(what, kind))
}

/// A message without what it says of the column and row that a query has read: rows are counted
/// as they are sent, or not. Of a change with a condition the row is left out.
fn message(text: &str, is_query: bool, has_condition: bool) -> String {
    let cut = match (is_query, has_condition) {
        // MariaDB shows the expression as its optimizer has left it.
        _ if text.contains("value is out of range in '") => text.find(" in '"),
        (true, _) => text.find(" for column "),
        (false, true) => text.rfind(" at row "),
        _ => None,
    };
    let mut text = plain(&text[..cut.unwrap_or(text.len())]);
    if text.starts_with("Illegal parameter data type") {
        // Which of the BLOBs a computed text is depends on how long it may become.
        text = text.replace("longblob", "blob").replace("mediumblob", "blob");
    }
    // What MariaDB computes before the first row it counts as row 0.
    if let Some(before) = text.strip_suffix(" for column '(null)' at row 0") {
        return format!("{before} for column '(null)' at row 1");
    }
    // MariaDB names some CASTs by their text.
    if let Some((before, rest)) = text.split_once(" for column 'CAST(") {
        if let Some((_, row)) = rest.rsplit_once(")' at row ") {
            let row = if row == "0" { "1" } else { row };
            return format!("{before} for column '(null)' at row {row}");
        }
        if rest.ends_with(")'") {
            return format!("{before} for column '(null)'");
        }
    }
    // Gannet names the alias of the table that is read.
    match text.split_once(" for column `differ`.`") {
        Some((before, rest)) => {
            let column = rest.split_once("`.").map_or(rest, |(_, column)| column);
            format!("{before} for column {column}")
        }
        None => text,
    }
}

/// Without a table warnings are compared one by one. With one their number depends on how often
/// a value is looked at, so each is compared once.
fn warnings(ours: &Told, theirs: &Told, statement: &Statement) -> Option<Difference> {
    // What was noted before an error depends on what was evaluated before it.
    if matches!(ours.answer, Answer::Error(_)) {
        return None;
    }
    if statement.kind == Kind::Query && !statement.root.sql().contains(" FROM t") {
        let same = ours.warnings.len() == theirs.warnings.len();
        let pairs = ours.warnings.iter().zip(&theirs.warnings);
        if same && pairs.clone().all(|(a, b)| a == b) {
            return None;
        }
    }
    let (is_query, has_condition) = kind_of(statement);
    let set = |told: &Told| -> BTreeSet<[String; 3]> {
        let warnings = told.warnings.iter();
        warnings
            .map(|warning| warning.clone().map(|text| message(&text, is_query, has_condition)))
            .collect()
    };
    let (here, there) = (set(ours), set(theirs));
    let extra = here.difference(&there).next().map(|warning| warning[1].clone());
    let missing = there.difference(&here).next().map(|warning| warning[1].clone());
    match (extra, missing) {
        (Some(extra), Some(missing)) if extra == missing => Some(Difference::WarningText(extra)),
        (_, Some(missing)) => Some(Difference::WarningMissing(missing)),
        (Some(extra), None) => Some(Difference::WarningExtra(extra)),
        (None, None) => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tree::{Node, Role};
    use super::*;
    use sqltest::client::ServerError;

    const RULES: Rules = Rules { strict: false, lengths: false };

    /// A column without a name.
    pub fn column_of(type_code: u8) -> Column {
        Column {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: "c".into(),
            org_name: String::new(),
            collation: 63,
            length: 1,
            type_code,
            flags: 0,
            decimals: 0,
        }
    }

    fn told(values: &[Option<&str>], warnings: &[[&str; 3]]) -> Told {
        let rows = values.iter().map(|v| vec![v.map(|v| v.as_bytes().to_vec())]).collect();
        let columns = vec![column_of(3)];
        let warnings = warnings.iter().map(|w| w.map(String::from)).collect();
        Told {
            answer: Answer::Rows { columns, rows, status: 0, warnings: 0, changes: Vec::new() },
            warnings,
        }
    }

    fn compare(ours: Told, theirs: Told) -> Option<String> {
        let root = Node::leaf(Role::Fixed, "SELECT a FROM t1");
        let statement = Statement { kind: Kind::Query, root, prepared: false };
        difference(&statement, RULES, &Ok(vec![ours]), &[theirs]).map(|it| it.to_string())
    }

    #[test]
    fn differences_are_named() {
        let one = || told(&[Some("1"), Some("2")], &[]);
        assert_eq!(compare(one(), one()), None);
        assert_eq!(compare(one(), told(&[Some("2"), Some("1")], &[])), None);
        let is = |theirs, text: &str| assert_eq!(compare(one(), theirs).as_deref(), Some(text));
        is(told(&[Some("1")], &[]), "count");
        is(told(&[Some("1"), None], &[]), "null");
        is(told(&[Some("1"), Some("3")], &[]), "value int");
        is(told(&[Some("1"), Some("2")], &[["Warning", "1292", "x"]]), "warning missing 1292");
        let error = ServerError { code: 1690, state: "22003".into(), message: "big".into() };
        let refused = Told { answer: Answer::Error(error), warnings: Vec::new() };
        is(refused.clone(), "error only there 1690");
        assert_eq!(compare(refused, one()).as_deref(), Some("error only here 1690"));
    }

    #[test]
    fn a_wrong_value_is_told_before_other_warnings() {
        let here = told(&[Some("1")], &[["Warning", "1292", "x"]]);
        let there = told(&[Some("2")], &[["Warning", "1292", "y"]]);
        assert_eq!(compare(here.clone(), there).as_deref(), Some("value int"));
        let null = told(&[None], &[["Warning", "1292", "y"]]);
        assert_eq!(compare(here, null).as_deref(), Some("null"));
    }

    #[test]
    fn the_name_of_a_cast_does_not_matter_but_its_number_does() {
        let warning = |name: &str, row: &str| {
            let text = format!("Out of range value for column '{name}' at row {row}");
            told(&[], &[["Warning", "1264", text.as_str()]])
        };
        let root = Node::leaf(Role::Fixed, "UPDATE t4 AS a1 SET a1.f = 1");
        let statement = Statement { kind: Kind::Change, root, prepared: false };
        let compare = |ours: Told, theirs: Told| {
            difference(&statement, RULES, &Ok(vec![ours]), &[theirs]).map(|it| it.to_string())
        };
        let name = "CAST(1e30 AS DECIMAL(5,2))";
        assert_eq!(compare(warning("(null)", "1"), warning(name, "1")), None);
        assert_eq!(compare(warning("(null)", "1"), warning(name, "0")), None);
        assert_eq!(compare(warning("(null)", "1"), warning("(null)", "0")), None);
        assert!(compare(warning("(null)", "2"), warning("(null)", "0")).is_some());
        let other = compare(warning("(null)", "1"), warning("plain", "1"));
        assert_eq!(other.as_deref(), Some("warning text 1264"));
        let none = compare(warning("(null)", "1"), told(&[], &[]));
        assert_eq!(none.as_deref(), Some("warning extra 1264"));
    }

    #[test]
    fn two_refusals_are_told_with_their_texts() {
        let root = Node::leaf(Role::Fixed, "SELECT a FROM t1");
        let statement = Statement { kind: Kind::Query, root, prepared: false };
        let refused = |text: &str| {
            let error = ServerError { code: 1267, state: "HY000".into(), message: text.into() };
            Told { answer: Answer::Error(error), warnings: Vec::new() }
        };
        let found = refusals(&statement, &Ok(vec![refused("x")]), &[refused("y")]).unwrap();
        assert_eq!(found.map(|(_, text)| text), ["x", "y"]);
        let rows = told(&[Some("1")], &[]);
        assert_eq!(refusals(&statement, &Ok(vec![rows.clone()]), &[refused("y")]), None);
        assert_eq!(refusals(&statement, &Ok(vec![refused("x")]), &[rows]), None);
    }

    #[test]
    fn warnings_about_rows_are_a_set() {
        let warning = ["Warning", "1292", "x"];
        let often = told(&[], &[warning, warning]);
        assert_eq!(compare(often.clone(), told(&[], &[warning])), None);
        let other = told(&[], &[["Warning", "1292", "y"]]);
        assert_eq!(compare(often, other).as_deref(), Some("warning text 1292"));
    }
}
