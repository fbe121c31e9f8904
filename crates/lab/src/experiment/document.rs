//! An experiment as it is written.

mod measured;
mod shown;

pub use measured::{Histogram, Series};
pub use shown::{Kind, Plot, Quantity, names};

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// The whole document. Names are lower case, digits and dashes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// What it is called, in a few words.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What its source found, where it repeats one.
    #[serde(default)]
    pub found: String,
    /// How often each arm is measured.
    pub rounds: Spanned<u32>,
    /// How many runs go on beside each other, each in namespaces of its own [default: 1].
    pub parallel: Option<Spanned<u32>>,
    /// Decides orders, losses and intervals.
    #[serde(default)]
    pub seed: u64,
    /// Where media comes from.
    #[serde(default)]
    pub source: BTreeMap<Spanned<String>, Source>,
    /// What serves it.
    #[serde(default)]
    pub function: BTreeMap<Spanned<String>, Function>,
    /// Where things run that no link joins: hosts, where there are agents on several.
    #[serde(default)]
    pub place: BTreeMap<Spanned<String>, Place>,
    /// What lies between places.
    #[serde(default)]
    pub link: BTreeMap<Spanned<String>, Link>,
    /// What consumes it, and measures.
    #[serde(default)]
    pub sink: BTreeMap<Spanned<String>, Sink>,
    /// Variables and their values; every combination is an arm.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
    /// Smaller or larger forms of the same.
    #[serde(default)]
    pub scale: BTreeMap<String, Scale>,
    /// When a run is thrown away.
    #[serde(default)]
    pub bounds: Bounds,
    /// What is compared, and claimed.
    #[serde(default)]
    pub expect: Vec<Spanned<Expect>>,
    /// What only a workflow description can say; it is carried along (`docs/nbmp.md`).
    #[serde(default)]
    pub nbmp: toml::Table,
    /// Programs, and commands that print their versions.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// How quantities are called.
    #[serde(default)]
    pub quantity: BTreeMap<Spanned<String>, Quantity>,
    /// What the report draws [default: what the quantities suggest].
    #[serde(default)]
    pub plot: Vec<Spanned<Plot>>,
}

/// Media: a path, or what makes it once before all runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Source {
    /// A file or folder, from the document's own folder.
    pub media: Option<Spanned<String>>,
    /// A command that makes files in the empty folder where it runs; that folder is the source.
    pub make: Option<Spanned<String>>,
}

/// Where things run. Without agents all places that no link joins are this machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Place {
    /// An agent's name, or a label that it has; else any agent.
    pub on: Option<Spanned<String>>,
    /// On so many agents at most: each runs the place's sinks, as one part of them.
    pub agents: Option<Spanned<u32>>,
}

/// A server: any command line, or a function that is built in.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::used::Function")]
pub struct Function {
    /// By the shell.
    pub run: Spanned<String>,
    /// The place (an end of a link, or a table of its own); without places there is only one.
    pub at: Option<Spanned<String>>,
    /// Processors that it may run on, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// Where it listens.
    pub port: Spanned<u16>,
    /// A path that answers with success when it is healthy; without one, its port answers.
    pub health: Option<Spanned<String>>,
    /// What it reads: sources and functions, which start before it.
    pub input: Vec<Spanned<String>>,
}

/// A link between two places; what each value means is said by `headwater lab link --help`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Link {
    /// The client's place and the server's.
    pub between: Spanned<[String; 2]>,
    /// Who emulates it: we, or the kernel's `netem` [default: us].
    pub by: Option<Spanned<String>>,
    /// Bits a second, such as `20mbit`.
    pub rate: Option<Spanned<String>>,
    /// The same from the first place to the second alone.
    pub up_rate: Option<Spanned<String>>,
    /// Of each direction.
    pub delay: Option<Spanned<String>>,
    /// Of each direction's delay.
    pub jitter: Option<Spanned<String>>,
    /// Bytes, or multiples of rate × round trip.
    pub queue: Option<Spanned<String>>,
    /// Share of packets.
    pub loss: Option<Spanned<String>>,
    /// The same from the first place to the second alone.
    pub up_loss: Option<Spanned<String>>,
    /// Congestion controls of downloads that never end beside; `none` is none.
    #[serde(default)]
    pub compete: Vec<Spanned<String>>,
}

/// A client: any command line that says in JSON what it measured, or a function that is built in.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "super::used::Sink")]
pub struct Sink {
    /// By the shell.
    pub run: Spanned<String>,
    /// The place (an end of a link, or a table of its own); without places there is only one.
    pub at: Option<Spanned<String>>,
    /// Processors that it may run on, such as `[0, 2]` or `"0-1"`.
    pub cpus: Option<Spanned<Value>>,
    /// What it reads: sources and functions.
    pub input: Vec<Spanned<String>>,
    /// Quantities: name, and where it is found ([`super::quantity::Quantity`]).
    pub measure: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Where it says how late it was itself (the 99th percentile, in milliseconds).
    pub late_ms: Option<Spanned<String>>,
    /// Values over time.
    pub series: BTreeMap<Spanned<String>, Series>,
    /// Distributions.
    pub histogram: BTreeMap<Spanned<String>, Histogram>,
    /// How often it is run before, unmeasured.
    pub warm_up: u32,
    /// How long it may take.
    pub timeout: Option<Spanned<String>>,
}

/// The same experiment in another size.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scale {
    /// Instead of the document's.
    pub rounds: Option<Spanned<u32>>,
    /// Instead of the document's.
    pub parallel: Option<Spanned<u32>>,
    /// Variables with fewer values.
    #[serde(default)]
    pub sweep: BTreeMap<Spanned<String>, Vec<Spanned<Value>>>,
}

/// When a run says more about the machine than about its arm.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bounds {
    /// 99th percentile of a link's own lateness [default: 2ms].
    pub link_late: Option<Spanned<String>>,
    /// 99th percentile of a sink's own lateness, where it says it [default: 2ms].
    pub sink_late: Option<Spanned<String>>,
    /// Share of time that the machine was taken from us [default: 5%].
    pub steal: Option<Spanned<String>>,
}

/// A quantity of some arms, alone or compared with others in the same rounds; with bounds it is a
/// claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expect {
    /// What is claimed, in words.
    pub that: String,
    /// What the source found of it: it is one of the source's findings, which are repeated or not.
    pub found: Option<String>,
    /// Why it does not hold, where that is known.
    pub because: Option<String>,
    /// A sink's, or a link's: `LINK.lost`, `LINK.dropped`, `LINK.down-bytes`, `LINK.up-bytes`.
    pub quantity: Spanned<String>,
    /// Values of variables: these arms.
    pub of: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Their ratio to these arms, which are alike in all other variables.
    #[serde(default)]
    pub to: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Only where other variables have these values.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// The ratio (geometric mean) or value (mean) is not below this.
    pub at_least: Option<f64>,
    /// It is not above this.
    pub at_most: Option<f64>,
}
