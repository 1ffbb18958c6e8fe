//! The graph as rows.

use super::graph::Graph;
use super::statements::{LINK_BYTES_MAX, NODE_BYTES_MAX};
use super::{NODE_TYPE, Options, SESSION};
use crate::client::{Failure, Value};
use crate::distribution::payload::{LINK, NODE, Payload};
use crate::distribution::size::LogNormal;
use crate::load::{Batch, LOADED_AT_SECONDS, Loading, TableForm};
use base::Random;

/// Ids of a job.
const JOB_IDS: u64 = 2048;
/// Links were made in about the last 50 days.
const AGE_MILLIS: u64 = 1 << 31;

/// See the module.
pub struct Load {
    graph: Graph,
    form: TableForm,
}

impl Load {
    /// Of a graph.
    pub fn new(options: Options, form: impl Into<TableForm>) -> Self {
        Self { graph: Graph::new(options), form: form.into() }
    }

    fn create_links(&self) -> String {
        let index = match self.form.keys_first(true) {
            true => format!(", KEY {LINK_INDEX}"),
            false => String::new(),
        };
        let behind = self.form.behind("id1");
        format!(
            "CREATE TABLE linktable (id1 BIGINT UNSIGNED NOT NULL DEFAULT 0, id2 BIGINT UNSIGNED \
             NOT NULL DEFAULT 0, link_type BIGINT UNSIGNED NOT NULL DEFAULT 0, visibility TINYINT \
             NOT NULL DEFAULT 0, data VARCHAR(255) NOT NULL DEFAULT '', time BIGINT UNSIGNED NOT \
             NULL DEFAULT 0, version INT UNSIGNED NOT NULL DEFAULT 0, PRIMARY KEY (link_type, id1, \
             id2){index}) CHARACTER SET latin1 {behind}"
        )
    }

    fn links(&self, id: u64, batch: &mut Batch<'_>, source: &mut Source) -> Result<(), Failure> {
        for link_type in 0..self.graph.options.link_types {
            let count = self.graph.links(id, link_type);
            let number = Graph::type_number(link_type);
            let mut latest = 0;
            for offset in 0..count {
                let age = source.random.below(2 * AGE_MILLIS);
                let time = (LOADED_AT_SECONDS * 1000).saturating_sub(age);
                latest = latest.max(time);
                let data = source.link();
                let values = [
                    id.into(),
                    (id + offset).into(),
                    number.into(),
                    1u64.into(),
                    data,
                    time.into(),
                ];
                batch.row(LINKS, &values)?;
            }
            if count > 0 {
                source.counts.push([id, number, count, latest]);
            }
        }
        Ok(())
    }
}

const LINKS: &str = "INSERT INTO linktable (id1, id2, link_type, visibility, data, time)";
const LINK_INDEX: &str = "id1_type (id1, link_type, visibility, time, id2, version, data)";
const COUNTS: &str = "INSERT INTO counttable (id, link_type, count, time)";
const NODES: &str = "INSERT INTO nodetable (id, type, version, time, data)";

/// What a job draws from.
struct Source {
    random: Random,
    link_payload: Payload,
    node_payload: Payload,
    link_bytes: LogNormal,
    node_bytes: LogNormal,
    payload: Vec<u8>,
    counts: Vec<[u64; 4]>,
}

impl Source {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            link_payload: Payload::new(LINK, &mut random),
            node_payload: Payload::new(NODE, &mut random),
            random,
            link_bytes: LogNormal::new(8.0, LINK_BYTES_MAX),
            node_bytes: LogNormal::new(128.0, NODE_BYTES_MAX),
            payload: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn link(&mut self) -> Value<'_> {
        self.payload.clear();
        let bytes = self.link_bytes.draw(&mut self.random);
        self.link_payload.append(&mut self.payload, bytes, &mut self.random);
        Value::Bytes(&self.payload)
    }

    fn node(&mut self) -> Value<'_> {
        self.payload.clear();
        let bytes = self.node_bytes.draw(&mut self.random);
        self.node_payload.append(&mut self.payload, bytes, &mut self.random);
        Value::Bytes(&self.payload)
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        let Options { first_id, end_id, link_types, degree_max, compatibility, seed, .. } =
            &self.graph.options;
        format!(
            "linkbench ids={first_id}..{end_id} link_types={link_types} degree_max={degree_max} \
             {compatibility:?} seed={seed} {}",
            self.form
        )
    }

    fn connected(&self) -> &'static str {
        SESSION
    }

    fn begin(&self) -> Vec<String> {
        let options = &self.form.options;
        vec![
            "DROP TABLE IF EXISTS linktable, counttable, nodetable".into(),
            self.create_links(),
            format!(
                "CREATE TABLE counttable (id BIGINT UNSIGNED NOT NULL DEFAULT 0, link_type BIGINT \
                 UNSIGNED NOT NULL DEFAULT 0, count INT UNSIGNED NOT NULL DEFAULT 0, time BIGINT \
                 UNSIGNED NOT NULL DEFAULT 0, version BIGINT UNSIGNED NOT NULL DEFAULT 0, PRIMARY \
                 KEY (id, link_type)) CHARACTER SET latin1 {options}"
            ),
            format!(
                "CREATE TABLE nodetable (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, type INT \
                 UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, time INT UNSIGNED NOT NULL, \
                 data MEDIUMTEXT NOT NULL, PRIMARY KEY (id)) CHARACTER SET latin1 {options}"
            ),
        ]
    }

    fn jobs(&self) -> u64 {
        (self.graph.options.end_id - self.graph.options.first_id).div_ceil(JOB_IDS)
    }

    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let options = &self.graph.options;
        let begin = options.first_id + job * JOB_IDS;
        let end = (begin + JOB_IDS).min(options.end_id);
        let mut source = Source::new(options.seed.wrapping_mul(1_000_003) ^ job);
        for id in begin..end {
            self.links(id, batch, &mut source)?;
        }
        for [id, number, count, latest] in std::mem::take(&mut source.counts) {
            batch.row(COUNTS, &[id, number, count, latest].map(Value::from))?;
        }
        let seconds = LOADED_AT_SECONDS;
        for id in begin..end {
            let data = source.node();
            let values = [id.into(), NODE_TYPE.into(), 1u64.into(), seconds.into(), data];
            batch.row(NODES, &values)?;
        }
        Ok(())
    }

    fn finish(&self) -> Vec<Vec<String>> {
        if self.form.keys_first(true) {
            return Vec::new();
        }
        vec![vec![format!("ALTER TABLE linktable ADD KEY {LINK_INDEX}")]]
    }
}
