//! `SegmentTemplate` URLs (ISO/IEC 23009-1, 5.3.9.4.4): identifiers between dollars.

use crate::error::{Error, Result};
use std::fmt::Write;

/// The widest number that is printed; no origin pads further.
const WIDTH_MAX: usize = 32;

/// What identifiers stand for.
pub(super) struct Values<'a> {
    pub(super) id: &'a str,
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    pub(super) time: u64,
}

/// Fills a template in.
///
/// # Errors
/// `Malformed` for a dollar without its partner or an identifier that does not exist.
pub(super) fn fill(template: &str, values: &Values<'_>) -> Result<String> {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, after) = after
            .split_once('$')
            .ok_or_else(|| Error::malformed("a $ without its partner in a SegmentTemplate"))?;
        identifier(&mut out, name, values)?;
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn identifier(out: &mut String, name: &str, values: &Values<'_>) -> Result<()> {
    let (name, format) = match name.split_once('%') {
        Some((name, format)) => (name, Some(format)),
        None => (name, None),
    };
    let value = match name {
        "" => return finish(out.write_char('$')),
        "RepresentationID" => return finish(out.write_str(values.id)),
        "Number" => values.number,
        "Time" => values.time,
        "Bandwidth" => values.bandwidth,
        // Only low latency in parts uses it; the first part is number 1.
        "SubNumber" => 1,
        _ => {
            let what = format!("SegmentTemplate knows no ${}$", super::address::short(name));
            return Err(Error::malformed(what));
        }
    };
    let width = width(format)?;
    finish(write!(out, "{value:0width$}"))
}

/// The width of a `%0[width]d` format tag.
fn width(format: Option<&str>) -> Result<usize> {
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

/// Writing to a string cannot fail; the type says that it could.
fn finish(written: std::fmt::Result) -> Result<()> {
    written.map_err(|_| Error::malformed("a URL that cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> = Values {
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
            assert_eq!(fill(template, &VALUES).unwrap(), url);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "$Number",
            "$Foo$",
            "$Number%99d$",
            "$Number%05x$",
            "$Number%999999999999d$",
        ] {
            assert!(fill(bad, &VALUES).is_err(), "{bad}");
        }
    }
}
