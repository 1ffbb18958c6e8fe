//! The files of `tests/isolation` in `cargo xtask sqltest`: interleavings of connections, compared
//! with MariaDB's; what Gannet answers otherwise on purpose stands in a `.gannet` file.

use crate::Outcome;
use sqltest::client::Options;
use sqltest::interleaving::{self, Shown};
use std::path::Path;
use std::time::Instant;

/// Interleavings that run beside each other.
const LANES: usize = 6;

/// Whether a file has interleavings.
pub fn is_spec(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "spec")
}

fn play(file: &Path, options: &Options) -> Result<Vec<Shown>, String> {
    let named = |error: String| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    let spec = interleaving::parse(&text).map_err(named)?;
    let begin = Instant::now();
    let shown = interleaving::run(&spec, options, "sqltest", LANES);
    let shown = shown.map_err(|error| named(error.to_string()))?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{}: {} interleavings in {seconds:.1} s", file.display(), shown.len());
    Ok(shown)
}

/// Records the answers of the server at `options` as those expected.
pub fn bless(file: &Path, options: &Options) -> Outcome {
    write(&file.with_extension("result"), play(file, options)?.iter())
}

fn write<'a>(path: &Path, shown: impl Iterator<Item = &'a Shown>) -> Outcome {
    let text = interleaving::to_text(shown);
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The block of one title in a result file.
fn find(text: &str, title: &str) -> Option<String> {
    let head = format!("== {title}\n");
    let blocks = text.split("\n\n").map(str::trim);
    blocks.filter_map(|block| block.strip_prefix(&head)).next().map(str::to_string)
}

/// Plays a file and compares: passed and failed. With `records_own` what differs from MariaDB is
/// written into the `.gannet` file, to be read and judged.
pub fn compare(
    file: &Path,
    options: &Options,
    records_own: bool,
) -> Result<(usize, usize), String> {
    let read = |extension: &str| std::fs::read_to_string(file.with_extension(extension));
    let expected = read("result").map_err(|_| format!("{}: not blessed", file.display()))?;
    let shown = play(file, options)?;
    let is_other = |it: &&Shown| find(&expected, &it.title).as_deref() != Some(it.text.trim());
    if records_own {
        write(&file.with_extension("gannet"), shown.iter().filter(is_other))?;
    }
    let own = read("gannet").unwrap_or_default();
    let (mut passed, mut failed) = (0, 0);
    for title in own.lines().filter_map(|line| line.strip_prefix("== ")) {
        if !shown.iter().any(|it| it.title == title) {
            failed += 1;
            println!("{}: {title}: differs on purpose, but is no case", file.display());
        }
    }
    for one in &shown {
        let (theirs, ours) = (find(&expected, &one.title), find(&own, &one.title));
        let wanted = ours.as_ref().or(theirs.as_ref());
        // A difference that is none any more has no place in the file of differences.
        if ours != theirs && wanted.is_some_and(|wanted| wanted == one.text.trim()) {
            passed += 1;
            continue;
        }
        failed += 1;
        println!("{}: {}: differs", file.display(), one.title);
        let wanted = wanted.map_or("(not blessed)", String::as_str);
        println!("--- expected\n{wanted}\n--- got\n{}", one.text.trim());
    }
    Ok((passed, failed))
}
