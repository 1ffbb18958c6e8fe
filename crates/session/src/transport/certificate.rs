//! The certificate of a server that nobody gave one: made at the first start, signed by itself.
//!
//! Clients that do not verify get encryption; those that do are given the certificate as the
//! authority (`--ssl-ca=server-cert.pem`): it names localhost and the host.

use super::der::{bit_string, element, integer, nested, pem, sequence, tag};
use super::tls::{TlsError, TlsFiles};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use std::io;
use types::{DateTime, TimeZone, Timestamp};

const DAY_MICROS: i64 = 86_400_000_000;
/// How long a certificate is good.
const VALID_DAYS: i64 = 3650;

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

fn object(id: &[u8]) -> Vec<u8> {
    element(tag::OBJECT_ID, id)
}

/// A time: in two digits of the year up to 2049, as the standard says.
fn time(micros: i64) -> Vec<u8> {
    let at: DateTime = TimeZone::default().to_local(Timestamp(micros));
    let (date, year) = (at.date(), at.date().year());
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        date.month(),
        date.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    match year < 2050 {
        true => element(tag::UTC_TIME, format!("{:02}{rest}", year % 100).as_bytes()),
        false => element(tag::GENERALIZED_TIME, format!("{year:04}{rest}").as_bytes()),
    }
}

/// A name with nothing but a common name.
fn name(common: &str) -> Vec<u8> {
    let text = element(tag::UTF8_STRING, common.as_bytes());
    sequence(&[nested(tag::SET, &[sequence(&[object(COMMON_NAME), text])])])
}

fn extensions(host: &str) -> Vec<u8> {
    let constraints = sequence(&[
        object(BASIC_CONSTRAINTS),
        element(tag::BOOLEAN, &[0xff]),
        element(tag::OCTET_STRING, &sequence(&[])),
    ]);
    let dns = |name: &str| element(0x82, name.as_bytes());
    let mut names = vec![dns("localhost")];
    if !host.is_empty() && host != "localhost" && host.is_ascii() {
        names.push(dns(host));
    }
    names.push(element(0x87, &[127, 0, 0, 1]));
    names.push(element(0x87, &std::net::Ipv6Addr::LOCALHOST.octets()));
    let alternatives = sequence(&[
        object(SUBJECT_ALTERNATIVE_NAME),
        element(tag::OCTET_STRING, &sequence(&names)),
    ]);
    nested(0xa3, &[sequence(&[constraints, alternatives])])
}

/// Certificate and key, in PEM.
pub(super) fn make(host: &str, now_micros: i64) -> Result<(String, String), TlsError> {
    let failed = |_| TlsError::Refused("a key cannot be made".to_owned());
    let rejected = |_| TlsError::Refused("a key cannot be made".to_owned());
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).map_err(rejected)?;
    let mut serial = [0; 16];
    ring::rand::SecureRandom::fill(&random, &mut serial).map_err(failed)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    let signature_algorithm = sequence(&[object(ECDSA_WITH_SHA256)]);
    let subject = name("Gannet auto-generated server certificate");
    let body = sequence(&[
        nested(0xa0, &[integer(&[2])]),
        integer(&serial),
        signature_algorithm.clone(),
        subject.clone(),
        sequence(&[time(now_micros - DAY_MICROS), time(now_micros + VALID_DAYS * DAY_MICROS)]),
        subject,
        sequence(&[
            sequence(&[object(EC_PUBLIC_KEY), object(PRIME256V1)]),
            bit_string(pair.public_key().as_ref()),
        ]),
        extensions(host),
    ]);
    let signature = pair.sign(&random, &body).map_err(failed)?;
    let certificate = sequence(&[body, signature_algorithm, bit_string(signature.as_ref())]);
    Ok((pem("CERTIFICATE", &certificate), pem("PRIVATE KEY", document.as_ref())))
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
    fn times_have_two_digits_of_the_year_as_long_as_possible() {
        assert_eq!(time(DAY_MICROS), element(tag::UTC_TIME, b"700102000000Z"));
        let later = 2_524_608_000_000_000; // 2050-01-01
        assert_eq!(time(later), element(tag::GENERALIZED_TIME, b"20500101000000Z"));
    }
}
