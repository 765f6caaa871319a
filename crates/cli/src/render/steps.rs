//! Renders the steps of a packet through a program, one on each line, with its place in the text.

/// Steps as places and words.
pub(crate) fn steps<'a>(steps: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let width = steps.clone().map(|(place, _)| place.chars().count()).max().unwrap_or(0);
    let (mut text, mut last) = (String::new(), "");
    for (place, words) in steps {
        // A line of the program that does several things is named once.
        let shown = if place == last { "" } else { place };
        let row = format!("  {shown:width$}  {words}");
        text.push_str(row.trim_end());
        text.push('\n');
        last = place;
    }
    text
}
