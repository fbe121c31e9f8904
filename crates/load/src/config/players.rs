//! `headwater load players`.

use super::stop::stop_on_ctrl_c;
use super::{Begun, CLIENT, OUTPUTS, Stop, begin, deliver, open, seed, settings, threads, url};
use crate::client::{Dialer, Url};
use crate::players::consumer::Habit;
use crate::players::drive::{Mode, Plan, run as run_plan};
use crate::players::live::lines;
use crate::players::population::{Arrivals, Population, Rule, Watch, words};
use crate::players::stream::Wish;
use crate::players::viewer::Setup;
use crate::report::live::Live;
use clap::{Arg, ArgMatches, Command};
use net::config::{Knob, Layers, Wrong, bytes, count, duration, flags};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const KNOBS: &[&[Knob]] = &[PLAYERS, CLIENT, OUTPUTS];

const PLAYERS: &[Knob] = &[
    Knob::new(
        "viewers",
        "N|PROFILE",
        "10",
        "How many watch at a time; see below",
    ),
    Knob::new("duration", "DURATION", "60s", "Length of the run"),
    Knob::new(
        "spread",
        "DURATION",
        "2s",
        "Time over which those who would come at once come one after another",
    ),
    Knob::new(
        "seed",
        "N",
        "1",
        "Decides who watches what, how long and on what: the same seed, the same people",
    ),
    Knob::new(
        "mode",
        "viewer|sequence|consumer",
        "viewer",
        "What kind of players; see below",
    ),
    Knob::new(
        "abr",
        "RULE",
        "dynamic",
        "What chooses the bitrate; see below",
    ),
    Knob::new("buffer", "DURATION", "30s", "What a viewer holds at most"),
    Knob::new(
        "start",
        "DURATION",
        "0s",
        "What each track must hold before playing starts; a segment at least",
    ),
    Knob::new("resume", "DURATION", "0s", "The same after a stall"),
    Knob::new(
        "retries",
        "N",
        "3",
        "How often a failed request is made again before the viewer gives up",
    ),
    Knob::new(
        "audio",
        "BITRATE",
        "",
        "Bitrate of the sound, where there are several [default: the highest]",
    ),
    Knob::new(
        "language",
        "TAG",
        "",
        "Language of the sound [default: the first listed]",
    ),
    Knob::new(
        "device",
        "LIST",
        "any",
        "Devices with weights, such as phone:3,tv:1; any, tv4k, tv, desktop, phone",
    ),
    Knob::new(
        "watch",
        "TIME",
        "all",
        "How long they watch: all, 10min, exp:10min, uniform:1min..30min",
    ),
    Knob::new(
        "seeks",
        "N",
        "0",
        "Seeks an hour, at random times to random places",
    ),
    Knob::new(
        "patience",
        "DURATION",
        "",
        "How long they wait for pictures before they give up [default: for ever]",
    ),
    Knob::new(
        "zipf",
        "S",
        "1",
        "Popularity of several manifests: the kth is chosen in proportion to 1/k^S",
    ),
    Knob::new(
        "cmcd",
        "STYLE",
        "",
        "Tell the server about the player: 1-query, 1-header, 2-query or 2-header",
    ),
    Knob::new("ahead", "DURATION", "15s", "consumer: what is held at most"),
    Knob::new(
        "range-size",
        "BYTES",
        "1MiB",
        "consumer: bytes of each request",
    ),
    Knob::new(
        "threads",
        "N",
        "0",
        "Threads, each with its part of the viewers; 0: one per core",
    ),
];

const AFTER: &str = "\
Viewers (one who leaves is replaced at once):
  50                        all at once, over --spread
  ramp:0..600               evenly from 0 to 600 over the run
  steps:50+50/10s..600      from 50, 50 more every 10 s, up to 600; reported apart

Modes:
  viewer    plays HLS or DASH by a media clock: start-up, buffer, stalls, bitrate rule
  sequence  asks for manifest, audio 1, video 1, audio 2, … as fast as answers come, over again
  consumer  asks for ranges of one MP4 file, never more than --ahead ahead of what it plays

Rules: highest, lowest, random, a bitrate (3894k), throughput, bba, bola, dynamic, mpc.
A device's cap is what its player would not ask for; nothing is slowed down.

The MOS is after ITU-T P.1203 mode 0 without its random forest: to compare runs, not to certify.
Expectations beside those of requests: 'stalls = 0', 'stall-ratio < 1%', 'startup.p95 < 2s',
'bitrate.p10 > 2Mbps', 'mos.p10 > 3.5', 'failed = 0', 'late.p99 < 50ms'.

Examples:
  headwater load players http://127.0.0.1:8080/film.mp4/.m3u8 --viewers 100 --duration 60s
  headwater load players http://127.0.0.1:8080/film.mp4/.mpd --viewers steps:50+50/10s..600 \\
      --abr bola --device phone:3,tv:1 --watch exp:10min --html report.html --expect 'stall-ratio < 1%'
  headwater load players http://127.0.0.1:8080/film.mp4/.mpd --mode sequence --abr 3894k --audio 132k";

