//! `mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?socket=PATH&tls=required&timeout=SECONDS]`

use super::spec::unknown;
use crate::client::{Target, Tls};
use runtime::net::Address;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;

const DEFAULT_PORT: u16 = 3306;
const READ_TIMEOUT: Duration = Duration::from_secs(600);

/// What can be behind the question mark.
const OPTIONS: [&str; 4] = ["tls", "ca", "socket", "timeout"];

/// Reads a DSN; the error says which part is wrong.
pub(super) fn parse(text: &str) -> Result<Target, String> {
    let form = "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE is wanted";
    let rest = text.strip_prefix("mysql://").ok_or(form)?;
    let (account, place) = rest.rsplit_once('@').ok_or_else(|| format!("no '@': {form}"))?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (place, options) = place.split_once('?').unwrap_or((place, ""));
    let (host, database) =
        place.split_once('/').ok_or_else(|| format!("no '/' before the database: {form}"))?;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => {
            let port = port.parse::<u16>().map_err(|_| format!("'{port}' is no port"))?;
            (name, port)
        }
        None => (host, DEFAULT_PORT),
    };
    if user.is_empty() || database.is_empty() {
        return Err(format!("user and database must be named: {form}"));
    }
    let options = options_of(options)?;
    let option = |wanted: &str| {
        options.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
    };
    let address = match option("socket") {
        Some(path) => Address::Unix(path.into()),
        None => address(name, port)?,
    };
    let read_timeout = match option("timeout").map(|text| (text, text.parse())) {
        None => READ_TIMEOUT,
        Some((_, Ok(seconds))) if seconds > 0 => Duration::from_secs(seconds),
        Some((text, _)) => return Err(format!("timeout={text}: seconds are wanted")),
    };
    Ok(Target {
        address,
        user: decoded(user)?,
        password: decoded(password)?,
        database: decoded(database)?,
        read_timeout,
        tls: tls(name, option("tls"), option("ca"))?,
    })
}

fn address(name: &str, port: u16) -> Result<Address, String> {
    let wrong = |error| format!("host '{name}': {error}: correct the host in the DSN");
    let mut found = (name, port).to_socket_addrs().map_err(wrong)?;
    found.next().map(Address::Tcp).ok_or_else(|| format!("host '{name}' has no address"))
}

/// Names and values behind the question mark.
fn options_of(text: &str) -> Result<Vec<(&str, String)>, String> {
    let mut found = Vec::new();
    for option in text.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if !OPTIONS.contains(&name) {
            return Err(unknown("the DSN", name, OPTIONS.into_iter()));
        }
        found.push((name, decoded(value)?));
    }
    Ok(found)
}

fn tls(host: &str, word: Option<&str>, authority: Option<&str>) -> Result<Tls, String> {
    match (word, authority) {
        (None | Some("off"), None) => Ok(Tls::Off),
        (Some("preferred"), None) => Tls::preferred(host),
        (Some("required"), None) => Tls::required(host),
        (Some("verify"), Some(path)) => Tls::verified(host, Path::new(path)),
        (Some("verify"), None) => Err("tls=verify needs the authority's file: &ca=PATH".into()),
        (_, Some(_)) => Err("ca= belongs to tls=verify".into()),
        (Some(word), None) => {
            Err(format!("tls={word}: there are off, preferred, required and verify"))
        }
    }
}

/// A part with `%` and two digits in place of characters that mean something in a DSN.
fn decoded(text: &str) -> Result<String, String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) =
            piece.split_at_checked(2).ok_or_else(|| format!("'{text}' ends after '%'"))?;
        let byte = u8::from_str_radix(digits, 16);
        bytes.push(byte.map_err(|_| format!("'%{digits}' is no byte in '{text}'"))?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| format!("'{text}' is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts() {
        let target = parse("mysql://bench:p%40ss:w@127.0.0.1:3307/test").expect("valid");
        assert_eq!(target.address, Address::Tcp(([127, 0, 0, 1], 3307).into()));
        let texts = [target.user, target.password, target.database];
        assert_eq!(texts, ["bench", "p@ss:w", "test"]);
        let short = parse("mysql://root@127.0.0.1/test").expect("valid");
        assert_eq!(short.address, Address::Tcp(([127, 0, 0, 1], 3306).into()));
        assert_eq!(short.password, "");
    }

    #[test]
    fn options() {
        let target = parse("mysql://root@localhost/test?socket=/run/a%20b.sock&timeout=5");
        let target = target.expect("valid");
        assert_eq!(target.address, Address::Unix("/run/a b.sock".into()));
        assert_eq!(target.read_timeout, Duration::from_secs(5));
        let encrypted = parse("mysql://root@127.0.0.1/test?tls=required").expect("valid");
        assert!(matches!(encrypted.tls, Tls::On(_)));
        assert!(matches!(parse("mysql://root@127.0.0.1/test").expect("valid").tls, Tls::Off));
    }

    #[test]
    fn errors_name_the_part() {
        let cases = [
            ("http://x", "mysql://"),
            ("mysql://localhost/test", "'@'"),
            ("mysql://root@127.0.0.1", "'/'"),
            ("mysql://root@127.0.0.1:x/test", "'x' is no port"),
            ("mysql://root@127.0.0.1/", "database"),
            ("mysql://root:%4@127.0.0.1/test", "%"),
            ("mysql://root@no.such.host.invalid/test", "correct the host"),
            ("mysql://root@127.0.0.1/test?tsl=required", "is 'tls' meant?"),
            ("mysql://root@127.0.0.1/test?tls=yes", "off, preferred, required"),
            ("mysql://root@127.0.0.1/test?tls=verify", "ca="),
            ("mysql://root@127.0.0.1/test?timeout=x", "seconds"),
        ];
        for (text, wanted) in cases {
            let error = parse(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
