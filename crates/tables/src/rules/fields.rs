//! The fields of a rule, the specification of a table of rules, and the errors when a table or rule is
//! refused.

/// The widest column, in bits.
pub const MAX_WIDTH: u8 = 128;
/// The most rules that a table may be declared for.
pub const MAX_CAPACITY: usize = 1 << 24;
/// The most columns of a key.
pub const MAX_COLUMNS: usize = 256;

/// What a rule asks of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleField {
    /// Nothing.
    Any,
    /// This value.
    Exact(u128),
    /// The upper `length` bits are those of `value`; the others of `value` are ignored.
    Prefix {
        /// Where the bits are taken from, as a number of the column's width.
        value: u128,
        /// How many bits, at most the column's width.
        length: u8,
    },
    /// The bits that are set in `mask` are those of `value`; the others of `value` are ignored.
    Ternary {
        /// Where the bits are taken from.
        value: u128,
        /// Which bits count.
        mask: u128,
    },
    /// At least `low` and at most `high`.
    Range {
        /// The smallest value that fits.
        low: u128,
        /// The largest value that fits.
        high: u128,
    },
}

impl RuleField {
    /// Whether `value`, a number of `width` bits, fits.
    pub fn fits(&self, width: u8, value: u128) -> bool {
        match *self {
            RuleField::Any => true,
            RuleField::Exact(wanted) => value == wanted,
            RuleField::Prefix { value: wanted, length } => (value ^ wanted) & prefix_mask(width, length) == 0,
            RuleField::Ternary { value: wanted, mask } => (value ^ wanted) & mask == 0,
            RuleField::Range { low, high } => low <= value && value <= high,
        }
    }

    /// The smallest and the largest value that fit.
    pub(crate) fn bounds(&self, width: u8) -> (u128, u128) {
        match *self {
            RuleField::Any => (0, ones(width)),
            RuleField::Exact(value) => (value, value),
            RuleField::Prefix { value, length } => {
                let mask = prefix_mask(width, length);
                (value & mask, (value & mask) | (ones(width) & !mask))
            }
            RuleField::Ternary { value, mask } => (value & mask, (value & mask) | (ones(width) & !mask)),
            RuleField::Range { low, high } => (low, high),
        }
    }

    fn check(&self, width: u8) -> Result<(), Cause> {
        let most = ones(width);
        match *self {
            RuleField::Any => Ok(()),
            RuleField::Exact(value) if value > most => Err(Cause::Wide(value)),
            RuleField::Prefix { length, .. } if length > width => Err(Cause::Length(length)),
            RuleField::Prefix { value, .. } if value > most => Err(Cause::Wide(value)),
            RuleField::Ternary { value, mask } if value | mask > most => Err(Cause::Wide(value | mask)),
            RuleField::Range { low, high } if low > high => Err(Cause::Empty),
            RuleField::Range { high, .. } if high > most => Err(Cause::Wide(high)),
            _ => Ok(()),
        }
    }
}

enum Cause {
    Wide(u128),
    Length(u8),
    Empty,
}

/// One rule: a field for each column of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What is asked of each column, in the order of the columns.
    pub fields: Vec<RuleField>,
}

impl Rule {
    /// Whether a key, given as one number a column, fits.
    pub fn fits(&self, widths: &[u8], columns: &[u128]) -> bool {
        self.fields.iter().zip(widths).zip(columns).all(|((field, &width), &value)| field.fits(width, value))
    }
}

/// The columns of a key and the room for rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesSpec {
    /// The width of each column in bits, 1 to 128.
    pub widths: Vec<u8>,
    /// The most rules held at once.
    pub capacity: usize,
}

impl RulesSpec {
    /// The words of a key: one for a column of up to 64 bits, two for a wider one.
    pub fn key_words(&self) -> usize {
        self.widths.iter().map(|&width| if width > 64 { 2 } else { 1 }).sum()
    }

    /// Refuses columns and capacities that cannot be.
    pub fn check(&self) -> Result<(), RulesBuildError> {
        if self.widths.is_empty() || self.widths.len() > MAX_COLUMNS {
            return Err(RulesBuildError::Columns { columns: self.widths.len() });
        }
        if let Some(column) = self.widths.iter().position(|&width| width == 0 || width > MAX_WIDTH) {
            return Err(RulesBuildError::Width { column, width: self.widths[column] });
        }
        if self.capacity > MAX_CAPACITY {
            return Err(RulesBuildError::Capacity { capacity: self.capacity });
        }
        Ok(())
    }

    /// Refuses a rule that does not suit the columns.
    pub fn check_rule(&self, rule: &Rule) -> Result<(), RulesInsertError> {
        if rule.fields.len() != self.widths.len() {
            return Err(RulesInsertError::Fields { fields: rule.fields.len(), columns: self.widths.len() });
        }
        for (column, (field, &width)) in rule.fields.iter().zip(&self.widths).enumerate() {
            field.check(width).map_err(|cause| match cause {
                Cause::Wide(value) => RulesInsertError::Wide { column, width, value },
                Cause::Length(length) => RulesInsertError::Length { column, width, length },
                Cause::Empty => RulesInsertError::EmptyRange { column },
            })?;
        }
        Ok(())
    }

