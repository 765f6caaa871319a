//! Each rule on a made-up repository that breaks it, and on one that does not.

use super::*;

const STEPS: [&str; 1] = ["agree"];

/// A small repository that keeps every rule.
fn sound() -> Tree {
    let walk: String = ["receive", "batch", "decode", "lookup", "act", "verdict", "commit", "transmit"]
        .iter()
        .enumerate()
        .map(|(i, stop)| format!("## {}. {stop}\n[`turn`](../crates/engine/src/worker.rs#turn)\n", i + 1))
        .collect();
    Tree::default()
        .with(
            "ARCHITECTURE.md",
            "## Crates\n\n| crate | role | depends on |\n|---|---|---|\n| `packet` | bytes | – |\n\
             | `engine` | the loop | packet |\n| `lab` | figures | engine |\n\n\
             ## Vocabulary\n\n| word | meaning | not |\n|---|---|---|\n| mailbox | room for a message | `letterbox` |\n\n\
             ## Unsafe code\n\n- `crates/engine/src/call.rs`: calls compiled code.\n",
        )
        .with("crates/packet/Cargo.toml", "[package]\nname = \"packet\"\n[dependencies]\nlibc = \"1\"\n")
        .with("crates/engine/Cargo.toml", "[package]\nname = \"engine\"\n[dependencies]\npacket.workspace = true\n")
        .with("crates/lab/Cargo.toml", "[package]\nname = \"lab\"\n[dependencies]\nengine.workspace = true\n")
        .with("crates/engine/src/worker.rs", "//! The loop.\npub fn turn() {}\nmod tests {\n    fn counts_all() {}\n}\n")
        .with("crates/engine/src/call.rs", "//! Calls.\n// SAFETY: it is sound.\nlet x = unsafe { f() };\n")
        .with("crates/lang/src/check.rs", "//! Checks.\nlet code = \"E0412\";\n")
        .with("crates/lang/src/explain/flow.md", "# Paths\n## E0412: A path decides nothing.\n")
        .with("docs/packet-walk.md", &walk)
        .with("README.md", "# Name\n## One picture\n[walk](docs/packet-walk.md) [up](#one-picture) [web](https://example.com)\n")
        .with("CHANGELOG.md", "# Changelog\n## [Unreleased]\n")
        .with(
            "SPECIFICATION.md",
            "# Promises\n1. **Counts.** All.\n   Shown by: `engine::worker::tests::counts_all`,\n   `cargo xtask test --only agree`.\n\
             2. **Soon.** Shown by: *pending*\n",
        )
        .with("programs/wire.rav", "// Sends on.\ntest \"a packet passes\" {}\n")
}

/// Rule and path of everything found.
fn found(tree: &Tree) -> Vec<(&'static str, String)> {
    check_tree(tree, &STEPS).into_iter().map(|finding| (finding.rule, finding.path)).collect()
}

/// `sound()` with one file changed must break exactly this rule, in this file.
fn breaks(path: &str, text: &str, rule: &'static str) {
    breaks_at(path, text, rule, path);
}

fn breaks_at(path: &str, text: &str, rule: &'static str, place: &str) {
    let findings = check_tree(&sound().with(path, text), &STEPS);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].rule, findings[0].path.as_str()), (rule, place), "{findings:?}");
}

#[test]
fn a_sound_repository_passes() {
    assert_eq!(found(&sound()), []);
}

#[test]
fn every_file_says_its_role_first() {
    breaks("crates/packet/src/lib.rs", "pub fn f() {}\n", "first-line");
    breaks("crates/packet/src/lib.rs", "#![no_std]\n//! Bytes.\n", "first-line");
    breaks("crates/packet/src/lib.rs", "//!\n", "first-line");
    breaks("crates/packet/src/lib.rs", "", "first-line");
}

#[test]
fn files_have_a_cap_that_tests_do_not_count_for() {
    let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(700));
    breaks("crates/packet/src/lib.rs", &long, "cap");
    assert_eq!(found(&sound().with("crates/packet/src/tests.rs", &long)), []);
    assert_eq!(found(&sound().with("crates/packet/tests/all.rs", &long)), []);
    let tests = format!("//! Short.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(700));
    assert_eq!(found(&sound().with("crates/packet/src/lib.rs", &tests)), []);
    let beside = format!("//! Long.\n#[cfg(test)]\nmod tests;\n{}", "fn f() {}\n".repeat(700));
    breaks("crates/packet/src/lib.rs", &beside, "cap");
}

