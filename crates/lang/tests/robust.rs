//! Programs that must compile do, and programs changed at random never bring the compiler down: always a
//! result, places inside the files, and only programs that the verifier accepts.

use ir::source::Span;
use ir::verify::verify;
use lang::diagnostic::Severity;
use lang::pipeline::{CompileOptions, Compiled, Decode, compile};
use std::fs;
use std::path::{Path, PathBuf};

/// How many changed programs are compiled.
const MUTANTS: usize = 4_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The programs of some folders: folder, name, text.
fn programs(folders: &[&str]) -> Vec<(PathBuf, String, String)> {
    let mut found = Vec::new();
    for folder in folders {
        let folder = root().join(folder);
        let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("its entries can be listed").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "rav"))
            .collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            found.push((folder.clone(), name, fs::read_to_string(&path).expect("programs are text")));
        }
    }
    found
}

fn compiled(folder: &Path, name: &str, text: &str, decode: Decode) -> Compiled {
    let load = |path: &str| fs::read_to_string(folder.join(path)).ok();
    compile(name, text, &load, &CompileOptions { decode, ..CompileOptions::default() })
}

#[test]
fn good_programs_compile_in_every_way_of_decoding() {
    let good = programs(&["programs", "suite/good"]);
    assert!(good.len() > 60, "only {} programs were found", good.len());
    for (folder, name, text) in &good {
        for decode in [Decode::Lazy, Decode::Declared, Decode::Full] {
            let compiled = compiled(folder, name, text, decode);
            let errors: Vec<_> = compiled
                .diagnostics
                .iter()
                .filter(|diagnostic| diagnostic.severity == Severity::Error)
                .collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}");
            let program = compiled.program.expect("without errors there is a program");
            assert_eq!(verify(&program).err(), None, "{name}");
        }
    }
}

/// Marsaglia's xorshift (2003): numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// Words, blanks and single signs, which put together are the text.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |symbol: char| symbol.is_alphanumeric() || symbol == '_';
        let length = if word(first) {
            rest.find(|symbol: char| !word(symbol)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        pieces.push(&rest[..length]);
        rest = &rest[length..];
    }
    pieces
}

/// Deletes, doubles, swaps or replaces a few words or signs; now and then bytes.
fn changed(text: &str, words: &[String], numbers: &mut Numbers) -> String {
    if numbers.below(5) == 0 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len());
            match numbers.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b" {}()[]=.,|\"0x9"[numbers.below(15)]),
                _ => bytes[at] = b" {}()[]=.,|\"0x9"[numbers.below(15)],
            }
        }
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    if numbers.below(4) == 0 {
        let mut lines: Vec<&str> = text.lines().collect();
        let (at, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
        match numbers.below(3) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other]),
            _ => lines.swap(at, other),
        }
        return lines.join("\n");
    }
    let mut parts: Vec<&str> = pieces(text);
    let alike = |a: &str, b: &str| {
        let class =
            |piece: &str| piece.chars().next().map(|first| (first.is_numeric(), first.is_alphabetic()));
        class(a) == class(b)
    };
    let solid = |parts: &[&str], numbers: &mut Numbers| {
        (0..20).map(|_| numbers.below(parts.len())).find(|&at| !parts[at].trim().is_empty()).unwrap_or(0)
    };
    for _ in 0..=numbers.below(2) {
        let at = solid(&parts, numbers);
        let other = solid(&parts, numbers);
        match numbers.below(12) {
            // A name by a name, a number by a number: most of these still parse.
            6.. => {
                let twins: Vec<&str> = parts.iter().copied().filter(|part| alike(part, parts[at])).collect();
                parts[at] = twins[numbers.below(twins.len())];
            }
            0 => drop(parts.remove(at)),
            1 => parts.insert(at, parts[other]),
            2 => parts.swap(at, other),
            3 => parts[at] = parts[other],
            _ => parts[at] = &words[numbers.below(words.len())],
        }
    }
    parts.concat()
}

fn check(folder: &Path, name: &str, text: &str) -> bool {
    let compiled = compiled(folder, name, text, Decode::Lazy);
    let inside = |span: Span| {
        compiled.sources.file(span.file).text.get(span.start as usize..span.end as usize).is_some()
    };
    for diagnostic in &compiled.diagnostics {
        let mut spans = vec![diagnostic.primary.span];
        spans.extend(diagnostic.path.iter().map(|label| label.span));
        spans.extend(diagnostic.suggestion.iter().map(|suggestion| suggestion.span));
        assert!(spans.into_iter().all(inside), "{name}: {diagnostic:?}\n{text}");
    }
    let errors = compiled.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(compiled.program.is_none(), errors, "{name}: {:#?}\n{text}", compiled.diagnostics);
    if let Some(program) = &compiled.program {
        assert_eq!(verify(program).err(), None, "{name} is not verified:\n{text}");
    }
    compiled.program.is_some()
}

#[test]
fn changed_programs_never_bring_the_compiler_down() {
    let all = programs(&["programs", "suite/good", "suite/bad"]);
    let mut words: Vec<String> = all
        .iter()
        .flat_map(|(_, _, text)| pieces(text))
        .filter(|piece| !piece.trim().is_empty())
        .map(str::to_string)
        .collect();
    words.sort_unstable();
    words.dedup();
    let seed = std::env::var("MUTATION_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut numbers = Numbers(seed.unwrap_or(0x5eed_0f9a));
    let mut programs = 0;
    let mutants = std::env::var("MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(MUTANTS);
    for round in 0..mutants {
        let (folder, name, text) = &all[round % all.len()];
        let text = changed(text, &words, &mut numbers);
        let outcome = std::panic::catch_unwind(|| check(folder, name, &text));
        match outcome {
            Ok(compiles) => programs += usize::from(compiles),
            Err(_) => panic!("round {round}, changed {name}:\n{text}"),
        }
    }
    assert!(programs > mutants / 20, "only {programs} of {mutants} changed programs were right");
}
