//! LOAD DATA: where its bytes come from.
//!
//! 1. A client is asked for its file only when everything else about the statement is known to be
//!    right: an error before that is a plain answer.
//! 2. Once asked, the client sends its file whatever happens. What is not wanted any more is read
//!    and forgotten, so that the answer stands behind the empty packet that ends the file.
//! 3. The statement is parsed where the connection's input is not at hand; the connection then runs
//!    the rest of the text again with an [`Outlet`] that can receive.

use crate::Session;
use crate::answer::{Nowhere, Outlet};
use crate::execute::Extras;
use crate::planned::SessionPlan;
use crate::statement::{Answer, Failure};
use catalog::Privilege;
use exec::{FileInput, Outcome};
use expr::{Coercibility, ResultType, UserVariable};
use runtime::file::{File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use syntax::ast::{Expression, LoadData, Statement};
use types::error::ErrorCode;
use types::{CollationId, SqlError, Value, codes};
use wire::capability::LOCAL_FILES;

/// 29: the number and text of the file layer.
static FILE_NOT_FOUND: ErrorCode = ErrorCode {
    number: 29,
    sqlstate: "HY000",
    name: "FILENOTFOUND",
    template: "File '{}' not found (Errcode: {} \"{}\")",
};

/// Bytes of a server's file read at once.
const READ_BYTES: usize = 256 * 1024;

/// Whether a statement reads a file of the client's.
pub(crate) fn is_local(statement: &Statement) -> bool {
    match statement {
        Statement::LoadData(load) => load.local && !load.xml,
        Statement::SetStatement(_, inner) => is_local(inner),
        _ => false,
    }
}

/// The client's file, packet by packet.
struct ClientFile<'o> {
    outlet: &'o mut dyn Outlet,
    /// Number of the packet expected next.
    sequence: u8,
    ended: bool,
    /// The connection cannot be followed any more.
    broken: bool,
}

impl FileInput for ClientFile<'_> {
    fn read(&mut self, bytes: &mut Vec<u8>) -> Result<bool, SqlError> {
        if self.ended {
            return Ok(false);
        }
        match self.outlet.receive(&mut self.sequence, bytes) {
            Ok(()) => {
                self.ended = bytes.is_empty();
                Ok(!self.ended)
            }
            Err(_) => {
                (self.ended, self.broken) = (true, true);
                Err(SqlError::new(&codes::NET_READ_ERROR, &[]))
            }
        }
    }
}

/// A file of the server's.
struct ServerFile {
    file: File,
    offset: u64,
    /// For messages.
    path: String,
}

impl FileInput for ServerFile {
    fn read(&mut self, bytes: &mut Vec<u8>) -> Result<bool, SqlError> {
        bytes.resize(READ_BYTES, 0);
        let count = self.file.read_up_to(bytes, self.offset);
        let count = count.map_err(|error| not_found(&self.path, &error))?;
        bytes.truncate(count);
        self.offset += count as u64;
        Ok(count > 0)
    }
}

/// Error 29.
fn not_found(path: &str, error: &io::Error) -> SqlError {
    let number = error.raw_os_error().unwrap_or(5);
    let text = io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    SqlError::new(&FILE_NOT_FOUND, &[&path, &number, &text])
}

