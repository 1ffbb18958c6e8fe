//! The dependency graph of the rooms against the table in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every room must be in the table with exactly the rooms it uses.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = read(&root.join("ARCHITECTURE.md"))?;
    let written = written_graph(&text);
    let real = real_graph(root)?;
    let mut findings = Vec::new();
    for (room, uses) in &real {
        match written.get(room) {
            None => findings.push(format!("ARCHITECTURE.md: room `{room}` is not in the table")),
            Some(written) if written != uses => findings.push(format!(
                "ARCHITECTURE.md: room `{room}` uses {uses:?}, the table says {written:?}"
            )),
            Some(_) => {}
        }
    }
    for room in written.keys().filter(|room| !real.contains_key(*room)) {
        findings.push(format!("ARCHITECTURE.md: there is no room `{room}`"));
    }
    Ok(findings)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Rows of the form `| [name](..) or name | what | uses: a, b |` in the table of rooms.
fn written_graph(text: &str) -> Graph {
    let mut graph = Graph::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [room, _, uses] = cells[..] else { continue };
        let Some(room) = room.strip_prefix('`').and_then(|r| r.strip_suffix('`')) else { continue };
        let uses = uses.split(',').map(|u| u.trim().trim_matches('`'));
        let uses = uses.filter(|u| !u.is_empty() && *u != "–").map(str::to_string);
        graph.insert(room.to_string(), uses.collect());
    }
    graph
}

fn real_graph(root: &Path) -> Result<Graph, String> {
    let mut graph = Graph::new();
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(|e| e.to_string())?;
    let mut rooms = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|e| e.to_string())?;
        rooms.insert(entry.file_name().to_string_lossy().into_owned());
    }
    for room in &rooms {
        let manifest = read(&folder.join(room).join("Cargo.toml"))?;
        let mut uses = BTreeSet::new();
        let mut in_dependencies = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                in_dependencies = line.trim() == "[dependencies]";
            } else if in_dependencies {
                let name = line.split(['.', '=', ' ']).next().unwrap_or("");
                if rooms.contains(name) {
                    uses.insert(name.to_string());
                }
            }
        }
        graph.insert(room.clone(), uses);
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_table() {
        let graph = written_graph(
            "| room | what | uses |\n|---|---|---|\n| `wal` | log | `base`, `runtime` |\n| `base` | x | – |\n",
        );
        assert_eq!(graph["wal"], BTreeSet::from(["base".to_string(), "runtime".to_string()]));
        assert!(graph["base"].is_empty());
    }
}
