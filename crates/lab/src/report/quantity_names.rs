//! Derives the words and the unit of a quantity from the quantity's name.

/// Suffixes of quantity names that state a unit, and the displayed forms of these units.
const UNITS: [(&str, &str); 13] = [
    ("ms", "ms"),
    ("us", "µs"),
    ("s", "s"),
    ("seconds", "s"),
    ("mbps", "Mb/s"),
    ("gbps", "Gb/s"),
    ("kbps", "kb/s"),
    ("mb", "MB"),
    ("kb", "kB"),
    ("gb", "GB"),
    ("mib", "MiB"),
    ("bytes", "bytes"),
    ("percent", "%"),
];

/// Returns the words and the unit of a quantity's name. For example, `cpu-ms-per-mb` results in the
/// words `CPU` and the unit `ms per MB`.
pub(super) fn describe_quantity_name(name: &str) -> (String, Option<String>) {
    if let Some((counted, per)) = name.split_once("-per-") {
        let per = if per == "s" {
            "second"
        } else {
            find_unit(per).unwrap_or(per)
        };
        let (words, unit) = split_name_and_unit(counted);
        let unit = unit.map_or(format!("per {per}"), |unit| format!("{unit} per {per}"));
        return (words, Some(unit));
    }
    let (words, unit) = split_name_and_unit(name);
    (words, unit.map(str::to_owned))
}

/// Splits off the unit at the end of a name. Returns the words before the unit, and the unit.
fn split_name_and_unit(name: &str) -> (String, Option<&'static str>) {
    match name.rsplit_once('-') {
        Some((before, end)) if find_unit(end).is_some() => (name_to_words(before), find_unit(end)),
        _ => (name_to_words(name), None),
    }
}

fn find_unit(end: &str) -> Option<&'static str> {
    UNITS
        .iter()
        .find(|(name, _)| *name == end)
        .map(|(_, unit)| *unit)
}

fn name_to_words(name: &str) -> String {
    let words = name.split('-').map(|word| match word {
        "cpu" => "CPU",
        "rss" => "resident memory",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns an axis title. It consists of the words, which start with a capital letter, and the unit
/// in parentheses.
pub(super) fn axis_title(words: &str, unit: Option<&str>) -> String {
    let mut letters = words.chars();
    // Keeps the lower-case letter of percentiles, such as `p99`.
    let is_percentile =
        words.starts_with('p') && words.get(1..2).is_some_and(|c| c.parse::<u8>().is_ok());
    let capital = match letters.next() {
        Some(first) if !is_percentile => first.to_uppercase().chain(letters).collect(),
        _ => words.to_owned(),
    };
    match unit {
        Some(unit) => format!("{capital} ({unit})"),
        None => capital,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_titles_are_words_with_units() {
        for (name, title) in [
            ("response-p99-ms", "Response p99 (ms)"),
            ("p99-ms", "p99 (ms)"),
            ("requests-per-s", "Requests (per second)"),
            ("cpu-ms-per-mb", "CPU (ms per MB)"),
            ("out-mbps", "Out (Mb/s)"),
            ("rss-mb", "Resident memory (MB)"),
            ("open-connections", "Open connections"),
            ("access.down-bytes", "Access.down (bytes)"),
            ("seconds", "Seconds"),
        ] {
            let (words, unit) = describe_quantity_name(name);
            assert_eq!(axis_title(&words, unit.as_deref()), title, "{name}");
        }
    }
}
