//! `headwater load players`.

use super::load_run::{LoadCommandInput, read_seed, read_threads, run_and_report};
use super::setting_values::{parse_choice, parse_setting, parse_url};
use super::stop_signal::stop_on_ctrl_c;
use super::{CLIENT, CommandError, OUTPUTS, open_outputs, read_client_settings};
use crate::client::{Dialer, Url};
use crate::players::drive::{PlayerKind, ViewerRunPlan, run_viewer_plan};
use crate::players::player_presets::PlayerPreset;
use crate::players::population::{
    AbrSetting, Population, ViewerArrivals, WatchTime, viewer_options,
};
use crate::players::progress_lines::format_progress;
use crate::players::range_consumer::ConsumerSettings;
use crate::players::text_choice::TextPreference;
use crate::players::title_ladder::AudioPreference;
use crate::players::viewer::PlaybackSettings;
use crate::report::live_progress::LiveProgress;
use crate::result::{RunFacts, RunResult};
use clap::{Arg, ArgMatches, Command};
use net::config::{
    Setting, SettingLayers, UsageError, build_command_args, parse_bytes, parse_count,
    parse_duration,
};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const SETTINGS: &[&[Setting]] = &[PLAYERS, CLIENT, OUTPUTS];

const PLAYERS: &[Setting] = &[
    Setting::new(
        "viewers",
        "N|PROFILE",
        "10",
        "Number of concurrent viewers; see below",
    ),
    Setting::new("duration", "DURATION", "60s", "Length of the run"),
    Setting::new(
        "spread",
        "DURATION",
        "2s",
        "Time over which simultaneous arrivals are spread",
    ),
    Setting::new("seed", "N", "1", "Seed of all random decisions of viewers"),
    Setting::new(
        "mode",
        "viewer|sequence|consumer",
        "viewer",
        "Kind of players; see below",
    ),
    Setting::new(
        "like",
        "hls.js|dash.js|shaka|none",
        "hls.js",
        "Player whose defaults apply; see below",
    ),
    Setting::new(
        "abr",
        "RULE",
        "",
        "Adaptive bitrate rule; see below [default: as --like]",
    ),
    Setting::new(
        "buffer",
        "DURATION",
        "",
        "Limit of the playback buffer [default: as --like; 30s for hls.js]",
    ),
    Setting::new(
        "start",
        "DURATION",
        "",
        "Media buffered per track before playback starts [default: one segment]",
    ),
    Setting::new(
        "resume",
        "DURATION",
        "",
        "Media buffered per track before playback resumes [default: one segment]",
    ),
    Setting::new(
        "retries",
        "N",
        "3",
        "Retries of a failed request before the viewer fails",
    ),
    Setting::new(
        "audio",
        "BITRATE",
        "",
        "Audio bitrate, if there are several [default: the highest]",
    ),
    Setting::new(
        "language",
        "TAG",
        "",
        "Audio language [default: the first listed]",
    ),
    Setting::new(
        "text",
        "off|first|TAG",
        "off",
        "Subtitles that viewers show: none, the first listed, or those of a language",
    ),
    Setting::new(
        "device",
        "LIST",
        "any",
        "Devices with weights, such as phone:3,tv:1; any, tv4k, tv, desktop, phone",
    ),
    Setting::new(
        "watch",
        "TIME",
        "all",
        "Watch time: all, 10min, exp:10min or uniform:1min..30min",
    ),
    Setting::new(
        "seeks",
        "N",
        "0",
        "Mean seeks per hour, at random times to random positions",
    ),
    Setting::new(
        "patience",
        "DURATION",
        "",
        "Time that a viewer waits for video before giving up [default: no limit]",
    ),
    Setting::new(
        "zipf",
        "S",
        "1",
        "Popularity of manifests: the kth is chosen in proportion to 1/k^S",
    ),
    Setting::new(
        "cmcd",
        "STYLE",
        "",
        "Send CMCD: 1-query, 1-header, 2-query or 2-header",
    ),
    Setting::new("ahead", "DURATION", "15s", "consumer: limit of the buffer"),
    Setting::new("range-size", "BYTES", "1MiB", "consumer: bytes per request"),
    Setting::new("threads", "N", "0", "Generator threads; 0 is one per core"),
];

const AFTER: &str = "\
Viewers (a viewer who leaves is replaced at once):
  50                        50 viewers, who arrive within --spread
  ramp:0..600               from 0 to 600 over the run
  steps:50+50/10s..600      from 50, 50 more every 10 s, up to 600; steps are reported separately

