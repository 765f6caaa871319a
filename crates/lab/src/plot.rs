//! Bars with ranges, and curves, as SVG, in the colour of the text around them, so that they can be read on
//! light and on dark.

use crate::experiment::{Figure, Other, Row};
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

/// The width of a plot in its own units. A page shows it at 0.8 to 1.3 times that, from the screen of a
/// telephone to that of a desk.
const WIDTH: u32 = 560;
/// The bars take this part of it; their names and figures stand to the right.
const BARS: i32 = 250;
const BAR: i32 = 10;
/// From one line of text to the next.
const LINE: i32 = 16;
/// How many letters of the label of an entry fit into one line, and of the name of a bar.
const LABEL_LETTERS: usize = 76;
const NAME_LETTERS: usize = 44;
const BOTTOM: i32 = 26;
/// The room for the name of a curve; names of curves are short.
const NAME_WIDTH: usize = 180;

type Failed = Box<dyn std::error::Error>;

/// What stands together in a plot of bars: one figure of ours, what it is held against, and the publication's
/// figure.
pub(crate) struct Entry {
    /// What was measured.
    pub(crate) label: String,
    /// Ours, if there is one.
    pub(crate) ours: Option<Figure>,
    /// What was measured beside it.
    pub(crate) others: Vec<Other>,
    /// The publication's figure.
    pub(crate) paper: Option<f64>,
}

/// A bar: its colour, its text to the right, line by line, and its figure.
struct Bar {
    colour: RGBColor,
    name: Vec<String>,
    figure: Figure,
}

impl Entry {
    /// Rows of one unit as entries. Rows with the same case and the same figure of ours are one entry, and
    /// what several entries are held against is an entry of its own at the end, so that no bar stands there
    /// twice. A label is the case without the parts that all cases share: those are returned, too.
    pub(crate) fn of_rows(rows: &[&Row]) -> (Vec<Entry>, Vec<String>) {
        let parts = |row: &Row| row.case.split(", ").map(str::to_owned).collect::<Vec<_>>();
        let mut shared = rows.first().map(|row| parts(row)).unwrap_or_default();
        shared.retain(|part| rows.iter().all(|row| parts(row).contains(part)));
        let mut entries: Vec<(&str, Entry)> = Vec::new();
        for row in rows {
            let same = |(case, entry): &&mut (&str, Entry)| *case == row.case && entry.ours == row.ours;
            if let Some((_, entry)) = entries.iter_mut().find(same) {
                entry.others.extend(row.other.clone());
                entry.paper = entry.paper.or(row.paper);
                continue;
            }
            let own: Vec<String> = parts(row).into_iter().filter(|part| !shared.contains(part)).collect();
            let entry = Entry {
                label: own.join(", "),
                ours: row.ours.clone(),
                others: row.other.clone().into_iter().collect(),
                paper: row.paper,
            };
            entries.push((&row.case, entry));
        }
        let mut entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
        let shared_others = Entry::taken_out(&mut entries);
        entries.extend(shared_others);
        (entries, shared)
    }

    /// What several entries are held against, in entries of its own and no longer in theirs: an entry for
    /// each set of parts that the labels have in common.
    fn taken_out(entries: &mut [Entry]) -> Vec<Entry> {
        let mut taken: Vec<Entry> = Vec::new();
        let all: Vec<Other> = entries.iter().flat_map(|entry| entry.others.iter().cloned()).collect();
        for other in all {
            let holds = |entry: &&Entry| entry.others.contains(&other);
            let known = taken.iter().any(|entry| entry.others.contains(&other));
            if known || entries.iter().filter(holds).count() < 2 {
                continue;
            }
            let of = |entry: &Entry| entry.label.split(", ").map(str::to_owned).collect::<Vec<_>>();
            let mut common = entries.iter().find(holds).map(of).unwrap_or_default();
            common.retain(|part| entries.iter().filter(holds).all(|entry| of(entry).contains(part)));
            common.insert(0, "held against".to_owned());
            let label = common.join(", ");
            match taken.iter_mut().find(|entry| entry.label == label) {
                Some(entry) => entry.others.push(other),
                None => taken.push(Entry { label, ours: None, others: vec![other], paper: None }),
            }
        }
        let is_taken = |other: &Other| taken.iter().any(|entry| entry.others.contains(other));
        entries.iter_mut().for_each(|entry| entry.others.retain(|other| !is_taken(other)));
        taken
    }

    fn bars(&self) -> Vec<Bar> {
        let ours =
            self.ours.clone().map(|figure| Bar { colour: OURS, name: vec![readable(figure.median)], figure });
        let others = self.others.iter().map(|other| Bar {
            colour: OTHER,
            name: wrapped(&format!("{}  {}", readable(other.median), other.name), NAME_LETTERS),
            figure: Figure { median: other.median, low: other.low, high: other.high, ..Figure::default() },
        });
        ours.into_iter().chain(others).collect()
    }

