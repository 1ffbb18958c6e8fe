//! What a command line describes, part by part: a workload, a recipe or a file, with what was said
//! beside it.

use super::flags::{Arguments, Place};
use super::spec::{self, SUBJECT, WORKLOAD};
use super::subjects;
use crate::recipe::{self, Recipe};
use std::path::Path;
use toml::{Table, Value};

/// The parts with their names; each is whole.
pub(super) fn parts<F, O>(
    arguments: &Arguments<F, O>,
    place: &Place,
    start: &[String],
) -> Result<Vec<(Option<String>, Table)>, String> {
    let what = arguments.what.as_str();
    let mut over = arguments.over.clone();
    let subjects = subjects::on_command_line(&place.dsn, start)?;
    if !subjects.is_empty() {
        over.insert(SUBJECT.into(), Value::Array(subjects));
    }
    let mut table = if let Some(recipe) = Recipe::of_name(what) {
        spec::read(recipe.text, what)?
    } else if Path::new(what).extension().is_some_and(|extension| extension == "toml") {
        let text = std::fs::read_to_string(what).map_err(|error| format!("{what}: {error}"))?;
        spec::read(&text, what)?
    } else {
        let name = Table::from_iter([("name".to_string(), Value::String(what.into()))]);
        Table::from_iter([(WORKLOAD.to_string(), Value::Table(name))])
    };
    if table.contains_key("scale") || place.scale.is_some() {
        recipe::scale(&mut table, place.scale)?;
    }
    spec::parts(&table, &over)
}
