//! What was run, exactly, as far as it does not lie in this machine's folders.

use super::arms::words;
use crate::experiment::document::Document;
use crate::experiment::{Plan, command_line};
use serde::Serialize;

/// A command line, variables, addresses and ports filled in; sources and folders as written.
#[derive(Debug, Clone, Serialize)]
pub struct Command {
    /// `function origin`, `sink viewers`, `source film`.
    pub of: String,
    /// Its place, where links make places.
    pub at: Option<String>,
    /// By the shell.
    pub run: String,
    /// The arms that it is of, where it is not of all.
    pub arms: Vec<String>,
}

/// Each different one once.
pub(super) fn commands(plan: &Plan) -> Vec<Command> {
    let document = &plan.document;
    let mut all = Vec::new();
    for (name, source) in &document.source {
        let made = source.make.as_ref().or(source.media.as_ref());
        all.extend(made.map(|run| Command {
            of: format!("source {}", name.get_ref()),
            at: None,
            run: run.get_ref().clone(),
            arms: Vec::new(),
        }));
    }
    for (kind, name) in parts(document) {
        let mut of_part: Vec<Command> = Vec::new();
        for arm in &plan.arms {
            let Some((at, run)) = command_line(document, arm, kind, name) else {
                continue;
            };
            match of_part.iter_mut().find(|known| known.run == run) {
                Some(known) => known.arms.push(words(arm)),
                None => of_part.push(Command {
                    of: format!("{kind} {name}"),
                    at,
                    run,
                    arms: vec![words(arm)],
                }),
            }
        }
        if let [only] = of_part.as_mut_slice() {
            only.arms.clear();
        }
        all.extend(of_part);
    }
    all
}

fn parts(document: &Document) -> impl Iterator<Item = (&'static str, &str)> {
    let functions = document.function.keys();
    let functions = functions.map(|name| ("function", name.get_ref().as_str()));
    let sinks = document
        .sink
        .keys()
        .map(|name| ("sink", name.get_ref().as_str()));
    functions.chain(sinks)
}
