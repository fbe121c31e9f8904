//! Periods: adaptation sets that play, and what is left aside.

use super::super::{Kind as Carries, Rendition, Title};
use super::Span;
use super::base::Scope;
use super::representation;
use super::timeline::Budget;
use crate::error::Result;
use crate::xml::Element;

/// Sets for fast forward (DASH-IF IOP, 3.2.9), which players do not play from.
const TRICK_MODE: &str = "http://dashif.org/guidelines/trickmode";

pub(super) fn read(
    title: &mut Title,
    scope: &Scope<'_>,
    period: &Element,
    span: Span,
    budget: &mut Budget,
) -> Result<Vec<Rendition>> {
    let scope = scope.enter(period)?;
    let mut found = Vec::new();
    for set in period.all("AdaptationSet") {
        if is_trick_mode(set) {
            title.note("trick mode sets are ignored");
            continue;
        }
        let scope = scope.enter(set)?;
        for described in set.all("Representation") {
            let Some(kind) = kind(set, described) else {
                title.note("sets of images or of unknown kind are ignored");
                continue;
            };
            let scope = scope.enter(described)?;
            let rendition = rendition(set, described, kind)?;
            let pieces = representation::pieces(&scope, &rendition, span, budget)?;
            found.push(Rendition {
                pieces,
                ..rendition
            });
        }
    }
    Ok(found)
}

fn is_trick_mode(set: &Element) -> bool {
    let properties = set
        .all("EssentialProperty")
        .chain(set.all("SupplementalProperty"));
    let mut schemes = properties.filter_map(|property| property.get("schemeIdUri"));
    schemes.any(|scheme| scheme == TRICK_MODE)
}

/// From `contentType`, or the MIME type, or the codecs.
fn kind(set: &Element, described: &Element) -> Option<Carries> {
    let either = |name| described.get(name).or_else(|| set.get(name));
    let component = set.all("ContentComponent").count();
    let mime = either("mimeType").unwrap_or_default();
    let stated = set
        .get("contentType")
        .unwrap_or_else(|| mime.split('/').next().unwrap_or_default());
    match stated {
        "video" if component > 1 => Some(Carries::Muxed),
        "video" => Some(Carries::Video),
        "audio" => Some(Carries::Audio),
        "text" => Some(Carries::Text),
        "application" if mime == "application/mp4" || mime == "application/ttml+xml" => {
            Some(Carries::Text)
        }
        "" if either("width").is_some() => Some(Carries::Video),
        "" if either("audioSamplingRate").is_some() => Some(Carries::Audio),
        _ => None,
    }
}

fn rendition(set: &Element, described: &Element, kind: Carries) -> Result<Rendition> {
    let either = |name| described.get(name).or_else(|| set.get(name));
    let pixels = |name| either(name).and_then(|text| text.parse::<u32>().ok());
    Ok(Rendition {
        id: described.get("id").unwrap_or_default().to_string(),
        kind,
        group: None,
        bandwidth: described.number("bandwidth")?.unwrap_or(0),
        resolution: pixels("width").zip(pixels("height")),
        frame_rate: either("frameRate").and_then(frame_rate),
        codecs: either("codecs").unwrap_or_default().to_string(),
        language: either("lang").map(str::to_string),
        pieces: Vec::new(),
    })
}

/// `25` or `30000/1001`.
fn frame_rate(text: &str) -> Option<f64> {
    let (frames, seconds) = text.split_once('/').unwrap_or((text, "1"));
    let (frames, seconds): (f64, f64) = (frames.parse().ok()?, seconds.parse().ok()?);
    let rate = frames / seconds;
    rate.is_finite().then_some(rate)
}
