//! Tests the findings that are computed from records with known results.

#![allow(clippy::unwrap_used)]

use lab::experiment::{ExperimentDocument, RunPlan, RunRecord};
use lab::report::Findings;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = r#"
name = "Known"
question = "?"
rounds = 8
sweep.kind = ["slow", "fast"]
sweep.loss = ["0%", "1%"]

[scale.half]
sweep.loss = ["0%"]

[sink.s]
run = "get {kind} {loss}"
measure = { seconds = "/seconds" }

[[expect]]
that = "slow takes longer"
claim = 1
found = "three times"
source = [2.5, 3.5]
quantity = "seconds"
of.kind = "slow"
to.kind = "fast"

[[expect]]
that = "slow takes longer in one of the conditions"
claim = 2
found = "three times"
source = [2.5, 3.5]
quantity = "seconds"
of.kind = "slow"
to.kind = "fast"

[[expect]]
that = "slow takes less"
claim = 3
found = "it takes less"
source = "less"
because = "it is known to"
quantity = "seconds"
of.kind = "slow"
to.kind = "fast"
where.loss = "1%"
"#;

const CATALOGUE: &str = r#"
document = [{ number = 1, title = "Known" }]

[[run]]
id = "known"
experiment = "known.toml"
minutes = 1

[[claim]]
number = 1
document = 1
claim = "three times in all conditions"

[[claim]]
number = 2
document = 1
claim = "three times in unreported conditions"
any-of = ["loss"]

[[claim]]
number = 3
document = 1
claim = "less"

[[claim]]
number = 4
document = 1
claim = "on the Moon"
not-measurable = "the testbed is on Earth"
"#;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// Writes a catalogue, an experiment document, and the records of a run. The run executed the
    /// document `recorded`, which may be another version of `document`. Without loss, the slow arm
    /// takes 3 times as long as the fast arm. With loss, the slow arm takes 30 times as long.
    fn new(catalogue: &str, document: &str, recorded: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("claims.toml"), catalogue).unwrap();
        std::fs::write(folder.path().join("known.toml"), document).unwrap();
        let results = folder.path().join("known");
        std::fs::create_dir(&results).unwrap();
        std::fs::write(results.join("runs.jsonl"), sample_lines(recorded)).unwrap();
        RunRecord::compress_records(&results).unwrap();
        std::fs::remove_file(results.join("runs.jsonl")).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn page(&self) -> Result<String, String> {
        let read = Findings::judge_result_folders(&self.path("claims.toml"), &[self.path("known")]);
        read.map(|findings| findings.markdown())
            .map_err(|error| error.to_string())
    }
}

fn sample_lines(document: &str) -> String {
    let plan = RunPlan::new(ExperimentDocument::parse_toml(document).unwrap(), None).unwrap();
    let rounds = (0..8).flat_map(|round| plan.arms.iter().map(move |arm| (round, arm)));
    let line = |(round, arm): (u32, &lab::experiment::Arm)| {
        let slow = if arm["loss"] == "1%" { 30.0 } else { 3.0 };
        let seconds = if arm["kind"] == "slow" { slow } else { 1.0 };
        let record = RunRecord {
            round,
            arm: arm.clone(),
            claims: plan.claim_fingerprints(),
            values: [("seconds".to_owned(), seconds + 0.001 * f64::from(round))].into(),
            ..RunRecord::default()
        };
        serde_json::to_string(&record).unwrap() + "\n"
    };
    rounds.map(line).collect()
}

/// Returns the verdict of a claim from the overview table of the page.
fn find_verdict(page: &str, claim: u32) -> String {
    let start = format!("| {claim} | ");
    let row = page.lines().find(|line| line.starts_with(&start)).unwrap();
    row.split(" | ").nth(2).unwrap().to_owned()
}

