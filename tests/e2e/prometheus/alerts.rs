//! Tests the alert rules with `promtool`.

use crate::support::report_skip;
use std::path::Path;
use std::process::Command;

fn read_deploy_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus");
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts.test.yaml"],
    ] {
        let run = Command::new("promtool")
            .args(arguments)
            .current_dir(&folder)
            .output();
        let Ok(output) = run else {
            return report_skip("promtool: not installed; run scripts/install.sh test");
        };
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}");
        assert!(text.contains("SUCCESS"), "{text}");
    }
}

#[test]
fn every_alert_is_tested_firing_and_silent() {
    let (rules, tests) = (
        read_deploy_file("alerts.yaml"),
        read_deploy_file("alerts.test.yaml"),
    );
    let names: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(names.len() > 10, "{names:?}");
    let healthy = tests.split("\n  - name: ").nth(1).unwrap();
    for name in names {
        let silent = format!("alertname: {name}\n        exp_alerts: []\n");
        let firing = format!("alertname: {name}\n        exp_alerts:\n          - exp_labels:");
        assert!(
            healthy.contains(&silent),
            "{name} is not in the healthy case"
        );
        assert!(tests.contains(&firing), "{name} never fires");
    }
}
