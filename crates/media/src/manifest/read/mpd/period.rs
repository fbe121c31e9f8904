//! Parsing of periods into renditions. Ignored adaptation sets are recorded as notes.

use super::super::{ManifestRendition, ParsedManifest, RenditionKind};
use super::check_representation_count;
use super::inherited_values::ElementScope;
use super::period_span::PeriodSpan;
use super::representation;
use super::segment_timings::SegmentBudget;
use crate::error::Result;
use crate::xml::XmlElement;

/// Scheme of trick mode adaptation sets (DASH-IF IOP, 3.2.9). The parser ignores these sets,
/// because they are only for trick play such as fast-forward.
const TRICK_MODE_SCHEME: &str = "http://dashif.org/guidelines/trickmode";

pub(super) fn parse_period(
    title: &mut ParsedManifest,
    scope: &ElementScope<'_>,
    period: &XmlElement,
    span: PeriodSpan,
    budget: &mut SegmentBudget,
) -> Result<Vec<ManifestRendition>> {
    let scope = scope.enter_element(period)?;
    let mut found = Vec::new();
    for set in period.children_named("AdaptationSet") {
        if is_trick_mode(set) {
            title.add_note("trick mode sets are ignored");
            continue;
        }
        let scope = scope.enter_element(set)?;
        for described in set.children_named("Representation") {
            let Some(kind) = rendition_kind(set, described) else {
                title.add_note("sets of images or of unknown kind are ignored");
                continue;
            };
            check_representation_count(title.renditions.len() + found.len() + 1)?;
            let scope = scope.enter_element(described)?;
            let rendition = parse_representation(set, described, kind)?;
            let pieces = representation::parse_segment_sources(&scope, &rendition, span, budget)?;
            found.push(ManifestRendition {
                segment_sources: pieces,
                ..rendition
            });
        }
    }
    Ok(found)
}

fn is_trick_mode(set: &XmlElement) -> bool {
    let properties = set
        .children_named("EssentialProperty")
        .chain(set.children_named("SupplementalProperty"));
    let mut schemes = properties.filter_map(|property| property.attribute("schemeIdUri"));
    schemes.any(|scheme| scheme == TRICK_MODE_SCHEME)
}

/// Derives the kind from `contentType` or the MIME type. If both are missing, `width` means video,
/// and `audioSamplingRate` means audio.
fn rendition_kind(set: &XmlElement, described: &XmlElement) -> Option<RenditionKind> {
    let either = |name| described.attribute(name).or_else(|| set.attribute(name));
    let component = set.children_named("ContentComponent").count();
    let mime = either("mimeType").unwrap_or_default();
    let stated = set
        .attribute("contentType")
        .unwrap_or_else(|| mime.split('/').next().unwrap_or_default());
    match stated {
        "video" if component > 1 => Some(RenditionKind::Muxed),
        "video" => Some(RenditionKind::Video),
        "audio" => Some(RenditionKind::Audio),
        "text" => Some(RenditionKind::Text),
        "application" if mime == "application/mp4" || mime == "application/ttml+xml" => {
            Some(RenditionKind::Text)
        }
        "" if either("width").is_some() => Some(RenditionKind::Video),
        "" if either("audioSamplingRate").is_some() => Some(RenditionKind::Audio),
        _ => None,
    }
}

fn parse_representation(
    set: &XmlElement,
    described: &XmlElement,
    kind: RenditionKind,
) -> Result<ManifestRendition> {
    let either = |name| described.attribute(name).or_else(|| set.attribute(name));
    let pixels = |name| either(name).and_then(|text| text.parse::<u32>().ok());
    Ok(ManifestRendition {
        id: described.attribute("id").unwrap_or_default().to_string(),
        kind,
        group: None,
        bandwidth: described.parse_u64_attribute("bandwidth")?.unwrap_or(0),
        resolution: pixels("width").zip(pixels("height")),
        frame_rate: either("frameRate").and_then(parse_frame_rate),
        codecs: either("codecs").unwrap_or_default().to_string(),
        language: either("lang").map(str::to_string),
        segment_sources: Vec::new(),
    })
}

/// Parses a frame rate such as `25` or `30000/1001`.
fn parse_frame_rate(text: &str) -> Option<f64> {
    let (frames, seconds) = text.split_once('/').unwrap_or((text, "1"));
    let (frames, seconds): (f64, f64) = (frames.parse().ok()?, seconds.parse().ok()?);
    let rate = frames / seconds;
    rate.is_finite().then_some(rate)
}