Modes:
  viewer    plays HLS or DASH with a media clock, buffer, stalls and a bitrate rule
  sequence  fetches manifest, audio 1, video 1, audio 2, ... without pause, and repeats
  consumer  fetches ranges of one MP4 file, at most --ahead beyond the playback position

--like sets --abr, --buffer, the first level, when a slow segment is abandoned for a lower
level, and how far audio is buffered ahead of video:
  hls.js    rule hls.js; starts with the first variant's bitrate, but at least 0.5 and at most 5 Mb/s
  dash.js   rule dynamic; starts with 1 Mb/s; buffers 18 s
  shaka     rule shaka; starts with 1.47 Mb/s; buffers 10 s
  none      rule dynamic; starts with the lowest level, and abandons no segment

Rules: highest, lowest, random, a bitrate (3894k), hls.js, shaka, throughput, bba, bola, dynamic,
mpc. dynamic, throughput and bola are those of dash.js.
A device limits the levels that its player requests; no connection is slowed down.

The MOS follows the parametric part of ITU-T P.1203, mode 0. Use it to compare runs only.
Additional quantities for --expect: 'stalls = 0', 'stall-ratio < 1%', 'startup.p95 < 2s',
'bitrate.p10 > 2Mbps', 'mos.p10 > 3.5', 'failed = 0', 'late.p99 < 50ms'.

Examples:
  headwater load players http://127.0.0.1:8080/film.mp4/.m3u8 --viewers 100 --duration 60s
  headwater load players http://127.0.0.1:8080/film.mp4/.mpd --viewers steps:50+50/10s..600 \\
      --abr bola --device phone:3,tv:1 --watch exp:10min --html report.html --expect 'stall-ratio < 1%'
  headwater load players http://127.0.0.1:8080/film.mp4/.mpd --mode sequence --abr 3894k --audio 132k";

/// The command line of `headwater load players`.
pub(super) fn command() -> Command {
    let manifests = Arg::new("manifest")
        .value_name("MANIFEST")
        .num_args(1..)
        .required_unless_present(net::config::PRINT)
        .help("URLs of manifests, or of MP4 files for --mode consumer; the most popular first");
    Command::new("players")
        .about("Emulate viewers and measure their quality of experience")
        .after_help(AFTER)
        .arg(manifests)
        .args(build_command_args(SETTINGS))
}

/// Runs the command.
pub(super) fn run_command(flags: &ArgMatches) -> Result<ExitCode, CommandError> {
    run_and_report(SETTINGS, flags, "manifest", run_players)
}

fn run_players(input: &LoadCommandInput) -> Result<Option<RunResult>, CommandError> {
    let plan = read_plan(&input.layers, &input.targets)?;
    let mut facts = RunFacts {
        offered: plan.offered.clone(),
        steps: plan.measured_steps(),
        // Players have no schedule, so the due time of a request is the time at which the player
        // makes the request.
        closed_loop: true,
        ..RunFacts::facts_starting_now()
    };
    let mut described = RunResult::default();
    described.add_targets(input.targets.iter().map(String::as_str));
    facts.targets = described.targets;
    let outputs = open_outputs(&input.layers, facts.clone())?;
    let stop = stop_on_ctrl_c()?;
    let live = LiveProgress::new(plan.duration.as_secs_f64());
    let (mut run, viewing) = run_viewer_plan(Arc::new(plan), stop, outputs, |progress| {
        live.show_second(progress.second.second, &format_progress(progress))
    })?;
    live.clear_progress();
    run.viewing = Some(Box::new(viewing));
    run.add_targets(facts.targets.iter().map(String::as_str));
    Ok(Some(run))
}

