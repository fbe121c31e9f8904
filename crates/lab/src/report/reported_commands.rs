//! Lists the commands of an experiment, without paths of this machine.

use super::arms::describe_arm;
use crate::experiment::document::ExperimentDocument;
use crate::experiment::{RunPlan, portable_command_line};
use serde::{Deserialize, Serialize};

/// A command in which variables, addresses and ports are filled in. Sources and folders remain
/// placeholders.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportedCommand {
    /// Kind and name of the component, such as `function origin`, `sink viewers` or `source film`.
    pub of: String,
    /// Place in which the command runs, if the document has places.
    pub at: Option<String>,
    /// The shell command. For a source without a command, this is the path of the source's media.
    pub run: String,
    /// The arms that use this command. Empty if all arms use the same command.
    pub arms: Vec<String>,
}

/// Lists each distinct command once.
pub(super) fn list_commands(plan: &RunPlan) -> Vec<ReportedCommand> {
    let document = &plan.document;
    let mut all = Vec::new();
    for (name, source) in &document.source {
        let made = source.make.as_ref().or(source.media.as_ref());
        all.extend(made.map(|run| ReportedCommand {
            of: format!("source {}", name.get_ref()),
            at: None,
            run: run.get_ref().clone(),
            arms: Vec::new(),
        }));
    }
    for (kind, name) in list_functions_and_sinks(document) {
        let mut of_part: Vec<ReportedCommand> = Vec::new();
        for arm in &plan.arms {
            let Some((at, run)) = portable_command_line(document, arm, kind, name) else {
                continue;
            };
            match of_part.iter_mut().find(|known| known.run == run) {
                Some(known) => known.arms.push(describe_arm(arm)),
                None => of_part.push(ReportedCommand {
                    of: format!("{kind} {name}"),
                    at,
                    run,
                    arms: vec![describe_arm(arm)],
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

fn list_functions_and_sinks(
    document: &ExperimentDocument,
) -> impl Iterator<Item = (&'static str, &str)> {
    let functions = document.function.keys();
    let functions = functions.map(|name| ("function", name.get_ref().as_str()));
    let sinks = document
        .sink
        .keys()
        .map(|name| ("sink", name.get_ref().as_str()));
    functions.chain(sinks)
}