#[test]
fn programs_have_the_same_caps() {
    let lines = |count: usize| format!("// Counts.\n{}", "counter many\n".repeat(count - 1));
    let tests = format!("test \"a\" {{\n{}}}\n", "    packet 1 { zero[9] } expect flood\n".repeat(700));
    assert_eq!(found(&sound().with("programs/wire.rav", &(lines(700) + &tests))), []);
    breaks("programs/wire.rav", &(lines(701) + &tests), "cap");
    breaks("std/net/ethernet.rav", &lines(701), "cap");
    breaks("crates/lab/src/slow.rav", &lines(701), "cap");
    assert_eq!(found(&sound().with("suite/good/large.rav", &lines(701))), []);
    // Comments have 110 columns, code has 120, and packets of tests as many as they need.
    let words = |columns: usize| "x ".repeat(columns / 2);
    let with = |before: &str, behind: &str| format!("// Counts.\n{before}\ntest \"a\" {{\n{behind}\n}}\n");
    let sound_lines = with(&format!("// {}\n{}", words(106), words(120)), &words(300));
    assert_eq!(found(&sound().with("programs/wire.rav", &sound_lines)), []);
    breaks("programs/wire.rav", &with(&format!("// {}", words(108)), ""), "line");
    breaks("programs/wire.rav", &with("", &format!("    // {}", words(108))), "line");
    breaks("programs/wire.rav", &with(&words(122), ""), "line");
}

#[test]
fn names_say_something() {
    breaks("crates/packet/src/utils.rs", "//! Things.\n", "name");
    breaks("crates/packet/src/common/mod.rs", "//! Things.\n", "name");
    breaks("docs/helpers.md", "text", "name");
    assert_eq!(found(&sound().with("crates/packet/src/score.rs", "//! Score.\n")), []);
}

#[test]
fn nothing_unfinished_stays() {
    for marker in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("HA", "CK"), concat!("XX", "X")] {
        breaks("crates/packet/src/lib.rs", &format!("//! Bytes.\n// {marker}: later\n"), "marker");
        breaks("programs/wire.rav", &format!("// Sends on. {marker}\ntest \"a\" {{}}\n"), "marker");
    }
    for code in [concat!("todo", "!()"), concat!("dbg", "!(1)"), concat!("#[", "ignore]")] {
        breaks("crates/packet/src/lib.rs", &format!("//! Bytes.\n{code}\n"), "marker");
        assert_eq!(
            found(&sound().with("crates/packet/src/lib.rs", &format!("//! Bytes.\n// not {code}\n"))),
            []
        );
    }
}

#[test]
fn arrows_are_those_of_the_table() {
    let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n{rest}");
    let both = manifest("engine", "[dependencies]\npacket.workspace = true\nlab.workspace = true\n");
    breaks("crates/engine/Cargo.toml", &both, "arrows");
    let build = manifest("packet", "[build-dependencies]\nengine = { path = \"../engine\" }\n");
    breaks("crates/packet/Cargo.toml", &build, "arrows");
    breaks_at("crates/engine/Cargo.toml", &manifest("engine", ""), "arrows", "ARCHITECTURE.md");
    breaks_at("crates/ports/Cargo.toml", &manifest("ports", ""), "arrows", "ARCHITECTURE.md");
    breaks("crates/packet/Cargo.toml", &manifest("packets", ""), "arrows");
    breaks("crates/packet/Cargo.toml", "[package", "arrows");
}

#[test]
fn tests_may_use_any_crate_but_those_above_the_product() {
    let manifest =
        |other: &str| format!("[package]\nname = \"packet\"\n[dev-dependencies]\n{other}.workspace = true\n");
    assert_eq!(found(&sound().with("crates/packet/Cargo.toml", &manifest("engine"))), []);
    breaks("crates/packet/Cargo.toml", &manifest("lab"), "arrows");
}

#[test]
fn a_crate_in_the_table_must_exist() {
    let page = sound().text("ARCHITECTURE.md").unwrap().replace("| `lab`", "| `gpu` | later | – |\n| `lab`");
    breaks("ARCHITECTURE.md", &page, "arrows");
}

