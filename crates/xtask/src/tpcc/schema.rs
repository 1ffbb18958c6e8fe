//! The nine tables and their first rows: the lab's.

use super::SCALE;
use crate::Outcome;
use lab::client::Target;
use lab::load;
use lab::workload::tpcc::{self, TABLES};
use runtime::net::Address;
use sqltest::client::{Connection, Options};
use std::sync::Arc;
use std::time::Duration;

/// Creates the database `tpcc` and fills it.
pub(crate) fn load(port: u16, seed: u64) -> Outcome {
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    connection.execute("CREATE DATABASE tpcc").map_err(|e| e.to_string())?;
    let target = Target {
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        user: "root".into(),
        password: String::new(),
        database: "tpcc".into(),
        read_timeout: Duration::from_secs(60),
        tls: lab::client::Tls::Off,
    };
    let options = tpcc::Options { scale: SCALE, foreign_keys: false, think_times: false, seed };
    let loading = Arc::new(tpcc::Load::new(options, "ENGINE=InnoDB", "2024-01-01 00:00:00"));
    let config = runtime::Config { workers: 1, ..runtime::Config::default() };
    let runtime = runtime::Runtime::start(config).map_err(|e| e.to_string())?;
    let loaded = runtime.run(move || load::load(&target, loading, &load::Way::new(4), |_| ()));
    loaded.map(drop).map_err(|e| e.to_string())
}

/// CHECK TABLE of all.
pub(crate) fn check_tables(port: u16) -> Outcome {
    let mut connection = super::connect(port)?;
    let sql = format!("CHECK TABLE {}", TABLES.join(", "));
    for row in connection.execute(&sql).map_err(|e| e.to_string())? {
        if row[3].as_deref() != Some(b"OK") {
            return Err(format!("CHECK TABLE: {row:?}"));
        }
    }
    Ok(())
}
