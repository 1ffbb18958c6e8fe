//! Reports of small fixed results.

use super::*;
use crate::results::{Broken, Note, combined};

/// Attributes' and elements' begins and ends, as far as a report has them: every element that is
/// opened is closed, in its order.
fn assert_well_formed(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = &html[html.find("<body>").expect("a body")..];
    for part in body.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("'<' in text: {part:.60}"));
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "near {part:.80}");
        } else if !tag.ends_with('/') && !["html", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, ["html"; 0]);
}

fn with_close_of_html(text: &str) -> String {
    text.replace("</body></html>", "</body>")
}

#[test]
fn a_report_has_all_it_must_have() {
    for (subjects, clients) in [(1, &[8][..]), (2, &[8]), (4, &[4, 16, 64, 256])] {
        let text = html(&sample::experiment(subjects, clients, 3));
        assert_well_formed(&with_close_of_html(&text));
        assert!(text.len() < 5 << 20, "{}", text.len());
        for bad in
            ["NaN", ">inf<", " inf ", "http://", "https://", "<script", "<link", "second <b>"]
        {
            assert!(!text.contains(bad), "{bad} with {subjects} subjects");
        }
        let wanted = [
            "throughput by second",
            "below half of the median: 2 s",
            "latency over time",
            "quantiles of latency by second",
            "response times",
            "Latency by percentile",
            "bytes written by second",
            "Processors used by second",
            "Time to load",
            "Space after load",
            "Write amplification of an operation",
            "What the device says of its own wear",
            "<td>1.50</td><td>3 % to 3 %</td>",
            "Operations",
            "Failures and retries",
            "Deadlock found",
            "Settings in effect",
            "VERIFIED",
            "How to reproduce",
            "Seed 42",
            "limited by",
            "other plots: 1: a pause &lt;begins&gt; (at 30.0 s)",
            "prefers-color-scheme:dark",
        ];
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} with {subjects} subjects");
        }
        let of_several = ["Throughput by clients", "95th percentile of latency by clients"];
        assert!(of_several.iter().all(|title| text.contains(title) == (clients.len() > 1)));
        assert_eq!(text.contains("Efficiency"), subjects > 1);
        let unknown = "<td>wear of the device</td><td>not known: smartctl is not installed</td>";
        assert_eq!(text.contains(unknown), subjects > 1);
    }
}

#[test]
fn results_of_nothing_are_reported_too() {
    let mut experiment = sample::experiment(2, &[8], 1);
    experiment.runs.clear();
    experiment.ended = Some("the server is gone".into());
    assert!(html(&experiment).contains("The experiment ended early: the server is gone"));
    let mut bare = sample::experiment(1, &[8], 1);
    for run in &mut bare.runs {
        *run = crate::results::Run { clients: 8, ..Default::default() };
    }
    let text = html(&bare);
    for text in [text, markdown(&bare)] {
        if let Some(place) = text.find("NaN") {
            panic!("{}", &text[place.saturating_sub(300)..place + 20]);
        }
    }
}

#[test]
fn unequal_durability_forbids_a_ratio() {
    let mut experiment = sample::experiment(2, &[8], 3);
    assert!(headlines(&experiment)[0].contains("second <b> is faster than first with 8 clients"));
    let name = "innodb_flush_log_at_trx_commit".to_string();
    experiment.subjects[1].variables.insert(name, "2".into());
    assert_eq!(headlines(&experiment).len(), 1);
    assert!(headlines(&experiment)[0].starts_with("No comparison"));
    let first = &warnings(&experiment)[0];
    assert!(first.is_grave && first.text.contains("durability"), "{first:?}");
}

#[test]
fn broken_rules_and_broken_off_runs_are_told_first() {
    let mut experiment = sample::experiment(1, &[8], 1);
    experiment.subjects[0].violations =
        Some(vec![Broken { rule: "counts are right".into(), rows: 3 }]);
    experiment.runs[0].given_up = Some("the server is gone".into());
    let told = warnings(&experiment);
    assert!(told[0].text.contains("FAILED: counts are right: 3 rows"));
    assert!(told[1].is_grave && told[1].text.contains("ended early"));
}

