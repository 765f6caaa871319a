//! Verdicts that figures do not bear out are refused, whatever the file says; and what is shown of a made
//! study.

use super::file::Source;
use super::*;
use crate::experiment::{Figure, Other, Row};
use crate::machine::Machine;
use std::collections::BTreeMap;

/// A report with a row of two figures, and one for each of three batches.
fn reports() -> Vec<(String, Vec<Experiment>)> {
    let figure = |median: f64| Figure { median, low: median - 1.0, high: median + 1.0, ..Figure::default() };
    let row = |case: &str, median| {
        let row = Row::alone(case, "packet rate; of five", "Mpps", Some(figure(median)), None);
        Row { other: Some(Other::of("serial, overloaded", figure(median / 2.0))), ratio: Some(2.0), ..row }
    };
    let mut rows = vec![row("all", 10.0), row("batch 32", 4.0), row("batch 64", 8.0), row("batch 128", 16.0)];
    // The same figure by chance: of something that is named alike, and against something named alike.
    rows.push(row("alike", 10.0));
    rows.push(Row { what: "packet rate of bursts".into(), ..row("alike", 10.0) });
    for other in ["serial, overloaded", "serial, empty"] {
        rows.push(Row { other: Some(Other::of(other, figure(5.0))), ..row("others alike", 10.0) });
    }
    let machine = Machine { runs: 5, date: "2026-11-21T16:54:59Z".into(), ..Machine::describe("", "") };
    vec![("made.json".into(), vec![Experiment { experiment: "made".into(), machine, rows }])]
}

/// The pages of a study whose only part has these lines.
fn made(part: &str) -> Result<Vec<(String, String)>, String> {
    let text = format!(
        "title = \"A study\"\nabout = \"\"\"It is made, of {{rate}}. {{serial}} {{batch(32)}}\"\"\"\nreport = \"made.json\"\n\
         [values.rate]\ncase = \"all\"\nwhat = \"packet rate\"\n\
         [values.serial]\ncase = \"all\"\nwhat = \"packet rate\"\nfield = \"serial\"\n\
         [values.batch]\ncase = \"batch {{}}\"\nwhat = \"packet rate\"\n\
         [[part]]\ntitle = \"All\"\n{part}"
    );
    let study: Study = toml::from_str(&text).map_err(|error| error.to_string())?;
    let mut all = Reports::default();
    reports().into_iter().for_each(|(name, experiments)| all.add(&name, experiments));
    page::pages(&Judge::new(&study, &all), "made").map(|(files, _)| files)
}

fn claim(lines: &str) -> Result<String, String> {
    let files = made(&format!("[[part.claim]]\nplace = \"Table 1\"\nsays = \"It is fast\"\n{lines}"))?;
    Ok(files.into_iter().map(|(_, text)| text).collect())
}

