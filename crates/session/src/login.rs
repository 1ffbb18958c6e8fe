//! Logging in: from the greeting to a session, or to an error.
//!
//! Invariants:
//! 1. Nothing a client sends before it is known makes the server hold more than
//!    `LOGIN_PACKET_BYTES_MAX`, or hold it longer than the login limit.
//! 2. Who a client is, `authenticate.rs` finds out.

use crate::authenticate::{Exchange, Progress, Security};
use crate::process::{Door, Process};
use crate::variables::VariableValue;
use crate::{Identity, ServerState, Session};
use catalog::{Privilege, UserPrivileges};
use runtime::net::{Address, Peer};
use std::sync::Arc;
use types::error::ErrorCode;
use types::{SqlError, codes};
use wire::handshake::{self, ChangeUser, Greeting, LoginRequest, SCRAMBLE_BYTES};
use wire::{MalformedPacket, OutputBuffer};

/// COM_CHANGE_USER of a connection may fail so often.
const FAILED_CHANGES_MAX: u8 = 3;

/// What a login knows so far.
pub(crate) struct Login {
    scramble: [u8; SCRAMBLE_BYTES],
    /// The request, while the client proves itself.
    pending: Option<Box<Pending>>,
}

/// A login whose proof is awaited.
struct Pending {
    capabilities: u64,
    collation: u16,
    database: String,
    exchange: Exchange,
}

/// COM_CHANGE_USER, while the client proves itself.
pub(crate) struct ChangingUser {
    collation: Option<u16>,
    database: String,
    exchange: Exchange,
}

