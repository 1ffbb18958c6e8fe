//! Which processors the server and the clients have.

use crate::command::Outcome;
use std::fmt;
use std::process::Command;

/// Processors as taskset writes them; absent where all are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Processors {
    pub(super) server: Option<String>,
    pub(super) clients: Option<String>,
}

impl Processors {
    /// What was said; else one each, if this process may use two.
    pub(super) fn choose(server: Option<&str>, clients: Option<&str>) -> Result<Self, String> {
        let status = std::fs::read_to_string("/proc/self/status");
        let status = status.map_err(|error| format!("/proc/self/status: {error}"))?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let found = Self::of(&numbers(allowed.unwrap_or_default()), server, clients);
        if found.server.is_some() && found.server == found.clients {
            return Err("server and clients need processors of their own".into());
        }
        Ok(found)
    }

    fn of(allowed: &[u32], server: Option<&str>, clients: Option<&str>) -> Self {
        let own = |place: usize, said: Option<&str>| match (said, allowed) {
            (Some(said), _) => Some(said.to_string()),
            (None, [_, _, ..]) => Some(allowed[place].to_string()),
            (None, _) => None,
        };
        Self { server: own(0, server), clients: own(1, clients) }
    }

    /// All threads of this process, those to come, and the processes that it starts become clients.
    pub(super) fn pin(&self) -> Outcome {
        let Some(clients) = &self.clients else { return Ok(()) };
        let id = std::process::id().to_string();
        let output = Command::new("taskset").args(["-acp", clients, &id]).output();
        let output = output.map_err(|error| format!("taskset: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.clients) {
            (Some(server), Some(clients)) => {
                write!(f, "server on processor {server}, clients on {clients}")
            }
            _ => write!(f, "server and clients share processors: a cheaper client speeds both up"),
        }
    }
}

/// Numbers of a list such as "0-3,8".
fn numbers(list: &str) -> Vec<u32> {
    let of_word = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        Some(first..=last)
    };
    list.split(',').filter_map(of_word).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_if_there_are_two() {
        let words = |processors: Processors| (processors.server, processors.clients);
        let own = |text: &str| Some(text.to_string());
        let chosen = Processors::of(&numbers("\t2-3,8\n"), None, None);
        assert_eq!(chosen.to_string(), "server on processor 2, clients on 3");
        assert_eq!(words(Processors::of(&[0], None, None)), (None, None));
        let said = Processors::of(&[0, 1, 2, 3], Some("0-1"), None);
        assert_eq!(words(said), (own("0-1"), own("1")));
        assert!(Processors::choose(Some("0"), Some("0")).is_err());
    }
}
