//! Writes AdaptationSets of text. The text is WebVTT or IMSC in CMAF segments, or one WebVTT file.

use super::elements::{write_attribute, write_property};
use super::segment_template::{TemplateAddressing, write_segment_timeline};
use crate::manifest::escaping::XmlText;
use crate::manifest::url;
use crate::presentation::{DashTextForm, Presentation};
use crate::text::{CaptionChannel, IMSC_CODEC, TextKind, TextRendition, TextSegmentTimes};
use std::fmt::Write;

/// Writes one AdaptationSet per text rendition. The ids of the sets count from `first_id`.
pub(super) fn write_text_sets(
    out: &mut String,
    presentation: &Presentation,
    addressing: TemplateAddressing,
    first_id: usize,
) {
    let Some(grid) = presentation.text_segment_times() else {
        return;
    };
    let form = presentation.manifest_rules.dash_text;
    let base = url::text_base_url(presentation);
    let measured = presentation.text_bandwidths(form).iter();
    let renditions = presentation.text.renditions().zip(measured);
    for (n, ((name, rendition), bandwidth)) in renditions.enumerate() {
        write_text_set_start(out, rendition, form, first_id + n);
        match form {
            DashTextForm::File => {
                write_representation(out, name, *bandwidth);
                let file = url::WHOLE_TEXT;
                let _ = writeln!(
                    out,
                    ">\n        <BaseURL>{base}{name}/{file}</BaseURL>\n      </Representation>"
                );
            }
            DashTextForm::Wvtt => {
                let _ = writeln!(out, "      <BaseURL>{base}</BaseURL>");
                write_template(out, &grid, addressing, "");
                write_representation(out, name, *bandwidth);
                out.push_str(" codecs=\"wvtt\"/>\n");
            }
            DashTextForm::Imsc => {
                let _ = writeln!(out, "      <BaseURL>{base}</BaseURL>");
                write_template(out, &grid, addressing, url::IMSC_INFIX);
                write_representation(out, name, *bandwidth);
                let _ = writeln!(out, " codecs=\"{IMSC_CODEC}\"/>");
            }
        }
        out.push_str("    </AdaptationSet>\n");
    }
}

/// Writes the start tag of a Representation, without its closing `>` or `/>`.
fn write_representation(out: &mut String, name: &str, bandwidth: u64) {
    out.push_str("      <Representation");
    write_attribute(out, "id", name);
    write_attribute(out, "bandwidth", bandwidth.max(1));
}

/// Writes the start tag of an AdaptationSet, and the elements before BaseURL.
fn write_text_set_start(
    out: &mut String,
    rendition: &TextRendition,
    form: DashTextForm,
    id: usize,
) {
    let _ = write!(out, "    <AdaptationSet id=\"{id}\" contentType=\"text\"");
    if let Some(tag) = rendition.language_tag() {
        write_attribute(out, "lang", tag);
    }
    out.push_str(match form {
        DashTextForm::File => " mimeType=\"text/vtt\"",
        DashTextForm::Wvtt | DashTextForm::Imsc => {
            " mimeType=\"application/mp4\" segmentAlignment=\"true\" startWithSAP=\"1\""
        }
    });
    if rendition.is_default {
        out.push_str(" selectionPriority=\"2\"");
    }
    out.push_str(">\n");
    let _ = writeln!(
        out,
        "      <Label>{}</Label>",
        XmlText(&rendition.display_name())
    );
    let role = match rendition.kind {
        TextKind::Subtitles | TextKind::EasyToRead => "subtitle",
        TextKind::Captions => "caption",
        TextKind::Forced => "forced-subtitle",
    };
    if rendition.kind == TextKind::Captions {
        // The value 2 means "for the hard of hearing".
        write_property(
            out,
            "Accessibility",
            "urn:tva:metadata:cs:AudioPurposeCS:2007",
            "2",
        );
    }
    write_property(out, "Role", "urn:mpeg:dash:role:2011", role);
    if rendition.kind == TextKind::EasyToRead {
        write_property(out, "Role", "urn:mpeg:dash:role:2011", "easyreader");
    }
    if rendition.is_default {
        write_property(out, "Role", "urn:mpeg:dash:role:2011", "main");
    }
}

/// Writes the template of segments whose names contain `infix` before the file extension.
fn write_template(
    out: &mut String,
    grid: &TextSegmentTimes<'_>,
    addressing: TemplateAddressing,
    infix: &str,
) {
    let name = |template: &str| match template.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}.{infix}{extension}"),
        None => template.to_owned(),
    };
    let timescale = grid.timescale();
    let _ = write!(out, "      <SegmentTemplate timescale=\"{timescale}\"");
    let offset = grid.served_film_start().round_to(timescale);
    if offset != 0 {
        write_attribute(out, "presentationTimeOffset", offset);
    }
    write_attribute(out, "initialization", name(url::INIT_TEMPLATE));
    match addressing {
        TemplateAddressing::Time => write_attribute(out, "media", name(url::TIME_TEMPLATE)),
        TemplateAddressing::Number => {
            write_attribute(out, "media", name(url::NUMBER_TEMPLATE));
            out.push_str(" startNumber=\"1\"");
        }
    }
    out.push_str(">\n");
    write_segment_timeline(out, "        ", grid.segment_count(), |n| {
        grid.segment_start(n)
    });
    out.push_str("      </SegmentTemplate>\n");
}

/// Writes which CEA-608 and CEA-708 captions the video contains (ANSI/SCTE 214-1, 7.1).
pub(super) fn write_caption_channels(out: &mut String, presentation: &Presentation) {
    let channels = presentation.text.caption_channels();
    let cea608 = channels.iter().filter_map(|channel| match channel {
        CaptionChannel::Cea608(channel) => Some(format!("CC{channel}")),
        CaptionChannel::Cea708(_) => None,
    });
    // The value of a CEA-708 service must contain a language. The language is `und`, because the
    // video declares no language.
    let cea708 = channels.iter().filter_map(|channel| match channel {
        CaptionChannel::Cea608(_) => None,
        CaptionChannel::Cea708(service) => Some(format!("{service}=lang:und")),
    });
    write_caption_scheme(out, "urn:scte:dash:cc:cea-608:2015", cea608);
    write_caption_scheme(out, "urn:scte:dash:cc:cea-708:2015", cea708);
}

fn write_caption_scheme(out: &mut String, scheme: &str, channels: impl Iterator<Item = String>) {
    let value = channels.collect::<Vec<_>>().join(";");
    if !value.is_empty() {
        write_property(out, "Accessibility", scheme, &value);
    }
}
