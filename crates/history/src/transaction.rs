//! What clients did and saw.

/// One operation of a transaction: a read that was answered, a write that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Appended an element to a list. No two appends to a list have the same element.
    Append {
        /// The list.
        key: u64,
        /// What was appended.
        element: u64,
    },
    /// Read a list; one that was never appended to is empty.
    List {
        /// The list.
        key: u64,
        /// All of it.
        elements: Vec<u64>,
    },
    /// Gave a register a value and the version number after the one it read. No two writes of a
    /// register have the same value.
    Write {
        /// The register.
        key: u64,
        /// The new value.
        value: u64,
    },
    /// Read a register.
    Register {
        /// The register.
        key: u64,
        /// Number of writes until then; 0 when it was never written.
        version: u64,
        /// The value; of no meaning in version 0.
        value: u64,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// COMMIT was answered with success.
    Committed,
    /// ROLLBACK or an error that rolls back was answered, or COMMIT was never sent.
    Aborted,
    /// COMMIT was sent and not answered.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Which client.
    pub client: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Before its first statement was sent, in nanoseconds of a clock that all clients share.
    pub begin_nanos: u64,
    /// After the last answer, on the same clock.
    pub end_nanos: u64,
    /// In order.
    pub operations: Vec<Operation>,
}

/// Transactions of all clients, in any order. A transaction's number is its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All of them.
    pub transactions: Vec<Transaction>,
}

impl History {
    /// Those known to be committed, with their numbers.
    pub(crate) fn committed(&self) -> impl Iterator<Item = (u32, &Transaction)> {
        self.numbered().filter(|(_, it)| it.outcome == Outcome::Committed)
    }

    /// All with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &Transaction)> {
        self.transactions.iter().enumerate().map(|(number, it)| (number as u32, it))
    }

    pub(crate) fn get(&self, number: u32) -> &Transaction {
        &self.transactions[number as usize]
    }
}
