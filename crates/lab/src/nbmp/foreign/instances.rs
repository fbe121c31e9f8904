//! Lists the instances that a foreign description names in `function-restrictions` or at the ends
//! of connections.

use super::super::NbmpFault;
use super::super::json_path::JsonPath;
use super::function_map::{
    FunctionReplacement, find_function_counterpart, list_replaceable_functions,
};
use super::{enumerate_processing_array, reserved_names, text_field};
use crate::experiment::built_in_functions;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instances. Every instance is compared with all others.
const INSTANCES_MAX: usize = 1000;

/// An instance of a function that a built-in function replaces.
#[derive(Debug)]
pub(super) struct FunctionInstance {
    /// Name in the description.
    pub(super) instance: String,
    /// Name in the experiment.
    pub(super) name: String,
    /// Name of the built-in function.
    pub(super) function: &'static str,
    /// Whether the instance is a client that measures, and not a server.
    pub(super) is_sink: bool,
    /// Names of the instances that are connected to this instance's inputs.
    pub(super) fed_by: BTreeSet<String>,
    /// Path of the element of `function-restrictions` that describes the instance. If no such
    /// element exists, this is the path of the first connection end that names the instance.
    pub(super) at: JsonPath,
}

impl FunctionInstance {
    /// Returns the element of `function-restrictions` that describes this instance, if it exists.
    pub(super) fn function_restriction<'a>(&self, workflow: &'a Value) -> Option<&'a Value> {
        let mut all = enumerate_processing_array(workflow, "function-restrictions");
        let found = all.find(|(_, one)| text_field(one, "instance") == Some(&self.instance));
        found.map(|(_, one)| one)
    }
}

/// Returns the instances to run, and the JSONPaths of the instances whose work the lab does itself.
///
/// # Errors
/// Returns a fault for every function for which the lab has no replacement, or if there are too many
/// instances.
pub(super) fn list_instances(
    workflow: &Value,
) -> Result<(Vec<FunctionInstance>, Vec<String>), Vec<NbmpFault>> {
    let mut named: BTreeMap<String, (String, JsonPath, JsonPath)> = BTreeMap::new();
    let mut order = Vec::new();
    let mut add = |instance: &str, id: &str, at: JsonPath, id_at: JsonPath| {
        named.entry(instance.to_owned()).or_insert_with(|| {
            order.push(instance.to_owned());
            (id.to_owned(), at, id_at)
        });
    };
    let root = JsonPath::root().at("processing");
    for (number, function) in enumerate_processing_array(workflow, "function-restrictions") {
        let at = root.at("function-restrictions").element(number);
        let id = function.pointer("/general/id").and_then(Value::as_str);
        if let (Some(instance), Some(id)) = (text_field(function, "instance"), id) {
            add(instance, id, at.clone(), at.at("general").at("id"));
        }
    }
    let mut fed_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (number, connection) in enumerate_processing_array(workflow, "connection-map") {
        let at = root.at("connection-map").element(number);
        let mut ends = Vec::new();
        for side in ["from", "to"] {
            let end = connection.get(side).unwrap_or(&Value::Null);
            if let (Some(instance), Some(id)) = (text_field(end, "instance"), text_field(end, "id"))
            {
                add(instance, id, at.at(side), at.at(side).at("id"));
                ends.push(instance.to_owned());
            }
        }
        if let [from, to] = ends.as_slice() {
            fed_by.entry(to.clone()).or_default().insert(from.clone());
        }
    }
    if order.len() > INSTANCES_MAX {
        let what = format!("{} instances; at most {INSTANCES_MAX}", order.len());
        return Err(vec![root.fault_here(what)]);
    }
    let mut names = reserved_names();
    let (mut found, mut ignored, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for instance in order {
        let Some((id, at, id_at)) = named.remove(&instance) else {
            continue;
        };
        match find_function_counterpart(&id) {
            Some(FunctionReplacement::BuiltIn(function)) => {
                let role = built_in_functions()
                    .get(function)
                    .map(|known| known.role.as_str());
                found.push(FunctionInstance {
                    name: unique_name(&instance, &mut names),
                    function,
                    is_sink: role == Some("measure"),
                    fed_by: fed_by.remove(&instance).unwrap_or_default(),
                    at,
                    instance,
                });
            }
            Some(FunctionReplacement::Lab) => ignored.push(at.fault_here("").path),
            None => {
                let known = list_replaceable_functions();
                let what = format!("unknown function {id:.80}; the lab runs {known}");
                faults.push(id_at.fault_here(what));
            }
        }
    }
    match faults.is_empty() {
        true => Ok((found, ignored)),
        false => Err(faults),
    }
}

/// Converts a text to a name that an experiment accepts. The name consists of lower-case letters,
/// digits and dashes.
pub(super) fn to_experiment_name(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|letter| match letter.is_ascii_alphanumeric() {
            true => letter.to_ascii_lowercase(),
            false => '-',
        })
        .take(60)
        .collect();
    if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        name.insert_str(0, "n-");
    }
    name
}

/// Returns a unique name for the instance, and adds the name to `names`.
fn unique_name(instance: &str, names: &mut BTreeSet<String>) -> String {
    let plain = to_experiment_name(instance);
    let mut name = plain.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{plain}-{number}");
        number += 1;
    }
    name
}
