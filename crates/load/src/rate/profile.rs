//! How the offered rate moves: words to pieces of a line.

use std::fmt;

/// Most pieces of a profile.
const PIECES_MAX: usize = 100_000;

/// Highest rate, in requests a second.
const RATE_MAX: f64 = 10_000_000.0;

/// Pieces that one period of a sine is made of.
const SINE_PIECES: f64 = 48.0;

/// A stretch in which the rate moves evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// When it begins, in seconds of the run.
    pub start_s: f64,
    /// When it ends.
    pub end_s: f64,
    /// Requests a second at its start.
    pub from: f64,
    /// Requests a second at its end.
    pub to: f64,
}

/// A stretch that is reported apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// When it begins, in seconds of the run.
    pub start_s: f64,
    /// When it ends.
    pub end_s: f64,
}

/// The offered rate over a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Profile {
    /// As fast as connections allow: a closed loop, for measuring ourselves and a server's most.
    Max {
        /// Its length in seconds.
        duration_s: f64,
    },
    /// A rate that is given.
    Given {
        /// In order, without gaps.
        pieces: Vec<Piece>,
        /// In order.
        steps: Vec<Step>,
    },
}

const GRAMMAR: &str = "a rate is 100, 100/s, 6000/min, max, ramp:10..500, steps:50+50/10s..600, \
                       sine:100~50/60s or file:PATH";

impl Profile {
    /// Reads a profile; `duration_s` is how long the run lasts where the profile does not say.
    /// `read` gives a file's text.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(
        text: &str,
        duration_s: Option<f64>,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Profile, String> {
        let length = duration_s.unwrap_or(10.0);
        if text == "max" {
            return Ok(Profile::Max { duration_s: length });
        }
        let (kind, rest) = text.split_once(':').unwrap_or(("constant", text));
        let pieces = match kind {
            "constant" => vec![piece(0.0, length, rate(rest)?, rate(rest)?)],
            "ramp" => {
                let (from, to) = rest.split_once("..").ok_or(GRAMMAR)?;
                vec![piece(0.0, length, rate(from)?, rate(to)?)]
            }
            "steps" => return steps(rest, duration_s),
            "sine" => sine(rest, length)?,
            "file" => file(&read(rest)?, duration_s)?,
            _ => return Err(GRAMMAR.into()),
        };
        let end_s = pieces.last().map_or(0.0, |piece| piece.end_s);
        let steps = vec![Step {
            start_s: 0.0,
            end_s,
        }];
        Profile::Given { pieces, steps }.checked()
    }

    /// Its length in seconds.
    pub fn duration_s(&self) -> f64 {
        match self {
            Profile::Max { duration_s } => *duration_s,
            Profile::Given { pieces, .. } => pieces.last().map_or(0.0, |piece| piece.end_s),
        }
    }

    /// What is reported apart.
    pub fn steps(&self) -> Vec<Step> {
        match self {
            Profile::Max { duration_s } => vec![Step {
                start_s: 0.0,
                end_s: *duration_s,
            }],
            Profile::Given { steps, .. } => steps.clone(),
        }
    }

    /// Requests that are due before a moment.
    pub fn due_by(&self, time_s: f64) -> f64 {
        match self {
            Profile::Max { .. } => 0.0,
            Profile::Given { pieces, .. } => pieces
                .iter()
                .take_while(|piece| piece.start_s < time_s)
                .map(|piece| piece.count_until(time_s))
                .sum(),
        }
    }

    fn checked(self) -> Result<Profile, String> {
        if let Profile::Given { pieces, .. } = &self {
            if pieces.len() > PIECES_MAX {
                return Err(format!("the profile has over {PIECES_MAX} pieces"));
            }
            if self.due_by(f64::INFINITY) < 1.0 {
                return Err("nothing would be due in the whole run".into());
            }
        }
        Ok(self)
    }
}

impl Piece {
    /// Requests from its start until `time_s`.
    pub(super) fn count_until(&self, time_s: f64) -> f64 {
        let length = self.end_s - self.start_s;
        let passed = (time_s - self.start_s).clamp(0.0, length);
        if length <= 0.0 {
            return 0.0;
        }
        passed * (self.from + (self.to - self.from) * passed / length / 2.0)
    }