#[test]
fn unsafe_code_is_listed_and_justified() {
    let block = concat!("un", "safe { f() };\n");
    let sound_block = format!("//! Bytes.\n// SAFETY: it is sound.\n{block}");
    breaks("crates/packet/src/lib.rs", &sound_block, "unsafe");
    breaks("crates/engine/src/call.rs", &format!("//! Calls.\n{block}"), "unsafe");
    breaks("crates/engine/src/call.rs", &format!("//! Calls.\n// SAFETY: far away.\n\n{block}"), "unsafe");
    breaks(
        "crates/engine/src/call.rs",
        &format!("//! Calls.\n{}impl Send for X {{}}\n", concat!("un", "safe ")),
        "unsafe",
    );
    breaks_at("crates/engine/src/call.rs", "//! Calls nothing.\n", "unsafe", "ARCHITECTURE.md");
    let only_words = "//! Bytes, not unsafe { at } all.\nconst TEXT: &str = \"unsafe { }\";\n";
    assert_eq!(found(&sound().with("crates/packet/src/lib.rs", only_words)), []);
}

#[test]
fn links_lead_somewhere() {
    breaks("docs/a.md", "[b](b.md)\n", "link");
    breaks("docs/a.md", "[out](../../b.md)\n", "link");
    breaks("docs/a.md", "[heading](../README.md#no-such)\n", "link");
    breaks("docs/a.md", "[heading](#no-such)\n", "link");
    assert_eq!(
        found(&sound().with("docs/a.md", "[up](../README.md#one-picture) [folder](../crates/)\n")),
        []
    );
    assert_eq!(found(&sound().with("docs/a.md", "```\n[code](b.md)\n```\n")), []);
}

#[test]
fn excerpts_are_word_for_word() {
    let page = |line: &str| format!("# Page\n\n```rav programs/wire.rav\n{line}\n```\n");
    assert_eq!(found(&sound().with("docs/a.md", &page("test \"a packet passes\" {}"))), []);
    breaks("docs/a.md", &page("test \"a packet stays\" {}"), "excerpt");
    breaks("docs/a.md", "# Page\n```rav programs/no.rav\nx\n```\n", "excerpt");
    let both = check_tree(&sound().with("docs/a.md", &(page("// Sends on.") + &page("// Holds."))), &STEPS);
    assert_eq!(both.iter().map(|finding| finding.line).collect::<Vec<_>>(), [8]);
}

#[test]
fn the_packet_walk_leads_to_functions() {
    let walk = sound().text("docs/packet-walk.md").unwrap().to_owned();
    breaks("docs/packet-walk.md", &walk.replace("## 4. lookup", "## 4. search"), "packet-walk");
    breaks("docs/packet-walk.md", &walk.replacen("#turn", "#spin", 1), "packet-walk");
    breaks("docs/packet-walk.md", &walk.replacen(".rs#turn", ".rs", 1), "packet-walk");
    let renamed = "//! The loop.\nfn turning() {}\nfn counts_all() {} // fn turn\n";
    let findings = found(&sound().with("crates/engine/src/worker.rs", renamed));
    assert_eq!(findings, vec![("packet-walk", "docs/packet-walk.md".to_owned()); 8]);
}

#[test]
fn the_changelog_has_a_place_to_write() {
    breaks("CHANGELOG.md", "# Changelog\n## Things\n", "changelog");
    assert_eq!(found(&sound().with("CHANGELOG.md", "## [0.1.0] - 2026-01-01\n")), []);
}

