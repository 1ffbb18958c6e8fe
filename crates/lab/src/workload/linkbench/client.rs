//! A requester: two connections, one for what changes the graph, one for reads.

use super::graph::Graph;
use super::requests::Kind;
use super::statements::{LINK_BYTES_MAX, MULTIGET_MAX, NODE_BYTES_MAX, Statement, multiget};
use super::{Compatibility, LIST_ROWS_MAX, NODE_TYPE, SESSION};
use crate::client::{Failure, Value};
use crate::distribution::payload::{LINK, NODE, Payload};
use crate::distribution::size::{Geometric, LogNormal};
use crate::driver::session::Session;
use crate::workload::{self, Which};
use base::Random;
use std::sync::Arc;

/// Lists that were cut at their limit and may be asked for on from there.
const HISTORIES_MAX: usize = 2048;
/// The share of lists that go on where another was cut.
const HISTORY_SHARE: f64 = 0.003;
const TIME_MAX: u64 = i64::MAX as u64;
const WRITE: usize = 0;
const READ: usize = 1;

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    AddLink { id1: u64, id2: u64, link_type: u64 },
    DeleteLink { id1: u64, id2: u64, link_type: u64 },
    CountLink { id1: u64, link_type: u64 },
    MultigetLink { id1: u64, link_type: u64, id2s: Vec<u64> },
    LinkList { id1: u64, link_type: u64, history: Option<u64> },
    AddNode,
    UpdateNode { id: u64 },
    DeleteNode { id: u64 },
    GetNode { id: u64 },
}

/// A list that was cut.
struct History {
    id1: u64,
    link_type: u64,
    /// Of its last link.
    time: u64,
}

/// See the module.
pub(super) struct Client {
    graph: Arc<Graph>,
    random: Random,
    request: Request,
    payload: Vec<u8>,
    link_payload: Payload,
    node_payload: Payload,
    link_bytes: LogNormal,
    node_bytes: LogNormal,
    several: Geometric,
    histories: Vec<History>,
}

impl Client {
    pub(super) fn new(graph: Arc<Graph>, which: Which) -> Self {
        let mut random = which.random(graph.options.seed);
        let added = u64::from(graph.options.compatibility == Compatibility::Quirks);
        Self {
            link_payload: Payload::new(LINK, &mut random),
            node_payload: Payload::new(NODE, &mut random),
            random,
            request: Request::AddNode,
            payload: Vec::new(),
            link_bytes: LogNormal::new(8.0, LINK_BYTES_MAX),
            node_bytes: LogNormal::new(128.0, NODE_BYTES_MAX),
            several: Geometric { success: 0.382, max: MULTIGET_MAX as u64 + 1, added },
            histories: Vec::new(),
            graph,
        }
    }

    fn link_type(&mut self) -> u64 {
        self.random.below(self.graph.options.link_types)
    }

    /// An id whose links are changed, another end that is there with this probability, a type.
    fn changed_link(&mut self, exists: f64) -> (u64, u64, u64) {
        let id1 = self.graph.link_write(&mut self.random);
        let link_type = self.link_type();
        let id2 = self.graph.other_end(id1, link_type, exists, &mut self.random);
        (id1, id2, link_type)
    }

    fn draw_link_payload(&mut self) {
        let bytes = self.link_bytes.draw(&mut self.random);
        self.link_payload.append(&mut self.payload, bytes, &mut self.random);
    }

    fn draw_node_payload(&mut self) {
        let bytes = self.node_bytes.draw(&mut self.random);
        self.node_payload.append(&mut self.payload, bytes, &mut self.random);
    }

    fn draw(&mut self, kind: Kind) -> Request {
        match kind {
            Kind::AddLink | Kind::UpdateLink => {
                let exists = if kind == Kind::AddLink { 0.05 } else { 0.9 };
                let (id1, id2, link_type) = self.changed_link(exists);
                self.draw_link_payload();
                Request::AddLink { id1, id2, link_type }
            }
            Kind::DeleteLink => {
                let (id1, id2, link_type) = self.changed_link(0.9);
                Request::DeleteLink { id1, id2, link_type }
            }
            Kind::CountLink => {
                let id1 = self.graph.link_read(&mut self.random);
                Request::CountLink { id1, link_type: self.link_type() }
            }
            Kind::MultigetLink => self.draw_multiget(),
            Kind::GetLinkList => {
                let is_history = self.random.chance(HISTORY_SHARE);
                let number = self.random.next_u64();
                let id1 = self.graph.link_read(&mut self.random);
                let history = is_history.then_some(number);
                Request::LinkList { id1, link_type: self.link_type(), history }
            }
            Kind::AddNode => {
                self.draw_node_payload();
                Request::AddNode
            }
            Kind::UpdateNode => {
                self.draw_node_payload();
                Request::UpdateNode { id: self.graph.node_update(&mut self.random) }
            }
            Kind::DeleteNode => {
                Request::DeleteNode { id: self.graph.node_delete(&mut self.random) }
            }
            Kind::GetNode => Request::GetNode { id: self.graph.node_read(&mut self.random) },
        }
    }

    fn draw_multiget(&mut self) -> Request {
        let id1 = self.graph.link_read(&mut self.random);
        let link_type = self.link_type();
        let wanted = self.several.draw(&mut self.random);
        let among = self.graph.other_ends(id1, link_type, 0.5);
        let mut id2s: Vec<u64> = Vec::new();
        if among <= wanted {
            id2s.extend((0..among).map(|offset| id1 + offset));
        } else {
            for _ in 0..wanted {
                let new = (0..100)
                    .map(|_| id1 + self.random.below(among))
                    .find(|id2| !id2s.contains(id2));
                id2s.extend(new);
            }
        }
        Request::MultigetLink { id1, link_type, id2s }
    }

