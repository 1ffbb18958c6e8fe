//! REQUIRE, WITH limits and ACCOUNT LOCK of CREATE USER, ALTER USER and GRANT.

use catalog::{AccountAttributes, AccountLimits, PasswordLifetime, TlsRequirement};
use types::{SqlError, codes};

/// What a statement says; nothing is said of the rest.
#[derive(Debug, Default)]
pub(crate) struct AccountOptions {
    locked: Option<bool>,
    tls: Option<TlsRequirement>,
    queries_per_hour: Option<u32>,
    updates_per_hour: Option<u32>,
    connections_per_hour: Option<u32>,
    user_connections: Option<i32>,
    statement_micros: Option<u64>,
    expired: bool,
    lifetime: Option<PasswordLifetime>,
}

fn unsupported(feature: &str) -> SqlError {
    SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature])
}

/// Reads the options, each as written.
pub(crate) fn read(options: &[String]) -> Result<AccountOptions, SqlError> {
    let mut found = AccountOptions::default();
    for option in options {
        let upper = option.to_ascii_uppercase();
        let words: Vec<&str> = upper.split_ascii_whitespace().collect();
        match words[..] {
            ["REQUIRE", "NONE"] => found.tls = Some(TlsRequirement::Nothing),
            ["REQUIRE", "SSL"] => found.tls = Some(TlsRequirement::Tls),
            ["REQUIRE", "X509"] => found.tls = Some(TlsRequirement::Certificate),
            ["ACCOUNT", "LOCK"] => found.locked = Some(true),
            ["ACCOUNT", "UNLOCK"] => found.locked = Some(false),
            ["PASSWORD", "EXPIRE"] => found.expired = true,
            ["PASSWORD", "EXPIRE", "NEVER"] => found.lifetime = Some(PasswordLifetime::Never),
            ["PASSWORD", "EXPIRE", "DEFAULT"] => found.lifetime = Some(PasswordLifetime::Default),
            ["PASSWORD", "EXPIRE", "INTERVAL", days, "DAY"] => {
                let number = days.parse().ok().filter(|days| *days > 0);
                let wrong = || SqlError::new(&codes::WRONG_VALUE, &[&"DAY", &days]);
                found.lifetime = Some(PasswordLifetime::Days(number.ok_or_else(wrong)?));
            }
            ["WITH", ref limits @ ..] => {
                for limit in limits.chunks(2) {
                    let [name, value] = limit else {
                        return Err(unsupported(option));
                    };
                    found.read_limit(name, value)?;
                }
            }
            _ => return Err(unsupported(option)),
        }
    }
    Ok(found)
}

impl AccountOptions {
    fn read_limit(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let number: f64 = value.parse().map_err(|_| unsupported(name))?;
        // Casts of numbers that are too large end at the largest.
        match name {
            "MAX_QUERIES_PER_HOUR" => self.queries_per_hour = Some(number as u32),
            "MAX_UPDATES_PER_HOUR" => self.updates_per_hour = Some(number as u32),
            "MAX_CONNECTIONS_PER_HOUR" => self.connections_per_hour = Some(number as u32),
            "MAX_USER_CONNECTIONS" => self.user_connections = Some(number as i32),
            "MAX_STATEMENT_TIME" => self.statement_micros = Some((number * 1e6) as u64),
            _ => return Err(unsupported(name)),
        }
        Ok(())
    }

    /// Changes what the statement speaks of.
    pub(crate) fn apply(&self, attributes: &mut AccountAttributes) {
        let limits = &mut attributes.limits;
        *limits = AccountLimits {
            queries_per_hour: self.queries_per_hour.unwrap_or(limits.queries_per_hour),
            updates_per_hour: self.updates_per_hour.unwrap_or(limits.updates_per_hour),
            connections_per_hour: self.connections_per_hour.unwrap_or(limits.connections_per_hour),
            user_connections: self.user_connections.unwrap_or(limits.user_connections),
            statement_micros: self.statement_micros.unwrap_or(limits.statement_micros),
        };
        attributes.locked = self.locked.unwrap_or(attributes.locked);
        attributes.tls = self.tls.unwrap_or(attributes.tls);
        attributes.lifetime = self.lifetime.unwrap_or(attributes.lifetime);
        attributes.expired |= self.expired;
    }
}