fn read_plan(layers: &SettingLayers, words: &[String]) -> Result<ViewerRunPlan, CommandError> {
    let time = |name: &str| {
        Ok::<_, UsageError>(parse_setting(layers, name, parse_duration)?.unwrap_or_default())
    };
    let number = |name: &str| {
        Ok::<_, UsageError>(parse_setting(layers, name, parse_count)?.unwrap_or_default())
    };
    let micros = |time: Duration| time.as_micros() as u64;
    let preset = parse_setting(layers, "like", PlayerPreset::find_by_name)?
        .ok_or_else(|| UsageError("--like is empty; name a player or none".into()))?;
    // A setting that the user gives takes precedence over the preset.
    let seconds = |name: &str, preset: f64| {
        let given = parse_setting(layers, name, parse_duration)?;
        Ok::<_, UsageError>(given.map_or(preset, |time| time.as_secs_f64()))
    };
    let length = time("duration")?;
    if length < Duration::from_secs(1) {
        return Err(UsageError("--duration is too short; use at least 1s".into()).into());
    }
    let spread = micros(time("spread")?);
    let arrivals = parse_setting(layers, "viewers", |text| {
        ViewerArrivals::parse_arrivals(text, spread, micros(length))
    })?;
    let arrivals =
        arrivals.ok_or_else(|| UsageError("--viewers is missing; give a number".into()))?;
    let titles = words
        .iter()
        .map(|word| parse_url(word).map_err(|why| UsageError(format!("{word}: {why}"))))
        .collect::<Result<Vec<_>, _>>()?;
    if titles.is_empty() {
        return Err(UsageError("no manifest; name at least one".into()).into());
    }
    let places = arrivals.place_start_times().len();
    Ok(ViewerRunPlan {
        population: read_population(layers, titles, preset)?,
        offered: format!(
            "{} viewers, {}",
            layers.setting_text("viewers").unwrap_or_default(),
            describe_rule(layers, preset)
        ),
        arrivals,
        mode: read_player_mode(layers)?,
        settings: Arc::new(PlaybackSettings {
            buffer_max_s: seconds("buffer", preset.buffer_max_s)?,
            start_s: seconds("start", preset.start_s)?,
            resume_s: seconds("resume", preset.resume_s)?,
            start_level: preset.start_level,
            abandon: preset.abandon,
            track_sync: preset.track_sync,
            retries: number("retries")?.min(100) as u32,
            cmcd: parse_setting(layers, "cmcd", viewer_options::parse_cmcd_format)?,
        }),
        audio_preference: AudioPreference {
            language: layers.setting_text("language").map(str::to_owned),
            audio_bps: parse_setting(layers, "audio", viewer_options::parse_bitrate)?,
        },
        text_preference: TextPreference::parse_text_preference(
            layers.setting_text("text").unwrap_or("off"),
        ),
        duration: length,
        dialer: Dialer::new(read_client_settings(layers)?)
            .map_err(|error| UsageError(error.to_string()))?,
        threads: read_threads(layers)?.clamp(1, places.clamp(1, 1024)),
    })
}

/// Describes the adaptive bitrate rule, and names the player whose defaults are used.
fn describe_rule(layers: &SettingLayers, preset: PlayerPreset) -> String {
    let rule = layers.setting_text("abr").unwrap_or(preset.rule);
    match preset.name {
        "none" => rule.to_owned(),
        name => format!("{rule}, like {name}"),
    }
}

fn read_population(
    layers: &SettingLayers,
    titles: Vec<Url>,
    preset: PlayerPreset,
) -> Result<Population, UsageError> {
    let decimal = |text: &str| {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=1e6).contains(value));
        value.ok_or("expected a number from 0 to 1000000")
    };
    Ok(Population {
        seed: read_seed(layers)?,
        titles,
        zipf: parse_setting(layers, "zipf", decimal)?.unwrap_or(1.0),
        watch: parse_setting(layers, "watch", WatchTime::parse_watch_time)?
            .unwrap_or(WatchTime::All),
        seeks_per_hour: parse_setting(layers, "seeks", decimal)?.unwrap_or(0.0),
        patience_s: parse_setting(layers, "patience", parse_duration)?
            .map(|time| time.as_secs_f64()),
        devices: parse_setting(layers, "device", viewer_options::parse_devices)?
            .unwrap_or_default(),
        rule: match parse_setting(layers, "abr", AbrSetting::parse_abr_setting)? {
            Some(rule) => rule,
            None => AbrSetting::parse_abr_setting(preset.rule)
                .map_err(|error| UsageError(format!("--like {}: {error}", preset.name)))?,
        },
    })
}

fn read_player_mode(layers: &SettingLayers) -> Result<PlayerKind, UsageError> {
    let consumer = ConsumerSettings {
        ahead_max_s: parse_setting(layers, "ahead", parse_duration)?
            .unwrap_or_default()
            .as_secs_f64(),
        range_bytes: parse_setting(layers, "range-size", parse_bytes)?
            .unwrap_or(1 << 20)
            .max(1),
        ..ConsumerSettings::default()
    };
    let modes = [
        ("viewer", PlayerKind::Viewer),
        ("sequence", PlayerKind::Sequence),
        ("consumer", PlayerKind::Consumer(consumer)),
    ];
    let read = |text: &str| parse_choice(text, &modes);
    Ok(parse_setting(layers, "mode", read)?.unwrap_or(PlayerKind::Viewer))
}
