//! Words of a command line: `--flag`, `--name VALUE`, and words of their own.

/// Arguments of one command.
#[derive(Clone)]
pub struct Arguments {
    words: Vec<String>,
    flags: &'static [&'static str],
}

impl Arguments {
    /// `flags` are the options without a value; each of `options` is followed by one. Others are
    /// an error: a misspelt option would change what is run or measured without anybody's notice.
    pub fn new(
        words: &[String],
        flags: &'static [&'static str],
        options: &[&str],
    ) -> Result<Self, String> {
        let is_known = |word: &str| flags.contains(&word) || options.contains(&word);
        if let Some(word) = words.iter().find(|word| word.starts_with('-') && !is_known(word)) {
            let known: Vec<&str> = flags.iter().chain(options).copied().collect();
            return Err(format!("no option '{word}'; there are {}", known.join(" ")));
        }
        Ok(Self { words: words.to_vec(), flags })
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
        let arguments = Arguments::new(&words, &["--quick"], &["--seconds", "--clients"])
            .expect("all are known");
        assert!(arguments.has("--quick"));
        assert_eq!(arguments.names(), ["oltp"]);
        assert_eq!(arguments.number("--seconds", 1), Ok(3));
        assert_eq!(arguments.numbers("--clients", &[]), Ok(vec![8, 64]));
        assert!(arguments.number("--clients", 1).is_err());
    }

    #[test]
    fn an_unknown_option_is_an_error_that_names_the_known_ones() {
        let words = ["oltp".to_string(), "--second".to_string(), "3".to_string()];
        let error = Arguments::new(&words, &["--quick"], &["--seconds"]).err();
        assert_eq!(error.as_deref(), Some("no option '--second'; there are --quick --seconds"));
    }
}
