//! The page store on the simulated disk, driven by an engine in miniature.
//!
//! `GANNET_SIM_SEEDS=n` runs n seeds, `GANNET_SIM_SEED=s` replays one,
//! `GANNET_MUTANT=name` switches a deliberate defect on, which must make a seed fail.

mod crashes;
mod drops;
mod faults;
mod lives;
mod miniature;
mod model;
mod pace;
mod reserve;
mod superblocks;
