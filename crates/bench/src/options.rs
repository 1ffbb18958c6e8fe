//! Words of the command line.

/// `--flag` and `--name VALUE`.
pub struct Options {
    words: Vec<String>,
}

impl Options {
    /// Of these words.
    pub fn new(words: &[String]) -> Self {
        Self { words: words.to_vec() }
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
    pub fn number(&self, option: &str, default: u32) -> Result<u32, String> {
        let Some(word) = self.value(option) else { return Ok(default) };
        word.parse().map_err(|_| format!("{option} {word}: a number is wanted"))
    }

    /// The seconds after an option, or the default.
    pub fn seconds(&self, option: &str, default: f64) -> Result<f64, String> {
        let Some(word) = self.value(option) else { return Ok(default) };
        let seconds = word.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
        seconds.ok_or_else(|| format!("{option} {word}: seconds are wanted"))
    }
}
