//! Words of a command line: `--flag`, `--name VALUE`, and words of their own.

/// Arguments of one command.
#[derive(Clone)]
pub struct Arguments {
    words: Vec<String>,
    flags: &'static [&'static str],
}

impl Arguments {
    /// `flags` are the options without a value; every other `--option` is followed by one.
    pub fn new(words: &[String], flags: &'static [&'static str]) -> Self {
        Self { words: words.to_vec(), flags }
    }

    /// Whether a flag was given.
    pub fn has(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word == flag)
    }

    /// The value after an option.
    pub fn value(&self, option: &str) -> Option<&str> {
        let position = self.words.iter().position(|word| word == option)?;
        self.words.get(position + 1).map(String::as_str)
    }

    /// The number after an option, or the default.
    pub fn number(&self, option: &str, default: u64) -> Result<u64, String> {
        let Some(word) = self.value(option) else { return Ok(default) };
        word.parse().map_err(|_| format!("{option} {word}: a number is wanted"))
    }

    /// The numbers after an option, separated by commas, or the default.
    pub fn numbers(&self, option: &str, default: &[u32]) -> Result<Vec<u32>, String> {
        let Some(word) = self.value(option) else { return Ok(default.to_vec()) };
        let bad = |_| format!("{option} {word}: numbers separated by commas are wanted");
        word.split(',').map(|part| part.parse().map_err(bad)).collect()
    }

    /// The words that are neither options nor their values.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                names.push(word.as_str());
            } else if !self.flags.contains(&word.as_str()) {
                words.next();
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_values_from_names() {
        let words: Vec<String> =
            ["--quick", "oltp", "--seconds", "3", "--clients", "8,64"].map(String::from).into();
        let arguments = Arguments::new(&words, &["--quick"]);
        assert!(arguments.has("--quick"));
        assert_eq!(arguments.names(), ["oltp"]);
        assert_eq!(arguments.number("--seconds", 1), Ok(3));
        assert_eq!(arguments.numbers("--clients", &[]), Ok(vec![8, 64]));
        assert!(arguments.number("--clients", 1).is_err());
    }
}
