//! Logging in over real sockets: every plugin, with and without TLS and compression, right and
//! wrong; then what travels through it. Debian's `mariadb` client is asked the same questions.

mod common;
mod secure;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa};
use rcgen::{Issuer, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::version::{TLS12, TLS13};
use secure::{Client, ED25519, Full, Login, NATIVE, SHA2, Server, tls_client};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// As long as a seed of Ed25519, so that any library makes MariaDB's signature.
const SEED: &str = "a password of exactly 32 bytes..";
const BIG: &str = "SET GLOBAL max_allowed_packet = 67108864";

/// Logs in, asks who it is and gives what was asked of it on the way.
fn trace(server: &Server, login: &Login) -> String {
    let mut client = match Client::log_in(server, login) {
        Ok(client) => client,
        Err(error) => panic!("{} by {}: {error}", login.user, login.plugin),
    };
    let who = client.answer("SELECT CURRENT_USER()");
    assert_eq!(who, format!("{}@localhost", login.user));
    client.trace.join(" ")
}

/// The number of the error of a login that must fail.
fn refused(server: &Server, login: &Login) -> String {
    match Client::log_in(server, login) {
        Ok(_) => panic!("{} with '{}' is let in", login.user, login.password),
        Err(error) => error,
    }
}

const DENIED: &str = "1045 Access denied for user";

#[track_caller]
fn assert_denied(server: &Server, login: &Login) {
    let error = refused(server, login);
    let whole = format!("{DENIED} '{}'@'localhost' (using password: YES)", login.user);
    assert_eq!(error, whole);
}

/// The answer of Debian's client, or what it says on its error output; `None` if there is none
/// on this machine (CI must have it).
fn debian(server: &Server, options: &[&str], statements: &[u8]) -> Option<String> {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-h127.0.0.1", "-BN", "--max-allowed-packet=64M"]);
    command.arg(format!("-P{}", server.port)).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "mariadb is needed here: {error}");
            println!("skipped: no mariadb client");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    // A client that was refused does not read it.
    let _written = stdin.write_all(statements);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    Some(String::from_utf8_lossy(&said).trim_end().to_owned())
}

/// Asks Debian's client by several ways; every answer must be the expected one.
fn debian_agrees(server: &Server, user: &str, password: &str, ways: &[&[&str]]) {
    for way in ways {
        let mut options = vec![format!("-u{user}"), format!("-p{password}")];
        options.extend(way.iter().map(|option| (*option).to_owned()));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        if let Some(answer) = debian(server, &options, b"SELECT CURRENT_USER()") {
            assert_eq!(answer, format!("{user}@localhost"), "{options:?}");
        }
        let wrong: Vec<String> = options
            .iter()
            .map(|option| match option.strip_prefix("-p") {
                Some(password) => format!("-p{password}x"),
                None => (*option).to_owned(),
            })
            .collect();
        let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
        if let Some(answer) = debian(server, &wrong, b"SELECT CURRENT_USER()") {
            let expected =
                format!("ERROR 1045 (28000): Access denied for user '{user}'@'localhost'");
            assert!(answer.starts_with(&expected), "{wrong:?}: {answer}");
        }
    }
}

const WAYS: &[&[&str]] = &[&["--skip-ssl"], &["--ssl"], &["-C", "--skip-ssl"], &["-C", "--ssl"]];

#[test]
fn native_passwords_and_signatures() {
    let server = Server::start("logins", &[]);
    server.run(&[
        "CREATE USER native@localhost IDENTIFIED BY 'secret'",
        &format!("CREATE USER signed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('{SEED}')"),
        "CREATE USER short@localhost IDENTIFIED VIA ed25519 USING PASSWORD('foo')",
        "CREATE USER lengthy@localhost IDENTIFIED VIA ed25519 USING
         PASSWORD('a password that is much longer than one block of any hash would be, I hope')",
    ]);
    let native = Login::of("native", "secret");
    assert_eq!(trace(&server, &native), "");
    // A proof for another plugin is not even looked at.
    assert_eq!(trace(&server, &native.clone().plugin(SHA2)), NATIVE);
    assert_eq!(trace(&server, &native.clone().plugin(ED25519)), NATIVE);
    assert_denied(&server, &Login::of("native", "Secret"));
    assert_denied(&server, &Login::of("nobody", "secret"));
    for length in [1, 19, 21, 32, 255] {
        assert_denied(&server, &native.clone().proof(vec![7; length]));
    }
    let without = refused(&server, &Login::of("native", ""));
    assert_eq!(without, format!("{DENIED} 'native'@'localhost' (using password: NO)"));

    let signed = Login::of("signed", SEED);
    for plugin in [NATIVE, SHA2, ED25519] {
        assert_eq!(trace(&server, &signed.clone().plugin(plugin)), ED25519);
    }
    assert_denied(&server, &Login::of("signed", "a password of exactly 32 bytes.!"));
    for length in [1, 32, 63, 64, 65, 255] {
        assert_denied(&server, &signed.clone().proof(vec![7; length]));
    }
    debian_agrees(&server, "native", "secret", WAYS);
    debian_agrees(&server, "signed", SEED, WAYS);
    debian_agrees(&server, "short", "foo", WAYS);
    let long = "a password that is much longer than one block of any hash would be, I hope";
    debian_agrees(&server, "lengthy", long, WAYS);
    server.stop();
}

