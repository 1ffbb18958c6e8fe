//! `gannet-lab recipes`

use super::Outcome;
use crate::recipe::RECIPES;
use std::fmt::Write;

pub(super) fn run() -> Outcome {
    let mut text =
        "gannet-lab run NAME [--scale FACTOR]; the files are in crates/lab/recipes\n\n".to_string();
    for recipe in RECIPES {
        let (title, needs, scale) = recipe.about();
        let name = recipe.name;
        let _never =
            write!(text, "{name:18}{title}\n{:18}by itself at scale {scale}; {needs}\n\n", "");
    }
    super::show(&text)
}
