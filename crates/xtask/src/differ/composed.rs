//! Whether Gannet's answer is what the values of a statement's parts make, where MariaDB's depends
//! on where a value is read or kept.
//!
//! 1. A part is computed first: a derived table keeps it in a column `kept`, and the statement
//!    reads that column in its place; or a subquery selects it, also in a change. What both servers
//!    answer then is what the part's value makes. A quotient or remainder is also made a text and
//!    read again, and zero is added to it, or its size is taken where it is zero: MariaDB keeps the
//!    sign of one whose digits are all zero.
//! 2. A date that cannot be read is zero or NULL by where it is read; with one that can be read in
//!    its place both must answer the same.
//! 3. Rows of DISTINCT, of an order and of MIN and MAX are rows, or cells, of the same query
//!    without them, which needs no temporary table.

use super::compare::{self, Problem, Reply, Row, Told};
use super::executed::without_zeros;
use super::parts::{aliases, table_path};
use super::replaced;
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use sqltest::client::{Answer, Field};
use std::collections::BTreeSet;

/// More rows than any derived table has; a derived table with a limit is not merged.
const ROWS_MAX: u32 = 1_000;

/// The query with one of its parts computed first, for each part that has parts of its own and for
/// each table that may keep it.
pub fn computed_first(statement: &Statement) -> Vec<Statement> {
    let is_query = statement.kind == Kind::Query;
    let is_composed = |node: &Node| node.role == Role::Expression && !node.children.is_empty();
    let paths = statement.root.paths().into_iter();
    let parts = paths.filter(|path| statement.root.at(path).is_some_and(is_composed));
    let forms = |path: Vec<usize>| {
        let root = &statement.root;
        let kept = if is_query { kept(root, &path) } else { Vec::new() };
        let again = read_again(root, &path);
        kept.into_iter().chain(again).chain(selected_first(root, &path))
    };
    let roots = parts.flat_map(forms);
    roots.map(|root| Statement { root, ..statement.clone() }).collect()
}

/// The query with the part at a path kept by the one table that it reads, or, if it reads none, by
/// any.
fn kept(root: &Node, path: &[usize]) -> Vec<Node> {
    let Some(part) = root.at(path).map(Node::sql) else { return Vec::new() };
    let read = aliases(&part);
    let keepers = match &read[..] {
        [] => aliases_of_tables(root),
        [_] => read,
        _ => return Vec::new(),
    };
    if keepers.is_empty() {
        return kept_alone(root, path, &part).into_iter().collect();
    }
    let by = |alias: &String| {
        let column = Node::leaf(Role::Expression, format!("{alias}.kept"));
        let reading = root.with(path, column);
        let place = table_path(&reading, alias)?;
        let table = reading.at(&place)?.sql();
        let text =
            format!("(SELECT {alias}.*, {part} AS kept FROM {table} LIMIT {ROWS_MAX}) AS {alias}");
        Some(reading.with(&place, Node::leaf(Role::Source, text)))
    };
    keepers.iter().filter_map(by).collect()
}

/// The statement with the part at a path selected by a subquery, which keeps it, too.
fn selected_first(root: &Node, path: &[usize]) -> Option<Node> {
    let texts = ["(SELECT ", " FROM (SELECT 1 AS one LIMIT 1) AS kept)"];
    let part = root.at(path)?.clone();
    Some(root.with(path, Node::new(Role::Expression, &texts, vec![part])))
}

/// The statement with the quotient or remainder at a path read again from its text, and with zero
/// added to it, or to a difference: neither has the sign of a zero, and the sum is not UNSIGNED.
fn read_again(root: &Node, path: &[usize]) -> Vec<Node> {
    let Some(part) = root.at(path) else { return Vec::new() };
    let all = [["CAST(CONCAT(", ") AS DECIMAL(65,30))"], ["(", " + 0)"]];
    let forms = match part.texts.get(1).map(String::as_str) {
        Some(" / " | " % ") => &all[..],
        // A difference of UNSIGNED numbers is one itself, and may be below zero.
        Some(" - ") => &all[1..],
        // What a subquery keeps of a number has no sign type.
        _ if part.texts[0].starts_with("(SELECT ") => &all[1..],
        _ => return Vec::new(),
    };
    let with =
        |texts: &[&str; 2]| root.with(path, Node::new(Role::Expression, texts, vec![part.clone()]));
    let mut read: Vec<Node> = forms.iter().map(with).collect();
    if forms.len() == all.len() {
        // The text of a zero below zero may be too long for where it is stored.
        for zero in ["0", "0.0", "0.00", "0.000", "0.0000"] {
            let texts = ["IF(ABS(".to_string(), format!(") = 0, {zero}, "), ")".into()];
            let children = vec![part.clone(), part.clone()];
            read.push(root.with(path, Node::new(Role::Expression, &texts, children)));
        }
        // What is stored as text has as many digits then as it has without.
        let texts = ["IF(ABS(", ") = 0, ABS(", "), ", ")"];
        let children = vec![part.clone(), part.clone(), part.clone()];
        read.push(root.with(path, Node::new(Role::Expression, &texts, children)));
    }
    read
}

