//! Converts the delay and the rate of links, which are texts in experiments and numbers in NBMP.

/// A link setting that has a field in the NBMP object `flowcontrol`.
pub(super) struct FlowControlField {
    pub(super) key: &'static str,
    pub(super) field: &'static str,
    /// Names and factors of the units, largest unit first.
    pub(super) units: &'static [(&'static str, u64)],
    /// Range of values that the NBMP field stores, in ms or bit/s. A value outside this range is
    /// written as a parameter instead, because the validator rejects some values outside the range.
    meant: std::ops::RangeInclusive<u64>,
}

pub(super) const FLOWS: [FlowControlField; 2] = [
    FlowControlField {
        key: "delay",
        field: "min-delay",
        units: &[("ms", 1)],
        meant: 0..=3_600_000,
    },
    FlowControlField {
        key: "rate",
        field: "max-throughput",
        units: &[
            ("gbit", 1_000_000_000),
            ("mbit", 1_000_000),
            ("kbit", 1000),
            ("bit", 1),
        ],
        meant: 1000..=1_000_000_000_000,
    },
];

impl FlowControlField {
    /// Parses a text of exactly the form that [`format_in_unit`] writes. Returns `None` for any
    /// other text, and for values outside the range `meant`.
    pub(super) fn parse_plain_value(&self, text: &str) -> Option<u64> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let (_, factor) = self.units.iter().find(|(name, _)| *name == unit)?;
        let number = number.parse::<u64>().ok()?.checked_mul(*factor)?;
        (self.meant.contains(&number) && format_in_unit(number, self.units) == text)
            .then_some(number)
    }
}

/// Formats a number in the largest unit that needs no fraction.
pub(super) fn format_in_unit(number: u64, units: &[(&str, u64)]) -> String {
    let whole = |(_, factor): &&(&str, u64)| number > 0 && number.is_multiple_of(*factor);
    let (unit, factor) = units
        .iter()
        .find(whole)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1));
    format!("{}{unit}", number / factor)
}
