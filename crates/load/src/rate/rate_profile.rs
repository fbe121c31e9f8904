//! The offered rate over time. A profile is parsed into ramps in which the rate changes linearly.

use std::sync::Arc;
use std::{fmt, io};

/// Maximum number of ramps in a profile.
const PIECES_MAX: usize = 100_000;

/// Maximum rate, in requests per second.
const RATE_MAX: f64 = 10_000_000.0;

/// Number of ramps that approximate one period of a sine.
const SINE_PIECES: f64 = 48.0;

/// A period in which the rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRamp {
    /// Start of the ramp, in seconds since the start of the run.
    pub start_s: f64,
    /// End of the ramp, in seconds since the start of the run.
    pub end_s: f64,
    /// Requests per second at the start of the ramp.
    pub from: f64,
    /// Requests per second at the end of the ramp.
    pub to: f64,
}

/// A period whose results are reported separately.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileStep {
    /// Start of the step, in seconds since the start of the run.
    pub start_s: f64,
    /// End of the step, in seconds since the start of the run.
    pub end_s: f64,
}

/// The offered rate of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RateProfile {
    /// A closed loop, which sends requests as fast as the connections allow. A closed loop measures
    /// the maximum rate of the generator or of a server.
    Max {
        /// Length of the run, in seconds.
        duration_s: f64,
    },
    /// An open loop at a given rate.
    Given {
        /// The ramps in order, without gaps.
        pieces: Vec<RateRamp>,
        /// The steps in order.
        steps: Vec<ProfileStep>,
    },
    /// An open loop that repeats recorded requests.
    Replay {
        /// Due times of the targets in order, in seconds since the start of the run.
        due_s: Arc<[f64]>,
        /// The whole run as one step.
        step: ProfileStep,
    },
}

/// Maximum number of steps in a profile.
const STEPS_MAX: usize = 1000;

/// The reason why a rate profile is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text has none of the known forms.
    #[error("invalid rate; {GRAMMAR}")]
    Syntax,
    /// A rate is negative or above the maximum.
    #[error("rate out of range; use 0 to {RATE_MAX} requests per second")]
    RateOutOfRange,
    /// The interval between steps, or the period of a sine, is not a duration.
    #[error("invalid duration: {0}")]
    Duration(String),
    /// The last rate of the steps is below the first rate, or the increment or the interval is not
    /// positive.
    #[error("the steps do not rise; {GRAMMAR}")]
    StepsDoNotRise,
    /// There are too many steps.
    #[error("more than {STEPS_MAX} steps; use larger steps")]
    TooManySteps,
    /// The period of a sine is not positive, or the rate would fall below zero.
    #[error("a sine needs a period, and an amplitude of at most its mean; {GRAMMAR}")]
    InvalidSine,
    /// The profile has too many ramps.
    #[error("more than {PIECES_MAX} rate changes; use fewer lines or a shorter run")]
    TooLong,
    /// The profile schedules no request.
    #[error("no request would be due; use a higher rate or a longer --duration")]
    NothingDue,
    /// The profile's file cannot be read.
    #[error("cannot read {0}: {cause}", cause = net::describe_io_error(.1))]
    ReadFile(String, io::Error),
    /// The profile's file contains no line with a time and a rate.
    #[error("the file contains no point; each line is a time in seconds and a rate")]
    EmptyFile,
    /// A line of the profile's file is malformed.
    #[error("line {number}: {problem}: {text}")]
    Line {
        /// Line number, from 1.
        number: usize,
        /// The problem.
        problem: &'static str,
        /// Start of the line.
        text: String,
    },
}

const GRAMMAR: &str = "use 100, 100/s, 6000/min, max, ramp:10..500, steps:50+50/10s..600, \
                       sine:100~50/60s, file:PATH or replay";

