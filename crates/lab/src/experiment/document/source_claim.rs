//! The range or direction that a source document claims. An experiment document states this range
//! or direction before the run.

use super::Expectation;
use serde::Deserialize;
use std::fmt;
use toml::{Spanned, Value};

/// The range or direction that a source document states for a ratio or a value.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum SourceRange {
    /// The smallest and the largest figure that the source states.
    Figures([f64; 2]),
    /// The source states no figure, but only whether the ratio is above or below 1.
    Direction(RatioDirection),
}

/// The direction of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioDirection {
    /// Above 1.
    More,
    /// Below 1.
    Less,
}

impl fmt::Display for SourceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceRange::Figures([low, high]) if low == high => write!(f, "{low}"),
            SourceRange::Figures([low, high]) => write!(f, "{low} – {high}"),
            SourceRange::Direction(RatioDirection::More) => f.write_str("more than 1"),
            SourceRange::Direction(RatioDirection::Less) => f.write_str("less than 1"),
        }
    }
}

impl Expectation {
    /// Returns a fingerprint of all fields that decide the verdict. Every record contains the
    /// fingerprints of its document's claims. If a bound changes later, the fingerprint changes as
    /// well, so that earlier runs are not used for the new bound.
    pub fn fingerprint(&self) -> String {
        type ArmSelectorValues = std::collections::BTreeMap<Spanned<String>, Spanned<Value>>;
        let list = |values: &ArmSelectorValues| {
            let text = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
                let value = crate::experiment::scalar_text(value.get_ref()).unwrap_or_default();
                format!("{}={value};", name.get_ref())
            };
            values.iter().map(text).collect::<String>()
        };
        let text = format!(
            "{}|{}|{}|{}|{:?}|{:?}|{:?}",
            self.quantity.get_ref(),
            list(&self.of),
            list(&self.to),
            list(&self.only),
            self.source,
            self.at_least,
            self.at_most
        );
        // FNV-1a is sufficient, because the fingerprint need not resist deliberate collisions.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}
