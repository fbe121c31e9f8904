//! Describes built-in functions as NBMP function descriptions.

use super::SCHEMES;
use crate::experiment::BuiltInFunction;
use serde_json::{Value, json};

/// Returns the function description (FDD) of a built-in function.
pub fn describe_function(name: &str, function: &BuiltInFunction) -> Value {
    let (input, output) = match function.role.as_str() {
        "measure" => ("in", "results"),
        _ => ("in", "out"),
    };
    let stream = |stream: &str| {
        json!({
            "stream-id": stream, "name": stream, "keywords": [function.group],
            "mime-type": "application/octet-stream", "protocol": "http",
            "caching-server-url": format!("headwater:functions/{name}/{stream}"),
        })
    };
    let port = |port: &str| json!([{"port-name": port, "bind": {"stream-id": port, "name": port}}]);
    let parameter = |(id, (name, [default, about])): (usize, (&String, &[String; 2]))| {
        json!({
            "name": format!("with.{name}"), "id": id + 1, "datatype": "string",
            "description": about,
            "values": [{"name": "value", "id": 1, "restrictions": [default]}],
        })
    };
    let parameters: Vec<Value> = function.with.iter().enumerate().map(parameter).collect();
    let mut description = json!({
        "scheme": {"uri": SCHEMES[1]},
        "general": {
            "id": name, "name": name, "description": function.about, "state": "null",
            "input-ports": port(input), "output-ports": port(output),
        },
        "input": {"media-parameters": [stream(input)]},
        "output": {"media-parameters": [stream(output)]},
        "processing": {
            "keywords": [function.group, function.role],
            "image": [{"url": format!("headwater:functions/{name}"), "is-dynamic": false}],
        },
    });
    if !parameters.is_empty() {
        description["configuration"] = json!({"parameters": parameters});
    }
    description
}

#[cfg(test)]
mod tests {
    use super::super::{DescriptionKind, ValidationStrictness, validate_description};
    use super::*;
    use crate::experiment::built_in_functions;

    #[test]
    fn descriptions_conform_to_the_standard() {
        for (name, function) in built_in_functions() {
            let description = describe_function(name, function);
            let offences = validate_description(
                &description,
                DescriptionKind::Function,
                ValidationStrictness::Strict,
                &[],
            );
            assert_eq!(offences, [], "{name}");
        }
    }
}
