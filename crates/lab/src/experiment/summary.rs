//! What records say: each arm by itself, and what was expected.

use super::arms::plain;
use super::document::Expect;
use super::{Arm, Plan, Record};
use serde::Serialize;
use stats::{Interval, Ratio};
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::{Spanned, Value};

/// Of all records.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The document's name.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What its source found.
    pub found: String,
    /// Every arm's quantities.
    pub arms: Vec<OfArm>,
    /// What was expected, cell by cell.
    pub claims: Vec<Claim>,
    /// Runs that count.
    pub runs: usize,
    /// Runs that were thrown away, and why.
    pub thrown: Vec<String>,
    /// The highest of all runs that count: 99th percentile of a link's lateness, in microseconds.
    pub link_late_us: u64,
    /// The highest share of stolen processor time.
    pub steal: f64,
}

/// One arm.
#[derive(Debug, Clone, Serialize)]
pub struct OfArm {
    /// The variables' values.
    pub arm: Arm,
    /// By quantity.
    pub values: BTreeMap<String, Sample>,
}

/// A quantity of an arm over its rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Rounds.
    pub n: usize,
    /// Arithmetic.
    pub mean: f64,
    /// 95 % bootstrap interval of the mean.
    pub interval: Option<[f64; 2]>,
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// An expectation in one cell: where all other variables have these values.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// In words.
    pub that: String,
    /// The other variables' values.
    pub cell: Arm,
    /// Rounds that could be used.
    pub n: usize,
    /// The ratio's geometric mean, or the mean.
    pub value: f64,
    /// Its 95 % bootstrap interval over rounds.
    pub interval: Option<[f64; 2]>,
    /// Of ratios: the middle one, and the ratio of means.
    pub median_and_of_means: Option<[f64; 2]>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of the interval is within the bounds.
    Holds,
    /// All of it is outside.
    Fails,
    /// Neither, or too few rounds for an interval.
    Undecided,
    /// It has no bounds: nothing is claimed.
    Told,
}

/// What the records of a plan say.
pub fn summary(plan: &Plan, records: &[Record]) -> Summary {
    let document = &plan.document;
    let counted: Vec<&Record> = records
        .iter()
        .filter(|record| record.thrown.is_none())
        .collect();
    let in_arm = |arm: &Arm| {
        counted
            .iter()
            .copied()
            .filter(|record| record.arm == *arm)
            .collect()
    };
    let of_arm = |arm: &Arm| OfArm {
        arm: arm.clone(),
        values: samples(in_arm(arm), document.seed),
    };
    let thrown = records.iter().filter_map(|record| record.thrown.clone());
    let late = counted
        .iter()
        .flat_map(|record| record.link_late_us.values().copied());
    Summary {
        name: document.name.clone(),
        question: document.question.clone(),
        found: document.found.clone(),
        arms: plan.arms.iter().map(of_arm).collect(),
        claims: claims(plan, &counted),
        runs: counted.len(),
        thrown: thrown.collect(),
        link_late_us: late.max().unwrap_or(0),
        steal: counted
            .iter()
            .map(|record| record.noise.steal)
            .fold(0.0, f64::max),
    }
}

fn samples(records: Vec<&Record>, seed: u64) -> BTreeMap<String, Sample> {
    let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, value) in records.iter().flat_map(|record| &record.values) {
        values.entry(name).or_default().push(*value);
    }
    let sample = |(name, values): (&String, Vec<f64>)| {
        let found = stats::Summary::of(&values, seed)?;
        let sample = Sample {
            n: found.n,
            mean: found.mean,
            interval: found.interval.map(pair),
            median: found.median,
            min: found.min,
            max: found.max,
        };
        Some((name.clone(), sample))
    };
    values.into_iter().filter_map(sample).collect()
}

fn claims(plan: &Plan, records: &[&Record]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for expect in &plan.document.expect {
        let expect = expect.get_ref();
        let (of, only) = (texts(&expect.of), texts(&expect.only));
        let wanted = |arm: &&Arm| has(arm, &of) && has(arm, &only);
        for arm in plan.arms.iter().filter(wanted) {
            claims.extend(claim(expect, arm, records, plan.document.seed));
        }
    }
    claims
}

