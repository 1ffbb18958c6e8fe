//! A server under callgrind, and what callgrind writes.

use crate::process::Server;
use crate::{Outcome, servers};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines that [`Profile::print`] prints.
const FUNCTIONS_PRINTED: usize = 45;

/// Starts the server under callgrind with one worker.
pub fn start(binary: &Path, data: &Path, folder: &Path) -> Result<Server, String> {
    let out = format!("--callgrind-out-file={}", folder.join("callgrind").display());
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet", "--instr-atstart=no", &out]).arg(binary);
    command.envs([("GANNET_RING", "fallback"), ("GANNET_WORKERS", "1")]);
    let options = ["--innodb-buffer-pool-size=256M"];
    let server = servers::start_gannet_as(command, data, 0, &options)?;
    control(server.id(), &["-i", "on"])?;
    Ok(server)
}

fn control(id: u32, arguments: &[&str]) -> Outcome {
    let output = Command::new("callgrind_control")
        .args(arguments)
        .arg(id.to_string())
        .output()
        .map_err(|e| format!("callgrind_control: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("callgrind_control: {}", String::from_utf8_lossy(&output.stderr)))
}

/// What was counted since the last call, in so many executions; counting begins anew.
pub fn dump(id: u32, folder: &Path, executions: u32) -> Result<Profile, String> {
    for old in dumps(folder)? {
        std::fs::remove_file(&old).map_err(|e| format!("{}: {e}", old.display()))?;
    }
    control(id, &["--dump=round"])?;
    let files = dumps(folder)?;
    let [file] = files.as_slice() else {
        return Err(format!("callgrind wrote {} files where one was expected", files.len()));
    };
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(Profile::parse(&text, f64::from(executions)))
}

fn dumps(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|p| p.to_string_lossy().contains("/callgrind.")).collect())
}

/// Instructions of one execution by function, not counting those of functions called.
pub struct Profile {
    functions: HashMap<String, f64>,
}

impl Profile {
    /// Reads callgrind's format: `fn=` names a function (once with its name, then by number),
    /// `calls=` is followed by a line with the cost of what was called.
    fn parse(text: &str, executions: f64) -> Self {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut functions: HashMap<String, f64> = HashMap::new();
        let mut current = "";
        let mut is_called = false;
        for line in text.lines() {
            if let Some(function) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    names.insert(number, name);
                }
                if line.starts_with("fn=") {
                    current = names.get(number).copied().unwrap_or(number);
                }
            } else if line.starts_with("calls=") {
                is_called = true;
            } else if line.starts_with(['+', '-', '*', '0', '1', '2', '3', '4', '5', '6', '7'])
                || line.starts_with(['8', '9'])
            {
                let cost = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
                if !std::mem::take(&mut is_called) {
                    *functions.entry(current.to_string()).or_default() +=
                        cost.unwrap_or(0.0) / executions;
                }
            }
        }
        Self { functions }
    }

    /// Instructions in all.
    pub fn total(&self) -> f64 {
        self.functions.values().sum()
    }

    /// Prints the functions with the most instructions.
    pub fn print(&self) {
        let mut sorted: Vec<(&String, &f64)> = self.functions.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(a.1));
        for (name, instructions) in sorted.iter().take(FUNCTIONS_PRINTED) {
            let share = *instructions / self.total() * 100.0;
            println!("  {instructions:9.1} {share:5.1}%  {name}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_a_function_does_itself() {
        let text = "events: Ir\nfn=(1) one\n10 5\n+2 7\ncfn=(2) two\ncalls=3 20\n+1 900\n\
                    fn=(2)\n20 100\nfn=(1)\n* 1\ntotals: 113\n";
        let profile = Profile::parse(text, 1.0);
        assert_eq!(profile.functions["one"], 13.0);
        assert_eq!(profile.functions["two"], 100.0);
        assert_eq!(profile.total(), 113.0);
    }
}