#[test]
fn a_verdict_is_what_the_figures_say_and_no_other() {
    for (lines, verdict) in [
        (
            "paper = 9\nours = \"rate\"\nwithin = 12",
            "| 9 | 10 (9 to 11) | **holds** (asked: within 12 % of the original) |",
        ),
        (
            "ours = \"rate / serial\"\nholds = \"ours >= 2 and ours < 3\"",
            "| 2 (1.5 to 2.75) | **holds** (asked: `ours >= 2 and ours < 3`) |",
        ),
        (
            "ours = \"rate\"\nholds = \"ours > 10\"\ndiffers = \"{ours} is {ours - 10:1} more\"",
            "**differs** because 10 is 0.0 more",
        ),
        ("cannot = \"there is no device\"", "**cannot be repeated here** because there is no device"),
        ("shown = [\"lab::some::test\"]", "**holds**; shown by `lab::some::test`"),
    ] {
        let page = claim(lines).expect(lines);
        assert!(page.contains(verdict), "{page}");
        assert!(page.contains("It is made, of 10.") && page.contains("medians of 5 runs"), "{page}");
    }
    for (lines, why) in [
        (
            "paper = 9\nours = \"rate\"\nwithin = 11",
            "does not hold, and the file does not say why it differs: ours is 10",
        ),
        ("paper = 9\nours = \"rate\"\nwithin = 12\ndiffers = \"so\"", "it holds now"),
        ("ours = \"rate\"", "nothing says when it holds"),
        ("differs = \"so\"", "nothing says when it holds"),
        ("paper = 9\nours = \"rate\"\nwithin = 12\nholds = \"ours > 1\"", "either `holds` or `within`"),
        ("ours = \"rate\"\nwithin = 12", "`within` needs `ours` and a number"),
        ("cannot = \"so\"\nholds = \"1 < 2\"", "what cannot be repeated has no `holds`"),
        ("cannot = \"so\"\ndiffers = \"so\"", "either `cannot` or `differs`"),
        ("ours = \"rate\"\nholds = \"ours\"", "`ours` has none of <, <=, > and >="),
        ("ours = \"race\"\nholds = \"ours > 1\"", "there is no value `race`"),
        ("ours = \"batch(33)\"\nholds = \"ours > 1\"", "made.json has no figure `ours` of `batch 33`"),
        ("ours = \"rate(32)\"\nholds = \"ours > 1\"", "value `rate`: it takes no argument, and has `32`"),
        ("ours = \"batch\"\nholds = \"ours > 1\"", "value `batch`: it takes an argument"),
        (
            "ours = \"alike\"\nholds = \"ours > 1\"\n[values.alike]\ncase = \"alike\"\nwhat = \"packet rate\"",
            "rows that begin so: {\"packet rate of bursts\", \"packet rate; of five\"}",
        ),
        (
            "ours = \"alike\"\nholds = \"ours > 1\"\n[values.alike]\ncase = \"others alike\"\nwhat = \"packet rate\"\nfield = \"serial\"",
            "made.json has 2 figures `serial` of `others alike`",
        ),
        (
            "ours = \"rate\"\nholds = \"ours > 1\"\n[values.dead]\ncase = \"all\"\nwhat = \"packet rate\"",
            "nothing asks for the values dead",
        ),
        (
            "paper = 9\npoints = [[1, 2]]\nat = \"x\"\nours = \"rate\"\nwithin = 12",
            "`paper` is of a claim without points",
        ),
        (
            "points = [[1, 2]]\nplaces = [3]\nat = \"x\"\nours = \"rate\"\nholds = \"ours > 1\"",
            "either `points` or `places`",
        ),
        ("at = \"x\"\nours = \"rate\"\nholds = \"ours > 1\"", "`at` is of a claim with points or places"),
        ("fast = 1", "unknown field"),
    ] {
        let error = claim(lines).expect_err(lines);
        assert!(error.contains(why), "{lines}: {error}");
    }
}

#[test]
fn what_a_picture_cannot_show_is_refused() {
    let points = "at = \"packets\"\npoints = [[32, 4], [64, 8]]\nours = \"batch(at)\"\nwithin = 20\n";
    let named = "at = \"packets\"\npoints = [[32, 4], [\"64\", 8]]\nours = \"batch(at)\"\nwithin = 20\n";
    let single = "ours = \"rate\"\nholds = \"ours > 1\"\n";
    let second =
        "[[part.claim]]\nkey = \"k\"\nplace = \"–\"\nsays = \"so\"\nours = \"rate\"\nholds = \"ours > 1\"\n";
    let line = "[{ claim = \"k\", name = \"a\" }]";
    let curves = format!("below = \"packets\"\ncurves = {line}");
    for (claimed, drawn, why) in [
        (points, format!("{curves}\nbars = {line}"), "picture `p`: either `curves` or `bars`"),
        (points, format!("below = \"packets\"\nbars = {line}"), "and bars have none"),
        (points, format!("curves = {line}"), "curves have a name of the axis"),
        (named, curves.clone(), "claim `k` has a point `64`, which is on no axis"),
        (single, curves.clone(), "claim `k` has no points for a curve"),
        (single, "bars = [{ claim = \"\", name = \"a\" }]".to_owned(), "there is no claim ``"),
        (&format!("{points}{second}"), curves.clone(), "more than one claim has the key `k`"),
    ] {
        let picture = format!("[[part.picture]]\nname = \"p\"\ntitle = \"t\"\nunit = \"Mpps\"\n{drawn}");
        let keyless = drawn.contains("claim = \"\"");
        let key = if keyless { "" } else { "key = \"k\"\n" };
        let error = claim(&format!("{key}{claimed}{picture}")).expect_err(why);
        assert!(error.contains(why), "{drawn}: {error}");
    }
}

/// Whether a number of a publication that a report has is the one that its study has: the same, or, if the
/// report computed it of others, the same to the digits that the study has.
fn is_the_same(typed: f64, reported: f64) -> bool {
    let digits = |number: f64| number.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
    let is_computed = digits(reported) > 4;
    typed == reported || is_computed && format!("{reported:.*}", digits(typed)) == typed.to_string()
}