/// ` REQUIRE SSL`, or nothing.
pub(crate) fn require_clause(attributes: &AccountAttributes) -> &'static str {
    match attributes.tls {
        TlsRequirement::Nothing => "",
        TlsRequirement::Tls => " REQUIRE SSL",
        TlsRequirement::Certificate => " REQUIRE X509",
    }
}

/// ` PASSWORD EXPIRE NEVER`, or nothing: what is said of a password's lifetime.
pub(crate) fn expire_clause(attributes: &AccountAttributes) -> String {
    match attributes.lifetime {
        PasswordLifetime::Default => String::new(),
        PasswordLifetime::Never => " PASSWORD EXPIRE NEVER".to_owned(),
        PasswordLifetime::Days(days) => format!(" PASSWORD EXPIRE INTERVAL {days} DAY"),
    }
}

/// ` WITH GRANT OPTION MAX_USER_CONNECTIONS 5`, or nothing. `option` is the first part of it.
pub(crate) fn with_clause(attributes: &AccountAttributes, option: &str) -> String {
    let limits = attributes.limits;
    let mut text = option.to_owned();
    let mut put = |name: &str, value: String| {
        if text.is_empty() {
            text.push_str(" WITH");
        }
        text.push_str(&format!(" {name} {value}"));
    };
    if limits.queries_per_hour != 0 {
        put("MAX_QUERIES_PER_HOUR", limits.queries_per_hour.to_string());
    }
    if limits.updates_per_hour != 0 {
        put("MAX_UPDATES_PER_HOUR", limits.updates_per_hour.to_string());
    }
    if limits.connections_per_hour != 0 {
        put("MAX_CONNECTIONS_PER_HOUR", limits.connections_per_hour.to_string());
    }
    if limits.user_connections != 0 {
        put("MAX_USER_CONNECTIONS", limits.user_connections.to_string());
    }
    if limits.statement_micros != 0 {
        put("MAX_STATEMENT_TIME", format!("{:.6}", limits.statement_micros as f64 / 1e6));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(options: &[&str]) -> Result<String, u16> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let mut attributes = AccountAttributes::default();
        read(&options).map_err(|error| error.code)?.apply(&mut attributes);
        Ok(require_clause(&attributes).to_owned() + &with_clause(&attributes, ""))
    }

    #[test]
    fn options_are_shown_as_they_were_given() {
        assert_eq!(shown(&["REQUIRE ssl"]).as_deref(), Ok(" REQUIRE SSL"));
        let limits = "WITH MAX_USER_CONNECTIONS 5 MAX_CONNECTIONS_PER_HOUR 7";
        let expected = " REQUIRE X509 WITH MAX_CONNECTIONS_PER_HOUR 7 MAX_USER_CONNECTIONS 5";
        assert_eq!(shown(&["REQUIRE X509", limits]).as_deref(), Ok(expected));
        assert_eq!(shown(&["WITH MAX_USER_CONNECTIONS 0", "REQUIRE NONE"]).as_deref(), Ok(""));
        let time = shown(&["WITH MAX_STATEMENT_TIME 1.5"]);
        assert_eq!(time.as_deref(), Ok(" WITH MAX_STATEMENT_TIME 1.500000"));
    }

    #[test]
    fn what_would_not_be_kept_is_refused() {
        assert_eq!(shown(&["REQUIRE SUBJECT 'x'"]), Err(1235));
        assert_eq!(shown(&["PASSWORD EXPIRE INTERVAL 0 DAY"]), Err(1525));
    }

    #[test]
    fn limits_per_hour_and_lifetimes_are_shown_as_they_were_given() {
        let hourly = "WITH MAX_UPDATES_PER_HOUR 7 MAX_QUERIES_PER_HOUR 5";
        let expected = " WITH MAX_QUERIES_PER_HOUR 5 MAX_UPDATES_PER_HOUR 7";
        assert_eq!(shown(&[hourly]).as_deref(), Ok(expected));
        for (option, expected) in [
            ("PASSWORD EXPIRE NEVER", " PASSWORD EXPIRE NEVER"),
            ("PASSWORD EXPIRE INTERVAL 5 DAY", " PASSWORD EXPIRE INTERVAL 5 DAY"),
            ("PASSWORD EXPIRE DEFAULT", ""),
        ] {
            let mut attributes = AccountAttributes::default();
            read(&[option.to_owned()]).unwrap().apply(&mut attributes);
            assert_eq!(expire_clause(&attributes), expected);
        }
    }
}
