//! The certificate of a server that nobody gave one: made at the first start, signed by itself.
//!
//! Clients that do not verify get encryption; those that do are given the certificate as the
//! authority (`--ssl-ca=server-cert.pem`): it names localhost and the host.

use super::tls::{TlsError, TlsFiles};
use rcgen::{CertificateParams, DnType, IsCa, KeyPair, date_time_ymd};
use std::io;
use types::{DateTime, TimeZone, Timestamp};

const DAY_MICROS: i64 = 86_400_000_000;
/// How long a certificate is good.
const VALID_DAYS: i64 = 3650;

/// The day of a time; a certificate's two ends are midnights.
fn midnight(micros: i64) -> (i32, u8, u8) {
    let at: DateTime = TimeZone::default().to_local(Timestamp(micros));
    let date = at.date();
    (date.year() as i32, date.month() as u8, date.day() as u8)
}

/// Certificate and key, in PEM.
pub(super) fn make(host: &str, now_micros: i64) -> Result<(String, String), TlsError> {
    let failed = |error: rcgen::Error| TlsError::Refused(format!("no key can be made: {error}"));
    let mut names = vec!["localhost".to_owned()];
    if !host.is_empty() && host != "localhost" && host.is_ascii() {
        names.push(host.to_owned());
    }
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    let mut parameters = CertificateParams::new(names).map_err(failed)?;
    let subject = &mut parameters.distinguished_name;
    subject.remove(DnType::CommonName);
    subject.push(DnType::CommonName, "Gannet auto-generated server certificate");
    parameters.is_ca = IsCa::ExplicitNoCa;
    let (year, month, day) = midnight(now_micros - DAY_MICROS);
    parameters.not_before = date_time_ymd(year, month, day);
    let (year, month, day) = midnight(now_micros + VALID_DAYS * DAY_MICROS);
    parameters.not_after = date_time_ymd(year, month, day);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn write(path: &str, text: &str) -> io::Result<()> {
    let options = runtime::file::OpenOptions::new().create(true).truncate(true);
    let file = options.open(path)?;
    file.write_at(text.as_bytes(), 0)?;
    file.sync_data()
}

/// The files of a data directory; made if one of them is missing.
pub(super) fn find_or_make(directory: &str, host: &str) -> Result<TlsFiles, TlsError> {
    let certificate = format!("{directory}/server-cert.pem");
    let key = format!("{directory}/server-key.pem");
    let failed = |path: &str| {
        let path = path.to_owned();
        move |error| TlsError::File { path, error }
    };
    let there = |path: &str| runtime::fs::exists(path).map_err(failed(path));
    if !there(&certificate)? || !there(&key)? {
        let (certificate_text, key_text) = make(host, runtime::wall_clock_micros())?;
        write(&key, &key_text).map_err(failed(&key))?;
        write(&certificate, &certificate_text).map_err(failed(&certificate))?;
        runtime::fs::sync_dir(directory).map_err(failed(directory))?;
    }
    Ok(TlsFiles { certificate, key, ..TlsFiles::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_from_microseconds() {
        assert_eq!(midnight(DAY_MICROS), (1970, 1, 2));
        assert_eq!(midnight(2_524_608_000_000_000 - 1), (2049, 12, 31));
    }

    #[test]
    fn a_name_that_no_certificate_can_have_is_left_out() {
        for host in ["", "localhost", "db-7.example.org", "größe", "two words"] {
            let (certificate, key) = make(host, 2_600_000_000_000_000).unwrap();
            assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----\n"), "{host}");
            assert!(key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{host}");
        }
    }
}
