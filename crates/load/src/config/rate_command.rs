//! `headwater load rate`.

use super::load_run::{LoadCommandInput, read_seed, read_threads, run_and_report};
use super::metrics_port::open_metrics_port;
use super::recorded_targets::read_recorded_targets;
use super::setting_values::{InvalidChoice, parse_choice, parse_setting, parse_url};
use super::stop_signal::stop_on_ctrl_c;
use super::{CLIENT, CommandError, OUTPUTS, open_outputs, read_client_settings};
use crate::client::{ClientRequest, Dialer, ExpectedBody, FailureKind, HttpClient, Url};
use crate::rate::manifest_targets::{self, SegmentWeighting};
use crate::rate::replay_schedule::{parse_replay_speed, schedule_replay};
use crate::rate::vegeta_format;
use crate::rate::{
    ArrivalSpacing, RandomRanges, RateProfile, RateRunPlan, RequestKind, RequestTarget,
    run_rate_plan,
};
use crate::report::live_progress::{LiveProgress, format_progress};
use crate::result::{RunFacts, RunResult};
use clap::{Arg, ArgMatches, Command};
use net::config::{
    Setting, SettingLayers, UsageError, build_command_args, parse_bytes, parse_count,
    parse_duration,
};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;

const SETTINGS: &[&[Setting]] = &[RATE, CLIENT, OUTPUTS];

const RATE: &[Setting] = &[
    Setting::new(
        "rate",
        "RATE",
        "50",
        "Offered rate in requests per second, or a profile; see below",
    ),
    Setting::new(
        "arrivals",
        "even|poisson",
        "even",
        "Spacing of requests within the rate",
    ),
    Setting::new(
        "duration",
        "DURATION",
        "",
        "Length of the run [default: that of the profile, or 10s]",
    ),
    Setting::new(
        "speed",
        "FACTOR",
        "1",
        "Speed of --rate replay; 2 is twice as fast as recorded",
    ),
    Setting::new(
        "base",
        "URL",
        "",
        "Server for requests of har:FILE and log:FILE, instead of the recorded one",
    ),
    Setting::new(
        "drain",
        "DURATION",
        "30s",
        "Time after the profile in which overdue requests are sent and awaited",
    ),
    Setting::new(
        "seed",
        "N",
        "1",
        "Seed of arrivals, weighted choices and random ranges",
    ),
    Setting::new(
        "connections",
        "N",
        "10",
        "Connections opened before the start; --rate max opens no others",
    ),
    Setting::new(
        "max-connections",
        "N",
        "10000",
        "Limit of connections; further requests wait and count as late",
    ),
    Setting::new(
        "streams",
        "N",
        "1",
        "Concurrent requests per HTTP/2 connection",
    ),
    Setting::new(
        "threads",
        "N",
        "0",
        "Generator threads with their own connections; 0 is one per core",
    ),
    Setting::new(
        "header",
        "FIELD",
        "",
        "Header field of every request, such as 'X-Test: 1'",
    )
    .as_list(),
    Setting::new(
        "weigh",
        "even|start",
        "even",
        "Weights of segments: equal, or falling as if viewers left early",
    ),
    Setting::new(
        "range-size",
        "BYTES",
        "1MiB",
        "Length of the random ranges of ranges:URL",
    ),
    Setting::new("length", "BYTES", "", "Expected length of every body"),
    Setting::new("sha256", "HEX", "", "Expected SHA-256 of every body"),
    Setting::new(
        "metrics",
        "HOST:PORT",
        "",
        "Serve Prometheus metrics at /metrics during the run; port 0 is any free one",
    ),
    Setting::new(
        "write-targets",
        "FILE",
        "",
        "Write the requests in Vegeta's JSON format and exit; - is standard output",
    ),
];

