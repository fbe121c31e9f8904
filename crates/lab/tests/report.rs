//! Tests reports on records with known results.

#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use lab::experiment::{
    Arm, ExperimentDocument, HistogramRecord, MachineDescription, RunPlan, RunRecord,
    check_document,
};
use lab::report::{ExperimentReport, FindingOutcome, FolderComparison, ResultSet, Verdict};
use serde_json::Value;

const DOCUMENT: &str = r#"
name = "Known"
question = "Does the report find known effects?"
found = "three times"
rounds = 8
sweep.kind = ["slow", "fast"]
sweep.loss = ["0%", "1%"]
sweep.size = [1, 2]

[sink.s]
run = "get {kind} {loss} {size}"
measure = { seconds = "/seconds" }
series.out = { from = "/out" }
series.in = { from = "/in" }
series.tail = { from = "/tail" }
histogram.latency = { from = "/hdr" }

[[expect]]
that = "slow takes longer"
found = "three times"
because = "the <b>link</b> was another"
source = [2.5, 3.5]
quantity = "seconds"
of.kind = "slow"
to.kind = "fast"

[[plot]]
kind = "time"
quantity = ["out", "tail"]
by = ["kind", "loss"]

[[plot]]
kind = "bars"
quantity = "seconds"
by = "kind"
where.size = 1

[[plot]]
kind = "box"
quantity = "seconds"

[[plot]]
kind = "ecdf"
quantity = ["seconds", "latency"]
by = "kind"
log = true

[[plot]]
kind = "percentiles"
quantity = "latency"
by = "kind"

[[plot]]
kind = "map"
quantity = "seconds"
x = "loss"
y = "size"
of.kind = "slow"
to.kind = "fast"

[[plot]]
kind = "fit"
quantity = "out"
x = ["in", "size"]
by = "kind"
knee = true
tail = "tail"
"#;

fn parse_plan(text: &str) -> RunPlan {
    let document = ExperimentDocument::parse_toml(text).unwrap();
    assert_eq!(check_document(text, &document), []);
    RunPlan::new(document, None).unwrap()
}

fn sample_histogram(scale: u64) -> HistogramRecord {
    let mut all = Histogram::<u64>::new(3).unwrap();
    (1..=1000).for_each(|n| all.record(n * scale).unwrap());
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&all, &mut bytes)
        .unwrap();
    let v2 = base64::engine::general_purpose::STANDARD.encode(bytes);
    HistogramRecord { v2, times: 0.5 }
}

/// Returns records in which the slow arm takes three times as long as the fast arm, apart from
/// noise. In the first six of eight steps, the values of the series `out` are about 0.99 × `in` ×
/// `size`. In the last two steps, they are about 0.5 × `in` × `size`. The last record is discarded.
fn sample_records(plan: &RunPlan, slower: f64) -> Vec<RunRecord> {
    let mut all = Vec::new();
    for round in 0..plan.rounds {
        for arm in &plan.arms {
            let slow = arm["kind"] == "slow";
            let size: f64 = arm["size"].parse().unwrap();
            let wobble = 1.0 + 0.01 * f64::from((round * 7 + u32::from(slow) * 3) % 5);
            let seconds = if slow { 3.0 } else { 1.0 } * wobble * slower;
            let step = |n: u32| f64::from(n + 1) * 100.0;
            let out = |n: u32| {
                let offered = step(n) * size;
                let share = if n < 6 { 0.99 } else { 0.5 };
                [f64::from(n), share * offered + 5.0 * wobble - 5.0]
            };
            let record = RunRecord {
                round,
                arm: arm.clone(),
                unix_s: 1.7e9 + f64::from(round),
                took_s: 1.0,
                claims: plan.claim_fingerprints(),
                values: [("seconds".to_owned(), seconds)].into(),
                series: [
                    ("out".to_owned(), (0..8).map(out).collect()),
                    (
                        "in".to_owned(),
                        (0..8).map(|n| [f64::from(n), step(n)]).collect(),
                    ),
                    (
                        "tail".to_owned(),
                        (0..8).map(|n| [f64::from(n), 1.0]).collect(),
                    ),
                ]
                .into(),
                histograms: [(
                    "latency".to_owned(),
                    sample_histogram(if slow { 30 } else { 10 }),
                )]
                .into(),
                ..RunRecord::default()
            };
            all.push(record);
        }
    }
    let discarded = RunRecord {
        discard_reason: Some("link access was <i>late</i>".into()),
        ..all[0].clone()
    };
    all.push(discarded);
    all
}

