//! Lists of pf, read element by element.

use crate::ImportError;
use crate::policies::words::Statement;

/// Each element of a list in braces, or of a single one. Commas may be left out, and lists may hold lists.
pub(super) fn each<'a>(
    statement: &mut Statement<'_, 'a>,
    mut read: impl FnMut(&mut Statement<'_, 'a>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut open = 0usize;
    loop {
        if open > 0 {
            statement.takes_mark(",");
        }
        if statement.takes_mark("{") {
            open += 1;
        } else if open > 0 && statement.takes_mark("}") {
            open -= 1;
        } else if open > 0 && statement.is_done() {
            return statement.mark("}");
        } else {
            read(statement)?;
        }
        if open == 0 {
            return Ok(());
        }
    }
}
