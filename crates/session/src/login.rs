//! Logging in: from the greeting to a session, or to an error.
//!
//! Invariants:
//! 1. Nothing a client sends before it is known makes the server hold more than
//!    `LOGIN_PACKET_BYTES_MAX`, or hold it longer than the login limit.
//! 2. An unknown user and a wrong password are answered alike.
//! 3. An account without a password is open to the loopback and the socket only.

use crate::process::{Door, Process};
use crate::{Identity, ServerState, Session};
use catalog::{Authentication, Privilege, UserPrivileges};
use runtime::net::{Address, Peer};
use std::sync::Arc;
use types::{SqlError, codes};
use wire::handshake::{self, ChangeUser, Greeting, LoginRequest, NATIVE_PASSWORD, SCRAMBLE_BYTES};
use wire::{MalformedPacket, OutputBuffer};

/// What a login knows so far.
pub(crate) struct Login {
    scramble: [u8; SCRAMBLE_BYTES],
    /// The request, once the client was asked to prove itself again.
    pending: Option<Pending>,
}

/// A login whose proof is awaited.
struct Pending {
    capabilities: u64,
    collation: u16,
    user: String,
    database: String,
}

/// What becomes of a login after a packet.
pub(crate) enum Step {
    /// Another packet is needed.
    Again,
    /// The session.
    Done(Box<Session>),
    /// Refused: the answer is written, the connection closes.
    Refused,
}

/// Names of a client, from its socket.
pub(crate) fn identity(peer: &Peer) -> Identity {
    let (host, hosts, is_local) = match &peer.address {
        Address::Unix(_) => ("localhost".to_owned(), vec!["localhost".to_owned()], true),
        Address::Tcp(address) => {
            let ip = address.ip().to_canonical();
            let text = ip.to_string();
            match ip.is_loopback() {
                true => ("localhost".to_owned(), vec!["localhost".to_owned(), text], true),
                false => (text.clone(), vec![text], false),
            }
        }
    };
    Identity { user: String::new(), host, hosts, is_local }
}

/// Host and port as the process list shows them.
pub(crate) fn process_host(peer: &Peer) -> String {
    match &peer.address {
        Address::Unix(_) => "localhost".to_owned(),
        Address::Tcp(address) if address.ip().to_canonical().is_loopback() => {
            format!("localhost:{}", address.port())
        }
        Address::Tcp(address) => address.to_string(),
    }
}

impl Login {
    /// Writes the greeting.
    pub(crate) fn greet(server: &ServerState, process: &Process, out: &mut OutputBuffer) -> Self {
        let mut random = [0; SCRAMBLE_BYTES];
        runtime::random_bytes(&mut random);
        let scramble = handshake::scramble_from_random(random);
        let version = format!("5.5.5-{}", server.version);
        let greeting = Greeting {
            version: &version,
            connection_id: process.id(),
            scramble: &scramble,
            collation: types::CollationId::UTF8MB4_GENERAL_CI.0 as u8,
            status: wire::capability::status::AUTOCOMMIT,
        };
        handshake::greeting(out.begin(), &greeting);
        out.end();
        Self { scramble, pending: None }
    }

    /// The scramble of the greeting, for COM_CHANGE_USER.
    pub(crate) fn scramble(&self) -> &[u8; SCRAMBLE_BYTES] {
        &self.scramble
    }

    /// Takes the client's next packet and writes the answer.
    pub(crate) fn step(
        &mut self,
        server: &Arc<ServerState>,
        process: &Arc<Process>,
        identity: &Identity,
        payload: &[u8],
        out: &mut OutputBuffer,
    ) -> Step {
        let outcome = match self.pending.take() {
            Some(pending) => self.finish(server, process, identity, pending, payload),
            None => match LoginRequest::parse(payload) {
                Ok(request) => self.first(server, process, identity, &request, out),
                Err(MalformedPacket) => {
                    wire::response::login_error(out, 1043, "Bad handshake");
                    return Step::Refused;
                }
            },
        };
        match outcome {
            Ok(Some(mut session)) => {
                std::mem::swap(out, &mut session.out);
                session.put_ok(&exec::Outcome::default());
                Step::Done(session)
            }
            Ok(None) => Step::Again,
            Err(error) => {
                crate::status::ABORTED_CONNECTS.add(1);
                wire::response::error(out, error.code, error.sqlstate_text(), &error.message);
                Step::Refused
            }
        }
    }

