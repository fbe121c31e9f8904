//! What a link does, as flags say it.

use crate::link::Shape;
use net::config::{Knob, Layers, Wrong};

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
    let wrong = |(key, what): (&str, String)| {
        // Said with the value, and who set it.
        let told = layers.with::<()>(key, |_| Err(what.clone()));
        told.err()
            .unwrap_or_else(|| Wrong(format!("--{key}: {what}")))
    };
    Shape::read(&|key| layers.one(key).map(str::to_owned)).map_err(wrong)
}
