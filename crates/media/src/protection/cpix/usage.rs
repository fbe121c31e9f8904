//! Usage rules of CPIX (2.3, 5.4).

use super::document::require_key_id;
use crate::error::{Error, Result};
use crate::protection::{MediaFilter, UsageRule, VideoFilterLimits, format_key_id};
use crate::xml::XmlElement;

/// Reads a `ContentKeyUsageRule`.
///
/// # Errors
/// `Unsupported` if the rule contains a filter that cannot be evaluated, because a rule that is
/// only partly evaluated could assign a key to the wrong track; `Malformed` if a value is invalid.
pub(super) fn read_rule(element: &XmlElement) -> Result<UsageRule> {
    let key_id = require_key_id(element)?;
    let mut rule = UsageRule {
        key_id,
        ..UsageRule::default()
    };
    for filter in &element.children {
        match filter.name.as_str() {
            "VideoFilter" => rule.media.push(read_video_filter(filter)?),
            "AudioFilter" => rule.media.push(MediaFilter::Audio(
                read_limit(filter, "minChannels", 0)?
                    ..=read_limit(filter, "maxChannels", u32::MAX)?,
            )),
            "BitrateFilter" => rule.bitrates.push(
                read_limit(filter, "minBitrate", 0)?..=read_limit(filter, "maxBitrate", u64::MAX)?,
            ),
            // Documents have at most one key period, so this filter matches the whole title.
            "KeyPeriodFilter" => {}
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(Error::unsupported(format!(
                    "the usage rule of the key {} has the filter {other}, which cannot be evaluated",
                    format_key_id(&key_id)
                )));
            }
        }
    }
    Ok(rule)
}

fn read_video_filter(filter: &XmlElement) -> Result<MediaFilter> {
    Ok(MediaFilter::Video(VideoFilterLimits {
        pixels: read_limit(filter, "minPixels", 0)?..=read_limit(filter, "maxPixels", u64::MAX)?,
        frame_rates: (
            read_limit(filter, "minFps", -1.0)?,
            read_limit(filter, "maxFps", f64::INFINITY)?,
        ),
        hdr: parse_bool_attribute(filter, "hdr")?,
        wide_gamut: parse_bool_attribute(filter, "wcg")?,
    }))
}

fn read_limit<T: std::str::FromStr>(
    filter: &XmlElement,
    name: &'static str,
    absent: T,
) -> Result<T> {
    let Some(text) = filter.attribute(name) else {
        return Ok(absent);
    };
    let malformed = || Error::malformed(format!("{}@{name} is not a number", filter.name));
    text.parse().map_err(|_| malformed())
}

fn parse_bool_attribute(filter: &XmlElement, name: &'static str) -> Result<Option<bool>> {
    match filter.attribute(name) {
        None => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(_) => Err(Error::malformed(format!(
            "{}@{name} is not a boolean",
            filter.name
        ))),
    }
}
