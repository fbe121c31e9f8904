//! `headwater load rate`.

use super::stop::stop_on_ctrl_c;
use super::{Begun, CLIENT, OUTPUTS, Stop, begin, deliver, open, seed, settings, threads, url};
use crate::client::{Check, Client, Dialer, Request, Url};
use crate::rate::manifest::{self, Weigh};
use crate::rate::{Kind, Plan, Profile, Ranges, Spacing, Target, requests, run as run_plan};
use crate::report::live::{Live, lines};
use clap::{Arg, ArgMatches, Command};
use net::config::{Knob, Layers, Wrong, bytes, count, duration, flags};
use std::process::ExitCode;
use std::sync::Arc;

const KNOBS: &[&[Knob]] = &[RATE, CLIENT, OUTPUTS];

const RATE: &[Knob] = &[
    Knob::new(
        "rate",
        "RATE",
        "50",
        "Requests a second, or how they move; see below",
    ),
    Knob::new(
        "arrivals",
        "even|poisson",
        "even",
        "How requests lie within the rate",
    ),
    Knob::new(
        "duration",
        "DURATION",
        "",
        "Length of the run [default: what the rate says, or 10s]",
    ),
    Knob::new(
        "drain",
        "DURATION",
        "30s",
        "How long late requests are still sent and waited for at the end",
    ),
    Knob::new(
        "seed",
        "N",
        "1",
        "Decides arrivals, weights and places: the same seed, the same run",
    ),
    Knob::new(
        "connections",
        "N",
        "10",
        "Connections made before the start; with --rate max, all",
    ),
    Knob::new(
        "max-connections",
        "N",
        "10000",
        "Most connections; requests beyond wait, and count as late",
    ),
    Knob::new(
        "streams",
        "N",
        "1",
        "Requests at a time on one HTTP/2 connection",
    ),
    Knob::new(
        "threads",
        "N",
        "0",
        "Threads that ask, each with its own connections; 0: one per core",
    ),
    Knob::new(
        "header",
        "FIELD",
        "",
        "A field that every request carries, such as 'X-Test: 1'",
    )
    .list(),
    Knob::new(
        "weigh",
        "even|start",
        "even",
        "Segments of a manifest: all alike, or as viewers who leave ask for them",
    ),
    Knob::new(
        "range-size",
        "BYTES",
        "1MiB",
        "Length of the random pieces of ranges:URL",
    ),
    Knob::new(
        "length",
        "BYTES",
        "",
        "Check that every body has this length",
    ),
    Knob::new("sha256", "HEX", "", "Check that every body has this hash"),
    Knob::new(
        "write-targets",
        "FILE",
        "",
        "Write the requests in Vegeta's JSON format, and end; - is standard output",
    ),
];

const AFTER: &str = "\
Targets, in turn (weights of files and manifests apart):
  http://host/path          this URL
  manifest:http://…/.mpd    every playlist, init segment and segment that it lists (HLS, DASH)
  ranges:http://…/film.mp4  random pieces of the file, as long as --range-size says
  @FILE                     requests in Vegeta's format: METHOD URL, fields, @body; or JSON lines

Rates:
  100   100/s   6000/min    constant
  ramp:10..500              evenly from 10 to 500 requests a second
  steps:50+50/10s..600      from 50, 50 more every 10 s, up to 600; reported apart
  sine:100~50/60s           around 100, 50 up and down, in 60 s
  file:PATH                 lines of a time in seconds and a rate; straight between
  max                       a closed loop: as fast as --connections allow (no latency from due)

Every request starts when it is due and waits for no other. Two latencies are kept: from when it
was due, and from when it was sent. Exit status: 0; 1 if the run or an expectation failed; 2 for
wrong usage.

Examples:
  headwater load rate http://127.0.0.1:8080/film.mp4/.m3u8 --rate 500 --duration 30s
  headwater load rate manifest:http://127.0.0.1:8080/film.mp4/.mpd --rate steps:50+50/10s..600 \\
      --arrivals poisson --html report.html --expect 'p99 < 50ms' --expect 'errors = 0'
  headwater load rate @requests.txt --rate ramp:1..2000 --duration 60s --records run.jsonl.zst";

/// The words of `headwater load rate`.
pub(super) fn command() -> Command {
    let targets = Arg::new("target")
        .value_name("TARGET")
        .num_args(1..)
        .required_unless_present(net::config::PRINT)
        .help("What to ask for: URL, manifest:URL, ranges:URL, @FILE");
    Command::new("rate")
        .about("Ask at a given rate, whatever the server does, and say how it answered")
        .after_help(AFTER)
        .arg(targets)
        .args(flags(KNOBS))
}

