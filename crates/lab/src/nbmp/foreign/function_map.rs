//! Maps the function identifiers of other vendors to the built-in functions that replace these
//! functions.

/// The replacement of another vendor's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionReplacement {
    /// The built-in function with this name.
    BuiltIn(&'static str),
    /// The lab itself replaces the function, because the lab provides sources and collects results.
    Lab,
}

/// Function identifiers of other vendors and their counterparts. An identifier is the value of
/// `general.id`, or of `id` at an end of a connection.
const COUNTERPARTS: [(&str, FunctionReplacement); 14] = [
    (
        "vod-origin",
        FunctionReplacement::BuiltIn("headwater-origin"),
    ),
    ("origin", FunctionReplacement::BuiltIn("headwater-origin")),
    ("packager", FunctionReplacement::BuiltIn("headwater-origin")),
    ("edge-cache", FunctionReplacement::BuiltIn("headwater-edge")),
    ("cache", FunctionReplacement::BuiltIn("headwater-edge")),
    ("cdn", FunctionReplacement::BuiltIn("headwater-edge")),
    (
        "load-generator",
        FunctionReplacement::BuiltIn("headwater-players"),
    ),
    ("player", FunctionReplacement::BuiltIn("headwater-players")),
    ("players", FunctionReplacement::BuiltIn("headwater-players")),
    (
        "request-generator",
        FunctionReplacement::BuiltIn("headwater-rate"),
    ),
    ("object-store", FunctionReplacement::Lab),
    ("storage", FunctionReplacement::Lab),
    ("collector", FunctionReplacement::Lab),
    ("reporter", FunctionReplacement::Lab),
];

/// Maps a parameter in another vendor's description to a parameter of the built-in function. `{}`
/// in `text` is replaced by the value in the description.
pub(super) struct ParameterMapping {
    function: &'static str,
    name: &'static str,
    /// Key of the parameter in the table `with`. If several parameters map to `flags`, their texts
    /// are joined.
    pub(super) parameter: &'static str,
    pub(super) text: &'static str,
}

const PARAMETERS: [ParameterMapping; 9] = [
    define_parameter_mapping("headwater-players", "workers-max", "viewers", "{}"),
    define_parameter_mapping("headwater-players", "viewers", "viewers", "{}"),
    define_parameter_mapping("headwater-players", "manifest", "manifest", "{}"),
    define_parameter_mapping("headwater-players", "abr", "flags", "--abr {}"),
    define_parameter_mapping("headwater-players", "ramp-seconds", "flags", "--spread {}s"),
    define_parameter_mapping("headwater-players", "duration-seconds", "duration", "{}s"),
    define_parameter_mapping("headwater-rate", "url", "target", "{}"),
    define_parameter_mapping("headwater-rate", "rate", "rate", "{}"),
    define_parameter_mapping("headwater-rate", "duration-seconds", "duration", "{}s"),
];

const fn define_parameter_mapping(
    function: &'static str,
    name: &'static str,
    parameter: &'static str,
    text: &'static str,
) -> ParameterMapping {
    ParameterMapping {
        function,
        name,
        parameter,
        text,
    }
}

/// Returns the counterpart of the function with this identifier. A built-in function is its own
/// counterpart.
pub(super) fn find_function_counterpart(id: &str) -> Option<FunctionReplacement> {
    let own = crate::experiment::built_in_functions().get_key_value(id);
    let known = COUNTERPARTS.iter().find(|(known, _)| *known == id);
    match own {
        Some((name, _)) => Some(FunctionReplacement::BuiltIn(name)),
        None => known.map(|(_, counterpart)| *counterpart),
    }
}

/// Returns the list of all identifiers that have a counterpart, for error messages.
pub(super) fn list_replaceable_functions() -> String {
    let own = crate::experiment::built_in_functions().keys();
    let known = COUNTERPARTS.iter().map(|(id, _)| *id);
    let all: Vec<&str> = known.chain(own.map(String::as_str)).collect();
    all.join(", ")
}

/// Returns the mapping of another vendor's parameter, if the built-in function has a corresponding
/// parameter.
pub(super) fn find_parameter_mapping(
    function: &str,
    name: &str,
) -> Option<&'static ParameterMapping> {
    PARAMETERS
        .iter()
        .find(|known| known.function == function && known.name == name)
}

/// Returns the name and the JSON pointer of each quantity that a sink of a foreign description
/// measures.
pub(super) fn default_measurements(function: &str) -> &'static [(&'static str, &'static str)] {
    match function {
        "headwater-players" => &[
            ("requests", "/summary/requests"),
            ("errors", "/summary/errors"),
            ("stalls", "/viewing/stalls"),
            ("stalled-s", "/viewing/stalled_s"),
        ],
        "headwater-rate" => &[
            ("requests", "/summary/requests"),
            ("errors", "/summary/errors"),
            ("rate-per-s", "/summary/rate_per_s"),
        ],
        _ => &[("seconds", "/seconds"), ("bytes", "/bytes")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::built_in_functions;

    #[test]
    fn every_counterpart_and_parameter_exists() {
        for (id, counterpart) in COUNTERPARTS {
            if let FunctionReplacement::BuiltIn(name) = counterpart {
                assert!(built_in_functions().contains_key(name), "{id}");
            }
        }
        for mapping in PARAMETERS {
            let function = &built_in_functions()[mapping.function];
            assert!(
                function.with.contains_key(mapping.parameter),
                "{}",
                mapping.name
            );
        }
    }
}
