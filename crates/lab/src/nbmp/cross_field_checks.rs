//! Checks that concern several members of one object.

use super::json_path::{JsonPath, NbmpFault};
use super::text_syntax_checks::describe_value;
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks that `input` or `output` contains media parameters or metadata parameters.
pub(super) fn check_media_or_metadata_present(
    value: &Value,
    at: &JsonPath,
    found: &mut Vec<NbmpFault>,
) {
    let has = |name| value.get(name).is_some();
    if value.is_object() && !has("media-parameters") && !has("metadata-parameters") {
        found.push(at.fault_here("empty; add media-parameters or metadata-parameters"));
    }
}

pub(super) fn check_failover(value: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    let backup =
        value.get("failover-mode").and_then(Value::as_str) == Some("execute-backup-deployment");
    if backup && value.get("backup-deployment-url").is_none() {
        let what = "missing; execute-backup-deployment requires this URL";
        found.push(at.at("backup-deployment-url").fault_here(what));
    }
}

pub(super) fn check_reporting(value: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    let text = |name| value.get(name).and_then(Value::as_str);
    let http = |url: &str| {
        let scheme = url.split(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    };
    if text("delivery-method") == Some("HTTP POST") && text("url").is_some_and(|url| !http(url)) {
        let what = "reports are sent by HTTP POST; write an http or https URL";
        found.push(at.at("url").fault_here(what));
    }
}

/// Checks that minima do not exceed maxima, and that values are plausible in the unit of their
/// field.
pub(super) fn check_delays_and_throughputs(
    value: &Value,
    at: &JsonPath,
    found: &mut Vec<NbmpFault>,
) {
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
            let what = format!("{less} exceeds {high} = {more}; swap them");
            found.push(at.at(low).fault_here(what));
        }
    }
    for name in ["min-delay", "typical-delay", "max-delay"] {
        if number(name).is_some_and(|ms| ms > DELAY_MS_MAX) {
            let what = "longer than an hour; write the delay in milliseconds";
            found.push(at.at(name).fault_here(what));
        }
    }
    for name in ["min-throughput", "max-throughput"] {
        if number(name).is_some_and(|rate| (1..THROUGHPUT_MIN).contains(&rate)) {
            let what = "less than 1000 bit/s; write the throughput in bit/s";
            found.push(at.at(name).fault_here(what));
        }
    }
}

/// Maximum plausible delay in ms. A longer delay was probably written in another unit.
const DELAY_MS_MAX: u64 = 3_600_000;
/// Minimum plausible throughput in bit/s. A lower throughput was probably written in another unit.
const THROUGHPUT_MIN: u64 = 1000;

/// Checks that the restrictions of a parameter match the parameter's datatype.
pub(super) fn check_parameter(value: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    let Some(datatype) = value.get("datatype").and_then(Value::as_str) else {
        return;
    };
    let values = value.get("values").and_then(Value::as_array);
    for (n, value) in values.into_iter().flatten().enumerate() {
        let at = at.at("values").element(n).at("restrictions");
        if let Some(restrictions) = value.get("restrictions") {
            check_restrictions_match_datatype(datatype, restrictions, &at, found);
        }
    }
}

fn check_restrictions_match_datatype(
    datatype: &str,
    value: &Value,
    at: &JsonPath,
    found: &mut Vec<NbmpFault>,
) {
    let fits = match (datatype, value) {
        ("boolean", value) => value.is_boolean(),
        ("string", Value::Array(texts)) if !texts.is_empty() => {
            for (n, text) in texts
                .iter()
                .enumerate()
                .filter(|(_, text)| !text.is_string())
            {
                let what = format!("{}; write a string", describe_value(text));
                found.push(at.element(n).fault_here(what));
            }
            true
        }
        ("string", _) => false,
        ("integer" | "number", value) => {
            return check_range_restriction(datatype, value, at, found);
        }
        // Accepts any restrictions for arrays, because the standard defines no form for array
        // restrictions.
        _ => true,
    };
    if !fits {
        let wanted = match datatype {
            "boolean" => "true or false",
            _ => "an array of one or more strings",
        };
        let what = format!(
            "{}; for datatype {datatype}, write {wanted}",
            describe_value(value)
        );
        found.push(at.fault_here(what));
    }
}

fn check_range_restriction(
    datatype: &str,
    value: &Value,
    at: &JsonPath,
    found: &mut Vec<NbmpFault>,
) {
    let Some(bounds) = value.as_object() else {
        let what = format!(
            "{}; for datatype {datatype}, write an object of min-value, max-value, increment",
            describe_value(value)
        );
        found.push(at.fault_here(what));
        return;
    };
    for (name, bound) in bounds {
        let known = ["min-value", "max-value", "increment"].contains(&name.as_str());
        let whole = bound.is_i64() || bound.is_u64();
        if !known {
            let what = "unknown field; NBMP allows min-value, max-value, increment";
            found.push(at.at(name).fault_here(what));
        } else if !bound.is_number() || (datatype == "integer" && !whole) {
            let what = format!(
                "{}; write a number of datatype {datatype}",
                describe_value(bound)
            );
            found.push(at.at(name).fault_here(what));
        }
    }
    let number = |name| bounds.get(name).and_then(Value::as_f64);
    if let (Some(min), Some(max)) = (number("min-value"), number("max-value"))
        && min > max
    {
        let what = format!("{min} exceeds max-value = {max}; swap them");
        found.push(at.at("min-value").fault_here(what));
    }
}

/// Checks that parameter identifiers are unique, and that `conditions` and `exclusions` refer to
/// existing parameters.
pub(super) fn check_parameter_ids(value: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    let all = value.as_array().into_iter().flatten();
    let ids: Vec<Option<i64>> = all
        .clone()
        .map(|parameter| parameter.get("id").and_then(Value::as_i64))
        .collect();
    let mut seen = BTreeSet::new();
    for (n, id) in ids.iter().enumerate() {
        if id.is_some_and(|id| !seen.insert(id)) {
            let what = "another parameter has this id; use a unique one";
            found.push(at.element(n).at("id").fault_here(what));
        }
    }
    for (n, parameter) in all.enumerate() {
        for name in ["conditions", "exclusions"] {
            let others = parameter.get(name).and_then(Value::as_array);
            for (k, other) in others.into_iter().flatten().enumerate() {
                if other.as_i64().is_some_and(|id| !seen.contains(&id)) {
                    let what = format!("no parameter has the id {other}");
                    found.push(at.element(n).at(name).element(k).fault_here(what));
                }
            }
        }
    }
}

/// Checks that the value of a variable matches its `var-type`, and that `min` does not exceed
/// `max`.
pub(super) fn check_variable_value(value: &Value, at: &JsonPath, found: &mut Vec<NbmpFault>) {
    let kind = value.get("var-type").and_then(Value::as_str);
    if let (Some(kind), Some(text)) = (kind, value.get("value").and_then(Value::as_str)) {
        let fits = match kind {
            "integer" => text.parse::<i64>().is_ok(),
            "float" | "number" => text.parse::<f64>().is_ok_and(f64::is_finite),
            "boolean" => ["true", "false"].contains(&text),
            _ => true,
        };
        if !fits {
            let what = format!("unexpected {text:?}; write a value of var-type {kind}");
            found.push(at.at("value").fault_here(what));
        }
    }
    let number = |name| value.get(name).and_then(Value::as_i64);
    if let (Some(min), Some(max)) = (number("min"), number("max"))
        && min > max
    {
        let what = format!("{min} exceeds max = {max}; swap them");
        found.push(at.at("min").fault_here(what));
    }
}