    fn highest(&self) -> f64 {
        let others = self.others.iter().map(|other| other.high);
        let all = self.ours.as_ref().map(|ours| ours.high).into_iter().chain(others).chain(self.paper);
        all.fold(0.0, f64::max)
    }
}

/// Bars that share a unit, which stands at the axis: ours, what it is held against below it, and a diamond
/// for the publication's figure.
pub(crate) fn plot(entries: &[Entry], unit: &str) -> Result<String, Failed> {
    let highest = entries.iter().map(Entry::highest).fold(0.0, f64::max);
    let lowest =
        entries.iter().filter_map(|entry| entry.ours.as_ref()).map(|ours| ours.low).fold(0.0, f64::min);
    let scale = Scale { lowest, highest: if highest > lowest { highest } else { lowest + 1.0 } };
    let laid: Vec<(Vec<String>, Vec<Bar>, &Entry)> =
        entries.iter().map(|entry| (wrapped(&entry.label, LABEL_LETTERS), entry.bars(), entry)).collect();
    let lines = |label: &[String], bars: &[Bar]| {
        (label.len() + bars.iter().map(|bar| bar.name.len()).sum::<usize>()) as i32
    };
    let height =
        laid.iter().map(|(label, bars, _)| lines(label, bars) * LINE + LINE / 2).sum::<i32>() + BOTTOM;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        axis(&area, &scale, height, unit)?;
        let words = |size: i32| {
            let style = TextStyle::from(("sans-serif", size).into_font()).color(&INK);
            style.pos(Pos::new(HPos::Left, VPos::Center))
        };
        let mut top = LINE / 2;
        for (label, bars, entry) in &laid {
            for line in label {
                area.draw(&Text::new(line.clone(), (0, top), words(13)))?;
                top += LINE;
            }
            if let Some(paper) = entry.paper {
                let (x, y) = (scale.x(paper), top);
                let diamond = vec![(x - 5, y), (x, y - 5), (x + 5, y), (x, y + 5)];
                area.draw(&Polygon::new(diamond, PAPER.filled()))?;
            }
            for each in bars {
                let Figure { median, low, high, .. } = each.figure;
                bar(&area, &scale, top - BAR / 2, each.colour, [low, median, high])?;
                for line in &each.name {
                    area.draw(&Text::new(line.clone(), (BARS + 10, top), words(12)))?;
                    top += LINE;
                }
            }
            top += LINE / 2;
        }
        area.present()?;
    }
    Ok(finished(&svg))
}

/// A text in lines of at most so many letters, broken between words where that is possible.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// A figure with three digits that count.
fn readable(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
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
pub(crate) fn curves(curves: &[Curve], below: &str, unit: &str) -> Result<String, Failed> {
    beside(&[("", curves)], below, unit)
}

/// The least room between the middles of two numbers below an axis.
const BETWEEN_TICKS: i32 = 46;
/// The most room that a digit of a number at an axis takes.
const DIGIT: i32 = 7;

/// Panels with curves side by side, on the same logarithmic axes; the names of curves stand above them.
pub(crate) fn beside(panels: &[(&str, &[Curve])], below: &str, unit: &str) -> Result<String, Failed> {
    let all = || panels.iter().flat_map(|(_, curves)| curves.iter());
    let points = || all().flat_map(|curve| curve.points.iter().copied());
    let (Some(across), Some(up)) =
        (Decades::of(points().map(|point| point.0)), Decades::of(points().map(|point| point.1)))
    else {
        return Err("there is nothing to draw".into());
    };
    let named = named(all());
    let (names, names_end) = names_above(&named);
    let has_titles = panels.iter().any(|(title, _)| !title.is_empty());
    let top = names_end + if has_titles { 3 * LINE } else { 2 * LINE };
    let (bottom, height) = (top + 220, top + 220 + 48);
    let longest = up.ticks().into_iter().map(|tick| short(tick).len()).max().unwrap_or(0);
    let (room, width) = (longest as i32 * DIGIT + 10, WIDTH as i32 / panels.len().max(1) as i32);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        let words = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&INK);
        for NameLine { number, place, text } in names {
            area.draw(&Text::new(text, place, words(13).color(&COLOURS[number % COLOURS.len()])))?;
        }
        for (number, (title, curves)) in (0..).zip(panels) {
            let (left, right) = (number * width + room, (number + 1) * width - 14);
            area.draw(&Text::new((*title).to_owned(), (left, top - 2 * LINE - 4), words(13)))?;
            area.draw(&Text::new(unit.to_owned(), (left, top - LINE - 4), words(12)))?;
            panel(&area, [left, top, right, bottom], [&across, &up], below, curves, &named)?;
        }
        area.present()?;
    }
    Ok(finished(&svg))
}

