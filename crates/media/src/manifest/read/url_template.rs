//! `SegmentTemplate` URLs with identifiers between dollar signs (ISO/IEC 23009-1, 5.3.9.4.4).

use crate::error::{Error, Result};
use std::fmt::Write;

/// Maximum width to which a number is padded, in digits. Packagers use smaller widths.
const WIDTH_MAX: usize = 32;

/// Values that replace the identifiers of a template.
pub(super) struct TemplateValues<'a> {
    pub(super) id: &'a str,
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    pub(super) time: u64,
}

/// Replaces the identifiers of a template with their values.
///
/// # Errors
/// `Malformed` for an unpaired dollar sign, an unknown identifier or an invalid format tag.
pub(super) fn fill_template(template: &str, values: &TemplateValues<'_>) -> Result<String> {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, after) = after
            .split_once('$')
            .ok_or_else(|| Error::malformed("unpaired $ in a SegmentTemplate"))?;
        expand_template_identifier(&mut out, name, values)?;
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn expand_template_identifier(
    out: &mut String,
    name: &str,
    values: &TemplateValues<'_>,
) -> Result<()> {
    let (name, format) = match name.split_once('%') {
        Some((name, format)) => (name, Some(format)),
        None => (name, None),
    };
    let value = match name {
        "" => return map_write_error(out.write_char('$')),
        "RepresentationID" => return map_write_error(out.write_str(values.id)),
        "Number" => values.number,
        "Time" => values.time,
        "Bandwidth" => values.bandwidth,
        // Only low-latency streams use this identifier. The value 1 selects the first chunk of the
        // segment.
        "SubNumber" => 1,
        _ => {
            let message = format!(
                "unknown SegmentTemplate identifier ${}$",
                super::resource_range::shorten_for_message(name)
            );
            return Err(Error::malformed(message));
        }
    };
    let width = parse_format_width(format)?;
    map_write_error(write!(out, "{value:0width$}"))
}

/// Parses the width of a `%0[width]d` format tag.
fn parse_format_width(format: Option<&str>) -> Result<usize> {
    let Some(format) = format else { return Ok(1) };
    let digits = format
        .strip_suffix('d')
        .map(|digits| digits.trim_start_matches('0'));
    let width = digits.and_then(|digits| {
        if digits.is_empty() {
            Some(1)
        } else {
            digits.parse().ok()
        }
    });
    width
        .filter(|width| *width <= WIDTH_MAX)
        .ok_or_else(|| Error::malformed(format!("a format tag other than %0[1 to {WIDTH_MAX}]d")))
}

/// Converts the result of writing into a `String`. Writing into a `String` cannot fail, but the
/// return type allows an error.
fn map_write_error(written: std::fmt::Result) -> Result<()> {
    written.map_err(|_| Error::malformed("a URL that cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: TemplateValues<'_> = TemplateValues {
        id: "v$1",
        bandwidth: 4_000_000,
        number: 7,
        time: 90_000,
    };

    #[test]
    fn identifiers_are_filled_in() {
        for (template, url) in [
            ("$RepresentationID$/$Number%05d$.m4s", "v$1/00007.m4s"),
            ("$Time$-$Bandwidth$.m4s", "90000-4000000.m4s"),
            ("a$$b", "a$b"),
            ("$Number%d$", "7"),
            ("plain.mp4", "plain.mp4"),
        ] {
            assert_eq!(fill_template(template, &VALUES).unwrap(), url);
        }
    }

    #[test]
    fn invalid_templates_are_refused() {
        for bad in [
            "$Number",
            "$Foo$",
            "$Number%99d$",
            "$Number%05x$",
            "$Number%999999999999d$",
        ] {
            assert!(fill_template(bad, &VALUES).is_err(), "{bad}");
        }
    }
}
