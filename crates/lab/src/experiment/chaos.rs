//! What is done to a server or to the clients while a run goes on: `SECONDS=ACTION`.
//!
//! 1. Every action is marked when it begins, and, where it takes time, when it has ended; one that
//!    fails is marked with the reason. The run goes on.
//! 2. A server that was frozen goes on afterwards, whatever happens in between.

use super::subject::Subject;
use crate::client::Connection;
use crate::driver::{self, Control};
use runtime::WaitClass;
use runtime::sync::{Event as Ended, Mutex};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// An action at its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the begin of the measured time.
    pub at: f64,
    /// What is done.
    pub action: Action,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The server is killed (SIGKILL) and stays away.
    Kill,
    /// It is killed and started again.
    Crash,
    /// It is ended in order and started again.
    Restart,
    /// It is stopped (SIGSTOP) for so long.
    Freeze(Duration),
    /// No client begins anything for so long.
    Pause(Duration),
    /// This share of the clients' connections is closed.
    Drop(f64),
    /// A statement is executed on a connection of its own.
    Sql(String),
    /// A command is executed by the shell, with `LAB_PID` and `LAB_DATA` of the server.
    Command(String),
}

const FORM: &str = "SECONDS=ACTION is wanted, with kill, crash, restart, freeze SECONDS, \
                    pause SECONDS, drop SHARE, sql STATEMENT or run COMMAND";

impl FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cut = text.find(['=', ':']).ok_or(FORM)?;
        let (at, action) = (text[..cut].trim(), text[cut + 1..].trim());
        let at = seconds(at)?;
        let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((action, ""));
        let rest = rest.trim();
        let length = || seconds(rest).map(Duration::from_secs_f64);
        let needed = |what: &str| match rest.is_empty() {
            true => Err(format!("'{text}': {word} needs {what}")),
            false => Ok(rest.to_string()),
        };
        let action = match word {
            "kill" => Action::Kill,
            "crash" => Action::Crash,
            "restart" => Action::Restart,
            "freeze" => Action::Freeze(length()?),
            "pause" => Action::Pause(length()?),
            "drop" if rest.is_empty() => Action::Drop(1.0),
            "drop" => {
                let share = rest.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                Action::Drop(share.ok_or_else(|| format!("'{rest}' is no share from 0 to 1"))?)
            }
            "sql" => Action::Sql(needed("a statement")?),
            "run" => Action::Command(needed("a command")?),
            _ => return Err(format!("'{word}': {FORM}")),
        };
        Ok(Self { at, action })
    }
}

/// `30`, `30s`, `0.5`.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|seconds| (0.0..=1e7).contains(seconds))
        .ok_or_else(|| format!("'{text}' are no seconds: {FORM}"))
}

impl Event {
    /// Whether it can be done to this subject; the error says what it lacks.
    pub fn check(&self, subject: &Subject) -> Result<(), String> {
        let name = &subject.name;
        match self.action {
            Action::Crash | Action::Restart if subject.process.is_none() => Err(format!(
                "only a server that the lab starts can be started again: {name} is named by its \
                 DSN; take --start, or \"run COMMAND\""
            )),
            Action::Kill | Action::Freeze(_) if subject.id().is_none() => Err(format!(
                "the process of {name} is not found: it must run on this machine, and be ours"
            )),
            _ => Ok(()),
        }
    }

    /// For the driver.
    pub fn planned(&self, subject: &Subject) -> driver::Planned {
        let (subject, action) = (subject.clone(), self.action.clone());
        driver::Planned {
            at: Duration::from_secs_f64(self.at),
            action: Arc::new(move |control| {
                if let Err(why) = perform(&subject, &action, control) {
                    control.mark(format!("failed: {why}"));
                }
            }),
        }
    }
}