/// The names of curves that have points, each once, in their order.
fn named<'a>(curves: impl Iterator<Item = &'a Curve>) -> Vec<&'a str> {
    let mut named: Vec<&str> = Vec::new();
    for curve in curves.filter(|curve| !curve.points.is_empty()) {
        if !named.contains(&curve.name.as_str()) {
            named.push(&curve.name);
        }
    }
    named
}

/// A line of the name of a curve: the name's number, where the line stands, and what it says.
struct NameLine {
    number: usize,
    place: (i32, i32),
    text: String,
}

/// The lines of names in columns from the top on, and where the lowest ends.
fn names_above(named: &[&str]) -> (Vec<NameLine>, i32) {
    let columns = (WIDTH as usize / NAME_WIDTH).max(1);
    let (mut all, mut top) = (Vec::new(), 2);
    for (row, names) in named.chunks(columns).enumerate() {
        let mut rows = 0;
        for (column, name) in names.iter().enumerate() {
            let lines = wrapped(name, NAME_WIDTH / DIGIT as usize);
            rows = rows.max(lines.len());
            all.extend((0..).zip(lines).map(|(line, text)| {
                let place = ((column * NAME_WIDTH) as i32, top + line * LINE);
                NameLine { number: row * columns + column, place, text }
            }));
        }
        top += rows as i32 * LINE;
    }
    (all, top)
}

/// Curves in a frame (left, top, right and bottom), with the numbers of both axes and the name of the one
/// below.
fn panel(
    area: &Area<'_>,
    [left, top, right, bottom]: [i32; 4],
    [across, up]: [&Decades; 2],
    below: &str,
    curves: &[Curve],
    named: &[&str],
) -> Result<(), Failed> {
    let words = || TextStyle::from(("sans-serif", 12).into_font()).color(&INK);
    let (centre, end) = (Pos::new(HPos::Center, VPos::Top), Pos::new(HPos::Right, VPos::Center));
    let place = |(x, y): (f64, f64)| {
        let along = |share: f64, from: i32, to: i32| from + (share * f64::from(to - from)) as i32;
        (along(across.share(x), left, right), along(up.share(y), bottom, top))
    };
    let mut last = i32::MIN / 2;
    for tick in across.ticks() {
        let x = place((tick, 1.0)).0;
        area.draw(&PathElement::new(vec![(x, top), (x, bottom)], INK.mix(0.2)))?;
        if x - last >= BETWEEN_TICKS && x + BETWEEN_TICKS / 2 <= right + 14 {
            area.draw(&Text::new(short(tick), (x, bottom + 8), words().pos(centre)))?;
            last = x;
        }
    }
    for tick in up.ticks() {
        let y = place((1.0, tick)).1;
        area.draw(&PathElement::new(vec![(left, y), (right, y)], INK.mix(0.2)))?;
        area.draw(&Text::new(short(tick), (left - 6, y), words().pos(end)))?;
    }
    area.draw(&Text::new(below.to_owned(), ((left + right) / 2, bottom + 28), words().pos(centre)))?;
    for curve in curves {
        let Some(number) = named.iter().position(|name| *name == curve.name) else { continue };
        let colour = COLOURS[number % COLOURS.len()];
        let drawn: Vec<_> = curve.points.iter().map(|point| place(*point)).collect();
        let filled = if curve.dashed { colour.stroke_width(1) } else { colour.filled() };
        for at in &drawn {
            area.draw(&Circle::new(*at, 3, filled))?;
        }
        if curve.dashed {
            area.draw(&DashedPathElement::new(drawn, 6, 5, colour.stroke_width(1)))?;
        } else {
            area.draw(&PathElement::new(drawn, colour.stroke_width(2)))?;
        }
    }
    Ok(())
}

/// A plot as a file of its own, whose surroundings are not known: dark on white, in its own size.
pub(crate) fn standing_alone(svg: &str) -> String {
    let coloured =
        svg.replace("currentColor", "#1b1f24").replace("width=\"100%\"", &format!("width=\"{WIDTH}\""));
    let end = coloured.find('>').map_or(0, |end| end + 1);
    let (head, rest) = coloured.split_at(end);
    format!("{head}\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}\n", rest.trim_end())
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
        // The first number of the axis has its middle here.
        let left = 5;
        let room = f64::from(BARS - left - 1);
        left + ((value - self.lowest) / (self.highest - self.lowest) * room) as i32
    }

    /// About three round numbers.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.highest - self.lowest) / 3.0;
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

