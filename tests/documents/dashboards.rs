//! Checks that `deploy/grafana/*.json` matches the table of panels, and that dashboards and alert
//! rules use only existing metrics.

mod grafana;
mod panels;
mod viewer_panels;

use crate::metrics::{MetricFamily, exported_families};
use std::collections::{BTreeMap, BTreeSet};

/// Prefixes of names that are not exported metrics, such as the names of recording rules.
const FOREIGN_NAMES: &[&str] = &["headwater:"];

#[test]
fn dashboards_match_the_table_of_panels() {
    let families = exported_families().merge();
    for dashboard in panels::DASHBOARDS {
        let json = grafana::render_dashboard(dashboard, &families);
        crate::assert_file_is_current(&format!("deploy/grafana/{}.json", dashboard.name), &json);
    }
}

#[test]
fn every_metric_of_dashboards_and_rules_exists() {
    let families = exported_families().merge();
    let exported: BTreeSet<String> = families.iter().flat_map(series_names).collect();
    let folder = crate::project_root().join("deploy");
    let mut used = 0;
    for file in [
        "grafana/fleet.json",
        "grafana/origin.json",
        "grafana/edge.json",
        "grafana/viewers.json",
        "grafana/storage-cost.json",
        "prometheus/alerts.yaml",
    ] {
        for name in find_metric_names(&crate::read_text(&folder.join(file))) {
            assert!(exported.contains(&name), "{file}: {name} does not exist");
            used += 1;
        }
    }
    assert!(used > 40, "found only {used} names");
}

/// Returns the names of a metric family's series.
fn series_names((name, family): (&String, &MetricFamily)) -> Vec<String> {
    let ends: &[&str] = match &*family.kind {
        "counter" => &["_total"],
        "info" => &["_info"],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    ends.iter().map(|end| format!("{name}{end}")).collect()
}

/// Returns the words of a text that have the form of our metrics' names.
fn find_metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
    let is_name = |word: &&str| word.starts_with("headwater_") || word.starts_with("process_");
    let names = words.filter(is_name).map(str::to_owned);
    names
        .filter(|name| !FOREIGN_NAMES.iter().any(|start| name.starts_with(start)))
        .collect()
}

/// The metric families of both servers by name.
pub type Families = BTreeMap<String, MetricFamily>;

#[test]
fn a_renamed_metric_is_found() {
    let text = "expr: rate(headwater_http_request_total[5m]) / headwater:slow:ratio_rate5m";
    let names = find_metric_names(text);
    assert_eq!(
        names,
        BTreeSet::from(["headwater_http_request_total".to_owned()])
    );
    assert!(
        !exported_families()
            .merge()
            .contains_key("headwater_http_request")
    );
}
