//! Where global values come from.

/// Where a global value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default of the data file.
    Compiled,
    /// An option of the command line or of an option file.
    Option,
    /// The server found it itself.
    Server,
    /// SET GLOBAL.
    Statement,
}

impl Origin {
    /// As information_schema.SYSTEM_VARIABLES says it; which of the two kinds of options it was
    /// is not kept.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "COMPILE-TIME",
            Self::Option => "CONFIG",
            Self::Server => "AUTO",
            Self::Statement => "SQL",
        }
    }
}
