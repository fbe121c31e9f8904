//! An experiment document.

mod presentation;
mod result_sources;
mod source_claim;

pub use presentation::{PlotKind, PlotSpec, QuantityLabel, as_name_list};
pub use result_sources::{HistogramSource, SeriesSource};
pub use source_claim::{RatioDirection, SourceRange};

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
    /// The finding of a source document that the experiment tries to reproduce.
    #[serde(default)]
    pub found: String,
    /// Number of rounds.
    pub rounds: Spanned<u32>,
    /// Number of concurrent runs, each in its own namespaces [default: 1].
    pub parallel: Option<Spanned<u32>>,
    /// Seed that determines the order of the arms and the packet losses.
    #[serde(default)]
    pub seed: u64,
    /// Media sources.
    #[serde(default)]
    pub source: BTreeMap<Spanned<String>, MediaSource>,
    /// Servers.
    #[serde(default)]
    pub function: BTreeMap<Spanned<String>, FunctionSpec>,
    /// Tables of places. A place that is not the end of a link must have a table. A table can also
    /// select the agents of the place.
    #[serde(default)]
    pub place: BTreeMap<Spanned<String>, PlaceSpec>,
    /// Links between places.
    #[serde(default)]
    pub link: BTreeMap<Spanned<String>, LinkSpec>,
    /// Clients that measure.
    #[serde(default)]
    pub sink: BTreeMap<Spanned<String>, SinkSpec>,
    /// Variables and their values. Every combination of values is an arm.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
    /// Smaller or larger versions of the experiment.
    #[serde(default)]
    pub scale: BTreeMap<String, ScaleSpec>,
    /// Bounds on disturbances. A run that exceeds a bound is discarded.
    #[serde(default)]
    pub bounds: NoiseBounds,
    /// Quantities to report or compare, and claims about these quantities.
    #[serde(default)]
    pub expect: Vec<Spanned<Expectation>>,
    /// Members that only a workflow description has (`docs/nbmp.md`).
    #[serde(default)]
    pub nbmp: toml::Table,
    /// Programs, each with the command that prints the program's version.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Labels of quantities.
    #[serde(default)]
    pub quantity: BTreeMap<Spanned<String>, QuantityLabel>,
    /// Plots of the report [default: plots that suit the quantities].
    #[serde(default)]
    pub plot: Vec<Spanned<PlotSpec>>,
}

/// Media that exist at a path or that a command creates. The command is executed once, before all
/// runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MediaSource {
    /// File or folder, relative to the document.
    pub media: Option<Spanned<String>>,
    /// Command that creates files in its empty working folder. That folder becomes the source.
    pub make: Option<Spanned<String>>,
}

/// A place where functions and sinks run. Without agents, all functions and sinks that are not at
/// the end of a link share one network namespace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlaceSpec {
    /// Name or label of an agent [default: any agent].
    pub on: Option<Spanned<String>>,
    /// Maximum number of agents at this place. Each agent runs one part of the place's sinks.
    pub agents: Option<Spanned<u32>>,
}

/// A server, which is a command line or a built-in function.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::raw_functions_and_sinks::RawFunction")]
pub struct FunctionSpec {
    /// Shell command.
    pub run: Spanned<String>,
    /// The place, which is an end of a link or has its own table (`[place.NAME]`). Optional if the
    /// document has no places.
    pub at: Option<Spanned<String>>,
    /// Allowed processors, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// Port.
    pub port: Spanned<u16>,
    /// Path of the health check. The server is healthy if a request for this path succeeds
    /// [default: no path; the port must accept connections].
    pub health: Option<Spanned<String>>,
    /// Sources and functions that this function reads. The functions in this list start before this
    /// function.
    pub input: Vec<Spanned<String>>,
}