/// The same of a query without tables.
fn kept_alone(root: &Node, path: &[usize], part: &str) -> Option<Node> {
    let reading = root.with(path, Node::leaf(Role::Expression, "kept.kept"));
    let [items] = &reading.children[..] else { return None };
    let from = format!(" FROM (SELECT {part} AS kept LIMIT 1) AS kept");
    let texts = [reading.texts[0].clone(), from];
    (items.role == Role::List).then(|| Node::new(Role::Fixed, &texts, vec![items.clone()]))
}

/// The query with dates that can be read in place of its casts of constants to dates and times, and
/// those casts selected alone; none where there is none.
pub fn readable(statement: &Statement) -> Option<(Statement, Vec<Statement>)> {
    let mut casts = Vec::new();
    let root = with_dates(&statement.root, &mut casts);
    let query = |root| Statement { kind: Kind::Query, root, prepared: statement.prepared };
    let root = Statement { root, ..statement.clone() };
    (!casts.is_empty()).then(|| (root, casts.into_iter().map(query).collect()))
}

fn with_dates(node: &Node, casts: &mut Vec<Node>) -> Node {
    if let Some(date) = date_of_cast(node) {
        // Of columns some rows may have dates.
        if aliases(&node.sql()).is_empty() {
            casts.push(Node::new(Role::Fixed, &["SELECT ", ""], vec![node.clone()]));
            return Node::leaf(Role::Expression, date);
        }
    }
    let children = node.children.iter().map(|child| with_dates(child, casts)).collect();
    Node { texts: node.texts.clone(), children, ..*node }
}

/// A date that can be read, of the type that a cast makes.
fn date_of_cast(node: &Node) -> Option<&'static str> {
    let [before, after] = &node.texts[..] else { return None };
    match after.as_str() {
        _ if before != "CAST(" => None,
        " AS DATE)" => Some("DATE'2024-02-29'"),
        " AS DATETIME)" => Some("TIMESTAMP'2024-02-29 12:34:56'"),
        " AS DATETIME(3))" => Some("TIMESTAMP'2024-02-29 12:34:56.789'"),
        " AS DATETIME(6))" => Some("TIMESTAMP'2024-02-29 12:34:56.789012'"),
        " AS TIME)" => Some("TIME'10:11:12'"),
        " AS TIME(2))" => Some("TIME'10:11:12.13'"),
        _ => None,
    }
}

/// Whether both servers warn that what a query selects is no date or time.
pub fn is_unreadable((ours, theirs): (&Reply, &[Told])) -> bool {
    let warns = |told: &[Told]| {
        told.iter().flat_map(|told| &told.warnings).any(|warning| warning[1] == "1292")
    };
    ours.as_ref().is_ok_and(|ours| warns(ours)) && warns(theirs)
}

/// Whether two servers give the same warnings but for what they say of where a value comes from: a
/// column, or an expression.
pub fn are_named_alike(query: &Statement, ours: &Reply, theirs: &[Told]) -> bool {
    let plain = |told: &[Told]| -> BTreeSet<Problem> {
        let problems = told.iter().flat_map(|told| compare::problems(query, told));
        problems
            .map(|(code, text)| (code, text.replacen("Truncated incorrect", "Incorrect", 1)))
            .collect()
    };
    ours.as_ref().is_ok_and(|ours| plain(ours) == plain(theirs))
}

fn aliases_of_tables(root: &Node) -> Vec<String> {
    let paths = root.paths().into_iter();
    let nodes = paths.filter_map(|path| root.at(&path)).filter(|node| node.children.is_empty());
    let tables = nodes.filter(|node| node.role == Role::Source);
    tables.filter_map(|node| Some(node.texts[0].rsplit_once(" AS ")?.1.to_string())).collect()
}