/// None where nothing was measured of it.
fn claim(expect: &Expect, arm: &Arm, records: &[&Record], seed: u64) -> Option<Claim> {
    let to = texts(&expect.to);
    let quantity = expect.quantity.get_ref();
    let value = |arm: &Arm, round: u32| {
        let same = |record: &&&Record| record.round == round && record.arm == *arm;
        records.iter().find(same)?.values.get(quantity).copied()
    };
    let mut rounds: Vec<u32> = records.iter().map(|record| record.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let (n, found, interval, beside) = if to.is_empty() {
        let values: Vec<f64> = rounds
            .iter()
            .filter_map(|round| value(arm, *round))
            .collect();
        let found = stats::Summary::of(&values, seed)?;
        (found.n, found.mean, found.interval, None)
    } else {
        let mut other = arm.clone();
        other.extend(to);
        let both = |round: &u32| Some((value(arm, *round)?, value(&other, *round)?));
        let (a, b): (Vec<f64>, Vec<f64>) = rounds.iter().filter_map(both).unzip();
        let ratio = Ratio::of(&a, &b, seed)?;
        let beside = Some([ratio.median, ratio.of_means]);
        (a.len(), ratio.geometric, ratio.interval, beside)
    };
    let cell = arm
        .iter()
        .filter(|(name, _)| !expect.of.contains_key(name.as_str()));
    Some(Claim {
        that: expect.that.clone(),
        cell: cell
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        n,
        value: found,
        interval: interval.map(pair),
        median_and_of_means: beside,
        verdict: verdict(expect, interval),
    })
}

fn verdict(expect: &Expect, interval: Option<Interval>) -> Verdict {
    let least = expect.at_least.unwrap_or(f64::NEG_INFINITY);
    let most = expect.at_most.unwrap_or(f64::INFINITY);
    match interval {
        _ if expect.at_least.is_none() && expect.at_most.is_none() => Verdict::Told,
        Some(within) if within.low >= least && within.high <= most => Verdict::Holds,
        Some(within) if within.high < least || within.low > most => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}

fn texts(values: &BTreeMap<Spanned<String>, Spanned<Value>>) -> Arm {
    let text = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
        Some((name.get_ref().clone(), plain(value.get_ref())?))
    };
    values.iter().filter_map(text).collect()
}

fn has(arm: &Arm, values: &Arm) -> bool {
    values
        .iter()
        .all(|(name, value)| arm.get(name) == Some(value))
}

fn pair(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

impl Summary {
    /// Whether a claim fails, or an arm could not be measured at all.
    pub fn failed(&self) -> bool {
        let fails = |claim: &Claim| claim.verdict == Verdict::Fails;
        let unmeasured = |of: &OfArm| of.values.is_empty();
        self.claims.iter().any(fails) || self.arms.iter().any(unmeasured)
    }

    /// As Markdown.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "# {}\n\n{}\n", self.name, self.question)?;
        if !self.found.is_empty() {
            writeln!(out, "The source found: {}\n", self.found)?;
        }
        if !self.claims.is_empty() {
            writeln!(
                out,
                "| expected | where | rounds | value | 95 % | median, of means | verdict |"
            )?;
            writeln!(out, "|---|---|---|---|---|---|---|")?;
        }
        for claim in &self.claims {
            let beside = claim
                .median_and_of_means
                .map_or("–".into(), |[a, b]| format!("{a:.3}, {b:.3}"));
            writeln!(
                out,
                "| {} | {} | {} | {:.3} | {} | {beside} | {} |",
                claim.that,
                words(&claim.cell),
                claim.n,
                claim.value,
                range(claim.interval),
                format!("{:?}", claim.verdict).to_lowercase(),
            )?;
        }
        writeln!(
            out,
            "\n| arm | quantity | n | mean | 95 % | median | min | max |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        for of_arm in &self.arms {
            for (name, of) in &of_arm.values {
                writeln!(
                    out,
                    "| {} | {name} | {} | {:.3} | {} | {:.3} | {:.3} | {:.3} |",
                    words(&of_arm.arm),
                    of.n,
                    of.mean,
                    range(of.interval),
                    of.median,
                    of.min,
                    of.max
                )?;
            }
        }
        writeln!(
            out,
            "\n{} runs count, {} were thrown away; links were at most {} us late (p99), {:.1} % of \
             processor time was stolen at most.",
            self.runs,
            self.thrown.len(),
            self.link_late_us,
            self.steal * 100.0
        )?;
        self.thrown
            .iter()
            .try_for_each(|why| writeln!(out, "- thrown away: {why}"))
    }
}

fn words(arm: &Arm) -> String {
    let each = arm.iter().map(|(name, value)| format!("{name} {value}"));
    let text = each.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "–".into() } else { text }
}

fn range(interval: Option<[f64; 2]>) -> String {
    interval.map_or("–".into(), |[low, high]| format!("{low:.3} – {high:.3}"))
}
