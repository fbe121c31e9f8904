//! Builds an NBMP workflow description from the TOML table of an experiment.

use super::super::{SCHEMES, parse_bounded_json};
use super::experiment_names::{
    ExperimentNames, inputs_if_all_known, source_scheme_and_value, used_built_in_function,
};
use super::flow_control_fields::FLOWS;
use super::parameters::to_parameters;
use super::{EXPERIMENT, REPOSITORY};
use serde_json::{Map, Value, json};
use toml::Table;

/// Builds a workflow description from any table. A key without a field of its own in NBMP becomes a
/// parameter.
pub(super) fn build_workflow(experiment: &Table) -> Value {
    let mut left = experiment.clone();
    let mut take_text = |key: &str| match left.get(key) {
        Some(toml::Value::String(text)) => {
            let text = text.clone();
            left.remove(key);
            Some(text)
        }
        _ => None,
    };
    let (name, question) = (take_text("name"), take_text("question"));
    let mut made = WorkflowBuilder::default();
    let names = ExperimentNames::from_experiment(experiment);
    take_converted_tables(&mut left, "source", |name, table| {
        made.add_source(name, table)
    });
    for (kind, role) in [("function", "command"), ("sink", "measure")] {
        take_converted_tables(&mut left, kind, |name, table| {
            made.add_function(role, name, table, &names)
        });
    }
    take_converted_tables(&mut left, "link", |name, table| made.add_link(name, table));
    made.add_bounds(&mut left);
    made.add_expectations(&mut left);
    made.into_workflow(name, question, to_parameters(&left))
}

/// Calls `take` with the name and the table of each entry of `kind`. Removes the entries for which
/// `take` returns `true`.
fn take_converted_tables(left: &mut Table, kind: &str, mut take: impl FnMut(&str, &Table) -> bool) {
    let Some(toml::Value::Table(all)) = left.get_mut(kind) else {
        return;
    };
    if all.is_empty() {
        return;
    }
    all.retain(|name, table| !table.as_table().is_some_and(|table| take(name, table)));
    if all.is_empty() {
        left.remove(kind);
    }
}

/// The parts of the description that have been built so far.
#[derive(Default)]
struct WorkflowBuilder {
    streams: Vec<Value>,
    results: Vec<Value>,
    in_ports: Vec<Value>,
    out_ports: Vec<Value>,
    restrictions: Vec<Value>,
    connections: Vec<Value>,
    assertions: Vec<Value>,
}

fn build_port_json(name: &str, stream: &str) -> Value {
    json!({"port-name": name, "bind": {"stream-id": stream, "name": name}})
}

impl WorkflowBuilder {
    fn add_source(&mut self, name: &str, table: &Table) -> bool {
        let Some((scheme, text)) = source_scheme_and_value(table) else {
            return false;
        };
        self.in_ports.push(build_port_json(name, name));
        self.streams.push(json!({
            "stream-id": name, "name": name, "keywords": ["source"],
            "mime-type": "application/octet-stream", "protocol": "file", "mode": "pull",
            "caching-server-url": format!("{scheme}{}", percent_encode(text)),
        }));
        true
    }

    fn add_function(
        &mut self,
        role: &str,
        name: &str,
        table: &Table,
        names: &ExperimentNames<'_>,
    ) -> bool {
        if name == EXPERIMENT {
            return false;
        }
        let mut left = table.clone();
        let inputs = take_inputs(&mut left, names);
        let id = take_used_built_in_function(&mut left, role).unwrap_or_else(|| role.to_owned());
        let mut general = json!({
            "id": id, "name": name, "description": "", "state": "instantiated",
        });
        let ports: Vec<Value> = inputs
            .iter()
            .map(|input| build_port_json(input, input))
            .collect();
        general["input-ports"] = ports.into();
        for input in &inputs {
            if names.functions.contains(input) {
                self.connections.push(json!({
                    "connection-id": format!("{input}->{name}"),
                    "from": {"id": names.function_identifier(input), "instance": input, "port-name": "out"},
                    "to": {"id": id, "instance": name, "port-name": input},
                }));
            }
        }
        let mut variables = Vec::new();
        let out = match role {
            "measure" => {
                variables = take_sink_variables(&mut left);
                let stream = format!("{name}.results");
                self.out_ports.push(build_port_json(name, &stream));
                self.results.push(json!({
                    "stream-id": stream, "name": name, "keywords": ["results"],
                    "mime-type": "application/json", "protocol": "file", "mode": "push",
                    "caching-server-url": "file:runs.jsonl",
                }));
                vec![build_port_json("results", &stream)]
            }
            _ if names.consumed.contains(name) => vec![build_port_json("out", name)],
            _ => Vec::new(),
        };
        general["output-ports"] = out.into();
        let mut made = json!({"instance": name, "general": general});
        if !variables.is_empty() {
            made["monitoring"] = json!({"variable": variables});
        }
        let parameters = to_parameters(&left);
        if !parameters.is_empty() {
            made["configuration"] = json!({"parameters": parameters});
        }
        self.restrictions.push(made);
        true
    }

    /// Adds a link as a connection from the server's place to the client's place.
    fn add_link(&mut self, name: &str, table: &Table) -> bool {
        let between = table.get("between").and_then(toml::Value::as_array);
        let ends: Vec<&str> = between
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
            .collect();
        let ([client, server], Some(2)) = (ends.as_slice(), between.map(Vec::len)) else {
            return false;
        };
        let mut left = table.clone();
        left.remove("between");
        let mut flow = Map::new();
        for known in &FLOWS {
            let text = left.get(known.key).and_then(toml::Value::as_str);
            if let Some(number) = text.and_then(|text| known.parse_plain_value(text)) {
                left.remove(known.key);
                flow.insert(known.field.into(), number.into());
            }
        }
        let end = |place: &str| json!({"id": "place", "instance": format!("place.{place}"), "port-name": name});
        let mut made = json!({"connection-id": name, "from": end(server), "to": end(client)});
        if !flow.is_empty() {
            made["flowcontrol"] = flow.into();
        }
        let parameters = to_parameters(&left);
        if !parameters.is_empty() {
            made["other-parameters"] = parameters.into();
        }
        self.connections.push(made);
        true
    }

