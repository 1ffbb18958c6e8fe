//! The engines that can be simulated.

use crate::knobs::Knobs;
use crate::life::{Running, Subject};
use crate::tail::Place;
use base::Random;
use engine::memory::MemoryEngine;
use engine::{DictionaryOptions, Engine as RealEngine, EngineOptions};
use engine_api::Engine;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The engine with this name on the command line.
pub fn by_name(name: &str) -> Result<Arc<dyn Subject>, String> {
    match name {
        "memory" => Ok(Arc::new(Memory)),
        "gannet" => Ok(Arc::new(Gannet)),
        _ => Err(format!("no engine is called '{name}'")),
    }
}

/// The model engine in memory: it has no disk, so it is never crashed. Checks the simulation.
#[derive(Debug)]
pub struct Memory;

struct RunningMemory(Arc<MemoryEngine>);

impl Subject for Memory {
    fn open(
        &self,
        _seed: u64,
        _knobs: &Knobs,
        _random: &mut Random,
    ) -> Result<Box<dyn Running>, String> {
        Ok(Box::new(RunningMemory(Arc::new(MemoryEngine::new()))))
    }

    fn check(&self) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn last_log_batch(&self) -> Option<Place> {
        None
    }

    fn opens_in_memory(&self, _seed: u64, _knobs: &Knobs, _random: &mut Random) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn limit(&self, knobs: &mut Knobs) {
        // A unique key that an open transaction has given up is free at once.
        knobs.shapes.iter_mut().for_each(|shape| shape.unique = false);
    }
}

impl Running for RunningMemory {
    fn engine(&self) -> Arc<dyn Engine> {
        self.0.clone()
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

/// The real engine on the simulated disk.
#[derive(Debug)]
pub struct Gannet;

struct RunningGannet(Arc<RealEngine>);

/// Where the database is on the simulated disk.
const DATADIR: &str = "/db";

/// Often one is made whether it gains or not.
const DICTIONARIES: [DictionaryOptions; 3] = [
    DictionaryOptions { after_bytes: 12 << 10, least_gain: -9.0, least_gain_first: -9.0 },
    DictionaryOptions { after_bytes: 50 << 10, least_gain: -9.0, least_gain_first: -9.0 },
    DictionaryOptions { after_bytes: 32 << 10, least_gain: 0.06, least_gain_first: 0.06 },
];

/// Everything tiny, so that the rare happens often. What counts at creation hangs on the seed
/// alone, the rest changes from life to life.
pub fn options(seed: u64, random: &mut Random) -> EngineOptions {
    let mut fixed = Random::new(seed ^ 0x0F1E_D000);
    EngineOptions {
        undo_budget_bytes: *random.pick(&[0, 64 << 10, 64 << 20]),
        undo_chunk_bytes: *random.pick(&[4, 16, 64]) << 10,
        sort_buffer_bytes: *random.pick(&[16, 256]) << 10,
        log_ring_bytes: *random.pick(&[512, 1024]) << 10,
        first_log_file_bytes: *random.pick(&[64, 256]) << 10,
        max_log_file_bytes: *random.pick(&[128, 512]) << 10,
        recovery_window_bytes: *random.pick(&[4, 32, 1024]) << 10,
        log_cap_bytes: *random.pick(&[32 << 10, 128 << 10, 512 << 20]),
        segment_bytes: *fixed.pick(&[128, 256, 512]) << 10,
        segments_per_file: *fixed.pick(&[2, 16]),
        group_bytes: *random.pick(&[16, 32, 64]) << 10,
        dictionaries: *random.pick(&DICTIONARIES),
        max_pages: 1 << 16,
        huge_pages: false,
        page_class: *fixed.pick(&[12, 12, 13]),
        checkpoint_interval: Duration::from_millis(*random.pick(&[2, 20, 200])),
        purge_interval: Duration::from_millis(*random.pick(&[1, 20])),
        on_fatal: Arc::new(|detail| panic!("violation: fatal without a fault: {detail}")),
        ..EngineOptions::new(DATADIR, *random.pick(&[256, 512, 1024, 4096]) << 10)
    }
}

impl Subject for Gannet {
    fn open(
        &self,
        seed: u64,
        knobs: &Knobs,
        random: &mut Random,
    ) -> Result<Box<dyn Running>, String> {
        let mut options = options(seed, random);
        if knobs.is_for_log {
            // Nobody but a power failure ends a batch's time in the cache.
            options.buffer_pool_bytes = 8 << 20;
            options.checkpoint_interval = Duration::from_secs(10);
            options.log_cap_bytes = 512 << 20;
        }
        if knobs.is_for_readers {
            // Nothing but the readers makes the log durable, and undo goes soon.
            options.undo_chunk_bytes = 1 << 10;
            options.purge_interval = Duration::from_micros(100);
            options.checkpoint_interval = Duration::from_secs(10);
            options.log_cap_bytes = 512 << 20;
        }
        let opened = RealEngine::open(options).map_err(|error| error.to_string())?;
        if std::env::var_os("GANNET_SIM_TRACE").is_some() {
            eprintln!("{:?}", opened.1);
        }
        Ok(Box::new(RunningGannet(opened.0)))
    }

    fn check(&self) -> Result<Vec<String>, String> {
        let report = engine::offline::check(Path::new(DATADIR), 4 << 20);
        let findings = report.map_err(|error| error.to_string())?.findings;
        Ok(findings.iter().map(ToString::to_string).collect())
    }

    fn last_log_batch(&self) -> Option<Place> {
        let regions = engine::offline::regions(Path::new(DATADIR)).ok()?;
        let last = regions.into_iter().rfind(|region| region.kind == "log_batch")?;
        let path = format!("{DATADIR}/{}", last.file);
        Some(Place { path, offset: last.offset, length: last.length })
    }

    fn opens_in_memory(&self, seed: u64, knobs: &Knobs, random: &mut Random) -> bool {
        let covered = runtime::overlay::cover(Path::new(DATADIR));
        let opened = self.open(seed, knobs, random).is_ok();
        drop(covered);
        opened
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn limit(&self, _knobs: &mut Knobs) {}
}

impl Running for RunningGannet {
    fn engine(&self) -> Arc<dyn Engine> {
        self.0.clone()
    }

    fn close(self: Box<Self>) -> Result<(), String> {
        self.0.close().map_err(|error| error.to_string())
    }
}