    fn add_link(&self, session: &mut Session, link: [u64; 3]) -> Result<(), Failure> {
        let [id1, id2, link_type] = link.map(Value::from);
        let (data, now) = (Value::Bytes(&self.payload), Value::from(now_millis()));
        let values = [id1, id2, link_type, data, now];
        let affected = session.run(Statement::AddLink as usize, &values)?.affected_rows;
        if affected >= 1 {
            let values = [id1, link_type, Value::Integer(1), now];
            session.run(Statement::CountUp as usize, &values)?;
        }
        if affected != 1 {
            let values = [data, now, id1, id2, link_type];
            session.run(Statement::UpdateLink as usize, &values)?;
        }
        session.command("COMMIT").map(drop)
    }

    fn delete_link(&self, session: &mut Session, link: [u64; 3]) -> Result<(), Failure> {
        let link = link.map(Value::from);
        let mut visibility = None;
        session.execute(Statement::LockLink as usize, &link, |row| {
            visibility = row.integer(0);
            Ok(())
        })?;
        if visibility == Some(1) {
            session.run(Statement::HideLink as usize, &link)?;
            let [id1, _, link_type] = link;
            let values = [id1, link_type, Value::Integer(0), Value::from(now_millis())];
            session.run(Statement::CountDown as usize, &values)?;
        }
        session.command("COMMIT").map(drop)
    }

    fn link_list(
        &mut self,
        session: &mut Session,
        (mut id1, mut link_type): (u64, u64),
        history: Option<u64>,
    ) -> Result<(), Failure> {
        let count = self.histories.len() as u64;
        let number = history.filter(|_| count > 0).map(|number| (number % count) as usize);
        let (mut statement, mut until) = (Statement::LinkList, TIME_MAX);
        if let Some(number) = number {
            let from = &self.histories[number];
            (id1, link_type, until) = (from.id1, from.link_type, from.time);
            statement = Statement::LinkHistory;
        }
        let values = [id1, Graph::type_number(link_type), until].map(Value::from);
        let mut last = 0;
        let done = session.execute(statement as usize, &values, |row| {
            last = row.integer(5).unwrap_or(0) as u64;
            Ok(())
        })?;
        let cut = done.rows == LIST_ROWS_MAX;
        self.remember(number, cut.then_some(History { id1, link_type, time: last }));
        Ok(())
    }

    /// Keeps a list that was cut in the place of the one it goes on, or forgets that one.
    fn remember(&mut self, number: Option<usize>, cut: Option<History>) {
        match (number, cut) {
            (Some(number), Some(cut)) => self.histories[number] = cut,
            (Some(number), None) => drop(self.histories.swap_remove(number)),
            (None, Some(cut)) if self.histories.len() == HISTORIES_MAX => {
                // Which one makes room is no part of what is asked next.
                let number = (cut.id1 % HISTORIES_MAX as u64) as usize;
                self.histories[number] = cut;
            }
            (None, Some(cut)) => self.histories.push(cut),
            (None, None) => {}
        }
    }

    fn node(&self, session: &mut Session, request: &Request) -> Result<(), Failure> {
        let seconds = Value::from(now_millis() / 1000);
        let (data, kind) = (Value::Bytes(&self.payload), Value::from(NODE_TYPE));
        let (statement, values) = match *request {
            Request::UpdateNode { id } => {
                (Statement::UpdateNode, [seconds, data, id.into(), kind].to_vec())
            }
            Request::DeleteNode { id } => (Statement::DeleteNode, [id.into(), kind].to_vec()),
            _ => (Statement::AddNode, [kind, seconds, data].to_vec()),
        };
        session.run(statement as usize, &values)?;
        session.command("COMMIT").map(drop)
    }
}

/// Milliseconds since 1970.
fn now_millis() -> u64 {
    (runtime::wall_clock_micros() / 1000) as u64
}

impl workload::Client for Client {
    fn decided(&self) -> String {
        format!("{:?} {}", self.request, self.payload.len())
    }

    fn next(&mut self) -> usize {
        self.payload.clear();
        let kind = Kind::draw(self.graph.options.mix, &mut self.random);
        self.request = self.draw(kind);
        kind as usize
    }

    fn connected(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        for session in &mut *sessions {
            session.command(SESSION)?;
        }
        sessions[WRITE].command("SET autocommit=0").map(drop)
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let number = Graph::type_number;
        match self.request.clone() {
            Request::AddLink { id1, id2, link_type } => {
                self.add_link(&mut sessions[WRITE], [id1, id2, number(link_type)])
            }
            Request::DeleteLink { id1, id2, link_type } => {
                self.delete_link(&mut sessions[WRITE], [id1, id2, number(link_type)])
            }
            Request::CountLink { id1, link_type } => {
                let values = [id1, number(link_type)].map(Value::from);
                sessions[READ].run(Statement::CountLink as usize, &values).map(drop)
            }
            Request::MultigetLink { id1, link_type, id2s } => {
                let mut values = vec![Value::from(id1), Value::from(number(link_type))];
                values.extend(id2s.iter().map(|id2| Value::from(*id2)));
                sessions[READ].run(multiget(id2s.len()), &values).map(drop)
            }
            Request::LinkList { id1, link_type, history } => {
                self.link_list(&mut sessions[READ], (id1, link_type), history)
            }
            Request::GetNode { id } => {
                sessions[READ].run(Statement::GetNode as usize, &[id.into()]).map(drop)
            }
            request => self.node(&mut sessions[WRITE], &request),
        }
    }
}
