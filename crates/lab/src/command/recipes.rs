//! `gannet-lab recipes`

use super::Outcome;
use crate::recipe::RECIPES;

pub(super) fn run() -> Outcome {
    println!("gannet-lab run NAME [--scale FACTOR]; the files are in crates/lab/recipes\n");
    for recipe in RECIPES {
        let (title, needs, scale) = recipe.about();
        println!("{:18}{title}", recipe.name);
        println!("{:18}by itself at scale {scale}; {needs}\n", "");
    }
    Ok(())
}
