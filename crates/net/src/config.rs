//! Settings that come from flags, `HEADWATER_*` variables and lines of a TOML file.
//!
//! Each knob is declared once, in a program's own table ([`Knob`]); [`Layers`] says who set what;
//! [`Common`] gives the knobs that all servers share their meaning, and each program its own.

mod common;
mod knob;
mod layers;
mod masked;
mod units;

pub use common::{COMMON, Common, LogFormat};
pub use knob::{CONFIG, Knob, PRINT, flags};
pub use layers::{Layers, Sources};
pub use masked::masked;
pub use units::{bytes, count, duration};

use std::fmt;

/// Wrong usage: what is wrong, where it was written, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}