/// The query without DISTINCT, order, limit, and groups whose MIN and MAX are selected, of a UNION
/// its parts: their rows are not put into a temporary table.
pub fn without_temporary_table(statement: &Statement) -> Vec<Statement> {
    let parts = statement.root.children.iter();
    let is_union = statement.root.role == Role::Query && parts.clone().len() == 2;
    if is_union && parts.clone().all(|part| part.role == Role::Query) {
        return parts.map(|part| Statement { root: part.clone(), ..statement.clone() }).collect();
    }
    untabled(statement).into_iter().collect()
}

fn untabled(statement: &Statement) -> Option<Statement> {
    let [items, from, condition, rest @ ..] = &statement.root.children[..] else { return None };
    let head = statement.root.texts[0].as_str();
    let is_query = matches!(head, "SELECT " | "SELECT DISTINCT ") && items.role == Role::List;
    if !is_query || (head == "SELECT " && rest.iter().all(|it| it.role != Role::Clause)) {
        return None;
    }
    let members = items.children.iter().map(|item| match item.role {
        Role::Aggregate if matches!(item.texts[0].as_str(), "MIN(" | "MAX(") => {
            item.children.first().cloned()
        }
        Role::Aggregate => None,
        _ => Some(item.clone()),
    });
    let members = Node::list(members.collect::<Option<Vec<Node>>>()?);
    let children = vec![members, from.clone(), condition.clone()];
    let root = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
    Some(Statement { root, ..statement.clone() })
}

/// Whether both servers answer another form of a query alike, and as Gannet answered the query:
/// rows or the error, and what they warn of.
pub fn are_alike(query: &Statement, answered: &Reply, (ours, theirs): (&Reply, &[Told])) -> bool {
    let (Ok(answered), Ok(ours)) = (answered, ours) else { return false };
    let ([own], [here], [there]) = (&answered[..], &ours[..], theirs) else { return false };
    let is_same = |told: &Told| {
        compare::answers(&own.answer, &told.answer, query.is_ordered(), compare::kind_of(query))
            .is_none()
            && compare::problems(query, own) == compare::problems(query, told)
    };
    is_same(here) && is_same(there)
}

/// Whether both servers answer a query with the same rows, and with no error.
pub fn have_same_rows(query: &Statement, ours: &Reply, theirs: &[Told]) -> bool {
    let is_answered = matches!(theirs.first().map(|it| &it.answer), Some(Answer::Rows { .. }));
    is_answered && compare::rows_of(ours).is_some() && compare::has_same_values(query, ours, theirs)
}