#[test]
fn numbers_of_publications_are_the_same_in_studies_and_in_reports() {
    assert!(is_the_same(11.1, 0.94 / 8.47 * 100.0) && is_the_same(5.0, 5.0));
    assert!(!is_the_same(10.1, 10.14) && !is_the_same(11.1, 1.0 / 9.1 * 100.0) && !is_the_same(5.0, 5.4));
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut all = Reports::default();
    for name in reports_of_studies().expect("the files are read") {
        let text = std::fs::read_to_string(folder.join(&name)).expect("the report is kept");
        all.add(&name, read_report(&text).expect("it is a report"));
    }
    for (name, text) in FILES {
        let study = read(name, text).expect("the file is read");
        let mut typed: BTreeMap<_, Vec<(f64, &str)>> = BTreeMap::new();
        for claim in study.parts.iter().flat_map(|part| &part.claims) {
            let Some(ours) = &claim.ours else { continue };
            let value = ours.strip_suffix("(at)").unwrap_or(ours);
            let single = claim.paper.map(|paper| (None, paper));
            let points = claim.points.iter().map(|(at, paper)| (Some(at.text()), *paper));
            for (at, number) in points.chain(single) {
                let at = if value == ours { None } else { at };
                typed.entry((value, at)).or_default().push((number, &claim.place));
            }
        }
        let mut compared = 0;
        for ((value, at), numbers) in &typed {
            let Some(source) = study.values.get(*value) else { continue };
            let source = Source { field: "paper".to_owned(), ..source.clone() };
            // Not every row has the publication's number.
            let Ok(reported) = all.figure(&source, &study.report, at.as_deref()) else { continue };
            // A publication that measured a thing several times has several numbers of it, and a row has one.
            assert!(
                numbers.iter().any(|(number, _)| is_the_same(*number, reported.median)),
                "{name}, {value} at {at:?}: {numbers:?} are typed, and the report has {}",
                reported.median
            );
            compared += 1;
        }
        assert!(compared > 0, "{name}: no number is in both");
        println!("{name}: {compared} numbers");
    }
}

#[test]
fn every_file_of_a_study_has_a_page() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/studies");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it is read").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let name = |path: std::path::PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let names: BTreeSet<String> = files.map(name).collect();
    assert_eq!(names, BTreeSet::from(FILES.map(|(name, _)| name.to_owned())));
}

#[test]
fn what_we_say_beyond_a_publication_is_judged_and_not_counted() {
    let claim = |rate: &str| {
        made(&format!(
            "beyond = true\n[[part.claim]]\nplace = \"–\"\nsays = \"so\"\nours = \"rate\"\nholds = \"{rate}\""
        ))
    };
    let page = claim("ours > 9").expect("it is so").remove(0).1;
    assert!(page.contains("**0 claims: 0 hold") && page.contains("| we say |"), "{page}");
    assert!(claim("ours > 10").is_err_and(|error| error.contains("it does not hold")));
}

#[test]
fn points_hold_together_or_not_at_all_and_are_drawn_beside_the_originals() {
    let points = "key = \"k\"\nat = \"packets\"\nunit = \"Mpps\"\npoints = [[32, 4.0], [64, 8.0], [128, 20.0]]\nours = \"batch(at)\"\n";
    let picture =
        "[[part.picture]]\nname = \"p\"\ntitle = \"Rates\"\nunit = \"Mpps\"\nbetter = \"higher is better\"\n";
    let curves = format!("{picture}below = \"packets\"\ncurves = [{{ claim = \"k\", name = \"device\" }}]");
    let page = claim(&format!("{points}within = 20\n{curves}")).expect("all are near enough");
    assert!(
        page.contains("Points of 1, in Mpps; holds at 3 of 3:")
            && page.contains("| 128 | 20 | 16 (15 to 17) |")
    );
    assert!(page.contains("higher is better](made-p.svg)") && page.matches("<circle").count() == 6, "{page}");
    assert!(!page.contains("currentColor"), "nothing around the file says its colour");
    let places = "at = \"packets\"\nplaces = [32, \"64\"]\nours = \"batch(at)\"\nholds = \"ours > 3\"";
    let page = claim(places).expect("both are more");
    assert!(page.contains("| packets | ours |") && page.contains("| 64 | 8 (7 to 9) |"), "{page}");
    let error = claim(&format!("{points}within = 19\n{curves}")).expect_err("one is not");
    assert!(error.contains("it holds at 2 of 3 points"), "{error}");
    let page = claim(&format!(
        "{points}within = 19\ndiffers = \"so\"\n{picture}bars = [{{ claim = \"k\", name = \"at\" }}]"
    ));
    let page = page.expect("the file says that it differs");
    assert!(page.contains("the original") && page.contains("at, 128"), "{page}");
    let error =
        claim(&format!("{points}within = 20\n{picture}bars = [{{ claim = \"other\", name = \"at\" }}]"));
    assert!(error.is_err_and(|error| error.contains("there is no claim `other`")));
}