impl RateProfile {
    /// Parses a profile. `duration_s` is the length of the run. If `duration_s` is `None`, steps
    /// and files determine the length themselves, and other profiles last 10 s. `read` returns the
    /// content of the file that a profile names.
    ///
    /// # Errors
    /// The text is not a valid profile.
    pub fn parse_profile(
        text: &str,
        duration_s: Option<f64>,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<RateProfile, ProfileError> {
        let length = duration_s.unwrap_or(10.0);
        if text == "max" {
            return Ok(RateProfile::Max { duration_s: length });
        }
        let (kind, rest) = text.split_once(':').unwrap_or(("constant", text));
        let pieces = match kind {
            "constant" => vec![linear_ramp(
                0.0,
                length,
                parse_rate(rest)?,
                parse_rate(rest)?,
            )],
            "ramp" => {
                let (from, to) = rest.split_once("..").ok_or(ProfileError::Syntax)?;
                vec![linear_ramp(0.0, length, parse_rate(from)?, parse_rate(to)?)]
            }
            "steps" => return parse_steps(rest, duration_s),
            "sine" => parse_sine(rest, length)?,
            "file" => {
                let text =
                    read(rest).map_err(|error| ProfileError::ReadFile(rest.into(), error))?;
                parse_points(&text, duration_s)?
            }
            _ => return Err(ProfileError::Syntax),
        };
        let end_s = pieces.last().map_or(0.0, |piece| piece.end_s);
        let steps = vec![ProfileStep {
            start_s: 0.0,
            end_s,
        }];
        RateProfile::Given { pieces, steps }.validate()
    }

    /// Returns the length of the run in seconds.
    pub fn duration_s(&self) -> f64 {
        match self {
            RateProfile::Max { duration_s } => *duration_s,
            RateProfile::Given { pieces, .. } => pieces.last().map_or(0.0, |piece| piece.end_s),
            RateProfile::Replay { step, .. } => step.end_s,
        }
    }

    /// Returns the steps of the run. The results of each step are reported separately.
    pub fn measured_steps(&self) -> Vec<ProfileStep> {
        match self {
            RateProfile::Max { duration_s } => vec![ProfileStep {
                start_s: 0.0,
                end_s: *duration_s,
            }],
            RateProfile::Given { steps, .. } => steps.clone(),
            RateProfile::Replay { step, .. } => vec![step.clone()],
        }
    }

    /// Returns the number of requests due before `time_s`.
    pub fn due_by(&self, time_s: f64) -> f64 {
        match self {
            RateProfile::Max { .. } => 0.0,
            RateProfile::Given { pieces, .. } => pieces
                .iter()
                .take_while(|piece| piece.start_s < time_s)
                .map(|piece| piece.count_until(time_s))
                .sum(),
            RateProfile::Replay { due_s, .. } => {
                due_s.partition_point(|due_s| *due_s < time_s) as f64
            }
        }
    }

    fn validate(self) -> Result<RateProfile, ProfileError> {
        if let RateProfile::Given { pieces, .. } = &self {
            if pieces.len() > PIECES_MAX {
                return Err(ProfileError::TooLong);
            }
            if self.due_by(f64::INFINITY) < 1.0 {
                return Err(ProfileError::NothingDue);
            }
        }
        Ok(self)
    }
}

impl RateRamp {
    /// Returns the number of requests that are due between the start of the ramp and `time_s`.
    pub(super) fn count_until(&self, time_s: f64) -> f64 {
        let length = self.end_s - self.start_s;
        let passed = (time_s - self.start_s).clamp(0.0, length);
        if length <= 0.0 {
            return 0.0;
        }
        passed * (self.from + (self.to - self.from) * passed / length / 2.0)
    }

    /// Returns the time by which `count` requests of the ramp are due. This function is the inverse
    /// of [`RateRamp::count_until`].
    pub(super) fn due_time_of(&self, count: f64) -> f64 {
        let slope = (self.to - self.from) / (self.end_s - self.start_s);
        // Solves count = from·t + slope·t²/2 for t. This form of the solution loses no precision by
        // cancellation.
        let root = (self.from * self.from + 2.0 * slope * count)
            .max(0.0)
            .sqrt();
        let passed = match self.from + root {
            sum if sum > 0.0 => 2.0 * count / sum,
            _ => 0.0,
        };
        (self.start_s + passed).min(self.end_s)
    }
}

impl fmt::Display for RateProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateProfile::Max { .. } => f.write_str("max"),
            RateProfile::Replay { due_s, step } => {
                write!(
                    f,
                    "{} recorded requests in {:.1} s",
                    due_s.len(),
                    step.end_s
                )
            }
            RateProfile::Given { pieces, .. } => {
                let rates = || pieces.iter().flat_map(|piece| [piece.from, piece.to]);
                let low = rates().fold(f64::INFINITY, f64::min);
                let high = rates().fold(0.0, f64::max);
                match low == high {
                    true => write!(f, "{low} requests/s"),
                    false => write!(f, "{low:.1} to {high:.1} requests/s"),
                }
            }
        }
    }
}

fn linear_ramp(start_s: f64, end_s: f64, from: f64, to: f64) -> RateRamp {
    RateRamp {
        start_s,
        end_s,
        from,
        to,
    }
}