#[test]
fn promises_are_numbered_and_shown() {
    breaks("SPECIFICATION.md", "2. **Soon.** Shown by: *pending*\n", "promise");
    breaks("SPECIFICATION.md", "1. **Soon.** It is so.\n", "promise");
    breaks("SPECIFICATION.md", "1. **Soon.** Shown by: somebody\n", "promise");
    breaks("SPECIFICATION.md", "1. **A.** Shown by: `engine::worker::tests::counts_some`\n", "promise");
    breaks("SPECIFICATION.md", "1. **A.** Shown by: `engine::other::tests::counts_all`\n", "promise");
    breaks("SPECIFICATION.md", "1. **A.** Shown by: `cargo xtask test --only nothing`\n", "promise");
    breaks("SPECIFICATION.md", "1. **A.** Shown by: `crates/engine/src/worker.rs#spin`\n", "promise");
    breaks("SPECIFICATION.md", "1. **A.** Shown by: `programs/wires.rav`\n", "promise");
    let shown = "1. **A.** Shown by: `crates/engine/src/worker.rs#turn`\n## More\n2. **B.** Shown by: `programs/wire.rav`\n";
    assert_eq!(found(&sound().with("SPECIFICATION.md", shown)), []);
    let page = |test: &str| format!("# A study\n| 1 | **holds**; shown by `{test}` |\n");
    breaks("docs/studies/made.md", &page("engine::worker::tests::counts_some"), "promise");
    for unclear in
        ["; shown by us", ", shown by `spin`", "Shown by `spin`.", "; shown by\n`programs/wire.rav`"]
    {
        breaks("docs/studies/made.md", &format!("# A study\n{unclear}\n"), "promise");
    }
    let shown = page("engine::worker::tests::counts_all");
    assert_eq!(found(&sound().with("docs/studies/made.md", &shown)), []);
}

#[test]
fn programs_explain_and_test_themselves() {
    breaks("programs/hub.rav", "start stage a() { flood }\ntest \"a\" {}\n", "program");
    breaks("programs/hub.rav", "// Floods.\nstart stage a() { flood }\n", "program");
    breaks("std/net/arp.rav", "layout arp {}\n", "program");
    assert_eq!(found(&sound().with("std/net/arp.rav", "// ARP.\nlayout arp {}\n")), []);
}

#[test]
fn diagnostics_and_explanations_match() {
    breaks("crates/lang/src/check.rs", "//! Checks.\nlet codes = [\"E0412\", \"W0001\"];\n", "diagnostic");
    breaks_at("crates/lang/src/check.rs", "//! Checks.\n", "diagnostic", "crates/lang/src/explain/flow.md");
    let tested =
        "//! Checks.\nlet code = \"E0412\";\n#[cfg(test)]\nmod tests {\n    let code = \"E9999\";\n}\n";
    assert_eq!(found(&sound().with("crates/lang/src/check.rs", tested)), []);
}

#[test]
fn literals_and_comments_are_not_code() {
    let text = "let a = \"x // \\\" y\"; /* b /* c */ d */ let e = 'f'; fn g<'h>(i: &'h u8) {} r#\"j\"k\"# l '\\'' m // n\nb'\\\\' o";
    let code = rust::code_only(text);
    assert_eq!(code.len(), text.len());
    assert_eq!(code.lines().count(), 2);
    let left: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for unfinished in ["'", "'\\", "\"", "\"\\", "r#\"", "/*", "b'", "'é"] {
        assert_eq!(rust::code_only(unfinished).lines().count(), 1, "{unfinished}");
    }
    assert_eq!(left, ["let", "a", "let", "e", "fn", "g", "h", "i", "h", "u8", "l", "m", "b", "o"]);
}

#[test]
fn functions_are_found_by_their_whole_name() {
    assert!(rust::defines_function("pub fn turn() {}", "turn"));
    assert!(rust::defines_function("fn\n  turn<T>() {}", "turn"));
    assert!(!rust::defines_function("fn turns() {} turn(); let often = turn;", "turn"));
    assert!(!rust::defines_function("soft turn", "turn"));
}

#[test]
fn a_folder_on_disk_is_read_without_build_products() {
    let root = std::env::temp_dir().join(format!("ravelin-tidy-{}", std::process::id()));
    std::fs::create_dir_all(root.join("crates/packet/src")).unwrap();
    std::fs::create_dir_all(root.join("target/debug")).unwrap();
    std::fs::write(root.join("crates/packet/src/lib.rs"), "pub fn f() {}\n").unwrap();
    std::fs::write(root.join("target/debug/made.rs"), "made").unwrap();
    std::fs::write(root.join("picture.png"), [0xff, 0xfe]).unwrap();
    let tree = Tree::load(&root).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(tree.paths().collect::<Vec<_>>(), ["crates/packet/src/lib.rs", "picture.png"]);
    assert_eq!(tree.text("picture.png"), Some(""));
    assert!(tree.exists("crates/packet") && !tree.exists("crates/pack"));
    assert!(found(&tree).contains(&("first-line", "crates/packet/src/lib.rs".to_owned())));
}

