//! Prepared statements with values that want different plans: `tests/plans/prepared.sql` has
//! statements, each followed by lines `with` and the values of an execution. An execution may read
//! [`super::FACTOR`] times what the statement with literals is worth, and [`super::FREE`] more.

use super::{Desk, FACTOR, FREE};

/// Executes everything; how many executions there were.
pub fn judge(desk: &mut Desk, file: &str) -> Result<usize, String> {
    let (mut text, mut executions, mut bad) = ("", 0, Vec::new());
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let Some(values) = line.strip_prefix("with ") else {
            text = line;
            desk.execute(&format!("PREPARE s FROM '{}'", text.replace('\'', "''")))?;
            continue;
        };
        executions += 1;
        let literal = with_values(text, values);
        let best = desk.work(&literal)?.ok_or_else(|| format!("{literal} took too long"))?;
        let variables: Vec<&str> = values.split(", ").collect();
        let names = (0..variables.len()).map(|number| format!("@v{number}"));
        let names: Vec<String> = names.collect();
        for (name, value) in names.iter().zip(variables) {
            desk.execute(&format!("SET {name} = {value}"))?;
        }
        let before = rows_read(desk)?;
        desk.execute(&format!("EXECUTE s USING {}", names.join(", ")))?;
        let work = rows_read(desk)? - before;
        if work > best.saturating_mul(FACTOR).saturating_add(FREE) {
            println!("{work:>9} {best:>9}  {text}\n{:21}with {values}", "");
            bad.push(text);
        }
    }
    match bad.is_empty() {
        true => Ok(executions),
        false => {
            Err(format!("plans: {} executions of prepared statements read too much", bad.len()))
        }
    }
}

/// The statement with literals in the place of its parameters.
fn with_values(text: &str, values: &str) -> String {
    let mut values = values.split(", ");
    let mut parts = text.split('?');
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        whole.push_str(values.next().unwrap_or("NULL"));
        whole.push_str(part);
    }
    whole
}

/// Rows that the session has read so far.
fn rows_read(desk: &mut Desk) -> Result<u64, String> {
    let rows = desk.execute("SHOW SESSION STATUS LIKE 'Handler_read_%'")?;
    Ok(rows.iter().filter_map(|row| row.get(1)?.parse::<u64>().ok()).sum())
}