/// Parses a rate such as `100`, `100/s`, `6000/min` or `360000/h`. Returns requests per second.
fn parse_rate(text: &str) -> Result<f64, ProfileError> {
    let (number, scale) = match text.split_once('/') {
        Some((number, "s")) => (number, 1.0),
        Some((number, "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return Err(ProfileError::Syntax),
        None => (text, 1.0),
    };
    let value = number
        .trim()
        .parse::<f64>()
        .map_err(|_| ProfileError::Syntax)?
        / scale;
    match (0.0..=RATE_MAX).contains(&value) {
        true => Ok(value),
        false => Err(ProfileError::RateOutOfRange),
    }
}

/// Parses steps such as `50+50/10s..600`. The rate starts at 50 requests per second, and grows by
/// 50 every 10 s, up to 600.
fn parse_steps(text: &str, duration_s: Option<f64>) -> Result<RateProfile, ProfileError> {
    let (from, rest) = text.split_once('+').ok_or(ProfileError::Syntax)?;
    let (more, rest) = rest.split_once('/').ok_or(ProfileError::Syntax)?;
    let (every, most) = rest.split_once("..").ok_or(ProfileError::Syntax)?;
    let (from, more, most) = (parse_rate(from)?, parse_rate(more)?, parse_rate(most)?);
    let every = net::config::parse_duration(every)
        .map_err(ProfileError::Duration)?
        .as_secs_f64();
    if more <= 0.0 || every <= 0.0 || most < from {
        return Err(ProfileError::StepsDoNotRise);
    }
    let count = ((most - from) / more + 1e-9).floor() as usize + 1;
    if count > STEPS_MAX {
        return Err(ProfileError::TooManySteps);
    }
    let mut pieces: Vec<RateRamp> = (0..count)
        .map(|n| {
            let (level, start) = (from + more * n as f64, every * n as f64);
            linear_ramp(start, start + every, level, level)
        })
        .collect();
    if let Some(end) = duration_s {
        pieces.retain(|piece| piece.start_s < end);
        // The last step ends with the run, even if this step becomes longer or shorter than the
        // other steps.
        if let Some(last) = pieces.last_mut() {
            last.end_s = end;
        }
    }
    let steps = pieces.iter().map(|piece| ProfileStep {
        start_s: piece.start_s,
        end_s: piece.end_s,
    });
    let steps = steps.collect();
    RateProfile::Given { pieces, steps }.validate()
}

/// Parses a sine such as `100~50/60s`, which has a mean of 100, an amplitude of 50 and a period of
/// 60 s.
fn parse_sine(text: &str, length: f64) -> Result<Vec<RateRamp>, ProfileError> {
    let (mean, rest) = text.split_once('~').ok_or(ProfileError::Syntax)?;
    let (swing, period) = rest.split_once('/').ok_or(ProfileError::Syntax)?;
    let (mean, swing) = (parse_rate(mean)?, parse_rate(swing)?);
    let period = net::config::parse_duration(period)
        .map_err(ProfileError::Duration)?
        .as_secs_f64();
    if period <= 0.0 || swing > mean {
        return Err(ProfileError::InvalidSine);
    }
    let width = (period / SINE_PIECES).max(length / PIECES_MAX as f64);
    let level = |time: f64| mean + swing * (std::f64::consts::TAU * time / period).sin();
    let count = (length / width).ceil() as usize;
    Ok((0..count)
        .map(|n| {
            let (start, end) = (width * n as f64, (width * (n + 1) as f64).min(length));
            linear_ramp(start, end, level(start).max(0.0), level(end).max(0.0))
        })
        .collect())
}

/// Parses lines that each contain a time in seconds and a rate. Between the times of two lines, the
/// rate is interpolated linearly.
fn parse_points(text: &str, duration_s: Option<f64>) -> Result<Vec<RateRamp>, ProfileError> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let wrong = |problem| ProfileError::Line {
            number: number + 1,
            problem,
            text: format!("{line:.80}"),
        };
        if line.is_empty() {
            continue;
        }
        let mut words = line
            .split([',', ' ', '\t', ';'])
            .filter(|word| !word.is_empty());
        let (Some(time), Some(level), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong("expected a time in seconds and a rate"));
        };
        let time = time.trim_end_matches('s').parse::<f64>();
        let time = time.map_err(|_| wrong("invalid time; expected seconds"))?;
        let level = parse_rate(level).map_err(|_| wrong("invalid rate"))?;
        let last = points.last().map_or(0.0, |(time, _)| *time);
        if !(time >= last && time <= 1e7) {
            return Err(wrong("times must increase from 0"));
        }
        points.push((time, level));
        if points.len() > PIECES_MAX {
            return Err(ProfileError::TooLong);
        }
    }
    let first = *points.first().ok_or(ProfileError::EmptyFile)?;
    points.insert(0, (0.0, first.1));
    if let Some(end) = duration_s {
        let last = points.last().map_or(0.0, |(_, level)| *level);
        points.push((end.max(points.last().map_or(0.0, |(time, _)| *time)), last));
    }
    let pieces = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let mut pieces: Vec<RateRamp> = pieces
        .map(|pair| linear_ramp(pair[0].0, pair[1].0, pair[0].1, pair[1].1))
        .collect();
    if let Some(end) = duration_s {
        pieces.retain(|piece| piece.start_s < end);
        if let Some(last) = pieces.last_mut().filter(|last| last.end_s > end) {
            let share = (end - last.start_s) / (last.end_s - last.start_s);
            last.to = last.from + (last.to - last.from) * share;
            last.end_s = end;
        }
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests;
