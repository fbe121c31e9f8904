//! How many watch at each moment: places that are taken as the run goes on. A place whose viewer
//! leaves is taken by another at once.

use super::super::player::Micros;

/// The most places: a guard against a slip of the finger.
pub const PLACES_MAX: u64 = 1_000_000;

const GRAMMAR: &str = "viewers are 50, ramp:0..600 or steps:50+50/10s..600";

/// When places are taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    starts: Vec<Micros>,
    /// When each step begins, and how many places there are then.
    pub steps: Vec<(Micros, u64)>,
}

impl Arrivals {
    /// Reads a number or a profile. `spread` is the time over which those who would come at once
    /// come one after another; `duration` the run's length, over which a ramp goes.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(text: &str, spread: Micros, duration: Micros) -> Result<Arrivals, String> {
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        match kind {
            "" => {
                let count = number(rest)?;
                let starts = even(0, spread.min(duration), count);
                Ok(Arrivals {
                    starts,
                    steps: vec![(0, count)],
                })
            }
            "ramp" => {
                let (from, to) = rest.split_once("..").ok_or(GRAMMAR)?;
                let (from, to) = (whole(from)?, number(to)?);
                if from > to {
                    return Err(format!(
                        "viewers who leave are replaced: a ramp goes up; {GRAMMAR}"
                    ));
                }
                let mut starts = even(0, spread.min(duration), from);
                starts.extend(even(0, duration, to - from));
                starts.sort_unstable();
                Ok(Arrivals {
                    starts,
                    steps: vec![(0, to)],
                })
            }
            "steps" => steps(rest, spread, duration),
            _ => Err(GRAMMAR.into()),
        }
    }

    /// When each place is taken, in order.
    pub fn starts(&self) -> &[Micros] {
        &self.starts
    }
}

/// `50+50/10s..600`: from 50, 50 more every 10 s, up to 600.
fn steps(text: &str, spread: Micros, duration: Micros) -> Result<Arrivals, String> {
    let (from, rest) = text.split_once('+').ok_or(GRAMMAR)?;
    let (more, rest) = rest.split_once('/').ok_or(GRAMMAR)?;
    let (every, most) = rest.split_once("..").ok_or(GRAMMAR)?;
    let (from, more, most) = (number(from)?, number(more)?, number(most)?);
    let every = net::config::duration(every)?.as_micros() as Micros;
    if every == 0 || most < from {
        return Err(format!("steps that lead nowhere; {GRAMMAR}"));
    }
    let mut arrivals = Arrivals {
        starts: Vec::new(),
        steps: Vec::new(),
    };
    let (mut at, mut count, mut here) = (0, from, 0);
    while here < most && at < duration {
        let count_now = count.min(most);
        let spread = spread.min(every);
        arrivals.starts.extend(even(at, spread, count_now - here));
        arrivals.steps.push((at, count_now));
        (here, count, at) = (
            count_now,
            count_now.saturating_add(more),
            at.saturating_add(every),
        );
    }
    Ok(arrivals)
}

/// So many, evenly from `at` on.
fn even(at: Micros, spread: Micros, count: u64) -> Vec<Micros> {
    let place =
        |n: u64| at + (u128::from(spread) * u128::from(n) / u128::from(count.max(1))) as Micros;
    (0..count).map(place).collect()
}

fn whole(text: &str) -> Result<u64, String> {
    let count = text.trim().parse::<u64>().map_err(|_| GRAMMAR)?;
    match count <= PLACES_MAX {
        true => Ok(count),
        false => Err(format!("at most {PLACES_MAX} viewers")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match whole(text)? {
        0 => Err("no viewers at all".into()),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    #[test]
    fn places_are_taken_as_profiles_say() {
        let parse = |text| Arrivals::parse(text, SECOND, 60 * SECOND).unwrap();
        assert_eq!(parse("4").starts(), [0, 250_000, 500_000, 750_000]);
        let ramp = parse("ramp:0..6");
        assert_eq!(ramp.starts(), [0, 10, 20, 30, 40, 50].map(|s| s * SECOND));
        let steps = parse("steps:2+3/10s..6");
        assert_eq!(steps.steps, [(0, 2), (10 * SECOND, 5), (20 * SECOND, 6)]);
        assert_eq!(
            steps.starts()[2..],
            [10_000_000, 10_333_333, 10_666_666, 20_000_000]
        );
    }

    #[test]
    fn nonsense_says_what_is_right() {
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
            assert!(Arrivals::parse(bad, SECOND, SECOND).is_err(), "{bad}");
        }
    }
}
