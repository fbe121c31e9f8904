//! What a link does, as flags say it.

use crate::link::{Loss, Queue, Shape, Way, fraction, queue, rate};
use net::config::{Knob, Layers, Wrong, duration};
use std::time::Duration;

/// A link's knobs.
pub const SHAPE: &[Knob] = &[
    Knob::new(
        "rate",
        "RATE",
        "",
        "Bottleneck of each direction, such as 20mbit [default: none]",
    ),
    Knob::new(
        "up-rate",
        "RATE",
        "",
        "The same from client to server alone [default: as --rate]",
    ),
    Knob::new("delay", "DURATION", "0ms", "Delay of each direction"),
    Knob::new(
        "queue",
        "SIZE",
        "1bdp",
        "Room before each bottleneck: bytes (64KiB), or a multiple of rate × round trip",
    ),
    Knob::new("loss", "SHARE", "0%", "Packets lost at random, each way"),
    Knob::new(
        "up-loss",
        "SHARE",
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
    let down = Way {
        rate_bits_per_s: layers.with("rate", rate)?,
        delay: layers.with("delay", duration)?.unwrap_or(Duration::ZERO),
        queue: layers.with("queue", queue)?.unwrap_or(Queue::Bdp(1.0)),
        loss: lossy(layers.with("loss", fraction)?.unwrap_or(0.0)),
    };
    let up = Way {
        rate_bits_per_s: layers.with("up-rate", rate)?.or(down.rate_bits_per_s),
        loss: layers.with("up-loss", fraction)?.map_or(down.loss, lossy),
        ..down.clone()
    };
    let seed = layers.with("seed", |text| {
        text.parse().map_err(|_| "it is a whole number".to_owned())
    })?;
    let shape = Shape {
        down,
        up,
        seed: seed.unwrap_or(1),
    };
    let rated = shape.down.rate_bits_per_s.or(shape.up.rate_bits_per_s);
    let in_bdp = matches!(shape.down.queue, Queue::Bdp(_));
    if in_bdp && rated.is_some() && shape.round_trip().is_zero() {
        return Err(Wrong(
            "--queue in bdp is nothing without a --delay: say it in bytes, such as --queue 64KiB"
                .into(),
        ));
    }
    Ok(shape)
}

fn lossy(share: f64) -> Loss {
    if share == 0.0 {
        Loss::None
    } else {
        Loss::Independent(share)
    }
}
