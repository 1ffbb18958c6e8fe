//! The experiments that the lab knows: descriptions of runs, at full size, and how they shrink.
//!
//! 1. A recipe is a file of the form that `gannet-lab run FILE` reads, with a section `[scale]`.
//! 2. `[scale]` names what is multiplied by the scale, and the least value of each; what it does
//!    not name stays. A size such as "4G" stays a size; of statements with their time
//!    ("30=ALTER ...") the times are multiplied, and the least value is the least gap between them.
//! 3. Parts of a recipe shrink by the same rule.

use toml::{Table, Value};

/// A recipe.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! recipe {
    ($name:literal) => {
        Recipe { name: $name, text: include_str!(concat!("../recipes/", $name, ".toml")) }
    };
}

/// All of them.
pub const RECIPES: [Recipe; 15] = [
    recipe!("quick"),
    recipe!("linkbench-24h"),
    recipe!("linkbench-space"),
    recipe!("flash-linkbench"),
    recipe!("flash-sysbench"),
    recipe!("tpcc-3h"),
    recipe!("tpcc-sweep"),
    recipe!("sysbench-stalls"),
    recipe!("stalls"),
    recipe!("clients-4096"),
    recipe!("ddl-progress"),
    recipe!("insert-benchmark"),
    recipe!("connection-storm"),
    recipe!("mixed-tenants"),
    recipe!("crashes"),
];

impl Recipe {
    /// By its name.
    pub fn of_name(name: &str) -> Option<Self> {
        RECIPES.into_iter().find(|recipe| recipe.name == name)
    }

    /// What it is and what it needs, for a list: title, needs, the scale it has by itself.
    pub fn about(&self) -> (String, String, f64) {
        let table: Table = self.text.parse().unwrap_or_default();
        let text = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default().into();
        let scale = table.get("scale").and_then(|scale| scale.get("default"));
        (text("title"), text("needs"), scale.and_then(number).unwrap_or(1.0))
    }
}

