//! Every kind of anomaly, planted in a small history, is found by its name, and nothing else is.
//! The histories are data: `tests/histories`, the second kind of comment says what is to be found.

use history::{History, Level, judge};
use std::collections::BTreeSet;

fn histories() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/histories");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a text");
            (path.file_name().expect("a name").to_string_lossy().into_owned(), text)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn planted_anomalies_are_found() {
    let histories = histories();
    assert!(histories.len() >= 20, "{} histories", histories.len());
    let mut kinds = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, text) in &histories {
        let wanted = text.lines().find_map(|line| line.strip_prefix("# expect:"));
        let wanted = wanted.unwrap_or_else(|| panic!("{name} does not say what to expect"));
        let mut wanted: Vec<_> =
            wanted.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
        wanted.sort_unstable();
        let history = History::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let findings = judge(&history);
        let mut found: Vec<_> = findings.counts().map(|(kind, _)| kind.to_string()).collect();
        found.sort_unstable();
        if found != wanted {
            let told: Vec<_> =
                findings.forbidden_at(Level::Serializable).map(|it| &it.text).collect();
            wrong.push(format!("{name}: wanted {wanted:?}, found {found:?}: {told:#?}"));
        }
        kinds.extend(found);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(kinds.len(), 15, "a kind is never planted: {kinds:?}");
}

#[test]
fn text_and_history_are_the_same() {
    for (name, text) in histories() {
        let history = History::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(History::parse(&history.to_string()), Ok(history), "{name}");
    }
    assert!(History::parse("0 committed 1 2: append 1").is_err());
    assert!(History::parse("0 maybe 1 2: append 1 2").is_err());
}