const AFTER: &str = "\
Targets (used in turn, unless files or manifests give weights):
  http://host/path          this URL
  manifest:http://.../.mpd  every playlist, init segment and segment listed (HLS, DASH)
  ranges:http://.../film.mp4
                            random ranges of the file, --range-size bytes each
  @FILE                     requests in Vegeta's format: METHOD URL, header fields, @body; or JSON lines
                            (@- reads standard input)
  har:FILE                  requests of an HTTP Archive, as browsers export it
  log:FILE                  GET and HEAD requests of an access log (Common, Combined or W3C); --base is
                            the server. - is standard input for both

Rates:
  100   100/s   6000/min    constant
  ramp:10..500              from 10 to 500 requests per second
  steps:50+50/10s..600      from 50, 50 more every 10 s, up to 600; steps are reported separately
  sine:100~50/60s           mean 100, amplitude 50, period 60 s
  file:PATH                 lines of a time in seconds and a rate, interpolated
  replay                    recorded times of har:FILE and log:FILE, --speed times as fast
  max                       closed loop: as fast as --connections allow; latency from the actual send only

Every request starts when it is due and waits for no other. Latency is reported from the due time
(no coordinated omission) and from the actual send time. Requests in flight at the end of --drain are
abandoned, and count neither as requests nor as errors; --expect 'abandoned = 0' checks them. The mean
rate and throughput include the drain. Exit codes: 0 for success, 1 if the run or an expectation
failed, 2 for wrong usage.

Examples:
  headwater load rate http://127.0.0.1:8080/film.mp4/.m3u8 --rate 500 --duration 30s
  headwater load rate manifest:http://127.0.0.1:8080/film.mp4/.mpd --rate steps:50+50/10s..600 \\
      --arrivals poisson --html report.html --expect 'p99 < 50ms' --expect 'errors = 0'
  zcat access.log.gz | headwater load rate log:- --base http://127.0.0.1:8080 --rate replay --speed 2
  headwater load rate @requests.txt --rate ramp:1..2000 --duration 60s --records run.jsonl.zst";

/// The command line of `headwater load rate`.
pub(super) fn command() -> Command {
    let targets = Arg::new("target")
        .value_name("TARGET")
        .num_args(1..)
        .required_unless_present(net::config::PRINT)
        .help("Targets: URL, manifest:URL, ranges:URL, @FILE, har:FILE or log:FILE");
    Command::new("rate")
        .about("Send requests at a given rate, however slow the server is, and measure latency")
        .after_help(AFTER)
        .arg(targets)
        .args(build_command_args(SETTINGS))
}

/// Runs the command.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    run_and_report(SETTINGS, flags, "target", run_load)
}

fn run_load(input: &LoadCommandInput) -> Result<Option<RunResult>, CommandError> {
    let mut plan = read_plan(&input.layers, &input.targets)?;
    if let Some(path) = input.layers.setting_text("write-targets") {
        let text = vegeta_format::format_vegeta_json(&plan.targets);
        let written = match path {
            "-" => std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()),
            path => std::fs::write(path, text),
        };
        written.map_err(|error| CommandError::WriteFile(path.into(), error))?;
        return Ok(None);
    }
    let facts = collect_run_facts(&plan, &input.targets);
    let outputs = open_outputs(&input.layers, facts.clone())?;
    let metrics_port = open_metrics_port(&input.layers)?;
    plan.metrics = metrics_port.as_ref().map(|port| port.metrics.clone());
    let stop = stop_on_ctrl_c()?;
    let live = LiveProgress::new(plan.profile.duration_s());
    let mut run = run_rate_plan(Arc::new(plan), stop, outputs, |progress| {
        live.show_second(progress.second.second, &format_progress(progress))
    })?;
    live.clear_progress();
    run.add_targets(facts.targets.iter().map(String::as_str));
    Ok(Some(run))
}