    /// The numbers of a key's columns, without the bits above their widths.
    ///
    /// # Panics
    /// If `key` has not [`RulesSpec::key_words`] words.
    pub fn columns(&self, key: &[u64]) -> Vec<u128> {
        assert_eq!(
            key.len(),
            self.key_words(),
            "a key has one word a column, two for a column of more than 64 bits"
        );
        let mut words = key.iter().map(|&word| u128::from(word));
        let mut word = || words.next().unwrap_or(0);
        let column = |&width: &u8| if width > 64 { word() << 64 | word() } else { word() } & ones(width);
        self.widths.iter().map(column).collect()
    }

    /// The key whose columns have these numbers.
    pub fn key(&self, columns: &[u128]) -> Vec<u64> {
        let mut key = Vec::with_capacity(self.key_words());
        for (&width, &value) in self.widths.iter().zip(columns) {
            if width > 64 {
                key.push((value >> 64) as u64);
            }
            key.push(value as u64);
        }
        key
    }
}

/// Why a rule cannot be put into a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesInsertError {
    /// Too few or too many fields.
    #[error("a rule of {fields} fields for {columns} columns: give one field a column")]
    Fields {
        /// Fields given.
        fields: usize,
        /// Columns of the table.
        columns: usize,
    },
    /// A number does not fit into its column.
    #[error("column {column}: {value:#x} has more than the column's {width} bits")]
    Wide {
        /// Which column, from 0.
        column: usize,
        /// Its width, bits.
        width: u8,
        /// The number.
        value: u128,
    },
    /// A prefix is longer than its column.
    #[error("column {column}: a prefix of {length} bits in a column of {width}")]
    Length {
        /// Which column, from 0.
        column: usize,
        /// Its width, bits.
        width: u8,
        /// The prefix length, bits.
        length: u8,
    },
    /// A range ends before it begins.
    #[error("column {column}: the range ends before it begins: swap its bounds")]
    EmptyRange {
        /// Which column, from 0.
        column: usize,
    },
    /// The order is in use.
    #[error("order {order} is taken by another rule: remove that one first or choose another order")]
    Taken {
        /// The order asked for.
        order: u64,
    },
    /// The table is full.
    #[error("the table holds its {capacity} rules: declare a larger capacity")]
    Full {
        /// The declared capacity.
        capacity: usize,
    },
    /// The rule overlaps so many others that putting it in alone would hold packets up.
    #[error(
        "the rule overlaps so many others that putting it in alone takes {most} steps or more: replace all rules at once"
    )]
    Spread {
        /// The most steps of one change.
        most: usize,
    },
    /// Rules that were removed still have the numbers that there are besides those of the capacity.
    #[error("as many removed rules wait to be taken out of the search as may wait: try again in a moment")]
    Removing,
    /// The table would become too large.
    #[error(
        "with this rule the table has {bytes} bytes, more than the {limit} allowed: raise the limit or rebuild it"
    )]
    Memory {
        /// Its size, bytes.
        bytes: usize,
        /// The limit, bytes.
        limit: usize,
    },
}

/// Why a table cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesBuildError {
    /// No columns or too many.
    #[error("a key of {columns} columns; it has 1 to {MAX_COLUMNS}")]
    Columns {
        /// Columns asked for.
        columns: usize,
    },
    /// A column without bits or with too many.
    #[error("column {column} has {width} bits; a column has 1 to {MAX_WIDTH}")]
    Width {
        /// Which column, from 0.
        column: usize,
        /// Its width, bits.
        width: u8,
    },
    /// Too large a capacity.
    #[error("a capacity of {capacity} rules; the largest is {MAX_CAPACITY}: declare a smaller one")]
    Capacity {
        /// Rules asked for.
        capacity: usize,
    },
    /// A rule cannot be put in.
    #[error("rule {rule} (from 0): {error}")]
    Rule {
        /// Which of the rules given, from 0.
        rule: usize,
        /// Why not.
        error: RulesInsertError,
    },
    /// The table would be too large.
    #[error(
        "{rules} rules need {bytes} bytes, more than the {limit} allowed: raise the limit or split the rules"
    )]
    Memory {
        /// Rules given.
        rules: usize,
        /// What they need, bytes.
        bytes: usize,
        /// The limit, bytes.
        limit: usize,
    },
}

/// A number of `width` set bits.
pub(crate) fn ones(width: u8) -> u128 {
    if width >= MAX_WIDTH { u128::MAX } else { (1 << width) - 1 }
}

/// The upper `length` of `width` bits set.
pub(super) fn prefix_mask(width: u8, length: u8) -> u128 {
    ones(width) & !ones(width.saturating_sub(length))
}
