//! Registers: an array of words of 1 to 64 bits that a program reads and writes.
//!
//! ```text
//! cell i, 8 bytes at 8 i: the value in the low `width` bits, zeros above
//! ```

/// The most cells a register array has.
pub const MAX_CELLS: u32 = 1 << 28;

/// The shape of a register array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterSpec {
    /// Cells, 1 to [`MAX_CELLS`].
    pub cells: u32,
    /// Bits of a cell, 1 to 64.
    pub width: u8,
}

/// Why a register array cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// No cells or too many.
    #[error("a register of {cells} cells; it has 1 to {MAX_CELLS}: declare another number")]
    Cells {
        /// The cells asked for.
        cells: u32,
    },
    /// No bits or too many.
    #[error("register cells of {width} bits; they have 1 to 64: declare another width")]
    Width {
        /// The bits asked for.
        width: u8,
    },
    /// The machine has no room for it.
    #[error("no memory for a register of {cells} cells ({bytes} bytes): declare fewer")]
    Memory {
        /// The cells asked for.
        cells: u32,
        /// Their bytes.
        bytes: usize,
    },
}

/// An array of cells, all 0 at first; nothing is allocated after it is made.
///
/// ```
/// use tables::register::{RegisterSpec, RegisterTable};
///
/// let mut seen = RegisterTable::new(RegisterSpec { cells: 16, width: 8 })?;
/// assert!(seen.write(3, 0x1ff));
/// assert_eq!(seen.read(3), 0xff);
/// assert_eq!(seen.add(3, 2), 1);
/// assert_eq!(seen.read(16), 0);
/// # Ok::<(), tables::register::RegisterError>(())
/// ```
pub struct RegisterTable {
    spec: RegisterSpec,
    mask: u64,
    cells: Vec<u64>,
}

impl RegisterTable {
    /// An array of zeros.
    pub fn new(spec: RegisterSpec) -> Result<RegisterTable, RegisterError> {
        if spec.cells == 0 || spec.cells > MAX_CELLS {
            return Err(RegisterError::Cells { cells: spec.cells });
        }
        if spec.width == 0 || spec.width > 64 {
            return Err(RegisterError::Width { width: spec.width });
        }
        let mut cells = Vec::new();
        let bytes = spec.cells as usize * size_of::<u64>();
        cells
            .try_reserve_exact(spec.cells as usize)
            .map_err(|_| RegisterError::Memory { cells: spec.cells, bytes })?;
        cells.resize(spec.cells as usize, 0);
        Ok(RegisterTable { spec, mask: u64::MAX >> (64 - spec.width), cells })
    }

    /// The shape it was made with.
    pub fn spec(&self) -> &RegisterSpec {
        &self.spec
    }

    /// All cells in order.
    pub fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// The value of a cell; 0 for one that does not exist.
    #[inline]
    pub fn read(&self, cell: u32) -> u64 {
        self.cells.get(cell as usize).copied().unwrap_or(0)
    }

    /// Gives a cell a value, without the bits that do not fit; false, and no effect, for a cell that does not
    /// exist.
    #[inline]
    pub fn write(&mut self, cell: u32, value: u64) -> bool {
        match self.cells.get_mut(cell as usize) {
            Some(word) => {
                *word = value & self.mask;
                true
            }
            None => false,
        }
    }

    /// Adds to a cell, wrapping at its width, and gives the sum; 0, and no effect, for a cell that does not
    /// exist.
    #[inline]
    pub fn add(&mut self, cell: u32, amount: u64) -> u64 {
        match self.cells.get_mut(cell as usize) {
            Some(word) => {
                *word = word.wrapping_add(amount) & self.mask;
                *word
            }
            None => 0,
        }
    }

    /// Gives every cell the value 0.
    pub fn clear(&mut self) {
        self.cells.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Cells as an ordered map of exact numbers, reduced modulo 2^width when read.
    struct Model {
        spec: RegisterSpec,
        cells: BTreeMap<u32, u128>,
    }

    impl Model {
        fn read(&self, cell: u32) -> u64 {
            (self.cells.get(&cell).copied().unwrap_or(0) % (1u128 << self.spec.width)) as u64
        }

        fn set(&mut self, cell: u32, value: u128) -> bool {
            let exists = cell < self.spec.cells;
            if exists {
                self.cells.insert(cell, value);
            }
            exists
        }
    }

    proptest! {
        #[test]
        fn register_and_model_agree(
            cells in 1..20u32,
            width in 1..=64u8,
            operations in prop::collection::vec((0..3u8, 0..24u32, any::<u64>()), 1..100),
        ) {
            let spec = RegisterSpec { cells, width };
            let mut register = RegisterTable::new(spec).expect("a valid spec");
            let mut model = Model { spec, cells: BTreeMap::new() };
            for (what, cell, value) in operations {
                match what {
                    0 => prop_assert_eq!(register.write(cell, value), model.set(cell, u128::from(value))),
                    1 => {
                        model.set(cell, u128::from(model.read(cell)) + u128::from(value));
                        prop_assert_eq!(register.add(cell, value), model.read(cell));
                    }
                    _ => prop_assert_eq!(register.read(cell), model.read(cell)),
                }
            }
            let all: Vec<u64> = (0..cells).map(|cell| model.read(cell)).collect();
            prop_assert_eq!(register.cells(), all);
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let made = |cells, width| RegisterTable::new(RegisterSpec { cells, width }).err();
        assert_eq!(made(0, 8), Some(RegisterError::Cells { cells: 0 }));
        assert_eq!(made(1, 65), Some(RegisterError::Width { width: 65 }));
        assert_eq!(made(1, 0), Some(RegisterError::Width { width: 0 }));
    }
}
