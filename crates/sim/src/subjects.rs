//! The engines that can be simulated.

use crate::life::{Running, Subject};
use base::Random;
use engine::memory::MemoryEngine;
use engine_api::Engine;
use std::sync::Arc;

/// The engine with this name on the command line.
pub fn by_name(name: &str) -> Result<Arc<dyn Subject>, String> {
    match name {
        "memory" => Ok(Arc::new(Memory)),
        _ => Err(format!("no engine is called '{name}'")),
    }
}

/// The model engine in memory: it has no disk, so it is never crashed. Checks the simulation.
#[derive(Debug)]
pub struct Memory;

struct RunningMemory(Arc<MemoryEngine>);

impl Subject for Memory {
    fn open(&self, _random: &mut Random) -> Result<Box<dyn Running>, String> {
        Ok(Box::new(RunningMemory(Arc::new(MemoryEngine::new()))))
    }

    fn check(&self) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn locks_unique_keys(&self) -> bool {
        false
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