/// The words of `headwater load players`.
pub(super) fn command() -> Command {
    let manifests = Arg::new("manifest")
        .value_name("MANIFEST")
        .num_args(1..)
        .required_unless_present(net::config::PRINT)
        .help("Manifests, the most popular first (consumer: MP4 files)");
    Command::new("players")
        .about("Watch as people do, as many as you like, and say how it was")
        .after_help(AFTER)
        .arg(manifests)
        .args(flags(KNOBS))
}

/// Runs it.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Stop> {
    let Some(Begun {
        layers,
        expected,
        words,
    }) = begin(KNOBS, flags, "manifest")?
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let plan = plan(&layers, &words)?;
    let outputs = open(&layers)?;
    let stop = stop_on_ctrl_c()?;
    let live = Live::new(plan.duration.as_secs_f64());
    let (mut run, viewing) = run_plan(Arc::new(plan), stop, outputs, |sight| {
        live.show(sight.second.second, &lines(sight))
    })?;
    live.end();
    run.name = layers.one("name").unwrap_or_default().to_owned();
    run.viewing = Some(Box::new(viewing));
    deliver(&layers, &run, &expected)
}

fn plan(layers: &Layers, words: &[String]) -> Result<Plan, Stop> {
    let time = |name: &str| Ok::<_, Wrong>(layers.with(name, duration)?.unwrap_or_default());
    let number = |name: &str| Ok::<_, Wrong>(layers.with(name, count)?.unwrap_or_default());
    let micros = |time: Duration| time.as_micros() as u64;
    let length = time("duration")?;
    if length < Duration::from_secs(1) {
        return Err(Wrong("duration: a run lasts a second at least".into()).into());
    }
    let spread = micros(time("spread")?);
    let arrivals = layers.with("viewers", |text| {
        Arrivals::parse(text, spread, micros(length))
    })?;
    let arrivals = arrivals.ok_or_else(|| Wrong("--viewers is missing".into()))?;
    let titles = words
        .iter()
        .map(|word| url(word).map_err(|why| Wrong(format!("{word}: {why}"))))
        .collect::<Result<Vec<_>, _>>()?;
    if titles.is_empty() {
        return Err(Wrong("no manifest".into()).into());
    }
    let places = arrivals.starts().len();
    Ok(Plan {
        population: population(layers, titles)?,
        offered: format!(
            "{} viewers, {}",
            layers.one("viewers").unwrap_or_default(),
            layers.one("abr").unwrap_or_default()
        ),
        arrivals,
        mode: mode(layers)?,
        setup: Arc::new(Setup {
            buffer_max_s: time("buffer")?.as_secs_f64(),
            start_s: time("start")?.as_secs_f64(),
            resume_s: time("resume")?.as_secs_f64(),
            retries: number("retries")?.min(100) as u32,
            cmcd: layers.with("cmcd", words::cmcd)?,
        }),
        wish: Wish {
            language: layers.one("language").map(str::to_owned),
            audio_bps: layers.with("audio", words::bitrate)?,
        },
        duration: length,
        dialer: Dialer::new(settings(layers)?).map_err(Wrong)?,
        threads: threads(layers)?.clamp(1, places.clamp(1, 1024)),
    })
}

fn population(layers: &Layers, titles: Vec<Url>) -> Result<Population, Wrong> {
    let decimal = |text: &str| {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=1e6).contains(value));
        value.ok_or_else(|| "it is a number that is not negative".to_owned())
    };
    Ok(Population {
        seed: seed(layers)?,
        titles,
        zipf: layers.with("zipf", decimal)?.unwrap_or(1.0),
        watch: layers.with("watch", Watch::parse)?.unwrap_or(Watch::All),
        seeks_per_hour: layers.with("seeks", decimal)?.unwrap_or(0.0),
        patience_s: layers
            .with("patience", duration)?
            .map(|time| time.as_secs_f64()),
        devices: layers.with("device", words::devices)?.unwrap_or_default(),
        rule: layers.with("abr", Rule::parse)?.unwrap_or(Rule::Dynamic),
    })
}

fn mode(layers: &Layers) -> Result<Mode, Wrong> {
    let habit = Habit {
        ahead_max_s: layers
            .with("ahead", duration)?
            .unwrap_or_default()
            .as_secs_f64(),
        range_bytes: layers.with("range-size", bytes)?.unwrap_or(1 << 20).max(1),
        ..Habit::default()
    };
    let read = |text: &str| match text {
        "viewer" => Ok(Mode::Viewer),
        "sequence" => Ok(Mode::Sequence),
        "consumer" => Ok(Mode::Consumer(habit)),
        _ => Err("it is viewer, sequence or consumer".to_owned()),
    };
    Ok(layers.with("mode", read)?.unwrap_or(Mode::Viewer))
}
