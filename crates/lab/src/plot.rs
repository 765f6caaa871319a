//! Bars with ranges as SVG, in the colour of the text around them, so that they can be read on light and on dark.

use crate::experiment::Row;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// What stands for the colour of text and lines until the SVG is finished.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_WRITTEN: &str = "#010203";
const OURS: RGBColor = RGBColor(47, 129, 214);
const OTHER: RGBColor = RGBColor(217, 132, 38);
const PAPER: RGBColor = RGBColor(214, 73, 90);

const WIDTH: u32 = 1000;
const LABELS: i32 = 430;
const BAR: i32 = 9;
const LINE: i32 = 30;
const BOTTOM: i32 = 34;

type Failed = Box<dyn std::error::Error>;

/// One plot of rows that share a unit: a bar for ours, one for what it is held against, a diamond for the publication's figure.
pub(crate) fn plot(rows: &[&Row], label: impl Fn(&Row) -> String) -> Result<String, Failed> {
    let shown: Vec<&&Row> = rows.iter().filter(|row| row.ours.is_some()).collect();
    let highest = shown.iter().flat_map(|row| highs(row)).fold(0.0, f64::max);
    let lowest = shown.iter().filter_map(|row| row.ours).map(|ours| ours.low).fold(0.0, f64::min);
    let scale = Scale { lowest, highest: if highest > lowest { highest } else { lowest + 1.0 } };
    let height = shown.len() as i32 * LINE + BOTTOM;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        axis(&area, &scale, height)?;
        for (number, row) in (0..).zip(&shown) {
            let top = number * LINE + 4;
            let words = TextStyle::from(("sans-serif", 13).into_font()).color(&INK);
            let right = words.clone().pos(Pos::new(HPos::Right, VPos::Center));
            area.draw(&Text::new(label(row), (LABELS - 8, top + BAR), right))?;
            if let Some(ours) = row.ours {
                bar(&area, &scale, top, OURS, [ours.low, ours.median, ours.high])?;
            }
            if let Some(other) = &row.other {
                bar(&area, &scale, top + BAR + 2, OTHER, [other.low, other.median, other.high])?;
            }
            if let Some(paper) = row.paper {
                let (x, y) = (scale.x(paper), top + BAR);
                let diamond = vec![(x - 5, y), (x, y - 5), (x + 5, y), (x, y + 5)];
                area.draw(&Polygon::new(diamond, PAPER.filled()))?;
            }
        }
        area.present()?;
    }
    Ok(finished(&svg))
}

/// From figures to places from left to right.
struct Scale {
    lowest: f64,
    highest: f64,
}

impl Scale {
    fn x(&self, value: f64) -> i32 {
        let room = f64::from(WIDTH as i32 - LABELS - 24);
        LABELS + ((value - self.lowest) / (self.highest - self.lowest) * room) as i32
    }

    /// About five round numbers.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.highest - self.lowest) / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.lowest / step).ceil() as i64;
        (first..)
            .map(|number| number as f64 * step)
            .take_while(|tick| *tick <= self.highest)
            .take(20)
            .collect()
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn axis(area: &Area<'_>, scale: &Scale, height: i32) -> Result<(), Failed> {
    let words =
        TextStyle::from(("sans-serif", 12).into_font()).color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
    for tick in scale.ticks() {
        let x = scale.x(tick);
        area.draw(&PathElement::new(vec![(x, 0), (x, height - BOTTOM + 6)], INK.mix(0.2)))?;
        area.draw(&Text::new(
            format!("{}", (tick * 1e6).round() / 1e6),
            (x, height - BOTTOM + 10),
            words.clone(),
        ))?;
    }
    Ok(())
}

fn bar(area: &Area<'_>, scale: &Scale, top: i32, colour: RGBColor, range: [f64; 3]) -> Result<(), Failed> {
    let [low, median, high] = range.map(|value| scale.x(value));
    let zero = scale.x(0.0_f64.max(scale.lowest));
    area.draw(&Rectangle::new([(zero.min(median), top), (zero.max(median), top + BAR)], colour.filled()))?;
    let middle = top + BAR / 2;
    area.draw(&PathElement::new(vec![(low, middle), (high, middle)], INK))?;
    for end in [low, high] {
        area.draw(&PathElement::new(vec![(end, middle - 3), (end, middle + 3)], INK))?;
    }
    Ok(())
}

fn highs(row: &Row) -> impl Iterator<Item = f64> {
    let ours = row.ours.map(|ours| ours.high);
    let other = row.other.as_ref().map(|other| other.high);
    [ours, other, row.paper].into_iter().flatten()
}

/// The SVG with the colour of its surroundings, as wide as there is room.
fn finished(svg: &str) -> String {
    let fixed = format!("width=\"{WIDTH}\" height=\"");
    let mut svg = svg.replace(INK_WRITTEN, "currentColor");
    if let Some(start) = svg.find(&fixed) {
        let end = svg[start + fixed.len()..].find('"').map(|end| start + fixed.len() + end + 1);
        if let Some(end) = end {
            svg.replace_range(start..end, "width=\"100%\" role=\"img\"");
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Better, Figure, Other};

    #[test]
    fn a_plot_takes_the_colour_of_its_surroundings_and_names_its_rows() {
        let figure = Figure { median: 60.0, low: 55.0, high: 62.0 };
        let row = Row::alone("sample1, replay, firewall", "packet rate", "Mpps", Some(figure), Some(1.64))
            .against(Some(Other::of("twin", figure)), Better::More);
        let svg = plot(&[&row], |row| row.case.clone()).expect("a plot");
        assert!(svg.starts_with("<svg") && svg.contains("viewBox"), "{svg}");
        assert!(svg.contains("currentColor") && !svg.contains(INK_WRITTEN));
        assert!(svg.contains("sample1, replay, firewall"));
        assert_eq!(svg.matches("<polygon").count(), 1, "the publication's figure is one diamond");
    }
}
