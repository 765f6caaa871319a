//! Bars with ranges, and curves, as SVG, in the colour of the text around them, so that they can be read on light and on dark.

use crate::experiment::Row;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// What stands for the colour of text and lines until the SVG is finished.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_WRITTEN: &str = "#010203";
const OURS: RGBColor = RGBColor(47, 129, 214);
const OTHER: RGBColor = RGBColor(217, 132, 38);
const PAPER: RGBColor = RGBColor(214, 73, 90);
/// The colours of curves, in turn.
const COLOURS: [RGBColor; 6] =
    [OURS, OTHER, PAPER, RGBColor(58, 158, 99), RGBColor(148, 97, 201), RGBColor(125, 133, 140)];

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

/// Points that belong together, all above 0.
pub(crate) struct Curve {
    /// What it is called.
    pub(crate) name: String,
    /// From left to right.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether it is dashed, with hollow points, in the colour of the curve before it that has its name.
    pub(crate) dashed: bool,
}

impl Curve {
    /// One that is drawn through.
    pub(crate) fn new(name: &str, points: Vec<(f64, f64)>) -> Curve {
        Curve { name: name.to_owned(), points, dashed: false }
    }
}

/// Some curves on logarithmic axes, their names above them in their colours, each once.
pub(crate) fn curves(curves: &[Curve], below: &str, beside: &str) -> Result<String, Failed> {
    const HEIGHT: i32 = 340;
    const FRAME: [i32; 4] = [90, 40, WIDTH as i32 - 30, HEIGHT - 60];
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let (Some(across), Some(up)) =
        (Decades::of(points().map(|point| point.0)), Decades::of(points().map(|point| point.1)))
    else {
        return Err("there is nothing to draw".into());
    };
    let [left, top, right, bottom] = FRAME;
    let place = |(x, y): (f64, f64)| {
        let along = |share: f64, from: i32, to: i32| from + (share * f64::from(to - from)) as i32;
        (along(across.share(x), left, right), along(up.share(y), bottom, top))
    };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT as u32)).into_drawing_area();
        let words = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&INK);
        let (centre, end) = (Pos::new(HPos::Center, VPos::Top), Pos::new(HPos::Right, VPos::Center));
        for tick in across.ticks() {
            let x = place((tick, 1.0)).0;
            area.draw(&PathElement::new(vec![(x, top), (x, bottom)], INK.mix(0.2)))?;
            area.draw(&Text::new(short(tick), (x, bottom + 8), words(12).pos(centre)))?;
        }
        for tick in up.ticks() {
            let y = place((1.0, tick)).1;
            area.draw(&PathElement::new(vec![(left, y), (right, y)], INK.mix(0.2)))?;
            area.draw(&Text::new(short(tick), (left - 8, y), words(12).pos(end)))?;
        }
        area.draw(&Text::new(below.to_owned(), ((left + right) / 2, bottom + 30), words(13).pos(centre)))?;
        area.draw(&Text::new(beside.to_owned(), (8, 8), words(13)))?;
        let mut named: Vec<&str> = Vec::new();
        let names = curves.iter().filter(|curve| !curve.dashed).count().max(1) as i32;
        let apart = 160.min((right - left - 160) / names);
        for curve in curves {
            let known = named.iter().position(|name| *name == curve.name);
            let number = known.unwrap_or(named.len());
            let colour = COLOURS[number % COLOURS.len()];
            let drawn: Vec<_> = curve.points.iter().map(|point| place(*point)).collect();
            let filled = if curve.dashed { colour.stroke_width(1) } else { colour.filled() };
            for (x, y) in &drawn {
                area.draw(&Circle::new((*x, *y), 4, filled))?;
            }
            if curve.dashed {
                area.draw(&DashedPathElement::new(drawn, 6, 5, colour.stroke_width(1)))?;
            } else {
                area.draw(&PathElement::new(drawn, colour.stroke_width(2)))?;
            }
            if known.is_none() {
                named.push(&curve.name);
                let name = words(13).color(&colour);
                area.draw(&Text::new(curve.name.clone(), (left + 160 + apart * number as i32, 8), name))?;
            }
        }
        area.present()?;
    }
    Ok(finished(&svg))
}

/// A logarithmic axis.
struct Decades {
    lowest: f64,
    highest: f64,
}

impl Decades {
    /// One with room for all values; none if there are none above 0.
    fn of(values: impl Iterator<Item = f64>) -> Option<Decades> {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        (high > 0.0).then(|| Decades { lowest: low / 1.2, highest: high * 1.2 })
    }

    fn share(&self, value: f64) -> f64 {
        ((value / self.lowest).ln() / (self.highest / self.lowest).ln()).clamp(0.0, 1.0)
    }

    /// Powers of ten, and twice and five times those if there are few.
    fn ticks(&self) -> Vec<f64> {
        let powers = self.lowest.log10().floor() as i32..=self.highest.log10().ceil() as i32;
        let few = powers.clone().count() < 6;
        let factors: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        ticks.filter(|tick| (self.lowest..=self.highest).contains(tick)).collect()
    }
}

/// A number without the digits that rounding leaves behind.
fn short(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
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
    fn curves_are_drawn_on_logarithmic_axes() {
        let curve =
            |name: &str, factor: f64| Curve::new(name, [1.0, 10.0, 100.0].map(|x| (x, x * factor)).into());
        let svg = curves(&[curve("one", 1.0), curve("other", 10.0)], "packets", "Mpps").expect("curves");
        assert!(svg.contains("currentColor") && svg.contains("other") && svg.contains("packets"), "{svg}");
        assert_eq!((svg.matches("<polyline").count() >= 2, svg.matches("<circle").count()), (true, 6));
        let axis = Decades { lowest: 1.0, highest: 100.0 };
        assert!((axis.share(10.0) - 0.5).abs() < 1e-9 && axis.ticks().contains(&20.0));
        assert!(curves(&[], "", "").is_err());
    }

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