/// Takes `[scale]` out of a description and applies it: by this factor, or by its own default.
/// Returns the factor; 1 for a description without such a section, of which nothing changes.
pub fn scale(table: &mut Table, asked: Option<f64>) -> Result<f64, String> {
    let Some(rules) = table.remove("scale") else {
        return match asked {
            None => Ok(1.0),
            Some(_) => Err("--scale needs a [scale] section in the file".into()),
        };
    };
    let mut rules = match rules {
        Value::Table(rules) => rules,
        _ => return Err("[scale] is a section with a default and the least values".into()),
    };
    let default = rules.remove("default").as_ref().and_then(number).unwrap_or(1.0);
    let factor = asked.unwrap_or(default);
    if !(factor > 0.0 && factor.is_finite()) {
        return Err(format!("a scale of {factor}: it must be above 0"));
    }
    for (key, least) in &rules {
        let (section, name) = key
            .split_once('.')
            .ok_or_else(|| format!("[scale] \"{key}\": \"section.key\" is wanted"))?;
        shrink(table, section, name, factor, least)?;
        let parts = table.get_mut("part").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_table_mut) {
            shrink(part, section, name, factor, least)?;
        }
    }
    Ok(factor)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn shrink(
    table: &mut Table,
    section: &str,
    name: &str,
    factor: f64,
    least: &Value,
) -> Result<(), String> {
    let found = table.get_mut(section).and_then(|section| section.get_mut(name));
    let Some(value) = found else { return Ok(()) };
    let wrong = || format!("[scale] \"{section}.{name}\" = {least}: not of the kind of {value}");
    let scaled = match (&*value, least) {
        (Value::Integer(full), Value::Integer(least)) => {
            Value::Integer(((*full as f64 * factor).round() as i64).max((*least).min(*full)))
        }
        (Value::Float(full), least) => {
            Value::Float((full * factor).max(number(least).ok_or_else(wrong)?.min(*full)))
        }
        (Value::String(full), Value::String(least)) => {
            let (full, least) = (size(full).ok_or_else(wrong)?, size(least).ok_or_else(wrong)?);
            let bytes = ((full as f64 * factor) as u64).max(least.min(full));
            Value::String(format!("{}M", bytes.div_ceil(1 << 20)))
        }
        (Value::Array(statements), least) => {
            let gap = number(least).ok_or_else(wrong)?;
            Value::Array(times(statements, factor, gap).ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    *value = scaled;
    Ok(())
}

/// Bytes of "512M" or "4G".
fn size(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Statements with their times multiplied, each at least so long after the one before.
fn times(statements: &[Value], factor: f64, gap: f64) -> Option<Vec<Value>> {
    let mut last = 0.0;
    let mut scaled = Vec::new();
    for statement in statements {
        let (seconds, sql) = statement.as_str()?.split_once('=')?;
        last = (seconds.trim().parse::<f64>().ok()? * factor).max(last + gap);
        scaled.push(Value::String(format!("{last:.1}={sql}")));
    }
    Some(scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, factor: Option<f64>) -> Result<Table, String> {
        let mut table: Table = text.parse().expect("TOML");
        scale(&mut table, factor).map(|_| table)
    }

    #[test]
    fn what_is_named_is_multiplied_and_has_a_least_value() {
        let text = r#"
            [scale]
            default = 0.01
            "workload.ids" = 500
            "workload.change" = 4
            "run.seconds" = 60
            "server.memory" = "32M"
            [workload]
            ids = 100_000
            tables = 8
            change = ["100=ALTER TABLE a", "1200=ALTER TABLE b"]
            [run]
            seconds = 3600
            [server]
            memory = "16G"
            [[part]]
            name = "long"
            run = { seconds = 36_000 }
        "#;
        let table = scaled(text, None).expect("valid");
        assert!(!table.contains_key("scale"));
        let (workload, part) = (&table["workload"], &table["part"][0]);
        assert_eq!(workload["ids"].as_integer(), Some(1000));
        assert_eq!(workload["tables"].as_integer(), Some(8));
        assert_eq!(workload["change"][0].as_str(), Some("4.0=ALTER TABLE a"));
        assert_eq!(workload["change"][1].as_str(), Some("12.0=ALTER TABLE b"));
        assert_eq!(table["run"]["seconds"].as_integer(), Some(60));
        assert_eq!(part["run"]["seconds"].as_integer(), Some(360));
        assert_eq!(table["server"]["memory"].as_str(), Some("164M"));
        let full = scaled(text, Some(1.0)).expect("valid");
        assert_eq!(full["workload"]["ids"].as_integer(), Some(100_000));
        assert_eq!(full["server"]["memory"].as_str(), Some("16384M"));
        let tiny = scaled(text, Some(1e-6)).expect("valid");
        assert_eq!(tiny["workload"]["ids"].as_integer(), Some(500));
        assert_eq!(tiny["server"]["memory"].as_str(), Some("32M"));
        assert!(scaled(text, Some(0.0)).is_err() && scaled(text, Some(f64::NAN)).is_err());
        assert!(scaled("[run]\nseconds = 5", Some(0.5)).expect_err("none").contains("[scale]"));
    }

    #[test]
    fn every_recipe_is_read_and_shrinks() {
        for recipe in RECIPES {
            let (title, needs, default) = recipe.about();
            assert!(!title.is_empty() && !needs.is_empty(), "{}", recipe.name);
            assert!(default > 0.0 && default <= 1.0, "{}", recipe.name);
            let full: Table =
                recipe.text.parse().unwrap_or_else(|e| panic!("{}: {e}", recipe.name));
            for key in full["scale"].as_table().expect("a section").keys() {
                let Some((section, name)) = key.split_once('.') else { continue };
                let has = |table: &Table| table.get(section).is_some_and(|s| s.get(name).is_some());
                let parts = full.get("part").and_then(Value::as_array).into_iter().flatten();
                let found = has(&full) || parts.filter_map(Value::as_table).any(has);
                assert!(found, "{}: {key} is nowhere", recipe.name);
            }
            for factor in [None, Some(1.0), Some(1e-9)] {
                let mut table = full.clone();
                scale(&mut table, factor).unwrap_or_else(|e| panic!("{}: {e}", recipe.name));
                assert!(table["run"]["seconds"].as_integer() >= Some(2), "{}", recipe.name);
            }
        }
        assert!(Recipe::of_name("quick").is_some() && Recipe::of_name("slow").is_none());
    }
}
