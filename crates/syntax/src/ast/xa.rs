//! XA: transactions in two phases.

/// Name of a transaction branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid {
    /// Identifies the format of the parts; 1 if not given.
    pub format: u32,
    /// Global transaction id, at most 64 bytes.
    pub global: Vec<u8>,
    /// Branch qualifier, at most 64 bytes.
    pub branch: Vec<u8>,
}

/// XA ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Xa {
    /// START, BEGIN.
    Start(Xid, XaStart),
    /// END; true for SUSPEND.
    End(Xid, bool),
    /// PREPARE.
    Prepare(Xid),
    /// COMMIT; true for ONE PHASE.
    Commit(Xid, bool),
    /// ROLLBACK.
    Rollback(Xid),
    /// RECOVER with the name of a format.
    Recover(Option<String>),
}

/// What XA START is to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaStart {
    /// A new branch.
    New,
    /// JOIN.
    Join,
    /// RESUME.
    Resume,
}

impl Xa {
    /// First words in capitals.
    pub fn feature(&self) -> &'static str {
        match self {
            Self::Start(..) => "XA START",
            Self::End(..) => "XA END",
            Self::Prepare(_) => "XA PREPARE",
            Self::Commit(..) => "XA COMMIT",
            Self::Rollback(_) => "XA ROLLBACK",
            Self::Recover(_) => "XA RECOVER",
        }
    }
}
