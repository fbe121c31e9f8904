//! The functions that are built in, for whoever looks for one.

use super::answer::as_json;
use crate::nbmp::Kind;
use crate::nbmp::functions::{BuiltIn, built_in};
use http::{Response, StatusCode};
use net::{Body, Error};
use serde_json::Value;
use std::collections::BTreeSet;

/// `id`, `name` and `keyword` narrow it down.
pub(super) fn some(query: &str) -> Result<Response<Body>, Error> {
    let wanted: Vec<(&str, &str)> = query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    functions(|name, function| {
        wanted.iter().all(|(key, value)| match *key {
            "id" | "name" => name == *value,
            "keyword" | "keywords" => {
                [function.group.as_str(), function.role.as_str()].contains(value)
            }
            _ => true,
        })
    })
}

/// `groupId` names one.
pub(super) fn group(query: &str) -> Result<Response<Body>, Error> {
    let group = query
        .split('&')
        .find_map(|part| part.strip_prefix("groupId="));
    functions(|_, function| group == Some(function.group.as_str()))
}

fn functions(fits: impl Fn(&str, &BuiltIn) -> bool) -> Result<Response<Body>, Error> {
    let found = built_in()
        .iter()
        .filter(|(name, function)| fits(name, function));
    let all: Vec<Value> = found
        .map(|(name, function)| function.describe(name))
        .collect();
    if all.is_empty() {
        let groups = built_in().values().map(|function| function.group.as_str());
        let groups: BTreeSet<&str> = groups.collect();
        let what = format!("no function is like that; the groups are {groups:?}");
        return Err(Error::client(StatusCode::NOT_FOUND, what));
    }
    Ok(as_json(
        StatusCode::OK,
        Kind::Function.media_type(),
        &all.into(),
    ))
}
