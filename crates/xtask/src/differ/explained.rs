//! Differences that are known: `tests/differ/explained.txt`, whose head tells its form. A rule
//! explains a statement that was shrunk, so that it can be narrow.

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How it is called in the counts.
    pub name: &'static str,
    /// Patterns of the difference, ` | ` between them.
    difference: &'static str,
    /// Pattern of the shrunk statement.
    statement: &'static str,
    /// Beginning of the line of COMPAT.md that tells of it.
    pub compat: &'static str,
    /// What must be shown besides.
    pub proof: Proof,
}

/// What a statement must show for a rule, by its parts selected alone (see `parts.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    None,
    /// What only one server complains of is what both say of parts.
    Parts,
    /// Both refuse; either's error is what both say of a part.
    Errors,
    /// Gannet answers the rows for which both say that the condition is true when it is selected.
    Selected,
    /// Gannet answers what both answer when a part is computed first (see `composed.rs`).
    Composed,
    /// Outside of strict modes both do and warn of the same, also of what Gannet refuses here.
    Lenient,
    /// With dates that can be read in place of those that cannot, both answer the same.
    Readable,
    /// The warnings are the same but for where their values come from.
    Named,
    /// Gannet's rows are among those that both answer where there is no temporary table.
    Untabled,
    /// With summands of fewer digits after the point both answer the same, and Gannet almost what
    /// it answered (for this and the following see `replaced.rs`).
    Summed,
    /// With summands of 20 digits after the point both answer the same, and Gannet that with the
    /// digits that it shows (see `digits.rs`).
    Rounded,
    /// With an empty text before JSON_TYPE and JSON_QUERY in CONCAT both answer the same, and
    /// Gannet the same values as before.
    Begun,
    /// With a comparison of constants in place of ANY and ALL both answer the same.
    Decided,
    /// With NULL for columns that have no value beside an aggregate both answer the same.
    Grouped,
    /// With the number in place of an unsigned variable both answer the same, as Gannet does
    /// with the variable.
    Written,
    /// With limits in derived tables both answer the same.
    Limited,
    /// The answers are the same but for zeros before numbers.
    Padded,
    /// Without indexes both answer the same, and Gannet as before (for this and the following see
    /// `executed.rs`).
    Unindexed,
    /// With sorted groups both answer the same, and Gannet as before.
    Sorted,
    /// Without DISTINCT and an order both answer the same, and Gannet describes the columns as
    /// before.
    Unordered,
    /// Gannet's rows are, each once, those that both answer where there is no temporary table.
    Distinct,
    /// With the summands as DECIMAL both answer the same, which is what Gannet answered but for
    /// the last digits.
    Exact,
    /// With the number or the text of each BIT column in its place both answer the same, and Gannet
    /// the same values as before.
    Bits,
    /// With one literal in place of two beside each other both answer the same, and Gannet the same
    /// values as before.
    Joined,
    /// With NULL in place of columns that are neither grouped nor aggregated both answer the same.
    Valueless,
    /// With the texts of members in place of columns of ENUM and SET both answer the same.
    Member,
    /// With texts of one character set both answer the same, and Gannet the same values as before.
    Unicode,
    /// With functions around what is grouped by both answer the same.
    Unfolded,
    /// The answers are the same but for a backslash in escapes of characters of two halves.
    Surrogates,
    /// Without conditions in subqueries both refuse with the error that Gannet gives.
    Satisfied,
    /// Each value of a row alone is answered by both the same; the errors are among those.
    Apart,
    /// With inner joins both answer the same, and only MariaDB says NOT NULL of columns of outer
    /// ones.
    Inner,
    /// Only warnings of JSON_CONTAINS and JSON_OVERLAPS about broken documents differ, and a
    /// document is broken.
    Broken,
    /// Without materialized subqueries both answer the same, and Gannet as before.
    Unmaterialized,
    /// With IFNULL around the condition both answer the same, and Gannet as before.
    Guarded,
    /// With NULLIF around comparisons with ANY and ALL both answer the same, and Gannet as
    /// before.
    Nullable,
    /// With comparisons in place of IN both answer the same, and Gannet the same values as
    /// before.
    Alternatives,
    /// With CONCAT around what is stored in columns of text both do the same, and Gannet as
    /// before.
    StoredAsText,
    /// Without parameters both answer the same, and Gannet as before in what differs.
    Unprepared,
    /// With sums in place of what MIN and MAX are taken of both answer the same, and Gannet the
    /// same values as before.
    Extremes,
    /// With lists of texts both answer the same, and Gannet's lists have the same values.
    Listed,
    /// Both refuse, and name the same two sides of a comparison.
    Mirrored,
    /// The answers are the same but for signs of zeros.
    Signless,
    /// With limits in derived tables both answer the same, and Gannet as before.
    Unmerged,
    /// With the two documents of JSON_OVERLAPS in the other order both answer the same, and Gannet
    /// as before.
    Swapped,
    /// With groups told apart by the texts of their keys both answer the same, and Gannet the same
    /// values as before.
    Texted,
    /// The answers are the same but for positions in warnings about documents.
    Positions,
    /// With a DECIMAL of fewer digits both answer the same, and Gannet's rows are near to those of
    /// products of DOUBLE (for this and the following see `digits.rs`).
    Multiplied,
    /// With the numbers of BIT columns both answer the same, and these are what Gannet's bytes are.
    Bytes,
    /// With NULL in place of numbers that are no TIME both answer the same.
    FewerHours,
    /// With sums in place of ZEROFILL columns both answer the same.
    Unfilled,
    /// With sums in place of remainders and quotients, and CONCAT around what is stored in columns
    /// of text, both do the same, and Gannet as before.
    Unsigned,
    /// With BIT_AND and PERIOD_ADD as DECIMAL both answer the same, and Gannet the same values as
    /// before.
    Widened,
    /// Both answer the same, and Gannet as before, where the same is asked in another way (see
    /// `otherwise.rs`); no rule of the file asks for it.
    Otherwise,
}