fn perform(subject: &Subject, action: &Action, control: &Control) -> Result<(), String> {
    let process = || subject.process.as_ref().ok_or("the lab has not started it");
    let begin = runtime::now();
    let passed = || (runtime::now() - begin).as_secs_f64();
    match action {
        Action::Kill => {
            control.mark("killed");
            match &subject.process {
                Some(process) => process.kill(),
                None => signal(subject, "KILL"),
            }
        }
        Action::Crash => {
            control.mark("killed, to be started again");
            process()?.kill()?;
            process()?.start()?;
            control.mark(format!("answers again after {:.1} s", passed()));
            Ok(())
        }
        Action::Restart => {
            control.mark("restarted");
            process()?.stop()?;
            process()?.start()?;
            control.mark(format!("answers again after {:.1} s", passed()));
            Ok(())
        }
        Action::Freeze(length) => {
            control.mark(format!("frozen for {:.1} s", length.as_secs_f64()));
            signal(subject, "STOP")?;
            runtime::sleep(*length);
            signal(subject, "CONT")
        }
        Action::Pause(length) => {
            control.mark(format!("clients pause for {:.1} s", length.as_secs_f64()));
            control.pause(*length);
            Ok(())
        }
        Action::Drop(share) => {
            let dropped = control.drop_connections(*share);
            control.mark(format!("{dropped} connections dropped"));
            Ok(())
        }
        Action::Sql(sql) => {
            control.mark(format!("begins: {sql}"));
            let outcome = Connection::open(&subject.target)
                .and_then(|mut connection| connection.command(sql));
            outcome.map_err(|failure| failure.explained(&subject.target))?;
            control.mark(format!("ended after {:.1} s: {sql}", passed()));
            Ok(())
        }
        Action::Command(command) => {
            control.mark(format!("begins: {command}"));
            shell(subject, command)?;
            control.mark(format!("ended after {:.1} s: {command}", passed()));
            Ok(())
        }
    }
}

/// Sends a signal to the server's process.
fn signal(subject: &Subject, name: &str) -> Result<(), String> {
    let id = subject.id().ok_or("its process is not found")?;
    let mut command = std::process::Command::new("kill");
    command.arg(format!("-{name}")).arg(id.to_string());
    finished(aside(move || command.output()))
}

fn shell(subject: &Subject, text: &str) -> Result<(), String> {
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(text);
    command.stdin(std::process::Stdio::null());
    if let Some(id) = subject.id() {
        command.env("LAB_PID", id.to_string());
    }
    if let Some(data) = subject.data() {
        command.env("LAB_DATA", data);
    }
    finished(aside(move || command.output()))
}

fn finished(output: std::io::Result<std::process::Output>) -> Result<(), String> {
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", output.status, text.lines().last().unwrap_or_default()))
}

/// Does what blocks in a thread, so that clients go on; waits for it as a fiber.
fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let ended = Arc::new(Ended::new());
    let result = Arc::new(Mutex::new(None));
    let thread = {
        let (ended, result) = (ended.clone(), result.clone());
        std::thread::spawn(move || {
            let found = work();
            *result.lock() = Some(found);
            ended.set();
        })
    };
    ended.wait_uncancellable(WaitClass::Other, None);
    let _ended = thread.join();
    let found = result.lock().take();
    found.expect("the thread has put it there before it set the event")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_actions() {
        let cases = [
            ("30=crash", 30.0, Action::Crash),
            ("30s:kill", 30.0, Action::Kill),
            ("0.5 = freeze 2s", 0.5, Action::Freeze(Duration::from_secs(2))),
            ("5=pause 0.5", 5.0, Action::Pause(Duration::from_millis(500))),
            ("5=drop", 5.0, Action::Drop(1.0)),
            ("5=drop 0.25", 5.0, Action::Drop(0.25)),
            ("7=sql SET GLOBAL a=1", 7.0, Action::Sql("SET GLOBAL a=1".into())),
            ("7=run echo a:b", 7.0, Action::Command("echo a:b".into())),
        ];
        for (text, at, action) in cases {
            assert_eq!(text.parse::<Event>(), Ok(Event { at, action }), "{text}");
        }
        for text in ["crash", "x=crash", "-1=kill", "5=explode", "5=drop 2", "5=sql", "5=freeze"] {
            assert!(text.parse::<Event>().is_err(), "{text}");
        }
    }
}
