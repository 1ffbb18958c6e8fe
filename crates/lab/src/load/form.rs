//! How tables are made, beyond what the workload says.

use std::fmt;
use std::str::FromStr;

/// When secondary keys are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// With the tables: rows are sorted in as they come.
    BeforeLoad,
    /// When the rows are there.
    AfterLoad,
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "before-load" => Ok(Self::BeforeLoad),
            "after-load" => Ok(Self::AfterLoad),
            _ => Err("there are before-load and after-load".into()),
        }
    }
}

/// The form of the tables of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableForm {
    /// Appended to every CREATE TABLE: compression, row format.
    pub options: String,
    /// Partitions by the primary key's leading id; 0 for none.
    pub partitions: u32,
    /// When secondary keys are made, if not as the workload has it.
    pub keys: Option<Keys>,
}

impl TableForm {
    /// What stands behind the columns of a table that is partitioned by this one.
    pub fn behind(&self, column: &str) -> String {
        match self.partitions {
            0 => self.options.clone(),
            count => format!("{} PARTITION BY KEY({column}) PARTITIONS {count}", self.options),
        }
    }

    /// Whether secondary keys are made with the tables; `usual` is the workload's way.
    pub fn keys_first(&self, usual: bool) -> bool {
        self.keys.map_or(usual, |keys| keys == Keys::BeforeLoad)
    }
}

impl From<&str> for TableForm {
    fn from(options: &str) -> Self {
        Self { options: options.into(), ..Self::default() }
    }
}

/// As a load's description has it.
impl fmt::Display for TableForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = match self.keys {
            None => "usual",
            Some(Keys::BeforeLoad) => "before",
            Some(Keys::AfterLoad) => "after",
        };
        write!(f, "partitions={} keys={keys} {}", self.partitions, self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_the_options() {
        let form = TableForm { partitions: 16, ..TableForm::from("PAGE_COMPRESSED=1") };
        assert_eq!(form.behind("id1"), "PAGE_COMPRESSED=1 PARTITION BY KEY(id1) PARTITIONS 16");
        assert_eq!(TableForm::default().behind("id"), "");
    }

    #[test]
    fn keys_are_made_when_it_is_said() {
        let form = |keys| TableForm { keys, ..TableForm::default() };
        assert!(form(None).keys_first(true) && !form(None).keys_first(false));
        assert!(form(Some(Keys::BeforeLoad)).keys_first(false));
        assert!(!form("after-load".parse().ok()).keys_first(true));
        assert!("later".parse::<Keys>().is_err());
    }
}