/// A connection that logs in.
pub(crate) struct Arrival<'a> {
    pub(crate) server: &'a Arc<ServerState>,
    pub(crate) process: &'a Arc<Process>,
    pub(crate) identity: &'a Identity,
    pub(crate) security: Security,
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
            capabilities: server.capabilities(),
        };
        handshake::greeting(out.begin(), &greeting);
        out.end();
        Self { scramble, pending: None }
    }

    /// Nothing but the greeting has happened.
    pub(crate) fn is_new(&self) -> bool {
        self.pending.is_none()
    }

    /// The scramble of the greeting, for COM_CHANGE_USER.
    pub(crate) fn scramble(&self) -> &[u8; SCRAMBLE_BYTES] {
        &self.scramble
    }

    /// Takes the client's next packet and writes the answer.
    pub(crate) fn step(
        &mut self,
        arrival: &Arrival<'_>,
        payload: &[u8],
        out: &mut OutputBuffer,
    ) -> Step {
        let outcome = match self.pending.take() {
            Some(mut pending) => {
                let progress = pending.exchange.step(arrival.server, payload, out);
                self.follow(arrival, pending, progress)
            }
            None => match LoginRequest::parse(payload) {
                Ok(request) => self.first(arrival, &request, out),
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
        arrival: &Arrival<'_>,
        request: &LoginRequest<'_>,
        out: &mut OutputBuffer,
    ) -> Result<Option<Box<Session>>, SqlError> {
        let Arrival { server, security, .. } = arrival;
        if !security.is_private() && server.globals.value("require_secure_transport").is_on() {
            return Err(SqlError::new(&SECURE_TRANSPORT_REQUIRED, &[]));
        }
        let user = String::from_utf8_lossy(request.user).into_owned();
        let identity = Identity { user, ..arrival.identity.clone() };
        let exchange = Exchange::begin(server, identity, &self.scramble, security.clone());
        let mut pending = Box::new(Pending {
            capabilities: request.capabilities,
            collation: u16::from(request.collation),
            database: String::from_utf8_lossy(request.database).into_owned(),
            exchange,
        });
        let progress = pending.exchange.first(server, request.plugin, request.proof, out);
        self.follow(arrival, pending, progress)
    }

    /// The session, once it is clear who it is.
    fn follow(
        &mut self,
        arrival: &Arrival<'_>,
        pending: Box<Pending>,
        progress: Result<Progress, SqlError>,
    ) -> Result<Option<Box<Session>>, SqlError> {
        let Progress::Proved(user) = progress? else {
            self.pending = Some(pending);
            return Ok(None);
        };
        let Arrival { server, process, security, .. } = arrival;
        check_room(server, process, &user)?;
        let account_slot = server.take_account_slot(&user)?;
        let identity = pending.exchange.identity().clone();
        process.set_user(&identity.user);
        let (server, process) = ((*server).clone(), (*process).clone());
        let mut session = Session::new(server, process, identity, user, pending.capabilities);
        session.account_slot = Some(account_slot);
        session.security = security.clone();
        session.check_password_age()?;
        session.limit_statements();
        session.set_login_collation(pending.collation);
        if !pending.database.is_empty() {
            session.use_database(&pending.database)?;
        }
        session.forget_changes();
        Ok(Some(Box::new(session)))
    }
}

/// 3159.
static SECURE_TRANSPORT_REQUIRED: ErrorCode = ErrorCode {
    number: 3159,
    sqlstate: "08004",
    name: "SECURE_TRANSPORT_REQUIRED",
    template: "Connections using insecure transport are prohibited while \
               --require_secure_transport=ON.",
};

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
    /// COM_CHANGE_USER: the same connection, another user. True if it is done; else the client's
    /// next packet goes to [`Session::continue_change_user`]. After a failure the user is the
    /// former one, whose session begins anew; after three nothing more is tried (1047).
    pub(crate) fn change_user(
        &mut self,
        request: &ChangeUser<'_>,
        scramble: &[u8; SCRAMBLE_BYTES],
    ) -> Result<bool, SqlError> {
        if self.failed_changes >= FAILED_CHANGES_MAX {
            return Err(SqlError::new(&codes::UNKNOWN_COM_ERROR, &[]));
        }
        let user = String::from_utf8_lossy(request.user).into_owned();
        let identity = Identity { user, ..self.identity.clone() };
        let exchange = Exchange::begin(&self.server, identity, scramble, self.security.clone());
        let mut changing = Box::new(ChangingUser {
            collation: request.collation,
            database: String::from_utf8_lossy(request.database).into_owned(),
            exchange,
        });
        let (server, out) = (&self.server, &mut self.out);
        let progress = changing.exchange.first(server, request.plugin, request.proof, out);
        self.become_user(changing, progress)
    }

    /// A further packet of a client that changes its user; true if it is done.
    pub(crate) fn continue_change_user(
        &mut self,
        mut changing: Box<ChangingUser>,
        payload: &[u8],
    ) -> Result<bool, SqlError> {
        let progress = changing.exchange.step(&self.server, payload, &mut self.out);
        self.become_user(changing, progress)
    }

    fn become_user(
        &mut self,
        changing: Box<ChangingUser>,
        progress: Result<Progress, SqlError>,
    ) -> Result<bool, SqlError> {
        let user = match progress {
            Ok(Progress::Proved(user)) => Ok(user),
            Ok(_) => {
                self.changing = Some(changing);
                return Ok(false);
            }
            Err(error) => Err(error),
        };
        let before = (self.identity.clone(), self.user.clone(), self.must_change_password);
        let (login_micros, database) = (self.login_micros, self.database().map(str::to_owned));
        let Err(error) = user.and_then(|user| self.take_user(&changing, user)) else {
            return Ok(true);
        };
        self.failed_changes += 1;
        (self.identity, self.user, self.must_change_password) = before;
        self.login_micros = login_micros;
        self.user_version = 0;
        self.process.set_user(&self.identity.user);
        let begun_anew = self.reset();
        self.set_database(database.as_deref());
        self.limit_statements();
        self.forget_changes();
        begun_anew.and(Err(error))
    }

    fn take_user(
        &mut self,
        changing: &ChangingUser,
        user: Arc<UserPrivileges>,
    ) -> Result<(), SqlError> {
        let account_slot = self.server.take_account_slot(&user)?;
        self.identity = changing.exchange.identity().clone();
        self.user = user;
        self.reset()?;
        self.check_password_age()?;
        self.limit_statements();
        self.process.set_user(&self.identity.user);
        self.set_database(None);
        if let Some(collation) = changing.collation {
            self.set_login_collation(collation);
        }
        if !changing.database.is_empty() {
            self.use_database(&changing.database)?;
        }
        self.forget_changes();
        self.account_slot = Some(account_slot);
        Ok(())
    }

    /// MAX_STATEMENT_TIME of the account.
    fn limit_statements(&mut self) {
        let micros = self.user.attributes.limits.statement_micros;
        if micros != 0 {
            let seconds = VariableValue::Double(micros as f64 / 1e6);
            self.variables.set_known("max_statement_time", seconds);
            self.apply_settings();
        }
    }
}
