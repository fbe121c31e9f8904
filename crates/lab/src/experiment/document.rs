//! An experiment document.

mod presentation;
mod result_sources;
mod source_claim;

pub use presentation::{PlotKind, PlotSpec, QuantityLabel, list_names};
pub use result_sources::{HistogramSource, SeriesSource};
pub use source_claim::{SourceDirection, SourceRange};

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The whole document. Names consist of lower-case letters, digits and dashes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExperimentDocument {
    /// Title.
    pub name: String,
    /// The question that the experiment answers.
    pub question: String,
    /// The finding, from a source document, that the experiment tries to reproduce.
    #[serde(default)]
    pub found: String,
    /// Number of rounds.
    pub rounds: Spanned<u32>,
    /// Number of concurrent runs, each in its own namespaces [default: 1].
    pub parallel: Option<Spanned<u32>>,
    /// Seed of the order of the arms and of the packet losses.
    #[serde(default)]
    pub seed: u64,
    /// Media sources.
    #[serde(default)]
    pub source: BTreeMap<Spanned<String>, MediaSource>,
    /// Servers.
    #[serde(default)]
    pub function: BTreeMap<Spanned<String>, FunctionSpec>,
    /// Places that no link joins. With agents, they are hosts.
    #[serde(default)]
    pub place: BTreeMap<Spanned<String>, PlaceSpec>,
    /// Links between places.
    #[serde(default)]
    pub link: BTreeMap<Spanned<String>, LinkSpec>,
    /// Clients that measure.
    #[serde(default)]
    pub sink: BTreeMap<Spanned<String>, SinkSpec>,
    /// Variables and their values; every combination is an arm.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
    /// Smaller or larger versions of the experiment.
    #[serde(default)]
    pub scale: BTreeMap<String, ScaleSpec>,
    /// Bounds beyond which a run is discarded.
    #[serde(default)]
    pub bounds: NoiseBounds,
    /// Comparisons and claims.
    #[serde(default)]
    pub expect: Vec<Spanned<Expectation>>,
    /// Members that only a workflow description has (`docs/nbmp.md`).
    #[serde(default)]
    pub nbmp: toml::Table,
    /// Programs, with the commands that print their versions.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Labels of quantities.
    #[serde(default)]
    pub quantity: BTreeMap<Spanned<String>, QuantityLabel>,
    /// Plots of the report [default: chosen by the quantities].
    #[serde(default)]
    pub plot: Vec<Spanned<PlotSpec>>,
}

/// Media: a path, or a command that makes it once before all runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MediaSource {
    /// File or folder, relative to the document.
    pub media: Option<Spanned<String>>,
    /// Command that creates files in its empty working folder; that folder is the source.
    pub make: Option<Spanned<String>>,
}

/// A place where functions and sinks run. Without agents, all places that no link joins are this
/// machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlaceSpec {
    /// Name or label of an agent [default: any agent].
    pub on: Option<Spanned<String>>,
    /// Maximum number of agents; each runs one part of the place's sinks.
    pub agents: Option<Spanned<u32>>,
}

/// A server: a command line or a built-in function.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::component::RawFunction")]
pub struct FunctionSpec {
    /// Shell command.
    pub run: Spanned<String>,
    /// The place: an end of a link, or a place with its own table (`[place.NAME]`). Optional if the
    /// document has no places.
    pub at: Option<Spanned<String>>,
    /// Allowed processors, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// Port.
    pub port: Spanned<u16>,
    /// Path of the health check: the server is healthy if a request for this path succeeds
    /// [default: no path; the port must accept connections].
    pub health: Option<Spanned<String>>,
    /// Sources and functions that it reads; they start first.
    pub input: Vec<Spanned<String>>,
}

/// A link between two places; `headwater lab link --help` explains the values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The client's place and the server's place.
    pub between: Spanned<[String; 2]>,
    /// Emulator: `us`, or the kernel's `netem` [default: us].
    pub by: Option<Spanned<String>>,
    /// Bits per second, such as `20mbit`.
    pub rate: Option<Spanned<String>>,
    /// Rate from the first place to the second.
    pub up_rate: Option<Spanned<String>>,
    /// Delay of each direction.
    pub delay: Option<Spanned<String>>,
    /// Jitter of each direction.
    pub jitter: Option<Spanned<String>>,
    /// Queue size in bytes, or in multiples of rate × round trip.
    pub queue: Option<Spanned<String>>,
    /// Share of lost packets.
    pub loss: Option<Spanned<String>>,
    /// Loss from the first place to the second.
    pub up_loss: Option<Spanned<String>>,
    /// Congestion controls of endless competing downloads; `none` starts no download.
    #[serde(default)]
    pub compete: Vec<Spanned<String>>,
}

/// A client: a command line that prints its measurements as JSON, or a built-in function.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::component::RawSink")]
pub struct SinkSpec {
    /// Shell command.
    pub run: Spanned<String>,
    /// The place: an end of a link, or a place with its own table (`[place.NAME]`). Optional if the
    /// document has no places.
    pub at: Option<Spanned<String>>,
    /// Allowed processors, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// Sources and functions that it reads.
    pub input: Vec<Spanned<String>>,
    /// Quantities and their locations ([`super::quantity::QuantityExpression`]).
    pub measure: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Location of the lateness that the sink reports (99th percentile, in milliseconds).
    pub late_ms: Option<Spanned<String>>,
    /// Series over time.
    pub series: BTreeMap<Spanned<String>, SeriesSource>,
    /// Distributions.
    pub histogram: BTreeMap<Spanned<String>, HistogramSource>,
    /// Number of unmeasured runs before the measurement.
    pub warm_up: u32,
    /// Time limit.
    pub timeout: Option<Spanned<String>>,
}

/// A `[scale.NAME]` table: the settings that `--scale NAME` replaces to run the experiment at another size.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScaleSpec {
    /// Replaces the document's rounds.
    pub rounds: Option<Spanned<u32>>,
    /// Replaces the document's concurrency.
    pub parallel: Option<Spanned<u32>>,
    /// Variables with other values.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
}

/// Limits above which a run counts as disturbed by the machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NoiseBounds {
    /// 99th percentile of a link's lateness [default: 2ms].
    pub link_late: Option<Spanned<String>>,
    /// 99th percentile of a sink's lateness, if the sink reports it [default: 2ms].
    pub sink_late: Option<Spanned<String>>,
    /// Share of processor time that the hypervisor took [default: 5%].
    pub steal: Option<Spanned<String>>,
}

/// A quantity of some arms, alone or relative to other arms in the same rounds. With bounds, it is
/// a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    /// The claim as a sentence.
    pub that: String,
    /// Number of the source's claim that this expectation tests (`experiments/claims/claims.toml`).
    pub claim: Option<u32>,
    /// The finding of the source as a sentence. Claims with this field decide whether the source's
    /// result was replicated.
    pub found: Option<String>,
    /// The range or direction that the source reports; replaces `at-least` and `at-most`.
    pub source: Option<SourceRange>,
    /// Reason why the claim does not hold, if known.
    pub because: Option<String>,
    /// A quantity of a sink or a link: `LINK.lost`, `LINK.dropped`, `LINK.down-bytes`,
    /// `LINK.up-bytes`.
    pub quantity: Spanned<String>,
    /// Values of variables that select the arms.
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Values that select the arms of the denominator; both arms agree in all other variables.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Restricts the expectation to these values of other variables.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Lower bound of the median ratio or value, if the claim is our own.
    pub at_least: Option<f64>,
    /// Upper bound.
    pub at_most: Option<f64>,
}