fn create_report(plan: &RunPlan, records: &[RunRecord]) -> (ExperimentReport, Value) {
    let report =
        ExperimentReport::new(plan, DOCUMENT, records, vec![MachineDescription::default()]);
    let json = serde_json::from_str(&report.json().unwrap()).unwrap();
    (report, json)
}

fn find_plot<'a>(json: &'a Value, title: &str) -> &'a Value {
    let plots = json["plots"].as_array().unwrap();
    let found = plots
        .iter()
        .find(|plot| plot["title"].as_str().unwrap().contains(title));
    found.unwrap_or_else(|| panic!("{title}: {json}"))
}

fn assert_near(found: &Value, wanted: f64) {
    let found = found.as_f64().unwrap();
    assert!(
        (found / wanted - 1.0).abs() < 0.03,
        "{found} is not {wanted}"
    );
}

#[test]
fn a_report_finds_the_effects_in_its_records() {
    let plan = parse_plan(DOCUMENT);
    let (report, json) = create_report(&plan, &sample_records(&plan, 1.0));
    // Writes the page to a file, for visual inspection.
    let page = concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html");
    std::fs::write(page, report.html()).unwrap();
    assert_eq!(report.finding.outcome, FindingOutcome::Repeated);
    assert_eq!(
        (report.runs, report.rounds, report.discarded.len()),
        (64, 8, 1)
    );
    assert_eq!(report.claims.len(), 4);
    assert!(
        report
            .claims
            .iter()
            .all(|claim| claim.verdict == Verdict::Repeated)
    );
    assert_near(&json["claims"][0]["value"], 3.0);
    for row in find_plot(&json, "ratio")["panels"][0]["shape"]["rows"]
        .as_array()
        .unwrap()
    {
        for cell in row["cells"].as_array().unwrap() {
            assert_near(&cell["ratio"], 3.0);
            assert_eq!(cell["n"], 8);
        }
    }
    let fit = &find_plot(&json, "linear fit")["panels"][0]["table"]["rows"];
    for row in fit.as_array().unwrap() {
        let cell = |n: usize| serde_json::from_str::<Value>(row[n].as_str().unwrap()).unwrap();
        // Each row covers 32 runs (two loss rates × two sizes × eight rounds). Each run has six
        // steps below the knee and two steps beyond the knee. The lowest knee is at the seventh
        // step of size 1.
        assert_eq!(
            (row[1].as_str().unwrap(), row[7].as_str().unwrap()),
            ("192", "64"),
            "{row}"
        );
        assert_near(&cell(2), 0.99);
        assert_near(&cell(5), 1.0);
        assert_near(&cell(6), 700.0);
    }
    let percentiles = &find_plot(&json, "by percentile")["panels"][0]["table"]["rows"];
    // The slow arm recorded 30, 60, … 30000, and the fast arm recorded 10, 20, … 10000. The
    // record's factor `times` halves all values. The medians of the halved values are 7500 and
    // 2500. Each panel has one loss rate and one size, so each row contains the samples of eight
    // rounds.
    assert_eq!(
        (percentiles[0][0].as_str(), percentiles[0][1].as_str()),
        (Some("slow"), Some("8000"))
    );
    assert_near(
        &serde_json::from_str(percentiles[0][2].as_str().unwrap()).unwrap(),
        7500.0,
    );
    assert_near(
        &serde_json::from_str(percentiles[1][2].as_str().unwrap()).unwrap(),
        2500.0,
    );
}

