//! Grafana's dashboard model as JSON (schema version 38, Grafana 10 and later).

use super::Families;
use super::panels::{Dashboard, Panel};
use serde_json::{Value, json};

/// Columns of Grafana's grid.
const COLUMNS: usize = 24;
const PANEL_COLUMNS: usize = 8;
const PANEL_ROWS: usize = 8;

/// Returns a dashboard as indented JSON.
pub fn render_dashboard(dashboard: &Dashboard, families: &Families) -> String {
    let mut variables = vec![datasource_variable(), job_variable()];
    let numbers = dashboard.numbers.iter();
    variables.extend(numbers.map(|(name, label, default)| number_variable(name, label, default)));
    let panels = dashboard.panels.iter().enumerate();
    let panels: Vec<Value> = panels
        .map(|(index, panel)| render_panel(index, panel, families))
        .collect();
    let json = json!({
        "uid": format!("headwater-{}", dashboard.name),
        "title": dashboard.title,
        "tags": ["headwater"],
        "schemaVersion": 38,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables},
        "panels": panels,
    });
    format!("{json:#}\n")
}

fn render_panel(index: usize, panel: &Panel, families: &Families) -> Value {
    let per_row = COLUMNS / PANEL_COLUMNS;
    let targets = panel.queries.iter().enumerate();
    let targets: Vec<Value> = targets
        .map(|(number, (query, legend))| {
            json!({
                "refId": char::from(b'A' + u8::try_from(number).unwrap()).to_string(),
                "datasource": datasource(),
                "expr": query,
                "legendFormat": legend,
            })
        })
        .collect();
    json!({
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": describe(panel, families),
        "datasource": datasource(),
        "gridPos": {
            "x": index % per_row * PANEL_COLUMNS,
            "y": index / per_row * PANEL_ROWS,
            "w": PANEL_COLUMNS,
            "h": PANEL_ROWS,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": targets,
    })
}

/// Returns the help texts of the metrics that a panel shows.
fn describe(panel: &Panel, families: &Families) -> String {
    let queries: Vec<&str> = panel.queries.iter().map(|(query, _)| *query).collect();
    let names = super::find_metric_names(&queries.join(" "));
    let helps = names.iter().map(|name| {
        let ends = ["", "_total", "_info", "_bucket", "_sum", "_count"];
        let family = ends
            .iter()
            .find_map(|end| families.get(name.strip_suffix(end)?));
        let family = family.unwrap_or_else(|| panic!("{}: {name} does not exist", panel.title));
        format!("`{name}`: {}", family.help)
    });
    helps.collect::<Vec<_>>().join("\n\n")
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn datasource_variable() -> Value {
    json!({"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"})
}

fn job_variable() -> Value {
    json!({
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": datasource(),
        "query": "label_values(headwater_build_info, job)",
        "refresh": 2,
        "includeAll": true,
        "allValue": ".+",
        "multi": true,
        "current": {"text": "All", "value": "$__all"},
    })
}

fn number_variable(name: &str, label: &str, default: &str) -> Value {
    json!({
        "name": name,
        "label": label,
        "type": "textbox",
        "query": default,
        "current": {"text": default, "value": default},
    })
}
