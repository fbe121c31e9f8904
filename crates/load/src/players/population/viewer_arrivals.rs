//! The number of viewers over time. Each viewer occupies a place. When a viewer leaves, another
//! viewer takes the place at once.

use super::super::player_interface::Micros;

/// Maximum number of places. The limit catches typing errors.
pub const PLACES_MAX: u64 = 1_000_000;

/// The reason why a number or profile of viewers cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalsError {
    /// The text has none of the known forms.
    #[error("invalid number of viewers; {GRAMMAR}")]
    Syntax,
    /// A ramp ends below its start.
    #[error("viewers who leave are replaced, so a ramp cannot fall; {GRAMMAR}")]
    FallingRamp,
    /// The interval between steps is not a valid duration.
    #[error("invalid duration: {0}")]
    Duration(String),
    /// The last number of viewers is below the first number, or the interval is zero.
    #[error("the steps do not rise; {GRAMMAR}")]
    StepsDoNotRise,
    /// There are too many viewers.
    #[error("too many viewers; use at most {PLACES_MAX}")]
    TooManyViewers,
    /// A number of viewers is zero.
    #[error("no viewers; use at least 1")]
    NoViewers,
}

const GRAMMAR: &str = "use 50, ramp:0..600 or steps:50+50/10s..600";

/// The arrival time of the first viewer in each place, and the steps of the profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewerArrivals {
    starts: Vec<Micros>,
    /// Start time of each step, and the number of viewers in this step.
    pub steps: Vec<(Micros, u64)>,
}

impl ViewerArrivals {
    /// Parses a number of viewers or a profile. Viewers who would arrive at the same time arrive
    /// evenly over the period `spread` instead. `duration` is the length of the run and of a ramp.
    ///
    /// # Errors
    /// The text is not a valid number or profile.
    pub fn parse_arrivals(
        text: &str,
        spread: Micros,
        duration: Micros,
    ) -> Result<ViewerArrivals, ArrivalsError> {
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        match kind {
            "" => {
                let count = parse_positive(rest)?;
                let starts = spread_evenly(0, spread.min(duration), count);
                Ok(ViewerArrivals {
                    starts,
                    steps: vec![(0, count)],
                })
            }
            "ramp" => {
                let (from, to) = rest.split_once("..").ok_or(ArrivalsError::Syntax)?;
                let (from, to) = (parse_count(from)?, parse_positive(to)?);
                if from > to {
                    return Err(ArrivalsError::FallingRamp);
                }
                let mut starts = spread_evenly(0, spread.min(duration), from);
                starts.extend(spread_evenly(0, duration, to - from));
                starts.sort_unstable();
                Ok(ViewerArrivals {
                    starts,
                    steps: vec![(0, to)],
                })
            }
            "steps" => parse_steps(rest, spread, duration),
            _ => Err(ArrivalsError::Syntax),
        }
    }

    /// Returns the arrival time of the first viewer in each place, in ascending order.
    pub fn place_start_times(&self) -> &[Micros] {
        &self.starts
    }
}

/// Parses `50+50/10s..600`, which starts with 50 viewers and adds 50 viewers every 10 s, up to 600.
fn parse_steps(
    text: &str,
    spread: Micros,
    duration: Micros,
) -> Result<ViewerArrivals, ArrivalsError> {
    let (from, rest) = text.split_once('+').ok_or(ArrivalsError::Syntax)?;
    let (more, rest) = rest.split_once('/').ok_or(ArrivalsError::Syntax)?;
    let (every, most) = rest.split_once("..").ok_or(ArrivalsError::Syntax)?;
    let (from, more, most) = (
        parse_positive(from)?,
        parse_positive(more)?,
        parse_positive(most)?,
    );
    let every = net::config::parse_duration(every)
        .map_err(ArrivalsError::Duration)?
        .as_micros() as Micros;
    if every == 0 || most < from {
        return Err(ArrivalsError::StepsDoNotRise);
    }
    let mut arrivals = ViewerArrivals {
        starts: Vec::new(),
        steps: Vec::new(),
    };
    let (mut at, mut count, mut here) = (0, from, 0);
    while here < most && at < duration {
        let count_now = count.min(most);
        let spread = spread.min(every);
        arrivals
            .starts
            .extend(spread_evenly(at, spread, count_now - here));
        arrivals.steps.push((at, count_now));
        (here, count, at) = (
            count_now,
            count_now.saturating_add(more),
            at.saturating_add(every),
        );
    }
    Ok(arrivals)
}

/// Returns `count` times, spaced evenly over the duration `spread` and starting at `at`.
fn spread_evenly(at: Micros, spread: Micros, count: u64) -> Vec<Micros> {
    let place =
        |n: u64| at + (u128::from(spread) * u128::from(n) / u128::from(count.max(1))) as Micros;
    (0..count).map(place).collect()
}

fn parse_count(text: &str) -> Result<u64, ArrivalsError> {
    let count = text
        .trim()
        .parse::<u64>()
        .map_err(|_| ArrivalsError::Syntax)?;
    match count <= PLACES_MAX {
        true => Ok(count),
        false => Err(ArrivalsError::TooManyViewers),
    }
}

fn parse_positive(text: &str) -> Result<u64, ArrivalsError> {
    match parse_count(text)? {
        0 => Err(ArrivalsError::NoViewers),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    #[test]
    fn viewers_arrive_as_the_profile_declares() {
        let parse = |text| ViewerArrivals::parse_arrivals(text, SECOND, 60 * SECOND).unwrap();
        assert_eq!(
            parse("4").place_start_times(),
            [0, 250_000, 500_000, 750_000]
        );
        let ramp = parse("ramp:0..6");
        assert_eq!(
            ramp.place_start_times(),
            [0, 10, 20, 30, 40, 50].map(|s| s * SECOND)
        );
        let steps = parse("steps:2+3/10s..6");
        assert_eq!(steps.steps, [(0, 2), (10 * SECOND, 5), (20 * SECOND, 6)]);
        assert_eq!(
            steps.place_start_times()[2..],
            [10_000_000, 10_333_333, 10_666_666, 20_000_000]
        );
    }

    #[test]
    fn invalid_profiles_are_refused() {
        for bad in [
            "",
            "0",
            "-1",
            "x",
            "ramp:5",
            "ramp:9..3",
            "steps:1+1..4",
            "steps:5+0/1s..9",
            "2000000",
            "sine:3",
        ] {
            assert!(
                ViewerArrivals::parse_arrivals(bad, SECOND, SECOND).is_err(),
                "{bad}"
            );
        }
    }
}
