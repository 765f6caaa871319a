//! Leaves out the stages of modules to which no stage of the program leads, so that a program imports a
//! module for a part of it, and provides only the stages that this part goes to.
//!
//! Every stage of the main file counts, also one that no packet reaches: its author is told about it later.

use crate::ast::{Block, File, Item, StmtKind};
use std::collections::{HashMap, HashSet};

/// Takes the stages and `extern` stages out of the modules, which are the files behind the first, that cannot
/// be reached from the first, nor from a stage of a module with which packets start.
pub(super) fn leave_out_others(files: &mut [File]) {
    let mut bodies: HashMap<&str, Vec<&Block>> = HashMap::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, file) in files.iter().enumerate() {
        for item in &file.items {
            let (name, body, begins) = match item {
                Item::Stage(stage) => (&stage.name.text, Some(&stage.body), stage.start),
                Item::Extern(asked) => (&asked.name.text, asked.body.as_ref(), false),
                _ => continue,
            };
            bodies.entry(name).or_default().extend(body);
            if at == 0 || begins {
                open.push(name);
            }
        }
    }
    let mut reached: HashSet<String> = HashSet::new();
    while let Some(name) = open.pop() {
        if reached.insert(name.to_string()) {
            bodies.get(name).into_iter().flatten().for_each(|body| targets(body, &mut open));
        }
    }
    for file in files.iter_mut().skip(1) {
        file.items.retain(|item| match item {
            Item::Stage(stage) => reached.contains(&stage.name.text),
            Item::Extern(asked) => reached.contains(&asked.name.text),
            _ => true,
        });
    }
}

/// The names of the stages to which a block goes.
pub(super) fn targets<'b>(block: &'b Block, found: &mut Vec<&'b str>) {
    for statement in &block.statements {
        match &statement.kind {
            StmtKind::Goto(name, _) => found.push(&name.text),
            StmtKind::If(_, then, other) => {
                targets(then, found);
                other.iter().for_each(|other| targets(other, found));
            }
            StmtKind::Match(_, arms) => arms.iter().for_each(|arm| targets(&arm.body, found)),
            StmtKind::For(_, _, _, body) | StmtKind::Walk { body, .. } => targets(body, found),
            StmtKind::Learn(_, refused)
            | StmtKind::Insert(_, refused)
            | StmtKind::LearnTogether(_, refused) => {
                refused.iter().for_each(|refused| targets(refused, found));
            }
            _ => {}
        }
    }
}
