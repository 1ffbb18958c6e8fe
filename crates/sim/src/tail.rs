//! The end of the log rots while the computer is off.
//!
//! Nothing in the log says of the last batch that it was acknowledged, but it may have been: it
//! must not be taken for a torn write and cut off.

use crate::knobs::Knobs;
use crate::life::Subject;
use base::Random;
use runtime::sim::{CrashKind, Disk, SimConfig, Simulation};
use std::sync::Arc;

/// A place on the simulated disk.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub path: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// Flips a bit in the last batch of the log that a crash has left: the offline check finds it and
/// a start refuses. Afterwards the disk is as it was.
pub fn rot(
    subject: &Arc<dyn Subject>,
    number: u64,
    knobs: &Knobs,
    disk: Disk,
    mut random: Random,
) -> Result<Disk, String> {
    let config = SimConfig { buggify: false, ..SimConfig::new(random.next_u64()) };
    let mut simulation = Simulation::with_disk(config, disk);
    let (subject, knobs) = (subject.clone(), knobs.clone());
    let ended = simulation.run(move || {
        let Some(place) = subject.last_log_batch() else { return };
        let disk = runtime::sim::disk().expect("this is a simulation");
        let offset = place.offset + random.below(place.length);
        let bit = random.next_u32() as u8;
        assert!(disk.flip_bit(&place.path, offset, bit), "{place:?} is on the disk");
        let findings = subject.check().unwrap_or_else(|error| vec![error]);
        assert!(!findings.is_empty(), "violation: no check finds a flip in {place:?} at {offset}");
        if subject.opens_in_memory(number, &knobs, &mut random) {
            panic!("violation: a start cuts off {place:?}, rotten at {offset}");
        }
        assert!(disk.flip_bit(&place.path, offset, bit), "it was there before");
    });
    ended.map_err(|end| end.to_string())?;
    Ok(simulation.crash(CrashKind::Process))
}