#[test]
fn a_word_that_the_vocabulary_replaced_does_not_come_back_in_names() {
    let path = "crates/engine/src/worker.rs";
    let with = |name: &str| {
        format!("//! The loop.\npub fn turn() {{}}\nmod tests {{\n    fn counts_all() {{}}\n}}\n{name}\n")
    };
    for name in
        ["struct Letterbox;", "fn open_letterboxes() {}", "const LETTERBOX: u8 = 0;", "struct OpenLetterbox;"]
    {
        breaks(path, &with(name), "glossary");
    }
    for name in [
        "struct Mailbox;",
        "// A letterbox.",
        "const TEXT: &str = \"letterbox\";",
        "struct Letter { boxed: u8 }",
    ] {
        assert_eq!(found(&sound().with(path, &with(name))), [], "{name}");
    }
}

#[test]
fn public_types_have_names_of_their_own() {
    let path = "crates/engine/src/names.rs";
    let file = |code: &str| format!("//! Names.\n{code}\n");
    let with =
        |other: &str, code: &str| sound().with(path, &file("pub struct Stage;")).with(other, &file(code));
    for code in
        ["pub struct Stage {", "pub enum Stage<T> {", "pub trait Stage: Send {", "pub type Stage = u8;"]
    {
        for other in ["crates/lab/src/stage.rs", "crates/ir/src/stage.rs"] {
            assert_eq!(found(&with(other, code)), [("type names", other.to_owned())], "{code}");
        }
    }
    for code in [
        "struct Stage;",
        "pub(crate) struct Stage;",
        "pub fn Stage() {}",
        "// pub struct Stage;",
        "pub struct Stages;",
    ] {
        assert_eq!(found(&with("crates/lab/src/stage.rs", code)), [], "{code}");
    }
    let forms = ["crates/lang/src/ast.rs", "crates/lang/src/check/hir.rs", "crates/ir/src/stage.rs"];
    let forms = forms.into_iter().fold(sound(), |tree, path| tree.with(path, &file("pub struct Stage;")));
    assert_eq!(found(&forms), []);
    let twice = forms.with("crates/ir/src/other.rs", &file("pub struct Stage;"));
    assert_eq!(found(&twice).len(), 1);
}

#[test]
fn lines_that_people_read_are_not_too_long() {
    let long = "x ".repeat(70);
    breaks("crates/packet/src/a.rs", &format!("//! A file.\n\n/// {long}\nfn a() {{}}\n"), "line");
    breaks("docs/a.md", &format!("# A\n\n{long}\n"), "line");
    let fenced = format!("//! A file.\n//!\n//! ```text\n//! {long}\n//! ```\n//! | {long} |\n");
    assert_eq!(found(&sound().with("crates/packet/src/a.rs", &fenced)), []);
    // A fence that a comment forgot to close ends with the comment.
    breaks("crates/packet/src/a.rs", &format!("//! A file.\n//! ```\n\n// {long}\n"), "line");
}

#[test]
fn circles_of_many_files_are_found_through_whatever_passes_a_name_on() {
    // `a` uses `b`, and so on; the last one uses the first, by `back`.
    let ring = |files: usize, back: &str| {
        let names = ["a", "b", "c", "d", "e"];
        let mut tree = sound().with("crates/packet/src/lib.rs", "//! Bytes.\npub use a::First;\n");
        for (nth, name) in names.iter().enumerate().take(files) {
            let next = names.get(nth + 1).filter(|_| nth + 1 < files);
            let used = next
                .map_or(back.to_owned(), |next| format!("use crate::{{packet, {next}::{{self, Item}}}};"));
            let code = format!("//! A file.\n{used}\nfn of_{name}() {{}}\n");
            tree = tree.with(&format!("crates/packet/src/{name}.rs"), &code);
        }
        found(&tree)
    };
    let circle = [("circle", "crates/packet/src/a.rs".to_owned())];
    assert_eq!(ring(5, "use super::a::First;"), circle);
    assert_eq!(ring(5, "use crate::First;"), circle, "the file that defines it counts");
    assert_eq!(ring(5, "fn call() { crate::a::of_a() }"), circle);
    assert_eq!(ring(4, "use super::a::First;"), []);
    assert_eq!(ring(5, "// use super::a::First;"), []);
    assert_eq!(ring(5, "#[cfg(test)]\nmod tests {\n    use crate::a::First;\n}"), []);
}