#[test]
fn every_arm_and_every_discarded_run_is_reported_and_html_is_escaped() {
    let hostile = "</script><script>alert(1)</script>{{data}}|`*<img src=x onerror=alert(2)>";
    let text = DOCUMENT
        .replace("\"Known\"", &format!("'{hostile}'"))
        .replace("\"slow\"", &format!("'{hostile}'"));
    let plan = parse_plan(&text);
    let mut records = sample_records(&plan, 1.0);
    records[3].discard_reason = Some(hostile.into());
    records[4].histograms.insert(
        "latency".into(),
        HistogramRecord {
            v2: hostile.into(),
            times: 1.0,
        },
    );
    let machine = MachineDescription {
        cpu: hostile.into(),
        ..MachineDescription::default()
    };
    let report = ExperimentReport::new(&plan, &text, &records, vec![machine]);
    let html = report.html();
    for arm in &plan.arms {
        let words: Vec<String> = arm
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let escaped = words.join(", ").replace('<', "&lt;").replace('>', "&gt;");
        assert!(html.contains(&escaped), "{escaped}");
    }
    assert!(html.contains("link access was &lt;i&gt;late&lt;/i&gt;"));
    // The page has three scripts. End tags are counted, because the chart library may contain a
    // start tag in a comment.
    assert_eq!(html.matches("</script>").count(), 3);
    assert!(!html.contains("<img") && !html.contains("<script>alert"));
    for word in ["src=\"", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(word), "{word}");
    }
    let markdown = report.markdown();
    assert!(!markdown.contains("<img") && !markdown.contains("<script"));
    assert!(html.len() < 500_000, "{}", html.len());
}

#[test]
fn the_first_lines_explain_the_verdict() {
    let plan = parse_plan(DOCUMENT);
    // In each round, one of the two arms is slower by 1 %. The slower arm alternates between
    // rounds.
    let alternate = |record: RunRecord| {
        let slower = record.round % 2 == u32::from(record.arm["kind"] == "slow");
        let seconds = if slower { 1.01 } else { 1.0 };
        let values = [("seconds".to_owned(), seconds)].into();
        RunRecord { values, ..record }
    };
    let records = sample_records(&plan, 1.0).into_iter().map(alternate);
    let records: Vec<RunRecord> = records.collect();
    let (report, json) = create_report(&plan, &records);
    assert_eq!(report.finding.outcome, FindingOutcome::Mixed);
    let lines = report.markdown();
    let first: Vec<&str> = lines.lines().take(5).collect();
    assert!(
        first[2].contains("Claims of the source: 4 undecided."),
        "{first:?}"
    );
    assert!(
        first[4].contains("1.000 times") && first[4].contains("Source: three times (2.5 – 3.5)."),
        "{first:?}"
    );
    assert!(
        first[4].contains("Reason: the &lt;b&gt;link&lt;/b&gt; was another"),
        "{first:?}"
    );
    assert_eq!(json["finding"]["outcome"], "mixed");
}

