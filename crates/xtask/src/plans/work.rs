//! The work of an execution, read off ANALYZE FORMAT=JSON.
//!
//! 1. A row read counts one, and so does a lookup that finds none. A row that is found in a
//!    secondary index and fetched from the table counts two: two trees are read.
//! 2. Of a hash join the rows count that went into the table, and those that were found in it.

/// What the document says of one table.
#[derive(Debug, Default)]
struct Table {
    is_secondary: bool,
    is_covering: bool,
    loops: f64,
    rows: f64,
    hashed: f64,
}

impl Table {
    fn work(&self) -> f64 {
        let rows = self.loops * self.rows;
        let fetched = if self.is_secondary && !self.is_covering { rows } else { 0.0 };
        rows.max(if self.hashed > 0.0 { 0.0 } else { self.loops }) + fetched + self.hashed
    }
}

/// The work of all tables of a document.
pub fn of_json(json: &str) -> u64 {
    let mut tables: Vec<Table> = Vec::new();
    for line in json.lines() {
        let Some((name, value)) = line.trim().split_once(": ") else { continue };
        let value = value.trim_end_matches(',').trim_matches('"');
        let number = || value.parse::<f64>().unwrap_or(0.0);
        if name == "\"table_name\"" {
            tables.push(Table::default());
            continue;
        }
        let Some(table) = tables.last_mut() else { continue };
        match name {
            "\"key\"" => table.is_secondary = value != "PRIMARY" && !value.starts_with('#'),
            "\"using_index\"" => table.is_covering = value == "true",
            "\"r_loops\"" => table.loops = number(),
            "\"r_rows\"" => table.rows = number(),
            "\"r_hashed_rows\"" => table.hashed = number(),
            _ => {}
        }
    }
    tables.iter().map(Table::work).sum::<f64>().round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lookups_and_fetches_count() {
        let json = r#"{
  "query_block": {
    "select_id": 1,
    "r_loops": 1,
    "nested_loop": [
      { "table": {
          "table_name": "a",
          "access_type": "ALL",
          "r_loops": 1,
          "r_rows": 100,
      } },
      { "table": {
          "table_name": "b",
          "key": "k",
          "r_loops": 100,
          "r_rows": 0.5,
      } },
      { "table": {
          "table_name": "c",
          "key": "k",
          "r_loops": 50,
          "r_rows": 2,
          "using_index": true
      } }
    ]
  }
}"#;
        assert_eq!(of_json(json), 100 + (100 + 50) + 100);
    }
}