    /// When so many requests of it have become due; the inverse of [`Piece::count_until`].
    pub(super) fn time_of(&self, count: f64) -> f64 {
        let slope = (self.to - self.from) / (self.end_s - self.start_s);
        // count = from·t + slope·t²/2, solved without cancellation.
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

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Profile::Max { .. } => f.write_str("max"),
            Profile::Given { pieces, .. } => {
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

fn piece(start_s: f64, end_s: f64, from: f64, to: f64) -> Piece {
    Piece {
        start_s,
        end_s,
        from,
        to,
    }
}

/// `100`, `100/s`, `6000/min`.
fn rate(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.split_once('/') {
        Some((number, "s")) => (number, 1.0),
        Some((number, "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return Err(GRAMMAR.into()),
        None => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().map_err(|_| GRAMMAR)? / scale;
    match (0.0..=RATE_MAX).contains(&value) {
        true => Ok(value),
        false => Err(format!("a rate is at most {RATE_MAX} requests a second")),
    }
}

/// `50+50/10s..600`: from 50, 50 more every 10 s, up to 600.
fn steps(text: &str, duration_s: Option<f64>) -> Result<Profile, String> {
    let (from, rest) = text.split_once('+').ok_or(GRAMMAR)?;
    let (more, rest) = rest.split_once('/').ok_or(GRAMMAR)?;
    let (every, most) = rest.split_once("..").ok_or(GRAMMAR)?;
    let (from, more, most) = (rate(from)?, rate(more)?, rate(most)?);
    let every = net::config::duration(every)?.as_secs_f64();
    if more <= 0.0 || every <= 0.0 || most < from {
        return Err(format!("steps that lead nowhere; {GRAMMAR}"));
    }
    let count = ((most - from) / more + 1e-9).floor() as usize + 1;
    if count > 1000 {
        return Err("there are over 1000 steps".into());
    }
    let mut pieces: Vec<Piece> = (0..count)
        .map(|n| {
            let (level, start) = (from + more * n as f64, every * n as f64);
            piece(start, start + every, level, level)
        })
        .collect();
    if let Some(end) = duration_s {
        pieces.retain(|piece| piece.start_s < end);
        // A longer run stays on the last step.
        if let Some(last) = pieces.last_mut() {
            last.end_s = end;
        }
    }
    let steps = pieces.iter().map(|piece| Step {
        start_s: piece.start_s,
        end_s: piece.end_s,
    });
    let steps = steps.collect();
    Profile::Given { pieces, steps }.checked()
}

/// `100~50/60s`: around 100, 50 up and down, in 60 s.
fn sine(text: &str, length: f64) -> Result<Vec<Piece>, String> {
    let (mean, rest) = text.split_once('~').ok_or(GRAMMAR)?;
    let (swing, period) = rest.split_once('/').ok_or(GRAMMAR)?;
    let (mean, swing) = (rate(mean)?, rate(swing)?);
    let period = net::config::duration(period)?.as_secs_f64();
    if period <= 0.0 || swing > mean {
        return Err(format!(
            "a sine has a period, and swings by no more than its mean; {GRAMMAR}"
        ));
    }
    let width = (period / SINE_PIECES).max(length / PIECES_MAX as f64);
    let level = |time: f64| mean + swing * (std::f64::consts::TAU * time / period).sin();
    let count = (length / width).ceil() as usize;
    Ok((0..count)
        .map(|n| {
            let (start, end) = (width * n as f64, (width * (n + 1) as f64).min(length));
            piece(start, end, level(start).max(0.0), level(end).max(0.0))
        })
        .collect())
}

/// Lines of a time in seconds and a rate; straight between them.
fn file(text: &str, duration_s: Option<f64>) -> Result<Vec<Piece>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let wrong = |what: &str| format!("line {}: {what}: {line:.80}", number + 1);
        if line.is_empty() {
            continue;
        }
        let mut words = line
            .split([',', ' ', '\t', ';'])
            .filter(|word| !word.is_empty());
        let (Some(time), Some(level), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong("a line is a time in seconds and a rate"));
        };
        let time = time.trim_end_matches('s').parse::<f64>();
        let time = time.map_err(|_| wrong("no time in seconds"))?;
        let level = rate(level).map_err(|error| wrong(&error))?;
        let last = points.last().map_or(0.0, |(time, _)| *time);
        if !(time >= last && time <= 1e7) {
            return Err(wrong("times go up from 0"));
        }
        points.push((time, level));
        if points.len() > PIECES_MAX {
            return Err(format!("there are over {PIECES_MAX} lines"));
        }
    }
    let first = *points
        .first()
        .ok_or("the file holds no line of a time and a rate")?;
    points.insert(0, (0.0, first.1));
    if let Some(end) = duration_s {
        let last = points.last().map_or(0.0, |(_, level)| *level);
        points.push((end.max(points.last().map_or(0.0, |(time, _)| *time)), last));
    }
    let pieces = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let mut pieces: Vec<Piece> = pieces
        .map(|pair| piece(pair[0].0, pair[1].0, pair[0].1, pair[1].1))
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
mod tests {
    use super::*;

    fn parse(text: &str, duration_s: Option<f64>) -> Result<Profile, String> {
        let file = "# time, rate\n0 10\n10,20\n\n20 20\n20 0\n30 0\n";
        Profile::parse(text, duration_s, |_| Ok(file.into()))
    }

    #[test]
    fn profiles_offer_what_their_words_say() {
        for (text, duration, length, count) in [
            ("100", Some(5.0), 5.0, 500.0),
            ("6000/min", Some(5.0), 5.0, 500.0),
            ("ramp:0..100", Some(10.0), 10.0, 500.0),
            ("ramp:10..500", Some(10.0), 10.0, 2550.0),
            ("steps:50+50/10s..600", None, 120.0, 39_000.0),
            ("steps:50+50/10s..600", Some(15.0), 15.0, 1000.0),
            ("sine:100~50/10s", Some(20.0), 20.0, 2000.0),
            ("file:x", None, 30.0, 350.0),
            ("file:x", Some(5.0), 5.0, 62.5),
        ] {
            let profile = parse(text, duration).unwrap();
            assert_eq!(profile.duration_s(), length, "{text}");
            let total = profile.due_by(f64::INFINITY);
            assert!((total - count).abs() < 1e-6, "{text}: {total}");
        }
        assert_eq!(
            parse("steps:50+50/10s..600", None).unwrap().steps().len(),
            12
        );
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        for text in [
            "",
            "x",
            "-1",
            "1e99",
            "nan",
            "ramp:1",
            "steps:5+0/1s..10",
            "steps:5+1e-9/1s..10",
            "sine:1~2/1s",
            "sine:1~1/0s",
            "0",
            "ramp:0..0",
            "moon:1",
            "10/year",
        ] {
            assert!(parse(text, Some(10.0)).is_err(), "{text}");
        }
        for text in ["", "1", "1 2 3", "5 1\n4 1", "x 1", "1 x", "nan 1"] {
            let profile = Profile::parse("file:x", None, |_| Ok(text.into()));
            assert!(profile.is_err(), "{text}");
        }
    }
}