/// A link between two places; `headwater lab link --help` explains the values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// The client's place and the server's place.
    pub between: Spanned<[String; 2]>,
    /// Emulator. `us` is the emulator of this program, and `netem` is the emulator of the kernel
    /// [default: us].
    pub by: Option<Spanned<String>>,
    /// Rate of each direction, such as `20mbit` (bits per second).
    pub rate: Option<Spanned<String>>,
    /// Rate from the first place to the second [default: as `rate`].
    pub up_rate: Option<Spanned<String>>,
    /// Delay of each direction.
    pub delay: Option<Spanned<String>>,
    /// Jitter of each direction.
    pub jitter: Option<Spanned<String>>,
    /// Queue size in bytes, or in multiples of rate × round-trip time.
    pub queue: Option<Spanned<String>>,
    /// Packet loss of each direction, such as `1%`.
    pub loss: Option<Spanned<String>>,
    /// Packet loss from the first place to the second [default: as `loss`].
    pub up_loss: Option<Spanned<String>>,
    /// Congestion control algorithms of endless competing downloads, one per download. `none`
    /// starts no download.
    #[serde(default)]
    pub compete: Vec<Spanned<String>>,
}

/// A client, which is a built-in function or a command line that prints its measurements as JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::raw_functions_and_sinks::RawSink")]
pub struct SinkSpec {
    /// Shell command.
    pub run: Spanned<String>,
    /// The place, which is an end of a link or has its own table (`[place.NAME]`). Optional if the
    /// document has no places.
    pub at: Option<Spanned<String>>,
    /// Allowed processors, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// Sources and functions that the sink reads.
    pub input: Vec<Spanned<String>>,
    /// Quantities by name, with their locations ([`super::quantity::QuantityLocator`]).
    pub measure: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Location of the lateness that the sink reports, which is a 99th percentile in milliseconds.
    pub late_ms: Option<Spanned<String>>,
    /// Series over time, by name.
    pub series: BTreeMap<Spanned<String>, SeriesSource>,
    /// Distributions, by name.
    pub histogram: BTreeMap<Spanned<String>, HistogramSource>,
    /// Number of unmeasured runs before the measurement.
    pub warm_up: u32,
    /// Time limit of the sink.
    pub timeout: Option<Spanned<String>>,
}

/// A `[scale.NAME]` table. With `--scale NAME`, its settings replace the document's settings, for
/// example for a shorter experiment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScaleSpec {
    /// Number of rounds at this scale.
    pub rounds: Option<Spanned<u32>>,
    /// Number of concurrent runs at this scale.
    pub parallel: Option<Spanned<u32>>,
    /// Variables whose values differ at this scale.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
}

/// Limits on the noise of a run. A run above a limit is discarded, because the machine disturbed
/// it.
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

/// A measured quantity in selected arms, either alone or as a ratio to the same quantity in other
/// arms and the same rounds. An expectation with bounds is a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    /// The claim as a sentence.
    pub that: String,
    /// Number of the source's claim that this expectation tests (`experiments/claims/claims.toml`).
    pub claim: Option<u32>,
    /// The finding of the source as a sentence. Claims with a finding decide whether the source's
    /// result was replicated.
    pub found: Option<String>,
    /// The range or direction that the source states. A claim with a source has no `at-least` and
    /// no `at-most`.
    pub source: Option<SourceRange>,
    /// Reason why the claim does not hold, if known.
    pub because: Option<String>,
    /// Name of the quantity. A sink measures the quantity, or the quantity is `LINK.lost`,
    /// `LINK.dropped`, `LINK.down-bytes` or `LINK.up-bytes`, where `LINK` is the name of a link.
    pub quantity: Spanned<String>,
    /// Values of variables that select the arms.
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Values of variables that select the arms of the denominator. All other variables have the
    /// same values in both arms of a ratio.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Restricts the expectation to arms with these values of other variables.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Lower bound of the median ratio or value, for a claim without a source.
    pub at_least: Option<f64>,
    /// Upper bound of the median ratio or value, for a claim without a source.
    pub at_most: Option<f64>,
}
