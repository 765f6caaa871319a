//! Verdicts that figures do not bear out are refused, whatever the file says; and what is shown of a made
//! study.

use super::*;
use crate::experiment::{Figure, Other, Row};
use crate::machine::Machine;

/// A report with a row of two figures, and one for each of three batches.
fn reports() -> Vec<(String, Vec<Experiment>)> {
    let figure = |median: f64| Figure { median, low: median - 1.0, high: median + 1.0, ..Figure::default() };
    let row = |case: &str, median| {
        let row = Row::alone(case, "packet rate; of five", "Mpps", Some(figure(median)), None);
        Row { other: Some(Other::of("serial, overloaded", figure(median / 2.0))), ratio: Some(2.0), ..row }
    };
    let rows = vec![row("all", 10.0), row("batch 32", 4.0), row("batch 64", 8.0), row("batch 128", 16.0)];
    let machine = Machine { runs: 5, date: "2026-11-21T16:54:59Z".into(), ..Machine::describe("", "") };
    vec![("made.json".into(), vec![Experiment { experiment: "made".into(), machine, rows }])]
}

/// The pages of a study whose only part has these lines.
fn made(part: &str) -> Result<Vec<(String, String)>, String> {
    let text = format!(
        "title = \"A study\"\nabout = \"\"\"It is made, of {{rate}}.\"\"\"\nreport = \"made.json\"\n\
         [values.rate]\ncase = \"all\"\nwhat = \"packet rate\"\n\
         [values.serial]\ncase = \"all\"\nwhat = \"packet rate\"\nfield = \"serial\"\n\
         [values.batch]\ncase = \"batch {{}}\"\nwhat = \"packet rate\"\n\
         [[part]]\ntitle = \"All\"\n{part}"
    );
    let study: Study = toml::from_str(&text).map_err(|error| error.to_string())?;
    let mut all = Reports::default();
    reports().into_iter().for_each(|(name, experiments)| all.add(&name, experiments));
    page::pages(&Bench { study: &study, reports: &all }, "made").map(|(files, _)| files)
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
        ("fast = 1", "unknown field"),
    ] {
        let error = claim(lines).expect_err(lines);
        assert!(error.contains(why), "{lines}: {error}");
    }
}

#[test]
fn points_hold_together_or_not_at_all_and_are_drawn_beside_the_originals() {
    let points = "key = \"k\"\nat = \"packets\"\nunit = \"Mpps\"\npoints = [[32, 4.0], [64, 8.0], [128, 20.0]]\nours = \"batch(at)\"\n";
    let picture = "[[part.picture]]\nname = \"p\"\ntitle = \"Rates\"\nbelow = \"packets\"\nunit = \"Mpps\"\nbetter = \"higher is better\"\n";
    let curves = format!("{picture}curves = [{{ claim = \"k\", name = \"device\" }}]");
    let page = claim(&format!("{points}within = 20\n{curves}")).expect("all are near enough");
    assert!(
        page.contains("Points of 1, in Mpps; holds at 3 of 3:")
            && page.contains("| 128 | 20 | 16 (15 to 17) |")
    );
    assert!(page.contains("higher is better](made-p.svg)") && page.matches("<circle").count() == 6, "{page}");
    assert!(!page.contains("currentColor"), "nothing around the file says its colour");
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
