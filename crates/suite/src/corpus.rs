//! The programs and cases of the repository, found from where this crate lies.

use ir::Program;
use lang::pipeline::{CompileOptions, Compiled, Decode, compile};
use lang::settings::{SetValue, Settings};
use std::io;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of a folder with this ending, sorted; folders in it are left out.
///
/// # Errors
/// If the folder cannot be listed.
pub fn files(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A program that ships with the project, by its file's name in `programs/`.
///
/// # Panics
/// It cannot be read, or is not right.
pub fn shipped(name: &str) -> Program {
    let compiled = compile_file(&root().join("programs").join(name), Decode::Lazy);
    compiled.expect("it can be read").program.expect("it compiles")
}

/// A program that ships with the project, with other values for what can be set.
///
/// # Panics
/// It cannot be read, or is not right with these values.
pub fn shipped_with(name: &str, values: &[(&str, &str)]) -> Program {
    let settings = settings(values);
    let text = std::fs::read_to_string(root().join("programs").join(name)).expect("it can be read");
    let options = CompileOptions { settings, ..CompileOptions::default() };
    compile(name, &text, &|_| None, &options).program.expect("it compiles")
}

/// Names of settable constants with the values that they get.
pub fn settings(values: &[(&str, &str)]) -> Settings {
    let mut settings = Settings { name: "set".to_owned(), ..Settings::default() };
    for (name, value) in values {
        let from = settings.text.len();
        settings.text += value;
        let part = from..settings.text.len();
        settings.values.push(SetValue {
            name: (*name).to_owned(),
            place: from..from,
            parts: Vec::from([part]),
        });
    }
    settings
}

/// Compiles a file; modules are looked for beside it.
///
/// # Errors
/// If the file cannot be read.
pub fn compile_file(path: &Path, decode: Decode) -> io::Result<Compiled> {
    let text = std::fs::read_to_string(path)?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let load = move |module: &str| std::fs::read_to_string(folder.join(module)).ok();
    Ok(compile(
        &path.to_string_lossy(),
        &text,
        &load,
        &CompileOptions { decode, ..CompileOptions::default() },
    ))
}