impl Rule {
    /// What explains a difference that no rule of the file explains.
    pub fn last_resort(name: &'static str, compat: &'static str) -> Self {
        Self { name, difference: "*", statement: "*", compat, proof: Proof::Otherwise }
    }
}

/// The rules of `tests/differ`.
pub fn load() -> Result<Vec<Rule>, String> {
    parse(include_str!("../../../../tests/differ/explained.txt"))
}

/// The rules of `differ --grid`.
pub fn load_grid() -> Result<Vec<Rule>, String> {
    parse(include_str!("../../../../tests/differ/grid_explained.txt"))
}

fn parse(text: &'static str) -> Result<Vec<Rule>, String> {
    let blocks = text.split("\n\n").map(|block| {
        let lines = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.collect::<Vec<&'static str>>()
    });
    blocks.filter(|lines| !lines.is_empty()).map(|lines| rule(&lines)).collect()
}

fn rule(lines: &[&'static str]) -> Result<Rule, String> {
    let optional =
        |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let value = |name: &str| {
        optional(name).ok_or_else(|| format!("explained.txt: no '{name}' in {lines:?}"))
    };
    let proof = match optional("proof") {
        None => Proof::None,
        Some("parts") => Proof::Parts,
        Some("errors") => Proof::Errors,
        Some("selected") => Proof::Selected,
        Some("composed") => Proof::Composed,
        Some("lenient") => Proof::Lenient,
        Some("readable") => Proof::Readable,
        Some("named") => Proof::Named,
        Some("untabled") => Proof::Untabled,
        Some("summed") => Proof::Summed,
        Some("rounded") => Proof::Rounded,
        Some("begun") => Proof::Begun,
        Some("decided") => Proof::Decided,
        Some("grouped") => Proof::Grouped,
        Some("written") => Proof::Written,
        Some("limited") => Proof::Limited,
        Some("padded") => Proof::Padded,
        Some("broken") => Proof::Broken,
        Some("unindexed") => Proof::Unindexed,
        Some("sorted") => Proof::Sorted,
        Some("unordered") => Proof::Unordered,
        Some("distinct") => Proof::Distinct,
        Some("exact") => Proof::Exact,
        Some("bits") => Proof::Bits,
        Some("joined") => Proof::Joined,
        Some("valueless") => Proof::Valueless,
        Some("member") => Proof::Member,
        Some("unicode") => Proof::Unicode,
        Some("unfolded") => Proof::Unfolded,
        Some("inner") => Proof::Inner,
        Some("satisfied") => Proof::Satisfied,
        Some("surrogates") => Proof::Surrogates,
        Some("apart") => Proof::Apart,
        Some("unmaterialized") => Proof::Unmaterialized,
        Some("guarded") => Proof::Guarded,
        Some("nullable") => Proof::Nullable,
        Some("alternatives") => Proof::Alternatives,
        Some("stored as text") => Proof::StoredAsText,
        Some("unprepared") => Proof::Unprepared,
        Some("listed") => Proof::Listed,
        Some("extremes") => Proof::Extremes,
        Some("mirrored") => Proof::Mirrored,
        Some("signless") => Proof::Signless,
        Some("unmerged") => Proof::Unmerged,
        Some("swapped") => Proof::Swapped,
        Some("texted") => Proof::Texted,
        Some("positions") => Proof::Positions,
        Some("multiplied") => Proof::Multiplied,
        Some("bytes") => Proof::Bytes,
        Some("fewer hours") => Proof::FewerHours,
        Some("unfilled") => Proof::Unfilled,
        Some("widened") => Proof::Widened,
        Some("unsigned") => Proof::Unsigned,
        Some(other) => return Err(format!("explained.txt: no proof is called '{other}'")),
    };
    Ok(Rule {
        name: value("rule")?,
        difference: value("difference")?,
        statement: value("statement")?,
        compat: value("compat")?,
        proof,
    })
}

/// The rules that may explain a difference of a shrunk statement.
pub fn find<'a>(
    rules: &'a [Rule],
    difference: &str,
    statement: &str,
) -> impl Iterator<Item = &'a Rule> {
    let explains = move |rule: &&Rule| {
        let mut kinds = rule.difference.split(" | ");
        kinds.any(|kind| matches(kind, difference)) && matches(rule.statement, statement)
    };
    rules.iter().filter(explains)
}

