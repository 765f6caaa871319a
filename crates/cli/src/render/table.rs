//! Aligned tables without lines, as wide as they need to be.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

/// On which side the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
    /// Words that may be broken into lines where the terminal is narrow.
    Wrapped,
}

impl Side {
    /// Columns with these headings, all on this side.
    pub(crate) fn columns<'a>(self, headings: &[&'a str]) -> Vec<(&'a str, Side)> {
        headings.iter().map(|heading| (*heading, self)).collect()
    }
}

/// A table: its columns with their headings, and its rows. Every row is indented by two blanks; the headings
/// are underlined.
pub(crate) fn table(columns: &[(&str, Side)], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width());
    table.set_header(columns.iter().map(|(heading, _)| *heading));
    for row in rows {
        table.add_row(row);
    }
    for (column, (_, side)) in table.column_iter_mut().zip(columns) {
        column.set_cell_alignment(match side {
            Side::Right => CellAlignment::Right,
            Side::Left | Side::Wrapped => CellAlignment::Left,
        });
        column.set_padding((0, 2));
        match side {
            Side::Wrapped => column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(20))),
            Side::Left | Side::Right => column.set_constraint(ColumnConstraint::ContentWidth),
        };
    }
    let mut text = String::new();
    for (number, line) in table.lines().enumerate() {
        let line = line.trim_end();
        if number == 0 {
            let style = anstyle::Style::new().bold();
            text.push_str(&format!("  {style}{line}{style:#}\n"));
        } else {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// How wide text may be, in characters: the terminal's width, within reason.
fn width() -> u16 {
    let terminal = terminal_size::terminal_size().map_or(120, |(width, _)| width.0);
    terminal.clamp(80, 160).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_words_left() {
        let rows = vec![vec!["not_web".into(), "3,706".into()], vec!["hairpin".into(), "1".into()]];
        let text = table(&[("reason", Side::Left), ("packets", Side::Right)], rows);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain, "  reason   packets\n  not_web    3,706\n  hairpin        1\n");
    }
}
