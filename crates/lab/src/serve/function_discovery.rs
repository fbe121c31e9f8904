//! Discovery of built-in functions.

use super::response::json_response;
use crate::experiment::{BuiltInFunction, built_in_functions};
use crate::nbmp::{DescriptionKind, describe_function};
use http::{Response, StatusCode};
use net::{Body, Error};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the built-in functions that match the `id`, `name` and `keyword` of the query.
pub(super) fn discover_functions(query: &str) -> Result<Response<Body>, Error> {
    let wanted: Vec<(&str, &str)> = query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    matching_functions_response(|name, function| {
        wanted.iter().all(|(key, value)| match *key {
            "id" | "name" => name == *value,
            "keyword" | "keywords" => {
                [function.group.as_str(), function.role.as_str()].contains(value)
            }
            _ => true,
        })
    })
}

/// Returns the built-in functions of the group that `groupId` in the query names.
pub(super) fn discover_group(query: &str) -> Result<Response<Body>, Error> {
    let group = query
        .split('&')
        .find_map(|part| part.strip_prefix("groupId="));
    matching_functions_response(|_, function| group == Some(function.group.as_str()))
}

fn matching_functions_response(
    fits: impl Fn(&str, &BuiltInFunction) -> bool,
) -> Result<Response<Body>, Error> {
    let found = built_in_functions()
        .iter()
        .filter(|(name, function)| fits(name, function));
    let all: Vec<Value> = found
        .map(|(name, function)| describe_function(name, function))
        .collect();
    if all.is_empty() {
        let groups = built_in_functions()
            .values()
            .map(|function| function.group.as_str());
        let groups: BTreeSet<&str> = groups.collect();
        let what = format!("no matching function; the groups are {groups:?}");
        return Err(Error::new_client_error(StatusCode::NOT_FOUND, what));
    }
    Ok(json_response(
        StatusCode::OK,
        DescriptionKind::Function.media_type(),
        &all.into(),
    ))
}