/// Whether a pattern in which `*` stands for any text fits a whole text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    let ends = text.char_indices().map(|(position, _)| position).chain([text.len()]);
    ends.into_iter().any(|position| matches(rest, &text[position..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_points_at_a_line_of_compat() {
        let compat = include_str!("../../../../COMPAT.md");
        for rule in load().unwrap().into_iter().chain(load_grid().unwrap()) {
            let found = compat.lines().any(|line| line.starts_with(rule.compat));
            assert!(found && rule.compat.len() > 10, "{}: {}", rule.name, rule.compat);
            let narrow = rule.statement.trim_matches('*').len() > 1;
            assert!(narrow, "{} would explain almost anything", rule.name);
        }
    }

    #[test]
    fn wrong_values_in_the_shapes_of_warnings_are_not_explained() {
        let rules = load().unwrap();
        let shapes = [
            "SELECT (a1.x IN (1, 'a')) FROM t1 AS a1",
            "SELECT 1 FROM t1 AS a1 WHERE (a1.x BETWEEN 'a' AND NULL)",
            "SELECT 1 FROM (t1 AS a1 JOIN t2 AS a2 ON (a1.x * a2.y)) WHERE a1.z",
            "UPDATE t4 AS a1 SET a1.x = 1 WHERE 'a'",
            "SELECT (a1.x <=> 'a') FROM t1 AS a1 WHERE (a1.y LIKE 'b')",
        ];
        for (shape, difference) in shapes.iter().flat_map(|shape| {
            ["value bigint", "value varchar", "null", "count", "order"].map(|it| (shape, it))
        }) {
            let mut found = find(&rules, difference, shape);
            let unproven = found.find(|rule| rule.proof == Proof::None);
            assert_eq!(unproven, None, "{difference} of {shape}");
            let by_parts = find(&rules, difference, shape).find(|it| it.proof == Proof::Parts);
            assert_eq!(by_parts, None, "{difference} of {shape}");
        }
    }

    #[test]
    fn patterns_fit_whole_texts() {
        assert!(matches("error text 1139", "error text 1139"));
        assert!(matches("SELECT *REGEXP*", "SELECT ('a' REGEXP '[')"));
        assert!(matches("*", ""));
        assert!(!matches("SELECT *REGEXP", "SELECT ('a' REGEXP '[')"));
        assert!(!matches("value int", "value interval"));
    }

    #[test]
    fn the_first_rule_that_fits_is_found() {
        let text = "rule: a\ndifference: null\nstatement: *F(*\ncompat: | x\n\n# more\nrule: b\n\
                    difference: value *\nstatement: *F(*\ncompat: | y\n";
        let rules = parse(text).unwrap();
        let first = |text| find(&rules, "value int", text).next().map(|rule| rule.name);
        assert_eq!(first("SELECT F(1)"), Some("b"));
        assert_eq!(first("SELECT G(1)"), None);
        assert!(parse("rule: a\ndifference: null\n").is_err());
        let with_proof = "rule: a\ndifference: null\nstatement: *F(*\ncompat: | x\nproof: parts\n";
        assert_eq!(parse(with_proof).unwrap()[0].proof, Proof::Parts);
        let unknown = "rule: a\ndifference: null\nstatement: *F(*\ncompat: | x\nproof: luck\n";
        assert!(parse(unknown).is_err());
    }
}