/// Whether both servers answer the same rows to each of some queries, and each column of Gannet's
/// answer has only values that it has there.
pub fn are_among(answered: &Reply, queries: &[(Statement, Reply, Vec<Told>)]) -> bool {
    let is_same =
        |(query, ours, theirs): &(Statement, Reply, Vec<Told>)| have_same_rows(query, ours, theirs);
    let plain = |(_, ours, _): &(Statement, Reply, Vec<Told>)| -> Option<Vec<Row>> {
        // A number with zeros before it stands beside others in another column.
        let plain = replaced::without_filled(ours.as_ref().ok()?);
        Some(compare::rows_of(&Ok(plain))?.to_vec())
    };
    let all: Option<Vec<Vec<Row>>> = queries.iter().map(plain).collect();
    let answered = answered.as_ref().map(|told| replaced::without_filled(told));
    let answered = answered.map_err(Clone::clone);
    let (Some(rows), Some(all)) = (compare::rows_of(&answered), all) else { return false };
    let is_among = |(column, cell): (usize, &Field)| {
        let plain = without_zeros(cell);
        let is_it = |row: &Row| row.get(column).is_some_and(|it| without_zeros(it) == plain);
        all.iter().flat_map(|rows| rows.iter()).any(is_it)
    };
    !queries.is_empty()
        && queries.iter().all(is_same)
        && rows.iter().all(|row| row.iter().enumerate().all(is_among))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(text: &str) -> Node {
        Node::leaf(Role::Expression, text)
    }

    fn query(root: Node) -> Statement {
        Statement { kind: Kind::Query, root, prepared: false }
    }

    fn call(name: &str, argument: Node) -> Node {
        Node::new(Role::Expression, &[format!("{name}("), ")".into()], vec![argument])
    }

    /// The forms in which a table keeps a part.
    fn kept_forms(root: Node) -> Vec<String> {
        let forms = computed_first(&query(root)).into_iter().map(|it| it.root.sql());
        forms.filter(|text| !text.contains("(SELECT 1 AS one LIMIT 1)")).collect()
    }

    #[test]
    fn parts_of_changes_are_selected_by_a_subquery() {
        let texts = ["UPDATE t4 AS a1 SET a1.d = ", " WHERE ", ""];
        let value = call("F", leaf("a1.x"));
        let root = Node::new(Role::Fixed, &texts, vec![value, leaf("TRUE")]);
        let change = Statement { kind: Kind::Change, root, prepared: false };
        let forms: Vec<_> = computed_first(&change).iter().map(|it| it.root.sql()).collect();
        let part = "(SELECT F(a1.x) FROM (SELECT 1 AS one LIMIT 1) AS kept)";
        assert_eq!(forms, [format!("UPDATE t4 AS a1 SET a1.d = {part} WHERE TRUE")]);
    }

    #[test]
    fn parts_are_kept_by_the_table_that_they_read() {
        let value = call("F", call("G", leaf("a1.x")));
        let from = Node::leaf(Role::Source, "t1 AS a1");
        let root =
            Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![value]), from]);
        let texts = kept_forms(root);
        let wanted = [
            "SELECT a1.kept FROM (SELECT a1.*, F(G(a1.x)) AS kept FROM t1 AS a1 LIMIT 1000) AS a1",
            "SELECT F(a1.kept) FROM (SELECT a1.*, G(a1.x) AS kept FROM t1 AS a1 LIMIT 1000) AS a1",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn constants_are_kept_by_any_table_or_alone() {
        let value = call("F", call("G", leaf("1")));
        let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![value.clone()])]);
        let texts = kept_forms;
        let alone = "SELECT F(kept.kept) FROM (SELECT G(1) AS kept LIMIT 1) AS kept";
        assert_eq!(texts(root)[1], alone);
        let children = ["t1 AS a1", "t2 AS a2"].map(|text| Node::leaf(Role::Source, text));
        let from = Node::new(Role::Source, &["", ", ", ""], children.to_vec());
        let root =
            Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![value]), from]);
        assert_eq!(texts(root).len(), 4);
    }

    #[test]
    fn quotients_are_read_again_from_their_text() {
        let of = |operator: &str| {
            let children = vec![leaf("1"), leaf("2")];
            let value = Node::new(Role::Expression, &["(", operator, ")"], children);
            let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![Node::list(vec![value])]);
            let forms = computed_first(&query(root)).into_iter().map(|it| it.root.sql());
            forms.filter(|text| text.contains("CONCAT")).collect::<Vec<_>>()
        };
        assert_eq!(of(" / "), ["SELECT CAST(CONCAT((1 / 2)) AS DECIMAL(65,30))"]);
        let root = Node::new(Role::Expression, &["(", " % ", ")"], vec![leaf("1"), leaf("2")]);
        assert_eq!(read_again(&root, &[])[1].sql(), "((1 % 2) + 0)");
        let forms: Vec<String> = read_again(&root, &[]).iter().map(Node::sql).collect();
        for form in
            ["IF(ABS((1 % 2)) = 0, ABS((1 % 2)), (1 % 2))", "IF(ABS((1 % 2)) = 0, 0.00, (1 % 2))"]
        {
            assert!(forms.iter().any(|it| it == form), "{form} of {forms:?}");
        }
        assert!(of(" + ").is_empty());
        let source = Node::leaf(Role::Source, "t1 AS a1");
        let texts = ["(SELECT MAX(", ") FROM ", ")"];
        let greatest = Node::new(Role::Expression, &texts, vec![leaf("a1.bigu"), source]);
        let forms = read_again(&greatest, &[]);
        assert_eq!(forms[0].sql(), "((SELECT MAX(a1.bigu) FROM t1 AS a1) + 0)");
    }

    #[test]
    fn what_reads_several_tables_is_not_kept() {
        let sum = Node::new(Role::Expression, &["(", " + ", ")"], vec![leaf("a1.x"), leaf("a2.y")]);
        let children = ["t1 AS a1", "t2 AS a2"].map(|text| Node::leaf(Role::Source, text));
        let from = Node::new(Role::Source, &["", ", ", ""], children.to_vec());
        let root =
            Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![Node::list(vec![sum]), from]);
        assert!(kept_forms(root).is_empty());
    }

    #[test]
    fn extremes_are_cells_without_their_groups() {
        let extreme = Node::new(Role::Aggregate, &["MIN(", ")"], vec![leaf("a1.x")]);
        let group = Node::clause(" GROUP BY ", Some(leaf("a1.y")), "");
        let none = || Node::clause(" WHERE ", None, "");
        let grouped = |item| {
            let from = Node::leaf(Role::Source, "t1 AS a1");
            let children = vec![Node::list(vec![item]), from, none(), group.clone()];
            query(Node::new(Role::Fixed, &["SELECT ", " FROM ", "", "", ""], children))
        };
        let plain = without_temporary_table(&grouped(extreme));
        assert_eq!(plain[0].root.sql(), "SELECT a1.x FROM t1 AS a1");
        let count = Node::new(Role::Aggregate, &["COUNT(", ")"], vec![leaf("a1.x")]);
        assert!(without_temporary_table(&grouped(count)).is_empty());
    }

    fn told(rows: &[&str], warnings: &[&str]) -> Told {
        let cell = |text: &&str| vec![Some(text.as_bytes().to_vec())];
        let rows = rows.iter().map(cell).collect();
        let warning = |text: &&str| ["Warning", "1292", text].map(String::from);
        let warnings = warnings.iter().map(warning).collect();
        let columns = vec![compare::tests::column_of(3)];
        let answer = Answer::Rows { columns, rows, status: 0, warnings: 0, changes: Vec::new() };
        Told { answer, warnings }
    }

    #[test]
    fn a_planted_difference_is_not_composed() {
        let query = query(leaf("SELECT 1"));
        let alike = |own: Told, here: Told, there: Told| {
            are_alike(&query, &Ok(vec![own]), (&Ok(vec![here]), &[there]))
        };
        let right = || told(&["1"], &["x"]);
        assert!(alike(right(), right(), right()));
        // Gannet's own answer is another one than that of its parts.
        assert!(!alike(told(&["2"], &["x"]), right(), right()));
        assert!(!alike(told(&["1"], &[]), right(), right()));
        // The two differ in the parts, too.
        assert!(!alike(right(), right(), told(&["2"], &["x"])));
        assert!(!alike(right(), right(), told(&["1"], &["y"])));
        assert!(!alike(right(), told(&["2"], &["x"]), right()));
    }

    #[test]
    fn dates_that_can_be_read_stand_for_casts() {
        let cast = Node::new(Role::Expression, &["CAST(", " AS DATE)"], vec![leaf("'a'")]);
        let plain = Node::new(Role::Expression, &["CAST(", " AS CHAR)"], vec![leaf("1")]);
        let both = Node::list(vec![plain.clone(), cast]);
        let root = Node::new(Role::Fixed, &["SELECT ", ""], vec![both]);
        let (query_of_dates, casts) = readable(&query(root)).unwrap();
        assert_eq!(query_of_dates.root.sql(), "SELECT CAST(1 AS CHAR), DATE'2024-02-29'");
        assert_eq!(casts.len(), 1);
        assert_eq!(casts[0].root.sql(), "SELECT CAST('a' AS DATE)");
        assert!(readable(&query(plain)).is_none());
    }

    #[test]
    fn a_date_that_only_one_server_reads_is_readable() {
        let warned = || told(&["1"], &["x"]);
        assert!(is_unreadable((&Ok(vec![warned()]), &[warned()])));
        assert!(!is_unreadable((&Ok(vec![warned()]), &[told(&["1"], &[])])));
        assert!(!is_unreadable((&Ok(vec![told(&["1"], &[])]), &[warned()])));
    }

    #[test]
    fn only_the_place_of_a_value_may_differ() {
        let query = query(leaf("SELECT 1"));
        let alike = |here: &str, there: &str| {
            let (here, there) = (told(&["1"], &[here]), told(&["1"], &[there]));
            are_named_alike(&query, &Ok(vec![here]), &[there])
        };
        let of_column = "Incorrect datetime value: '1' for column `a2`.`c0` at row 1";
        assert!(alike(of_column, "Truncated incorrect datetime value: '1'"));
        assert!(!alike(of_column, "Truncated incorrect datetime value: '2'"));
        assert!(!alike(of_column, "Truncated incorrect time value: '1'"));
    }

    #[test]
    fn a_planted_cell_is_not_among_the_rows() {
        let query = query(leaf("SELECT 1"));
        let among = |own: Told, here: Told, there: Told| {
            are_among(&Ok(vec![own]), &[(query.clone(), Ok(vec![here]), vec![there])])
        };
        let all = || told(&["1", "2"], &[]);
        assert!(among(told(&["2"], &[]), all(), all()));
        assert!(!among(told(&["3"], &[]), all(), all()));
        assert!(!among(told(&["2"], &[]), all(), told(&["1", "3"], &[])));
    }
}