impl Session {
    /// Runs LOAD DATA. Fails with 29, 1045, 1235, 1290, 4166, and as INSERT does.
    pub(crate) fn load_data(
        &mut self,
        statement: &Statement,
        load: &LoadData,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        if load.xml {
            return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&"LOAD XML"]).into());
        }
        let offered = self.server.globals.value("local_infile").is_on();
        if load.local && !(offered && self.capabilities & LOCAL_FILES != 0) {
            return Err(SqlError::new(&codes::LOAD_INFILE_CAPABILITY_DISABLED, &[]).into());
        }
        if load.local && !outlet.can_receive() {
            return Err(SqlError::new(&codes::UNSUPPORTED_PS, &[]).into());
        }
        if !load.local {
            self.require_file()?;
        }
        self.check_may_write()?;
        self.begin_write(None)?;
        self.make_variables(load);
        let plan = self.plan(statement)?;
        if self.locked_tables.is_none() {
            self.lock_for(&plan)?;
        }
        let path = String::from_utf8_lossy(&load.path).into_owned();
        let outcome = match load.local {
            true => self.load_local(&plan, &path, outlet)?,
            false => {
                let file = self.server_file(&path)?;
                self.load_from(&plan, &mut { file })?
            }
        };
        Ok(Answer::Done(outcome))
    }

    /// Fails with 1045 without the privilege to read and write files.
    pub(crate) fn require_file(&self) -> Result<(), SqlError> {
        if self.user.global.has(Privilege::File) {
            return Ok(());
        }
        let account = &self.user.account;
        Err(SqlError::new(&codes::ACCESS_DENIED_ERROR, &[&account.user, &account.host.0, &"YES"]))
    }

    /// Variables that take fields hold text from now on.
    fn make_variables(&mut self, load: &LoadData) {
        let variables = self.eval.variables.get_mut();
        for column in &load.columns {
            let Expression::UserVariable(name) = column else { continue };
            let name = name.to_lowercase();
            if variables.get(&name).is_none_or(|known| !known.result.is_string()) {
                let collation = CollationId::UTF8MB4_GENERAL_CI;
                let implicit = Coercibility::Implicit;
                let result = ResultType::string(16_777_215, collation, implicit, false, true);
                variables.insert(name, UserVariable { value: Value::Null, result });
            }
        }
    }

    fn load_from(
        &mut self,
        plan: &SessionPlan,
        input: &mut dyn FileInput,
    ) -> Result<Outcome, Failure> {
        let extras = Extras { input: Some(input), ..Extras::default() };
        let prepared = &plan.prepared;
        self.with_exec(prepared, extras, |exec, _| {
            exec::execute(exec, prepared.plan(), &mut Nowhere)
        })
    }

    fn load_local(
        &mut self,
        plan: &SessionPlan,
        path: &str,
        outlet: &mut dyn Outlet,
    ) -> Result<Outcome, Failure> {
        let packet = self.out.begin();
        packet.push(0xfb);
        packet.extend_from_slice(path.as_bytes());
        self.out.end();
        let asked = outlet.send(self.out.bytes());
        self.out.clear();
        if asked.is_err() {
            self.closing = true;
            return Err(SqlError::new(&codes::NET_ERROR_ON_WRITE, &[]).into());
        }
        let sequence = self.out.sequence();
        let mut file = ClientFile { outlet, sequence, ended: false, broken: false };
        let result = self.load_from(plan, &mut file);
        let mut rest = Vec::new();
        while let Ok(true) = file.read(&mut rest) {}
        self.closing |= file.broken;
        self.out.set_sequence(file.sequence);
        result
    }

    /// Opens a file of the server's: only within the directory that `secure_file_priv` names.
    fn server_file(&mut self, path: &str) -> Result<ServerFile, SqlError> {
        let path = self.secure_path(path)?;
        let shown = path.to_string_lossy().into_owned();
        match runtime::fs::exists(&path) {
            Ok(true) => {}
            Ok(false) => return Err(not_found(&shown, &io::Error::from_raw_os_error(2))),
            Err(error) => return Err(not_found(&shown, &error)),
        }
        let file = OpenOptions::new().open(&path).map_err(|error| not_found(&shown, &error))?;
        Ok(ServerFile { file, offset: 0, path: shown })
    }

    /// A path that is within the directory of `secure_file_priv` by its name; 1290 for others, and
    /// for all if no directory is named.
    pub(crate) fn secure_path(&self, path: &str) -> Result<PathBuf, SqlError> {
        let directory = self.server.globals.value("secure_file_priv").show();
        let option = "--secure-file-priv";
        let refused = || SqlError::new(&codes::OPTION_PREVENTS_STATEMENT, &[&option]);
        let path = Path::new(path);
        let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
        if directory.is_empty() || !is_plain || !path.starts_with(&directory) {
            return Err(refused());
        }
        Ok(path.to_path_buf())
    }
}
