//! Results of several folders as if they were of one experiment.

use super::{Experiment, Note, Step, Subject};

/// Machines that differ in these cannot be compared.
const MACHINE: [&str; 4] = ["processor", "cores", "memory", "kernel"];

/// All subjects of all folders, those of the first before the others; folders come with the names
/// under which they are shown. What makes them unlike is noted. An error if they have no step in
/// common.
pub fn combined(folders: Vec<(String, Experiment)>) -> Result<Experiment, String> {
    let mut folders = folders.into_iter();
    let (first_name, mut all) = folders.next().ok_or("no results to be compared")?;
    let mut has_twins = false;
    let first_steps = all.steps();
    let mut notes = vec![Note {
        text: "These runs come from different folders: they were not interleaved, so what drifted \
               between them (a warmer machine, other work on it) is in the ratios."
            .into(),
        is_grave: false,
    }];
    rename(&mut all.subjects, &first_name);
    for (name, mut other) in folders {
        let steps = other.steps();
        if !first_steps.iter().any(|step| steps.contains(step)) {
            let list =
                |steps: &[Step]| steps.iter().map(Step::label).collect::<Vec<_>>().join("; ");
            return Err(format!(
                "{first_name} and {name} have no step in common: {} against {}; run one of them \
                 again with the --clients and --rate of the other",
                list(&first_steps),
                list(&steps)
            ));
        }
        notes.extend(differences((&first_name, &all), (&name, &other)));
        notes.append(&mut other.notes);
        rename(&mut other.subjects, &name);
        let before = all.subjects.len();
        other.runs.iter_mut().for_each(|run| run.subject += before);
        all.subjects.append(&mut other.subjects);
        all.runs.append(&mut other.runs);
        has_twins = true;
    }
    if has_twins {
        // Each folder's table knows only its own subjects.
        all.parity.clear();
        all.notes.append(&mut notes);
    }
    Ok(all)
}

/// The folder's name before that of the subject, or in its place if they say the same.
fn rename(subjects: &mut [Subject], folder: &str) {
    for subject in subjects {
        subject.name = match subject.name.as_str() {
            name if name == folder => folder.to_string(),
            name => format!("{folder}: {name}"),
        };
    }
}

fn differences(first: (&str, &Experiment), other: (&str, &Experiment)) -> Vec<Note> {
    let mut found = Vec::new();
    let ((a_name, a), (b_name, b)) = (first, other);
    let mut add = |is_grave, what: &str, a: &str, b: &str| {
        if a != b {
            let text = format!("{what} differs: {a} in {a_name}, {b} in {b_name}.");
            found.push(Note { text, is_grave });
        }
    };
    add(true, "The workload", &a.workload, &b.workload);
    add(false, "The seed", &a.seed.to_string(), &b.seed.to_string());
    for what in MACHINE {
        let of = |experiment: &Experiment| experiment.machine.get(what).cloned();
        let (a, b) = (of(a).unwrap_or_default(), of(b).unwrap_or_default());
        add(what != "kernel", &format!("The machine's {what}"), &a, &b);
    }
    let seconds = |experiment: &Experiment| {
        let lengths = experiment.runs.iter().map(|run| run.seconds.len());
        lengths.max().unwrap_or(0).to_string()
    };
    add(false, "The measured time of a run in seconds", &seconds(a), &seconds(b));
    found
}
