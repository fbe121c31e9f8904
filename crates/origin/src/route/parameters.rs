//! Query parameters of manifests and films.

use super::{DashAddressing, HlsContainer, RouteError, percent_decode};

/// Query parameters that select a part of a title on other origin servers, according to the
/// documentation of those servers. If Headwater ignored such a parameter, the response would
/// contain parts of the title that the parameter should exclude.
const SELECTIONS: [&str; 17] = [
    // Unified Origin.
    "filter",
    "vbegin",
    "vend",
    "t",
    "max_bitrate",
    "min_bitrate",
    "tracks",
    "sort_tracks",
    "start_index",
    "base_path",
    // AWS Elemental MediaPackage.
    "aws.manifestfilter",
    // Wowza Streaming Engine.
    "wowzaplaystart",
    "wowzaplayduration",
    // Mux.
    "max_resolution",
    "min_resolution",
    "asset_start_time",
    "asset_end_time",
];

/// Rejects query parameters that select a part of a title. Ignores other unknown parameters.
pub(crate) fn refuse_selection_parameters(query: Option<&str>) -> Result<(), RouteError> {
    for pair in query.unwrap_or_default().split('&') {
        // A name that cannot be decoded is unknown.
        let Ok(name) = percent_decode(pair.split('=').next().unwrap_or_default()) else {
            continue;
        };
        // The comparison ignores case, because MediaPackage ignores the case of parameter names.
        let is_named = |known: &&&str| known.eq_ignore_ascii_case(&name);
        if let Some(name) = SELECTIONS.iter().find(is_named) {
            return Err(RouteError::UnsupportedParameter(name));
        }
    }
    Ok(())
}

pub(super) fn parse_container_parameter(query: Option<&str>) -> Result<HlsContainer, RouteError> {
    match query_value(query, "format") {
        None | Some("cmaf") => Ok(HlsContainer::Cmaf),
        Some("ts") => Ok(HlsContainer::Ts),
        Some(_) => Err(RouteError::Query("`format` must be cmaf or ts")),
    }
}

pub(super) fn parse_addressing_parameter(
    query: Option<&str>,
) -> Result<DashAddressing, RouteError> {
    match query_value(query, "template") {
        None | Some("time") => Ok(DashAddressing::Time),
        Some("number") => Ok(DashAddressing::Number),
        Some(_) => Err(RouteError::Query("`template` must be time or number")),
    }
}

/// Returns the last value of a query parameter. The value is not percent-decoded, because known
/// values contain no escapes.
fn query_value<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value)
        .next_back()
}