/// Runs it.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let Some(Begun {
        layers,
        expected,
        words,
    }) = begin(KNOBS, flags, "target")?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let plan = plan(&layers, &words)?;
    if let Some(path) = layers.one("write-targets") {
        let text = requests::write(&plan.targets);
        let written = match path {
            "-" => std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()),
            path => std::fs::write(path, text),
        };
        written.map_err(|error| format!("{path}: {error}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let outputs = open(&layers)?;
    let stop = stop_on_ctrl_c()?;
    let live = Live::new(plan.profile.duration_s());
    let mut run = run_plan(Arc::new(plan), stop, outputs, |sight| {
        live.show(sight.second.second, &lines(sight))
    })?;
    live.end();
    run.name = layers.one("name").unwrap_or_default().to_owned();
    deliver(&layers, &run, &expected)
}

fn plan(layers: &Layers, words: &[String]) -> Result<Plan, Stop> {
    let number = |name, default| Ok::<_, Wrong>(layers.with(name, count)?.unwrap_or(default));
    let duration_s = layers
        .with("duration", duration)?
        .map(|time| time.as_secs_f64());
    let offered = layers.one("rate").unwrap_or_default().to_owned();
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let profile = layers.with("rate", |text| Profile::parse(text, duration_s, read))?;
    let profile = profile.ok_or_else(|| Wrong("--rate is missing".into()))?;
    let settings = settings(layers)?;
    let dialer = Dialer::new(settings).map_err(Wrong)?;
    let targets = targets(layers, words, &dialer)?;
    let connections = number("connections", 10)?;
    let most = match profile {
        Profile::Max { .. } => connections.max(1),
        Profile::Given { .. } => number("max-connections", 10_000)?.max(1),
    };
    Ok(Plan {
        profile,
        offered,
        spacing: layers.with("arrivals", spacing)?.unwrap_or_default(),
        seed: seed(layers)?,
        dialer,
        targets,
        connections: connections.min(most),
        connections_max: most,
        streams: number("streams", 1)?.clamp(1, 10_000),
        threads: threads(layers)?.clamp(1, most.min(1024)),
        drain: layers.with("drain", duration)?.unwrap_or_default(),
    })
}

fn spacing(text: &str) -> Result<Spacing, String> {
    match text {
        "even" => Ok(Spacing::Even),
        "poisson" => Ok(Spacing::Poisson),
        _ => Err("it is even or poisson".into()),
    }
}

fn weigh(text: &str) -> Result<Weigh, String> {
    match text {
        "even" => Ok(Weigh::Even),
        "start" => Ok(Weigh::Start),
        _ => Err("it is even or start".into()),
    }
}

/// What the words of the command line ask for.
fn targets(layers: &Layers, words: &[String], dialer: &Dialer) -> Result<Vec<Target>, Stop> {
    let weigh = layers.with("weigh", weigh)?.unwrap_or_default();
    let size = layers.with("range-size", bytes)?.unwrap_or(1 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let mut all = Vec::new();
    for word in words {
        let wrong = |why: String| Stop::Usage(Wrong(format!("{word}: {why}")));
        if let Some(path) = word.strip_prefix('@') {
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            let body = |path: &str| std::fs::read(path).map_err(|error| format!("{path}: {error}"));
            all.extend(requests::read(&text, body).map_err(wrong)?);
        } else if let Some(at) = word.strip_prefix("manifest:") {
            let at = url(at).map_err(wrong)?;
            all.extend(runtime.block_on(manifest::targets(dialer, &at, weigh))?);
        } else if let Some(at) = word.strip_prefix("ranges:") {
            let at = url(at).map_err(wrong)?;
            let file_bytes = runtime.block_on(length(dialer, &at))?;
            let ranges = Some(Ranges { file_bytes, size });
            all.push(Target {
                kind: Kind::Range,
                ranges,
                ..Target::get(at)
            });
        } else {
            all.push(Target::get(url(word).map_err(wrong)?));
        }
    }
    let check = Check {
        length: layers.with("length", bytes)?,
        sha256: layers.with("sha256", requests::sha256)?,
    };
    for field in layers.list("header") {
        let wrong = || Wrong(format!("header = {field:?}: a field is NAME: VALUE"));
        let (name, value) = field.split_once(':').ok_or_else(wrong)?;
        let name: http::HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let value: http::HeaderValue = value.trim().parse().map_err(|_| wrong())?;
        all.iter_mut().for_each(|target| {
            target.headers.append(name.clone(), value.clone());
        });
    }
    if check != Check::default() {
        all.iter_mut().for_each(|target| target.check = Some(check));
    }
    Ok(all)
}

/// A file's length, as a range's answer says it.
async fn length(dialer: &Dialer, url: &Url) -> Result<u64, String> {
    let request = Request::new(url.clone()).range(0..1).keep(1 << 10);
    let outcome = Client::new(dialer).get(&request).await;
    if let Some(fault) = outcome.fault {
        return Err(format!(
            "{url}: {fault} {}",
            outcome.detail.unwrap_or_default()
        ));
    }
    let total = outcome.headers.get(http::header::CONTENT_RANGE);
    let total = total.and_then(|value| value.to_str().ok()?.rsplit_once('/')?.1.parse().ok());
    match total {
        Some(total) if outcome.status == 206 && total > 0 => Ok(total),
        _ => Err(format!(
            "{url}: the server answers no ranges (status {})",
            outcome.status
        )),
    }
}
