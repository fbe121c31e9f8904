//! How fast and how late a link is: texts of an experiment's, numbers of NBMP's.

/// A text of a link's that a field of `flowcontrol` can say.
pub(super) struct Flow {
    pub(super) key: &'static str,
    pub(super) field: &'static str,
    /// Largest first.
    pub(super) units: &'static [(&'static str, u64)],
    /// What validators take for meant.
    meant: std::ops::RangeInclusive<u64>,
}

pub(super) const FLOWS: [Flow; 2] = [
    Flow {
        key: "delay",
        field: "min-delay",
        units: &[("ms", 1)],
        meant: 0..=3_600_000,
    },
    Flow {
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

impl Flow {
    /// A text's number, if it is written as [`quantity`] would.
    pub(super) fn plain(&self, text: &str) -> Option<u64> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let (_, factor) = self.units.iter().find(|(name, _)| *name == unit)?;
        let number = number.parse::<u64>().ok()?.checked_mul(*factor)?;
        (self.meant.contains(&number) && quantity(number, self.units) == text).then_some(number)
    }
}

/// A number in the largest unit that it is whole in.
pub(super) fn quantity(number: u64, units: &[(&str, u64)]) -> String {
    let whole = |(_, factor): &&(&str, u64)| number > 0 && number.is_multiple_of(*factor);
    let (unit, factor) = units
        .iter()
        .find(whole)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1));
    format!("{}{unit}", number / factor)
}