#[test]
fn verdicts_are_recomputed_from_raw_records() {
    let page = Bench::new(CATALOGUE, DOCUMENT, DOCUMENT).page().unwrap();
    // Each loss rate has its own verdict. The least favorable of these verdicts decides claim 1.
    // The source of claim 2 does not report the loss rate (`any-of`), so the most favorable verdict
    // decides claim 2.
    assert_eq!(find_verdict(&page, 1), "stronger", "{page}");
    assert_eq!(find_verdict(&page, 2), "repeated");
    assert_eq!(find_verdict(&page, 3), "contradicted");
    assert_eq!(find_verdict(&page, 4), "not measured");
    let headline = "**4 claims: 1 repeated, 1 stronger, 1 contradicted, 1 not measured.**";
    assert!(page.contains(headline), "{page}");
    assert!(page.contains("the testbed is on Earth"));
    // The page lists the claim with the largest deviation first. The source of claim 3 states that
    // the slow arm takes less time. In the records, the slow arm takes thirty times as long.
    assert!(
        page.contains("\n1. Claim 3, slow takes less (loss 1%): "),
        "{page}"
    );
    assert!(page.contains("Reason: it is known to."), "{page}");
}

#[test]
fn records_before_a_change_of_a_bound_do_not_count() {
    let recorded = DOCUMENT.replace("[2.5, 3.5]", "[2.9, 3.1]");
    let page = Bench::new(CATALOGUE, DOCUMENT, &recorded).page().unwrap();
    assert_eq!(find_verdict(&page, 1), "not measured", "{page}");
    assert_eq!(find_verdict(&page, 2), "not measured");
    assert_eq!(find_verdict(&page, 3), "contradicted");
}

#[test]
fn a_missing_part_makes_a_claim_not_measured() {
    let recorded = DOCUMENT.replacen("[\"0%\", \"1%\"]", "[\"0%\"]", 1);
    let recorded = recorded.replace("where.loss = \"1%\"\n", "");
    let page = Bench::new(CATALOGUE, DOCUMENT, &recorded).page().unwrap();
    assert_eq!(find_verdict(&page, 1), "not measured", "{page}");
    assert_eq!(find_verdict(&page, 2), "repeated");
    let none = Bench::new(CATALOGUE, DOCUMENT, DOCUMENT);
    std::fs::remove_dir_all(none.path("known")).unwrap();
    let page = none.page().unwrap();
    assert!(page.contains("**4 claims: 4 not measured.**"), "{page}");
    assert!(page.contains("No claim is measured yet."), "{page}");
}

#[test]
fn a_claim_without_an_expectation_or_a_reason_is_refused() {
    let bare = CATALOGUE.replace("not-measurable = \"the testbed is on Earth\"\n", "");
    let error = Bench::new(&bare, DOCUMENT, DOCUMENT).page().unwrap_err();
    assert!(
        error.contains("no run contains an expectation with claim = 4"),
        "{error}"
    );
}

#[test]
fn an_expectation_that_no_run_of_the_catalogue_contains_is_refused() {
    let scaled = CATALOGUE.replace("minutes = 1", "scale = \"half\"\nminutes = 1");
    let error = Bench::new(&scaled, DOCUMENT, DOCUMENT).page().unwrap_err();
    assert!(error.contains("claim = 3"), "{error}");
    let unknown = DOCUMENT.replace("claim = 3", "claim = 7");
    let error = Bench::new(CATALOGUE, &unknown, DOCUMENT)
        .page()
        .unwrap_err();
    assert!(
        error.contains("claim = 3") || error.contains("claim 7"),
        "{error}"
    );
}

/// The catalogue lists all claims of the four source documents. `Findings::judge_result_folders`
/// fails unless every claim has an expectation, or a reason why the claim cannot be measured.
#[test]
fn the_catalogue_covers_all_claims_of_the_source_documents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let findings =
        Findings::judge_result_folders(&root.join("experiments/claims/claims.toml"), &[]).unwrap();
    let page = findings.markdown();
    assert!(page.contains("**33 claims: 33 not measured.**"), "{page}");
    for number in (1..=35).filter(|number| ![9, 17].contains(number)) {
        assert_eq!(find_verdict(&page, number), "not measured");
    }
}
