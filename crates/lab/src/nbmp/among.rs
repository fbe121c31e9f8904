//! What must hold among the members of one object.

use super::path::{Offence, Place};
use super::words::kind_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// `input` and `output` say one of the two.
pub(super) fn some_parameters(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let has = |name| value.get(name).is_some();
    if value.is_object() && !has("media-parameters") && !has("metadata-parameters") {
        found.push(at.offence("it is empty; add media-parameters or metadata-parameters"));
    }
}

pub(super) fn failover(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let backup =
        value.get("failover-mode").and_then(Value::as_str) == Some("execute-backup-deployment");
    if backup && value.get("backup-deployment-url").is_none() {
        let what = "it is missing; execute-backup-deployment needs to know what to deploy";
        found.push(at.at("backup-deployment-url").offence(what));
    }
}

pub(super) fn reporting(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let text = |name| value.get(name).and_then(Value::as_str);
    let http = |url: &str| {
        let scheme = url.split(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    };
    if text("delivery-method") == Some("HTTP POST") && text("url").is_some_and(|url| !http(url)) {
        let what = "reports go by HTTP POST; write an http or https URL";
        found.push(at.at("url").offence(what));
    }
}

/// Units, and which is less.
pub(super) fn flowcontrol(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let number = |name| value.get(name).and_then(Value::as_u64);
    for [low, high] in [
        ["min-delay", "typical-delay"],
        ["typical-delay", "max-delay"],
        ["min-delay", "max-delay"],
        ["min-throughput", "max-throughput"],
    ] {
        if let (Some(less), Some(more)) = (number(low), number(high))
            && less > more
        {
            let what = format!("it is {less}, above {high} = {more}; exchange them");
            found.push(at.at(low).offence(what));
        }
    }
    for name in ["min-delay", "typical-delay", "max-delay"] {
        if number(name).is_some_and(|ms| ms > DELAY_MS_MAX) {
            let what = "more than an hour; delays are in milliseconds";
            found.push(at.at(name).offence(what));
        }
    }
    for name in ["min-throughput", "max-throughput"] {
        if number(name).is_some_and(|rate| (1..THROUGHPUT_MIN).contains(&rate)) {
            let what = "less than 1000 bits a second; throughputs are in bit/s";
            found.push(at.at(name).offence(what));
        }
    }
}

/// Beyond these, another unit was meant.
const DELAY_MS_MAX: u64 = 3_600_000;
const THROUGHPUT_MIN: u64 = 1000;

/// A parameter's restrictions are of its type.
pub(super) fn parameter(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let Some(datatype) = value.get("datatype").and_then(Value::as_str) else {
        return;
    };
    let values = value.get("values").and_then(Value::as_array);
    for (n, value) in values.into_iter().flatten().enumerate() {
        let at = at.at("values").nth(n).at("restrictions");
        if let Some(restrictions) = value.get("restrictions") {
            restricted(datatype, restrictions, &at, found);
        }
    }
}

fn restricted(datatype: &str, value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let fits = match (datatype, value) {
        ("boolean", value) => value.is_boolean(),
        ("string", Value::Array(texts)) if !texts.is_empty() => {
            for (n, text) in texts
                .iter()
                .enumerate()
                .filter(|(_, text)| !text.is_string())
            {
                let what = format!("{}; write a text", kind_of(text));
                found.push(at.nth(n).offence(what));
            }
            true
        }
        ("string", _) => false,
        ("integer" | "number", value) => return range(datatype, value, at, found),
        // Of arrays the standard says no form.
        _ => true,
    };
    if !fits {
        let wanted = match datatype {
            "boolean" => "true or false",
            _ => "an array of one text or more",
        };
        let what = format!("{}; of datatype {datatype} it is {wanted}", kind_of(value));
        found.push(at.offence(what));
    }
}

fn range(datatype: &str, value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let Some(bounds) = value.as_object() else {
        let what = format!(
            "{}; of datatype {datatype} it is an object of min-value, max-value, increment",
            kind_of(value)
        );
        found.push(at.offence(what));
        return;
    };
    for (name, bound) in bounds {
        let known = ["min-value", "max-value", "increment"].contains(&name.as_str());
        let whole = bound.is_i64() || bound.is_u64();
        if !known {
            let what = "NBMP has no such field here; there are min-value, max-value, increment";
            found.push(at.at(name).offence(what));
        } else if !bound.is_number() || (datatype == "integer" && !whole) {
            let what = format!("{}; write a number of datatype {datatype}", kind_of(bound));
            found.push(at.at(name).offence(what));
        }
    }
    let number = |name| bounds.get(name).and_then(Value::as_f64);
    if let (Some(least), Some(most)) = (number("min-value"), number("max-value"))
        && least > most
    {
        let what = format!("{least} is above max-value = {most}: no value fits");
        found.push(at.at("min-value").offence(what));
    }
}

/// Identifiers are there once, and those that are named are there.
pub(super) fn parameters(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let all = value.as_array().into_iter().flatten();
    let ids: Vec<Option<i64>> = all
        .clone()
        .map(|parameter| parameter.get("id").and_then(Value::as_i64))
        .collect();
    let mut seen = BTreeSet::new();
    for (n, id) in ids.iter().enumerate() {
        if id.is_some_and(|id| !seen.insert(id)) {
            let what = "another parameter has this id; each has its own";
            found.push(at.nth(n).at("id").offence(what));
        }
    }
    for (n, parameter) in all.enumerate() {
        for name in ["conditions", "exclusions"] {
            let others = parameter.get(name).and_then(Value::as_array);
            for (k, other) in others.into_iter().flatten().enumerate() {
                if other.as_i64().is_some_and(|id| !seen.contains(&id)) {
                    let what = format!("no parameter has the id {other}");
                    found.push(at.nth(n).at(name).nth(k).offence(what));
                }
            }
        }
    }
}

/// A variable's value is of its type, and its bounds leave room.
pub(super) fn variable(value: &Value, at: &Place, found: &mut Vec<Offence>) {
    let kind = value.get("var-type").and_then(Value::as_str);
    if let (Some(kind), Some(text)) = (kind, value.get("value").and_then(Value::as_str)) {
        let fits = match kind {
            "integer" => text.parse::<i64>().is_ok(),
            "float" | "number" => text.parse::<f64>().is_ok_and(f64::is_finite),
            "boolean" => ["true", "false"].contains(&text),
            _ => true,
        };
        if !fits {
            let what = format!("it is {text:?}; write a value of var-type {kind}");
            found.push(at.at("value").offence(what));
        }
    }
    let number = |name| value.get(name).and_then(Value::as_i64);
    if let (Some(least), Some(most)) = (number("min"), number("max"))
        && least > most
    {
        let what = format!("{least} is above max = {most}: no value fits");
        found.push(at.at("min").offence(what));
    }
}
