//! A link as it is asked for, in words: flags of a command, keys of a document.

use super::{Loss, Queue, Rate, Shape, Trace, Way, loss, queue, rate};
use net::config::duration;

/// A value's key, and what is wrong with it.
type Wrong = (&'static str, String);

impl Shape {
    /// From texts named `rate`, `up-rate`, `delay`, `jitter`, `queue`, `loss`, `up-loss` and `seed`;
    /// those that are absent have the defaults of `headwater lab link`.
    ///
    /// # Errors
    /// The key of a value that is none, and what is wrong; a queue that would hold nothing.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Shape, Wrong> {
        let delay = with(get, "delay", duration)?.unwrap_or_default();
        let jitter = with(get, "jitter", duration)?.unwrap_or_default();
        if jitter > delay {
            return Err(("jitter", "it is at most the delay".into()));
        }
        let down = Way {
            rate: with(get, "rate", any_rate)?.unwrap_or(Rate::Unlimited),
            delay,
            jitter,
            queue: with(get, "queue", queue)?.unwrap_or(Queue::Bdp(1.0)),
            loss: with(get, "loss", loss)?.unwrap_or(Loss::None),
        };
        let up = Way {
            rate: with(get, "up-rate", any_rate)?.unwrap_or_else(|| down.rate.clone()),
            loss: with(get, "up-loss", loss)?.unwrap_or(down.loss),
            ..down.clone()
        };
        let rated = [&down, &up].iter().any(|way| way.rate != Rate::Unlimited);
        if matches!(down.queue, Queue::Bdp(_)) && rated && delay.is_zero() {
            let what = "in bdp it is nothing without a delay: say bytes, such as 64KiB";
            return Err(("queue", what.into()));
        }
        let whole = |text: &str| text.parse().map_err(|_| "it is a whole number".to_owned());
        let seed = with(get, "seed", whole)?.unwrap_or(1);
        Ok(Shape { down, up, seed })
    }
}

fn with<T>(
    get: &dyn Fn(&str) -> Option<String>,
    key: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Wrong> {
    let parsed = get(key).map(|text| parse(&text));
    parsed.transpose().map_err(|what| (key, what))
}

fn any_rate(text: &str) -> Result<Rate, String> {
    let Some(path) = text.strip_prefix("trace:") else {
        return rate(text).map(Rate::Constant);
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let trace = Trace::read(&text).map_err(|what| format!("{path}: {what}"))?;
    Ok(Rate::Trace(trace))
}