#[test]
fn caching_sha2_passwords() {
    let server = Server::start("sha2", &[]);
    server.run(&[
        "CREATE USER sha@localhost IDENTIFIED VIA caching_sha2_password USING PASSWORD('secret')",
        "CREATE USER open@localhost IDENTIFIED VIA caching_sha2_password",
    ]);
    let tls = tls_client(&server.certificate(), &[&TLS13], None);
    let (plain, secure) = (Login::of("sha", "secret").plugin(SHA2), Login::of("sha", "secret"));
    let secure = secure.plugin(SHA2).tls(&tls);
    // The password itself, once; then the fast way, over any connection.
    assert_eq!(trace(&server, &plain), "full key");
    assert_eq!(trace(&server, &plain), "fast");
    assert_eq!(trace(&server, &secure), "fast");
    assert_eq!(trace(&server, &plain.clone().plugin(NATIVE)), format!("{SHA2} fast"));
    // What the server remembers ends with FLUSH PRIVILEGES and with the password.
    server.run(&["FLUSH PRIVILEGES"]);
    assert_eq!(trace(&server, &secure), "full");
    assert_eq!(trace(&server, &plain), "fast");
    server.run(&["ALTER USER sha@localhost IDENTIFIED VIA caching_sha2_password USING
                  PASSWORD('another')"]);
    assert_denied(&server, &plain);
    assert_denied(&server, &secure);
    let another = Login::of("sha", "another").plugin(SHA2);
    assert_eq!(trace(&server, &another), "full key");
    assert_eq!(trace(&server, &another), "fast");
    // A wrong password is asked for in full, refused, and not remembered.
    assert_denied(&server, &plain);
    assert_denied(&server, &plain);
    assert_eq!(trace(&server, &another), "fast");
    // Proofs of a wrong length.
    for length in [2, 20, 31, 33, 255] {
        assert_denied(&server, &another.clone().proof(vec![7; length]));
    }
    damaged_full_authentication(&server, &another, &tls);
    assert_eq!(trace(&server, &Login::of("open", "").plugin(SHA2)), "");
    assert_denied(&server, &Login::of("open", "secret").plugin(SHA2));
    debian_agrees(&server, "sha", "another", WAYS);
    server.run(&["FLUSH PRIVILEGES"]);
    debian_agrees(&server, "sha", "another", &[&["--ssl"], &["--skip-ssl"]]);
    for way in ["--skip-ssl", "--ssl"] {
        server.run(&["FLUSH PRIVILEGES"]);
        debian_agrees(&server, "sha", "another", &[&[way], &[way]]);
    }
    server.stop();
}

/// Where the password itself is asked for, only the password helps, and nothing does harm.
fn damaged_full_authentication(
    server: &Server,
    login: &Login,
    tls: &std::sync::Arc<rustls::ClientConfig>,
) {
    server.run(&["FLUSH PRIVILEGES"]);
    let with = |full: Full| login.clone().full(full);
    // In clear, where everybody could read it: refused, though it is right.
    assert_denied(server, &with(Full::Bytes(b"another\0".to_vec())));
    assert_denied(server, &with(Full::Endless));
    for length in [0, 1, 16, 255, 256, 257, 4096] {
        assert_denied(server, &with(Full::Bytes(vec![0x5a; length])));
        assert_denied(server, &with(Full::Bytes(vec![0; length])));
        assert_denied(server, &with(Full::Bytes(vec![0xff; length])));
    }
    let within = |full: Full| with(full).tls(tls);
    for bytes in [&b""[..], b"\0", b"another", b"another\0\0", b"\0another\0", &[0x5a; 256]] {
        assert_denied(server, &within(Full::Bytes(bytes.to_vec())));
    }
    assert_eq!(trace(server, &within(Full::Right)), "full");
}

/// A certificate, and a key of RSA where asked for, in a directory.
struct Papers {
    directory: PathBuf,
    authority: Issuer<'static, KeyPair>,
}

impl Papers {
    fn new(name: &str) -> Self {
        let process = std::process::id();
        let directory = std::env::temp_dir().join(format!("gannet-papers-{name}-{process}"));
        std::fs::create_dir_all(&directory).unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, format!("authority {name}"));
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        std::fs::write(directory.join("ca.pem"), certificate.pem()).unwrap();
        Self { directory, authority: Issuer::new(parameters, key) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn sign(&self, name: &str, key: &KeyPair, usage: ExtendedKeyUsagePurpose) {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.extended_key_usages = vec![usage];
        let certificate = parameters.signed_by(key, &self.authority).unwrap();
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.file(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn tls_with_the_generated_certificate() {
    let server = Server::start("tls", &[]);
    server.run(&[
        "CREATE USER secure@localhost IDENTIFIED BY 'secret' REQUIRE SSL",
        "CREATE USER shown@localhost IDENTIFIED BY 'secret' REQUIRE X509",
    ]);
    let login = Login::of("secure", "secret");
    for (version, name) in [(&TLS12, "TLSv1.2"), (&TLS13, "TLSv1.3")] {
        let tls = tls_client(&server.certificate(), &[version], None);
        let mut client = Client::log_in(&server, &login.clone().tls(&tls)).unwrap();
        let asked = |client: &mut Client, name: &str| {
            let like = format!("SHOW STATUS LIKE '{name}'");
            let value = format!(
                "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS
                 WHERE VARIABLE_NAME = '{name}'"
            );
            assert_eq!(client.answer(&like), name);
            client.answer(&value)
        };
        assert_eq!(asked(&mut client, "Ssl_version"), name);
        let cipher = asked(&mut client, "Ssl_cipher");
        assert!(cipher.contains("AES256") || cipher.contains("AES_256"), "{cipher}");
        assert_denied(&server, &Login::of("secure", "Secret").tls(&tls));
        // Nobody vouches for a client here.
        assert_denied(&server, &Login::of("shown", "secret").tls(&tls));
    }
    assert_denied(&server, &login);
    assert_denied(&server, &login.clone().compressed());
    // A client that trusts another certificate goes away by itself.
    let papers = Papers::new("other");
    let other = tls_client(&papers.file("ca.pem"), &[&TLS13], None);
    let error = refused(&server, &login.clone().tls(&other));
    assert!(error.starts_with("TLS: invalid peer certificate"), "{error}");
    let ca = format!("--ssl-ca={}", shown(&server.certificate()));
    let versions = ["--tls-version=TLSv1.2", "--tls-version=TLSv1.3"];
    for version in versions {
        let options = ["--ssl-verify-server-cert", &ca, version];
        debian_agrees(&server, "secure", "secret", &[&options]);
    }
    server.run(&["SET GLOBAL require_secure_transport = 1"]);
    let error = refused(&server, &Login::of("root", ""));
    assert_eq!(
        error,
        "3159 Connections using insecure transport are prohibited while \
         --require_secure_transport=ON."
    );
    std::fs::remove_dir_all(papers.directory).unwrap();
    server.stop();
}

#[test]
fn tls_with_given_certificates() {
    let papers = Papers::new("given");
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    papers.sign("server", &rsa, ExtendedKeyUsagePurpose::ServerAuth);
    papers.sign("client", &KeyPair::generate().unwrap(), ExtendedKeyUsagePurpose::ClientAuth);
    let strangers = Papers::new("strangers");
    strangers.sign("client", &KeyPair::generate().unwrap(), ExtendedKeyUsagePurpose::ClientAuth);
    let option = |name: &str, file: &str| format!("--{name}={}", shown(&papers.file(file)));
    let server = Server::start(
        "given",
        &[
            &option("ssl-cert", "server.pem"),
            &option("ssl-key", "server-key.pem"),
            &option("ssl-ca", "ca.pem"),
            "--tls-version=TLSv1.3",
        ],
    );
    assert!(!server.certificate().exists(), "none is made where one is given");
    server.run(&[
        "CREATE USER shown@localhost IDENTIFIED BY 'secret' REQUIRE X509",
        "CREATE USER any@localhost IDENTIFIED BY 'secret'",
    ]);
    let ca = papers.file("ca.pem");
    let certificate = (papers.file("client.pem"), papers.file("client-key.pem"));
    let silent = tls_client(&ca, &[&TLS13], None);
    let showing = tls_client(&ca, &[&TLS13], Some((&certificate.0, &certificate.1)));
    let (any, login) = (Login::of("any", "secret"), Login::of("shown", "secret"));
    assert_eq!(trace(&server, &any.clone().tls(&silent)), "");
    assert_eq!(trace(&server, &any.clone().tls(&showing)), "");
    assert_eq!(trace(&server, &login.clone().tls(&showing)), "");
    assert_denied(&server, &login.clone().tls(&silent));
    assert_denied(&server, &login);
    // A certificate that nobody here vouches for, and a version that is not offered.
    let stranger = (strangers.file("client.pem"), strangers.file("client-key.pem"));
    let stranger = tls_client(&ca, &[&TLS13], Some((&stranger.0, &stranger.1)));
    let error = refused(&server, &any.clone().tls(&stranger));
    assert!(error.contains("UnknownCA") || error.starts_with("closed"), "{error}");
    let old = tls_client(&ca, &[&TLS12], None);
    let error = refused(&server, &any.clone().tls(&old));
    assert!(error.contains("ProtocolVersion"), "{error}");
    let options = [
        format!("--ssl-ca={}", shown(&ca)),
        format!("--ssl-cert={}", shown(&certificate.0)),
        format!("--ssl-key={}", shown(&certificate.1)),
        "--ssl-verify-server-cert".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    debian_agrees(&server, "shown", "secret", &[&options]);
    assert_eq!(trace(&server, &any), "", "and without TLS");
    server.stop();
    std::fs::remove_dir_all(papers.directory).unwrap();
    std::fs::remove_dir_all(strangers.directory).unwrap();
}

/// Text that does not compress to nothing, different at every place.
fn text(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let characters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    });
    characters.take(length).collect()
}

/// Sends and receives values around and above the largest packet.
fn carry(client: &mut Client) {
    const PACKET: usize = 0xff_ffff;
    for length in [0, 1, 49, 50, 300, PACKET - 13, PACKET - 12, PACKET - 11, PACKET + 5_000_000] {
        let sent = text(length);
        let statement = [b"SELECT '", &sent[..], b"' AS a"].concat();
        assert!(client.value(&statement) == sent, "{length} bytes come back as they went");
    }
    let packets = client.answer("SELECT REPEAT('0123456789', 100)");
    assert_eq!(packets, "0123456789".repeat(100));
    assert_eq!(client.answer("SELECT nothing"), "1054 Unknown column 'nothing' in 'SELECT'");
    for number in 0..200 {
        assert_eq!(client.answer(&format!("SELECT {number}")), number.to_string());
    }
    let rows = "SELECT seq FROM (SELECT 1 AS seq UNION SELECT 2 UNION SELECT 3) AS t ORDER BY 1";
    assert_eq!(client.answer(rows), "3");
}

#[test]
fn packets_above_16_mb_by_every_way() {
    let server = Server::start("ways", &["--set", "max_allowed_packet=64M"]);
    server.run(&[
        BIG,
        "CREATE USER sha@localhost IDENTIFIED VIA caching_sha2_password USING PASSWORD('secret')",
    ]);
    let plain = Login::of("sha", "secret").plugin(SHA2);
    for version in [&TLS12, &TLS13] {
        let tls = tls_client(&server.certificate(), &[version], None);
        let logins = match version.version == TLS13.version {
            true => vec![plain.clone().tls(&tls), plain.clone().tls(&tls).compressed()],
            false => vec![plain.clone(), plain.clone().compressed(), plain.clone().tls(&tls)],
        };
        for login in logins {
            server.run(&["FLUSH PRIVILEGES"]);
            let mut client = Client::log_in(&server, &login).unwrap();
            let asked = if login.tls.is_some() { "full" } else { "full key" };
            assert_eq!(client.trace.join(" "), asked);
            carry(&mut client);
        }
    }
    let big = text(17_000_000);
    let statement = [b"SELECT '", &big[..], b"' AS a;"].concat();
    for way in WAYS {
        let options = [&["-usha", "-psecret"], *way].concat();
        if let Some(answer) = debian(&server, &options, &statement) {
            assert!(answer.as_bytes() == big, "{way:?}: {} bytes", answer.len());
        }
    }
    server.stop();
}

#[test]
fn another_user_on_the_same_connection() {
    let server = Server::start("change", &[]);
    server.run(&[
        "CREATE USER native@localhost IDENTIFIED BY 'secret'",
        "CREATE USER sha@localhost IDENTIFIED VIA caching_sha2_password USING PASSWORD('secret')",
        &format!("CREATE USER signed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('{SEED}')"),
        "CREATE USER secure@localhost IDENTIFIED BY 'secret' REQUIRE SSL",
    ]);
    let tls = tls_client(&server.certificate(), &[&TLS13], None);
    let users = [
        (Login::of("native", "secret"), String::new()),
        (Login::of("sha", "secret").plugin(SHA2), "fast".to_owned()),
        (Login::of("signed", SEED), ED25519.to_owned()),
        (Login::of("native", "secret").plugin(SHA2), NATIVE.to_owned()),
        (Login::of("sha", "secret"), format!("{SHA2} fast")),
    ];
    let root = Login::of("root", "");
    let ways = [
        root.clone(),
        root.clone().compressed(),
        root.clone().tls(&tls),
        root.clone().tls(&tls).compressed(),
    ];
    for way in ways {
        server.run(&["FLUSH PRIVILEGES"]);
        let full = if way.tls.is_some() { "full" } else { "full key" };
        let mut client = Client::log_in(&server, &way).unwrap();
        client.change_user(&Login::of("sha", "secret").plugin(SHA2)).unwrap();
        assert_eq!(client.trace.join(" "), full);
        for (login, asked) in &users {
            assert_eq!(client.answer("SET @kept = 1"), "OK");
            client.change_user(login).unwrap();
            assert_eq!(&client.trace.join(" "), asked, "{}", login.user);
            let who = client.answer("SELECT CONCAT(CURRENT_USER(), IFNULL(@kept, ''))");
            assert_eq!(who, format!("{}@localhost", login.user));
        }
        let secure = client.change_user(&Login::of("secure", "secret"));
        assert_eq!(secure.is_ok(), way.tls.is_some(), "{secure:?}");
        // After a wrong password the user is who he was, whatever the plugin.
        let mut client = Client::log_in(&server, &way).unwrap();
        for wrong in [Login::of("native", "x"), Login::of("sha", "x").plugin(SHA2)] {
            assert_eq!(client.answer("SET @kept = 1"), "OK");
            let error = client.change_user(&wrong).unwrap_err();
            assert!(error.starts_with(DENIED), "{error}");
            let who = client.answer("SELECT CONCAT(CURRENT_USER(), IFNULL(@kept, ''))");
            assert_eq!(who, format!("{}@localhost", way.user));
        }
    }
    server.stop();
}

/// What MariaDB does with passwords that have expired, limits and guesses in COM_CHANGE_USER.
#[test]
fn a_change_of_user_that_fails_leaves_the_former_user() {
    let server = Server::start("changes", &[]);
    server.run(&[
        "CREATE USER old@localhost IDENTIFIED BY 'one' PASSWORD EXPIRE",
        "CREATE USER ok@localhost IDENTIFIED BY 'ok'",
        "CREATE USER one@localhost WITH MAX_USER_CONNECTIONS 1",
    ]);
    const EXPIRED: &str = "1820 You must SET PASSWORD before executing this statement";
    const WHO: &str = "SELECT CONCAT(CURRENT_USER(), IFNULL(@kept, ''))";
    let (ok, old) = (Login::of("ok", "ok"), Login::of("old", "one"));
    let mut client = Client::log_in(&server, &ok).unwrap();
    client.change_user(&old).unwrap();
    assert_eq!(client.answer("SELECT 1"), EXPIRED);
    assert_eq!(client.change_user(&ok).unwrap_err(), EXPIRED);
    assert_eq!(client.answer("SET PASSWORD = PASSWORD('two')"), "OK");
    assert_eq!(client.answer(WHO), "old@localhost");
    client.change_user(&ok).unwrap();
    server.run(&[
        "ALTER USER old@localhost PASSWORD EXPIRE",
        "SET GLOBAL disconnect_on_expired_password = ON",
    ]);
    let _only = Client::log_in(&server, &Login::of("one", "")).unwrap();
    let cases = [
        (Login::of("old", "two"), "1862 Your password has expired."),
        (Login::of("one", ""), "1226 User 'one' has exceeded the 'max_user_connections' resource"),
        (Login::of("ok", "no"), DENIED),
    ];
    for (login, error) in &cases {
        assert_eq!(client.answer("SET @kept = 1"), "OK");
        let told = client.change_user(login).unwrap_err();
        assert!(told.starts_with(error), "{told}");
        assert_eq!(client.answer(WHO), "ok@localhost");
    }
    // Enough was tried.
    assert_eq!(client.change_user(&ok).unwrap_err(), "1047 Unknown command");
    assert_eq!(client.answer(WHO), "ok@localhost");
    server.stop();
}
