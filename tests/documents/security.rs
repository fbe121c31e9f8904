//! Compares the limits in `docs/security.md` with the program.

use crate::{process, project_root, read_text};
use std::collections::BTreeMap;

/// A row in the table of limits.
struct LimitRow {
    what: String,
    limit: String,
    /// The settings in the last column.
    settings: Vec<String>,
}

fn read_limits() -> Vec<LimitRow> {
    let text = read_text(&project_root().join("docs/security.md"));
    let (_, section) = text.split_once("\n## Limits\n").unwrap();
    let section = section.split_once("\n## ").unwrap().0;
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let rows = rows.skip(1).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let settings = cells[3].split('`').skip(1).step_by(2);
        LimitRow {
            what: cells[0].to_owned(),
            limit: cells[1].to_owned(),
            settings: settings.map(str::to_owned).collect(),
        }
    });
    rows.collect()
}

/// Returns a setting's default in the format of the page.
fn describe_default(default: &str) -> String {
    if default == "0" {
        return "none".to_owned();
    }
    if let Some((share, most)) = default.split_once("% up to ") {
        let most = describe_default(most);
        return format!("{share} % of the memory limit, at most {most}");
    }
    let digits = default.find(|one: char| !one.is_ascii_digit());
    let (number, unit) = default.split_at(digits.unwrap_or(default.len()));
    let number = match number.len() {
        len @ 5.. => format!("{},{}", &number[..len - 3], &number[len - 3..]),
        _ => number.to_owned(),
    };
    format!("{number} {unit}").trim_end().to_owned()
}

/// Returns the default of each setting by name, in the format of the page. If the servers have
/// different defaults, the text contains both.
fn list_defaults() -> BTreeMap<&'static str, String> {
    let mut defaults: BTreeMap<_, String> = BTreeMap::new();
    let tables = [origin::config::SETTINGS, edge::config::SETTINGS];
    for setting in tables.iter().copied().flatten().copied().flatten() {
        let default = describe_default(setting.default);
        let known = defaults.entry(setting.name).or_default();
        if *known != default {
            *known += &default;
        }
    }
    defaults
}

#[test]
fn the_limits_are_the_defaults_of_their_settings() {
    let defaults = list_defaults();
    let mut compared = 0;
    for row in read_limits() {
        // The limit equals either the default of the row's first setting, or a list of the defaults
        // of all settings in the row. In the first case, the further settings only describe how the
        // limit is applied.
        let expected: Vec<&str> = row
            .settings
            .iter()
            .map(|name| &*defaults[&**name])
            .collect();
        if let Some(first) = expected.first() {
            let is_current = row.limit == *first || row.limit == expected.join(", ");
            assert!(is_current, "{}: {}, not {first}", row.what, row.limit);
            compared += 1;
        }
    }
    assert!(compared >= 15, "only {compared} rows name a setting");
}

#[test]
fn the_limits_of_a_head_without_a_setting_are_those_of_the_servers() {
    let limit = |what: &str| {
        let row = read_limits().into_iter().find(|row| row.what == what);
        row.unwrap_or_else(|| panic!("no row {what:?}")).limit
    };
    assert_eq!(limit("fields of an HTTP/1.1 request"), "100");
    assert_eq!(limit("bytes of a target"), "8 KiB");
    let origin = process::start_server(&["serve"]);
    let url = format!("http://{}", origin.address);
    let edge = process::start_server(&["edge", "--origin", &url]);
    for server in [&origin, &edge] {
        // The request already contains the two fields `Host` and `Connection`.
        let status =
            |fields: usize| process::get(server.address, "/healthz", &"x: y\r\n".repeat(fields)).0;
        assert_eq!([status(98), status(99)], [200, 431]);
        let status = |bytes: usize| {
            let target = format!("{:a<bytes$}", "/healthz?");
            process::get(server.address, &target, "").0
        };
        assert_eq!([status(8 << 10), status((8 << 10) + 1)], [200, 414]);
    }
}
