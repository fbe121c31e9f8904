//! Warnings about environment variables that start with `HEADWATER_` but match no setting.

use super::closest_name::closest_name;
use super::layers::environment_name;
use std::collections::BTreeSet;

const PREFIX: &str = "HEADWATER_";
/// Limit on the bytes of a reported name. Longer names are ignored, so that the comparison with the
/// known names is fast.
const NAME_BYTES_MAX: usize = 100;
/// Limit on the number of reported variables.
const REPORTED_MAX: usize = 20;

/// Returns a warning for each variable that starts with `HEADWATER_` but matches no setting.
///
/// `settings` contains the names of all settings of all commands. `variables` contains only names,
/// because values may be secrets.
pub fn unknown_variables<'a>(
    settings: impl Iterator<Item = &'a str>,
    variables: impl Iterator<Item = String>,
) -> Vec<String> {
    let known: BTreeSet<String> = settings.map(environment_name).collect();
    let unknown = variables.filter(|name| name.starts_with(PREFIX) && !known.contains(name));
    let names: BTreeSet<String> = unknown
        .filter(|name| name.len() <= NAME_BYTES_MAX)
        .collect();
    let warnings = names.iter().map(|name| describe_unknown(name, &known));
    warnings.take(REPORTED_MAX).collect()
}

fn describe_unknown(name: &str, known: &BTreeSet<String>) -> String {
    // Compares the names without the prefix, because the common prefix would make all names
    // similar.
    let stem = name.strip_prefix(PREFIX).unwrap_or(name);
    let known_stems = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
    match closest_name(stem, known_stems) {
        Some(near) => format!("{name}: unknown variable, ignored; did you mean {PREFIX}{near}?"),
        None => format!("{name}: unknown variable, ignored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(variables: &[&str]) -> Vec<String> {
        let settings = ["segment", "storage-memory", "listen"].into_iter();
        unknown_variables(settings, variables.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_nearest_name() {
        let all = [
            "PATH",
            "HEADWATER_SEGMENT",
            "HEADWATER_SEGMNT",
            "HEADWATER_",
        ];
        let found = warnings(&all);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].starts_with("HEADWATER_SEGMNT: unknown"),
            "{found:?}"
        );
        assert!(
            found[1].ends_with("did you mean HEADWATER_SEGMENT?"),
            "{found:?}"
        );
    }

    #[test]
    fn a_variable_unlike_all_settings_has_no_suggestion() {
        let found = warnings(&["HEADWATER_BENCHMARKING"]);
        assert_eq!(found, ["HEADWATER_BENCHMARKING: unknown variable, ignored"]);
    }
}
