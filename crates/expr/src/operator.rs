//! Operators as expressions name them.

/// What IS tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// NULL, UNKNOWN.
    Null,
    /// TRUE.
    True,
    /// FALSE.
    False,
}

/// Comparison operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareOperator {
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl CompareOperator {
    /// As written in messages.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NullSafeEqual => "<=>",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// The operator with its sides exchanged.
    pub fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// The operator that is true where this one is false (never for `<=>`).
    pub fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::NullSafeEqual => return None,
        })
    }

    /// Whether an order satisfies it.
    #[inline]
    pub fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal | Self::NullSafeEqual => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Arithmetic operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `DIV`
    IntegerDivide,
    /// `%`
    Modulo,
}

impl ArithmeticOperator {
    /// As written in messages.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::IntegerDivide => "DIV",
            Self::Modulo => "%",
        }
    }
}

/// Bit operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitOperator {
    /// `|`
    Or,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}
