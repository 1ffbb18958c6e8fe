//! Words of a command line: `--flag`, `--name VALUE`, and words of their own.

/// Arguments of one command.
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
    }
}