fn axis(area: &Area<'_>, scale: &Scale, height: i32, unit: &str) -> Result<(), Failed> {
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
    let beside = words.pos(Pos::new(HPos::Left, VPos::Top));
    area.draw(&Text::new(unit.to_owned(), (BARS + 10, height - BOTTOM + 10), beside))?;
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
    fn panels_name_what_they_draw_once_and_in_lines_that_fit() {
        let points = vec![(1.0, 1.0), (10.0, 1_000_000.0)];
        let long = "a name that reaches far into the column of the next one";
        let theirs = [Curve::new("empty", Vec::new()), Curve::new(long, points.clone())];
        let ours = [Curve { dashed: true, ..Curve::new("other", points.clone()) }, Curve::new(long, points)];
        let svg = beside(&[("theirs", &theirs), ("ours", &ours)], "packets", "Mpps").expect("panels");
        assert!(svg.contains("theirs") && svg.contains("ours") && !svg.contains("empty"), "{svg}");
        assert_eq!((svg.matches("packets").count(), svg.matches("Mpps").count()), (2, 2), "of each panel");
        assert_eq!(svg.matches("<circle").count(), 6);
        // A dashed line is drawn as its dashes.
        let lines = |svg: &str| svg.matches("stroke-width=\"2\"").count();
        assert_eq!(lines(&svg), 2, "two are drawn through");
        let named = [long, "other"];
        let (lines, end) = names_above(&named);
        let of = |number: usize| lines.iter().filter(move |line| line.number == number);
        assert_eq!(of(0).map(|line| line.text.as_str()).collect::<Vec<_>>().join(" "), long);
        assert!(of(0).count() > 1 && lines.iter().all(|line| line.text.len() <= NAME_WIDTH / 7));
        assert_eq!(of(1).map(|line| line.place).collect::<Vec<_>>(), [(NAME_WIDTH as i32, 2)]);
        assert!(lines.iter().all(|line| line.place.1 + LINE <= end) && svg.contains("1000000"));
        assert!(lines.iter().all(|line| svg.contains(&line.text)), "{svg}");
    }

    #[test]
    fn a_plot_takes_the_colour_of_its_surroundings_and_names_its_rows() {
        let figure = Figure { median: 60.0, low: 55.0, high: 62.0, ..Figure::default() };
        let row =
            Row::alone("sample1, replay, firewall", "packet rate", "Mpps", Some(figure.clone()), Some(1.64))
                .against(Some(Other::of("twin", figure)), Better::More);
        let (entries, shared) = Entry::of_rows(&[&row]);
        assert_eq!(shared.join(", "), row.case, "a single row shares all with itself");
        let svg = plot(&entries, "Mpps").expect("a plot");
        assert!(svg.contains("Mpps"), "the axis has its unit");
        assert!(svg.starts_with("<svg") && svg.contains("viewBox"), "{svg}");
        assert!(svg.contains("currentColor") && !svg.contains(INK_WRITTEN));
        assert!(svg.contains("60.0  twin"));
        assert_eq!(svg.matches("<polygon").count(), 1, "the publication's figure is one diamond");
    }

    #[test]
    fn one_figure_held_against_several_is_one_bar_and_no_label_is_cut() {
        let figure = Figure::exactly;
        let row = |case: &str, other: &str| {
            let other = Some(Other::of(other, figure(5.0)));
            Row::alone(case, "w", "u", Some(figure(10.0)), None).against(other, Better::More)
        };
        let long = "a very long name of a case that is told from its neighbour only by what stands at its very end: ";
        let (one, two) = (format!("traffic, {long}1"), format!("traffic, {long}2"));
        let rows = [row(&one, "x"), row(&one, "y"), row(&one, "z"), row(&two, "x")];
        let (entries, shared) = Entry::of_rows(&rows.iter().collect::<Vec<_>>());
        assert_eq!((entries.len(), shared.as_slice()), (3, &["traffic".to_owned()][..]));
        let others =
            |index: usize| entries[index].others.iter().map(|other| other.name.as_str()).collect::<Vec<_>>();
        assert_eq!((others(0), others(1), others(2)), (vec!["y", "z"], vec![], vec!["x"]));
        let svg = plot(&entries, "u").expect("a plot");
        // Ours twice, the others three times; each has one rectangle.
        assert_eq!(svg.matches("<rect").count(), 5);
        assert!(svg.contains("end: 1") || svg.contains("\n1\n"), "{svg}");
        let lines = wrapped(&format!("{long}1"), LABEL_LETTERS);
        assert_eq!(lines.join(" "), format!("{}1", long));
        assert!(lines.iter().all(|line| line.chars().count() <= LABEL_LETTERS));
    }
}