    /// Adds the bounds of the experiment as assertions. A run that exceeds a bound is discarded and
    /// repeated, which is the NBMP action `restart`.
    fn add_bounds(&mut self, left: &mut Table) {
        if let Some(toml::Value::Table(bounds)) = left.get("bounds") {
            if bounds.values().any(|bound| !bound.is_str()) || bounds.is_empty() {
                return;
            }
            for (name, bound) in bounds {
                let check = json!({"at-most": super::overlay::toml_to_json(bound)});
                self.assertions.push(build_assertion_json(
                    name,
                    "computational",
                    check,
                    "restart",
                ));
            }
            left.remove("bounds");
        }
    }

    fn add_expectations(&mut self, left: &mut Table) {
        let Some(toml::Value::Array(all)) = left.get("expect") else {
            return;
        };
        let mut made = Vec::new();
        if all.is_empty() {
            return;
        }
        for expect in all {
            let Some(mut table) = expect.as_table().cloned() else {
                return;
            };
            let Some(toml::Value::String(that)) = table.remove("that") else {
                return;
            };
            // Converts the expectations only if a round trip through JSON does not change their
            // values.
            let check = super::overlay::toml_to_json(&table.clone().into());
            let again = parse_bounded_json(check.to_string().as_bytes())
                .map(|again| super::overlay::json_to_toml(&again));
            let quantity = table.get("quantity").is_some_and(toml::Value::is_str);
            if that.is_empty() || !quantity || again != Ok(table.into()) {
                return;
            }
            made.push(build_assertion_json(&that, "quality", check, "wait"));
        }
        self.assertions.append(&mut made);
        left.remove("expect");
    }

    fn into_workflow(
        mut self,
        name: Option<String>,
        question: Option<String>,
        parameters: Vec<Value>,
    ) -> Value {
        if !parameters.is_empty() {
            self.restrictions.push(json!({
                "instance": EXPERIMENT, "configuration": {"parameters": parameters},
            }));
        }
        let mut general = json!({
            "id": to_identifier(name.as_deref().unwrap_or_default()),
            "input-ports": self.in_ports, "output-ports": self.out_ports, "state": "instantiated",
        });
        for (field, text) in [("name", name), ("description", question)] {
            if let Some(text) = text {
                general[field] = text.into();
            }
        }
        let mut processing = json!({
            "keywords": ["experiment"],
            "image": [{"url": "headwater:lab", "is-dynamic": false}],
            "function-restrictions": self.restrictions,
        });
        if !self.connections.is_empty() {
            processing["connection-map"] = self.connections.into();
        }
        let mut workflow = json!({
            "scheme": {"uri": SCHEMES[1]},
            "general": general,
            "repository": {"mode": "available", "location": [
                {"url": REPOSITORY, "name": "built-in", "description": "built-in functions of the lab"},
            ]},
            "input": {"media-parameters": self.streams},
            "output": {"metadata-parameters": self.results},
            "processing": processing,
            "requirement": {},
        });
        if !self.assertions.is_empty() {
            workflow["assertion"] = json!({
                "min-priority": 0, "min-priority-action": "continue", "assertion": self.assertions,
            });
        }
        workflow
    }
}

/// Removes the name of the built-in function from the table and returns the name.
fn take_used_built_in_function(left: &mut Table, role: &str) -> Option<String> {
    let name = used_built_in_function(left, role)?;
    left.remove("use");
    Some(name)
}

/// Removes the inputs from the table and returns their names, which become ports.
fn take_inputs(left: &mut Table, names: &ExperimentNames<'_>) -> Vec<String> {
    let inputs = inputs_if_all_known(left, names);
    if !inputs.is_empty() {
        left.remove("input");
    }
    inputs
}

/// Removes the quantities of a sink from the table and returns them as NBMP variables.
fn take_sink_variables(left: &mut Table) -> Vec<Value> {
    let Some(toml::Value::Table(table)) = left.get("measure") else {
        return Vec::new();
    };
    let variable = |(name, pointer): (&String, &toml::Value)| {
        let pointer = pointer.as_str().filter(|_| !name.is_empty())?;
        Some(json!({"name": name, "definition": pointer, "unit": "1", "var-type": "number"}))
    };
    let all: Option<Vec<Value>> = table.iter().map(variable).collect();
    if let Some(all) = all.filter(|all| !all.is_empty()) {
        left.remove("measure");
        return all;
    }
    Vec::new()
}

fn build_assertion_json(name: &str, condition: &str, check: Value, action: &str) -> Value {
    json!({
        "name": name,
        "value-predicate": {
            "evaluation-condition": condition, "check-value": check,
            "aggregation": "avg", "priority": 0, "action": action,
        },
    })
}

/// Converts a name to an identifier of lower-case letters, digits and dashes.
fn to_identifier(name: &str) -> String {
    let mut id = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => id.push(c),
            _ if id.ends_with('-') || id.is_empty() => {}
            _ => id.push('-'),
        }
    }
    match id.trim_end_matches('-') {
        "" => "experiment".into(),
        id => id.into(),
    }
}

/// Percent-encodes a text (RFC 3986, section 2.1).
pub(in super::super) fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || b"-._~/".contains(&b) => out.push(char::from(b)),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}
