//! How canonical text is printed.

/// How to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style<'a> {
    /// This database is left out before tables and columns.
    pub hidden_schema: Option<&'a str>,
    /// But it stays before columns: the names of a broken view are not looked up.
    pub shows_schema_of_columns: bool,
}

/// A name between backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