/// Describes a run. The description contains the targets as the user typed them, except names of
/// files. If an argument names a file, the description also contains the URLs of all targets.
fn collect_run_facts(plan: &RateRunPlan, words: &[String]) -> RunFacts {
    let mut run = RunResult::default();
    let typed = words.iter().map(String::as_str);
    let is_file = |word: &str| {
        ["@", "har:", "log:"]
            .iter()
            .any(|kind| word.starts_with(kind))
    };
    run.add_targets(typed.filter(|word| !is_file(word)));
    if words.iter().any(|word| is_file(word)) {
        run.add_targets(plan.targets.iter().map(|target| target.url.as_str()));
    }
    let steps = plan.profile.measured_steps();
    RunFacts {
        offered: plan.offered.clone(),
        targets: run.targets,
        steps: steps
            .iter()
            .map(|step| [step.start_s, step.end_s])
            .collect(),
        closed_loop: matches!(plan.profile, RateProfile::Max { .. }),
        ..RunFacts::facts_starting_now()
    }
}

fn read_plan(layers: &SettingLayers, words: &[String]) -> Result<RateRunPlan, CommandError> {
    let number = |name, default| {
        Ok::<_, UsageError>(parse_setting(layers, name, parse_count)?.unwrap_or(default))
    };
    let duration_s =
        parse_setting(layers, "duration", parse_duration)?.map(|time| time.as_secs_f64());
    let offered = layers.setting_text("rate").unwrap_or_default().to_owned();
    let given = match offered.as_str() {
        "replay" => None,
        _ => parse_setting(layers, "rate", |text| {
            RateProfile::parse_profile(text, duration_s, read_text)
        })?,
    };
    let settings = read_client_settings(layers)?;
    let dialer = Dialer::new(settings).map_err(|error| UsageError(error.to_string()))?;
    let mut targets = read_targets(layers, words, &dialer)?;
    let profile = match given {
        Some(profile) => profile,
        None => {
            let speed = parse_setting(layers, "speed", parse_replay_speed)?.unwrap_or(1.0);
            schedule_replay(&mut targets, speed, duration_s)
                .map_err(|error| UsageError(format!("--rate {offered}: {error}")))?
        }
    };
    let connections = number("connections", 10)?;
    let most = match profile {
        RateProfile::Max { .. } => connections.max(1),
        RateProfile::Given { .. } | RateProfile::Replay { .. } => {
            number("max-connections", 10_000)?.max(1)
        }
    };
    Ok(RateRunPlan {
        profile,
        offered,
        spacing: parse_setting(layers, "arrivals", parse_arrival_spacing)?.unwrap_or_default(),
        seed: read_seed(layers)?,
        dialer,
        targets,
        connections: connections.min(most),
        connections_max: most,
        streams: number("streams", 1)?.clamp(1, 10_000),
        threads: read_threads(layers)?.clamp(1, most.min(1024)),
        drain: parse_setting(layers, "drain", parse_duration)?.unwrap_or_default(),
        metrics: None,
    })
}

/// Reads a file, or standard input if the path is `-`.
fn read_text(path: &str) -> std::io::Result<String> {
    match path {
        "-" => std::io::read_to_string(std::io::stdin()),
        path => std::fs::read_to_string(path),
    }
}

fn parse_arrival_spacing(text: &str) -> Result<ArrivalSpacing, InvalidChoice> {
    let spacings = [
        ("even", ArrivalSpacing::Even),
        ("poisson", ArrivalSpacing::Poisson),
    ];
    parse_choice(text, &spacings)
}

fn parse_segment_weighting(text: &str) -> Result<SegmentWeighting, InvalidChoice> {
    parse_choice(
        text,
        &[
            ("even", SegmentWeighting::Even),
            ("start", SegmentWeighting::Start),
        ],
    )
}

