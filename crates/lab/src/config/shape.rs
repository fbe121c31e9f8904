//! What a link does, as flags say it.

use crate::link::{Loss, Queue, Rate, Shape, Trace, Way, loss, queue, rate};
use net::config::{Knob, Layers, Wrong, duration};

/// A link's knobs.
pub const SHAPE: &[Knob] = &[
    Knob::new(
        "rate",
        "RATE",
        "",
        "Bottleneck of each direction, such as 20mbit, or trace:FILE [default: none]",
    ),
    Knob::new(
        "up-rate",
        "RATE",
        "",
        "The same from client to server alone [default: as --rate]",
    ),
    Knob::new("delay", "DURATION", "0ms", "Delay of each direction"),
    Knob::new(
        "jitter",
        "DURATION",
        "0ms",
        "The delay varies evenly by this to both sides; packets stay in order",
    ),
    Knob::new(
        "queue",
        "SIZE",
        "1bdp",
        "Room before each bottleneck: bytes (64KiB), or a multiple of rate × round trip",
    ),
    Knob::new(
        "loss",
        "LOSS",
        "0%",
        "Packets lost each way: 1%, in bursts of four 1%/4, or ge:TO_BAD,TO_GOOD,GOOD,BAD",
    ),
    Knob::new(
        "up-loss",
        "LOSS",
        "",
        "The same from client to server alone [default: as --loss]",
    ),
    Knob::new(
        "seed",
        "N",
        "1",
        "Decides losses: the same seed loses the same packets by number",
    ),
];

/// The link that these settings ask for.
///
/// # Errors
/// [`Wrong`] for a value that is none, or a queue that would hold nothing.
pub fn shape(layers: &Layers) -> Result<Shape, Wrong> {
    let delay = layers.with("delay", duration)?.unwrap_or_default();
    let jitter = layers.with("jitter", duration)?.unwrap_or_default();
    if jitter > delay {
        return Err(Wrong("--jitter is at most --delay".into()));
    }
    let down = Way {
        rate: layers.with("rate", read_rate)?.unwrap_or(Rate::Unlimited),
        delay,
        jitter,
        queue: layers.with("queue", queue)?.unwrap_or(Queue::Bdp(1.0)),
        loss: layers.with("loss", loss)?.unwrap_or(Loss::None),
    };
    let up = Way {
        rate: layers
            .with("up-rate", read_rate)?
            .unwrap_or_else(|| down.rate.clone()),
        loss: layers.with("up-loss", loss)?.unwrap_or(down.loss),
        ..down.clone()
    };
    let seed = layers.with("seed", |text| {
        text.parse().map_err(|_| "it is a whole number".to_owned())
    })?;
    let rated = [&down, &up].iter().any(|way| way.rate != Rate::Unlimited);
    let in_bdp = matches!(down.queue, Queue::Bdp(_));
    if in_bdp && rated && delay.is_zero() {
        return Err(Wrong(
            "--queue in bdp is nothing without a --delay: say it in bytes, such as --queue 64KiB"
                .into(),
        ));
    }
    Ok(Shape {
        down,
        up,
        seed: seed.unwrap_or(1),
    })
}

fn read_rate(text: &str) -> Result<Rate, String> {
    let Some(path) = text.strip_prefix("trace:") else {
        return rate(text).map(Rate::Constant);
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let trace = Trace::read(&text).map_err(|what| format!("{path}: {what}"))?;
    Ok(Rate::Trace(trace))
}
