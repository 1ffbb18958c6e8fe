//! Inputs to begin with.

use std::path::PathBuf;

/// Writes them to the corpus that `cargo xtask fuzz` names; known ones are written again.
pub fn write(seeds: impl IntoIterator<Item = Vec<u8>>) {
    let Some(folder) = std::env::var_os("GANNET_FUZZ_CORPUS").map(PathBuf::from) else { return };
    for (number, seed) in seeds.into_iter().enumerate() {
        let path = folder.join(format!("seed-{number:04}"));
        std::fs::write(&path, seed).expect("the corpus can be written");
    }
}

/// With the byte before each input that names its kind.
#[allow(dead_code, reason = "not every target has kinds")]
pub fn with_kinds(first: u8, seeds: Vec<(u8, Vec<u8>)>) -> Vec<Vec<u8>> {
    let named = |(kind, bytes): (u8, Vec<u8>)| [vec![first + kind], bytes].concat();
    seeds.into_iter().map(named).collect()
}