#[test]
fn a_driver_that_stood_still_is_told_first() {
    let mut experiment = sample::experiment(1, &[8], 2);
    assert!(!warnings(&experiment).iter().any(|warning| warning.text.contains("stood still")));
    experiment.runs[1].lateness_micros = Some([80, 1_456, 9_967, 2_500_000, 120_324_095]);
    let told = warnings(&experiment);
    let text = &told[0].text;
    assert!(
        told[0].is_grave && text.contains("in 1 of 4 runs") && text.contains("120.3 s"),
        "{text}"
    );
}

#[test]
fn a_terminal_sees_aligned_columns() {
    let shown = text(&sample::experiment(2, &[8], 3));
    let lines: Vec<&str> = shown.lines().collect();
    let title = lines.iter().position(|line| *line == "Throughput and latency").expect("there");
    let ends: Vec<usize> = lines[title + 1..title + 4].iter().map(|line| line.len()).collect();
    assert_eq!(ends, [ends[0]; 3], "{shown}");
    assert!(shown.contains("rate: 100 % was wanted, 99 % found"), "{shown}");
    assert!(lines.last().is_some_and(|line| line.contains("is faster than first")), "{shown}");
}

#[test]
fn folders_are_compared_as_subjects() {
    let old = sample::experiment(1, &[8, 16], 3);
    let mut new = old.clone();
    sample::slow_down(&mut new, 1, 0.8);
    new.seed = 7;
    new.workload = "another".into();
    let both = combined(vec![("old".into(), old.clone()), ("new".into(), new)]).expect("alike");
    let told = headlines(&both);
    assert!(told[0].contains("new: first is slower than old: first with 8 clients: 0.80"));
    assert_eq!(told.len(), 2);
    let graves: Vec<Note> = warnings(&both).into_iter().filter(|note| note.is_grave).collect();
    assert!(graves[0].text.contains("The workload differs"), "{graves:?}");
    assert!(warnings(&both).iter().any(|note| note.text.contains("The seed differs: 42 in old")));
    let elsewhere = sample::experiment(1, &[4], 1);
    let error = combined(vec![("old".into(), old), ("x".into(), elsewhere)]).expect_err("unlike");
    assert!(error.contains("no step in common"), "{error}");
}

#[test]
fn a_report_is_made_again_from_what_was_kept() {
    let experiment = sample::experiment(2, &[8], 3);
    let folder = std::env::temp_dir().join(format!("gannet-lab-report-{}", std::process::id()));
    write(&folder, &experiment).expect("written");
    let again = crate::results::Experiment::read_from(&folder).expect("readable");
    assert_eq!(html(&again), html(&experiment));
    let series = std::fs::read_to_string(folder.join("series.csv")).expect("written");
    assert_eq!(series.lines().count(), 1 + 12 * 65);
    let commas: Vec<usize> = series.lines().map(|line| line.matches(',').count()).collect();
    assert!(commas.iter().all(|count| *count == commas[0]));
    assert!(folder.join("hdr/012-write.hgrm").exists());
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_folder_that_could_not_be_finished_keeps_what_was_measured_and_says_so() {
    let experiment = sample::experiment(2, &[8], 3);
    let folder = std::env::temp_dir().join(format!("gannet-lab-unfinished-{}", std::process::id()));
    // Nothing can be written where a folder is.
    std::fs::create_dir_all(folder.join("summary.md")).expect("made");
    let error = write(&folder, &experiment).expect_err("a folder is no file");
    let plot = format!("`gannet-lab plot {}`", folder.display());
    assert!(error.contains("summary.md: ") && error.contains(&plot), "{error}");
    let again = crate::results::Experiment::read_from(&folder).expect("readable");
    assert_eq!(html(&again), html(&experiment));
    std::fs::remove_dir_all(&folder).expect("removed");
}