/// Lists the targets that the command line names.
fn read_targets(
    layers: &SettingLayers,
    words: &[String],
    dialer: &Dialer,
) -> Result<Vec<RequestTarget>, CommandError> {
    let weigh = parse_setting(layers, "weigh", parse_segment_weighting)?.unwrap_or_default();
    let size = parse_setting(layers, "range-size", parse_bytes)?.unwrap_or(1 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(CommandError::StartRuntime)?;
    let mut all = Vec::new();
    for word in words {
        let wrong = |cause: &dyn Display| UsageError(format!("{word}: {cause}"));
        if let Some(recorded) = read_recorded_targets(layers, word)? {
            all.extend(recorded);
        } else if let Some(path) = word.strip_prefix('@') {
            let text = read_text(path).map_err(|error| wrong(&net::describe_io_error(&error)))?;
            all.extend(
                vegeta_format::parse_requests(&text, |path| std::fs::read(path))
                    .map_err(|error| wrong(&error))?,
            );
        } else if let Some(at) = word.strip_prefix("manifest:") {
            let at = parse_url(at).map_err(|error| wrong(&error))?;
            all.extend(
                runtime.block_on(manifest_targets::list_manifest_targets(dialer, &at, weigh))?,
            );
        } else if let Some(at) = word.strip_prefix("ranges:") {
            let at = parse_url(at).map_err(|error| wrong(&error))?;
            let file_bytes = runtime.block_on(fetch_length(dialer, &at))?;
            let ranges = Some(RandomRanges { file_bytes, size });
            all.push(RequestTarget {
                kind: RequestKind::Range,
                ranges,
                ..RequestTarget::from_url(at)
            });
        } else {
            all.push(RequestTarget::from_url(
                parse_url(word).map_err(|error| wrong(&error))?,
            ));
        }
    }
    let check = ExpectedBody {
        length: parse_setting(layers, "length", parse_bytes)?,
        sha256: parse_setting(layers, "sha256", vegeta_format::parse_sha256)?,
    };
    for field in layers.setting_texts("header") {
        let wrong = || {
            UsageError(format!(
                "header = {field:?}: invalid header field; use NAME: VALUE"
            ))
        };
        let (name, value) = field.split_once(':').ok_or_else(wrong)?;
        let name: http::HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let value: http::HeaderValue = value.trim().parse().map_err(|_| wrong())?;
        all.iter_mut().for_each(|target| {
            target.headers.append(name.clone(), value.clone());
        });
    }
    if check != ExpectedBody::default() {
        all.iter_mut().for_each(|target| target.check = Some(check));
    }
    Ok(all)
}

/// Sends a range request, and returns the file's length from the response.
async fn fetch_length(dialer: &Dialer, url: &Url) -> Result<u64, CommandError> {
    let request = ClientRequest::new(url.clone())
        .with_range(0..1)
        .keep_body(1 << 10);
    let outcome = HttpClient::new(dialer).execute_request(&request).await;
    // A server that ignores `Range` sends the whole file, which is too long.
    let fault = outcome.fault;
    if let Some(fault) = fault.filter(|fault| *fault != FailureKind::TooLong) {
        let detail = outcome.detail.unwrap_or_default();
        return Err(CommandError::FetchLength(
            Box::new(url.clone()),
            fault,
            detail,
        ));
    }
    let total = outcome.headers.get(http::header::CONTENT_RANGE);
    let total = total.and_then(|value| value.to_str().ok()?.rsplit_once('/')?.1.parse().ok());
    match total {
        Some(total) if outcome.status == 206 && total > 0 => Ok(total),
        _ => Err(CommandError::NoRanges {
            url: Box::new(url.clone()),
            status: outcome.status,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientSettings;
    use std::io::{Read, Write};

    #[test]
    fn a_server_without_ranges_is_named_as_such() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n";
            let _ = socket.write_all(&[&head[..], &[0; 5000]].concat());
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let dialer = Dialer::new(ClientSettings::default()).unwrap();
        let found = runtime.unwrap().block_on(fetch_length(&dialer, &url));
        let is_named = matches!(found, Err(CommandError::NoRanges { status: 200, .. }));
        assert!(is_named, "{found:?}");
    }
}