#[test]
fn changes_beyond_noise_are_marked_and_others_are_not() {
    let plan = parse_plan(DOCUMENT);
    let folder = |name: &str, slower: f64, cores| ResultSet {
        name: name.into(),
        plan: plan.clone(),
        records: sample_records(&plan, slower),
        machines: vec![MachineDescription {
            cores,
            ..MachineDescription::default()
        }],
    };
    let same = FolderComparison::new(&[folder("a", 1.0, 2), folder("b", 1.0, 2)]);
    assert_eq!(same.rows.len(), 8);
    let beyond = |found: &FolderComparison| {
        let changes = found
            .rows
            .iter()
            .flat_map(|row| row.changes.iter().flatten());
        changes.filter(|change| change.beyond_noise).count()
    };
    assert_eq!((beyond(&same), same.differs.len()), (0, 0));
    let other = FolderComparison::new(&[folder("a", 1.0, 2), folder("<b>", 1.2, 4)]);
    assert_eq!(beyond(&other), 8);
    assert_eq!(other.differs[0].what, "cores");
    assert_eq!(other.differs[0].values, ["2", "4"]);
    let ratio = other.rows[0].changes[0].as_ref().unwrap().ratio;
    assert!((ratio - 1.2).abs() < 0.01, "{ratio}");
    let page = other.html();
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
    // The page has one chart for each quantity, with a group of bars for each folder.
    let quantities: std::collections::BTreeSet<_> =
        other.rows.iter().map(|row| &row.quantity).collect();
    assert_eq!(page.matches("class=\"canvas\"").count(), quantities.len());
    assert!(page.contains(r#""groups":[{"name":"a","values":[["#));
    assert!(other.markdown().contains("8 of 8 ratios"));
}

#[test]
fn plots_are_suggested_by_default() {
    let text = DOCUMENT.split("[[plot]]").next().unwrap();
    let plan = parse_plan(text);
    let report = ExperimentReport::new(&plan, text, &sample_records(&plan, 1.0), Vec::new());
    let titles: Vec<&str> = report
        .plots
        .iter()
        .map(|plot| plot.title.as_str())
        .collect();
    let wanted = [
        "seconds: ratio",
        "out over time",
        "in over time",
        "tail over time",
        "latency by percentile",
        "seconds",
        "seconds: all runs",
        "seconds: distribution (ECDF)",
    ];
    let mut missing = wanted.iter().filter(|title| !titles.contains(title));
    assert_eq!(missing.next(), None, "{titles:?}");
    // A report can also be created without runs.
    let none = ExperimentReport::new(&plan, text, &[], Vec::new());
    assert!(none.has_failed() && none.plots.is_empty());
    assert!(none.html().contains("no run counts") && none.json().is_ok());
}

#[test]
fn many_runs_make_a_small_page() {
    let values: Vec<String> = (0..21).map(|n| n.to_string()).collect();
    let text = DOCUMENT
        .replace("[1, 2]", &format!("[{}]", values.join(",")))
        .replace("rounds = 8", "rounds = 3");
    let plan = parse_plan(&text);
    let records = sample_records(&plan, 1.0);
    assert!(records.len() > 250);
    let (report, _) = create_report(&plan, &records);
    let html = report.html();
    assert_eq!(report.runs, 252);
    assert!(html.len() < 1_000_000, "{}", html.len());
}

#[test]
fn arms_that_only_records_have_are_reported() {
    let plan = parse_plan(DOCUMENT);
    let mut records = sample_records(&plan, 1.0);
    let arm: Arm = [("kind".to_owned(), "third".to_owned())].into();
    records[0].arm = arm.clone();
    let (report, _) = create_report(&plan, &records);
    assert!(report.arms.iter().any(|of| of.arm == arm && of.runs == 1));
}

#[test]
fn a_changed_bound_turns_earlier_runs_into_not_measured() {
    let plan = parse_plan(DOCUMENT);
    let records = sample_records(&plan, 1.0);
    let moved = DOCUMENT.replace("source = [2.5, 3.5]", "source = [2.9, 3.1]");
    let (report, _) = create_report(&parse_plan(&moved), &records);
    assert!(
        report
            .claims
            .iter()
            .all(|claim| claim.verdict == Verdict::NotMeasured)
    );
    assert_eq!(
        report.finding.sentence,
        "Claims of the source: 4 not measured."
    );
    // Changing the text of an expectation does not invalidate earlier runs.
    let reworded = DOCUMENT.replace("slow takes longer", "slow is slower");
    let (report, _) = create_report(&parse_plan(&reworded), &records);
    assert_eq!(report.finding.sentence, "Claims of the source: 4 repeated.");
}

#[test]
fn claims_state_the_failed_attempts_of_their_arms() {
    let plan = parse_plan(DOCUMENT);
    let mut records = sample_records(&plan, 1.0);
    records.pop();
    for (failed, reason) in [
        (Some(true), "sink s: exit status: 1"),
        (Some(false), "agent a was lost"),
        // Records of earlier versions contain only the reason.
        (None, "sink s: exit status: 1"),
        (None, "link l was 3 us late at p99; the bound is 2us"),
    ] {
        records.push(RunRecord {
            failed,
            discard_reason: Some(reason.into()),
            ..records[0].clone()
        });
    }
    let (report, _) = create_report(&plan, &records);
    let failed = report.claims.iter().map(|claim| claim.failed_attempts);
    assert_eq!(failed.sum::<usize>(), 2);
    let text = "; 2 failed attempts were discarded";
    assert!(report.finding.lines.concat().contains(text));
    assert!(report.html().contains(text) && report.markdown().contains(text));
}

#[test]
fn claims_without_runs_are_counted_as_not_measured() {
    let plan = parse_plan(DOCUMENT);
    let mut records = sample_records(&plan, 1.0);
    records.retain(|record| record.arm["loss"] != "1%");
    let (report, _) = create_report(&plan, &records);
    assert_eq!(
        report.finding.sentence,
        "Claims of the source: 2 repeated, 2 not measured."
    );
    assert!(
        report
            .html()
            .contains("no run of this experiment measured it")
    );
}

#[test]
fn values_of_zero_are_judged_and_survive_json() {
    let document = DOCUMENT.replace("source = [2.5, 3.5]", "source = \"less\"");
    let plan = parse_plan(&document);
    let report_of = |slow: f64, fast: f64| {
        let mut records = sample_records(&plan, 1.0);
        for record in &mut records {
            let seconds = if record.arm["kind"] == "slow" {
                slow
            } else {
                fast
            };
            record.values.insert("seconds".into(), seconds);
        }
        create_report(&plan, &records)
    };
    let read = |report: &ExperimentReport| -> ExperimentReport {
        serde_json::from_str(&report.json().unwrap()).unwrap()
    };
    let (less, _) = report_of(0.0, 1.0);
    assert_eq!(less.claims[0].verdict, Verdict::DirectionOnly);
    assert_eq!(less.claims[0].interval, Some([0.0, 0.0]));
    let (more, json) = report_of(1.0, 0.0);
    let found = &more.claims[0];
    assert_eq!(found.verdict, Verdict::Contradicted);
    assert_eq!(
        (found.value, found.range),
        (f64::INFINITY, [f64::INFINITY; 2])
    );
    assert_eq!(json["claims"][0]["value"], "infinity");
    assert!(more.markdown().contains("∞ – ∞"), "{}", more.markdown());
    for report in [&less, &more] {
        assert_eq!(read(report).json().unwrap(), report.json().unwrap());
        assert_eq!(read(report).markdown(), report.markdown());
    }
    let (none, _) = report_of(0.0, 0.0);
    let found = &none.claims[0];
    assert_eq!((found.verdict, found.n), (Verdict::Undecided, 0));
    let reason = "both values are zero in 8 of 8 rounds";
    assert_eq!(found.because.as_deref(), Some(reason));
    assert!(none.finding.lines[0].contains(reason), "{:?}", none.finding);
}

#[test]
fn claims_of_our_own_are_counted_as_expected() {
    let text = DOCUMENT
        .replace("source = [2.5, 3.5]", "at-least = 2.0")
        .replacen(
            "that = \"slow takes longer\"\nfound = \"three times\"",
            "that = \"slow takes longer\"",
            1,
        );
    let plan = parse_plan(&text);
    let (report, _) = create_report(&plan, &sample_records(&plan, 1.0));
    assert_eq!(report.finding.sentence, "As expected: 4 of 4.");
}

#[test]
fn without_bounds_the_headline_states_the_medians_of_the_arms() {
    let text = DOCUMENT
        .replace("source = [2.5, 3.5]\n", "")
        .replace("longer\"\nfound = \"three times\"", "longer\"");
    let plan = parse_plan(&text);
    let (report, _) = create_report(&plan, &sample_records(&plan, 1.0));
    let arm = &report.arms[0];
    let median = arm.values["seconds"].median;
    let sentence = &report.finding.sentence;
    let start = format!("Median of seconds: {median:.3} (");
    assert!(sentence.starts_with(&start), "{sentence}");
    for (name, value) in &arm.arm {
        assert!(sentence.contains(&format!("{name} {value}")), "{sentence}");
    }
    let end = ", and 4 more arms. No expectation has bounds.";
    assert!(sentence.ends_with(end), "{sentence}");
    // A report without runs has no medians.
    let (report, _) = create_report(&plan, &[]);
    assert_eq!(report.finding.sentence, "No values were measured.");
}