    fn first(
        &mut self,
        server: &Arc<ServerState>,
        process: &Arc<Process>,
        identity: &Identity,
        request: &LoginRequest<'_>,
        out: &mut OutputBuffer,
    ) -> Result<Option<Box<Session>>, SqlError> {
        let pending = Pending {
            capabilities: request.capabilities,
            collation: u16::from(request.collation),
            user: String::from_utf8_lossy(request.user).into_owned(),
            database: String::from_utf8_lossy(request.database).into_owned(),
        };
        if !request.plugin.is_empty() && request.plugin != NATIVE_PASSWORD {
            handshake::auth_switch(out.begin(), &self.scramble);
            out.end();
            self.pending = Some(pending);
            return Ok(None);
        }
        self.finish(server, process, identity, pending, request.proof)
    }

    fn finish(
        &mut self,
        server: &Arc<ServerState>,
        process: &Arc<Process>,
        identity: &Identity,
        pending: Pending,
        proof: &[u8],
    ) -> Result<Option<Box<Session>>, SqlError> {
        // Some clients end the bare proof of an empty password with a zero byte.
        let proof = if proof == [0] { &[][..] } else { proof };
        let mut identity = identity.clone();
        identity.user = pending.user;
        let user = authenticate(server, &identity, &self.scramble, proof)?;
        check_room(server, process, &user)?;
        let account_slot = server.take_account_slot(&user)?;
        process.set_user(&identity.user);
        let mut session =
            Session::new(server.clone(), process.clone(), identity, user, pending.capabilities);
        session.account_slot = Some(account_slot);
        session.set_login_collation(pending.collation);
        if !pending.database.is_empty() {
            session.use_database(&pending.database)?;
            session.changes.clear();
        }
        Ok(Some(Box::new(session)))
    }
}

/// The account of a client that has proved itself; 1045 for any other.
pub(crate) fn authenticate(
    server: &ServerState,
    identity: &Identity,
    scramble: &[u8; SCRAMBLE_BYTES],
    proof: &[u8],
) -> Result<Arc<UserPrivileges>, SqlError> {
    let hosts: Vec<&str> = identity.hosts.iter().map(String::as_str).collect();
    let user = server.catalog.find_user(&identity.user, &hosts);
    let proved = match user.as_ref().map(|user| &user.authentication) {
        Some(Authentication::NoPassword) => proof.is_empty() && identity.is_local,
        Some(Authentication::NativePassword(hash)) => {
            handshake::check_native_password(scramble, hash, proof)
        }
        Some(Authentication::Locked) | None => {
            // The same work as for a known user, so that time does not tell them apart.
            handshake::check_native_password(scramble, &[0; 20], proof);
            false
        }
    };
    match user {
        Some(user) if proved => Ok(user),
        _ => {
            let using = if proof.is_empty() { "NO" } else { "YES" };
            let arguments: [&dyn std::fmt::Display; 3] = [&identity.user, &identity.host, &using];
            Err(SqlError::new(&codes::ACCESS_DENIED_ERROR, &arguments))
        }
    }
}

/// The slot above `max_connections` is for administrators (1040).
fn check_room(
    server: &ServerState,
    process: &Process,
    user: &UserPrivileges,
) -> Result<(), SqlError> {
    if process.door() == Door::Extra {
        return Ok(());
    }
    let limit = server.connection_limit(Door::Main);
    let privileged =
        user.global.has(Privilege::Super) || user.global.has(Privilege::ConnectionAdmin);
    if server.processes.count_through(Door::Main) > limit && !privileged {
        crate::status::REFUSED_CONNECTIONS.add(1);
        return Err(SqlError::new(&codes::CON_COUNT_ERROR, &[]));
    }
    Ok(())
}

impl Session {
    /// COM_CHANGE_USER: the same connection, another user. A failure closes the connection.
    pub(crate) fn change_user(
        &mut self,
        request: &ChangeUser<'_>,
        scramble: &[u8; SCRAMBLE_BYTES],
    ) -> Result<(), SqlError> {
        let mut identity = self.identity.clone();
        identity.user = String::from_utf8_lossy(request.user).into_owned();
        self.closing = true;
        let user = authenticate(&self.server, &identity, scramble, request.proof)?;
        self.account_slot = None;
        self.account_slot = Some(self.server.take_account_slot(&user)?);
        self.identity = identity;
        self.user = user;
        self.reset()?;
        self.process.set_user(&self.identity.user);
        self.set_database(None);
        if let Some(collation) = request.collation {
            self.set_login_collation(collation);
        }
        if !request.database.is_empty() {
            let database = String::from_utf8_lossy(request.database).into_owned();
            self.use_database(&database)?;
        }
        self.changes.clear();
        self.closing = false;
        Ok(())
    }
}
