//! Parses multivariant playlists into variants and their renditions.

use super::super::{
    ManifestRendition, ParsedManifest, RenditionKind, SegmentListSource, resolve_url,
};
use super::playlist_lines::{PlaylistLine, numbered_lines};
use super::{AttributeList, PlaylistVariables};
use crate::error::{Error, ErrorKind, Result};
use url::Url;

/// Maximum number of variants and renditions in one playlist, in total.
const RENDITIONS_MAX: usize = 4096;

/// Prefixes of the RFC 6381 codec strings of audio codecs.
const AUDIO_CODECS: [&str; 10] = [
    "mp4a", "ac-3", "ec-3", "ac-4", "opus", "Opus", "fLaC", "flac", "alac", "mp3",
];

pub(super) fn parse_multivariant_playlist(url: &Url, text: &str) -> Result<ParsedManifest> {
    let mut title = ParsedManifest::default();
    let mut variables = PlaylistVariables::default();
    let mut pending: Option<PlaylistLine<'_>> = None;
    for line in numbered_lines(text) {
        let line = line?;
        if line.tag_value("#EXT-X-DEFINE").is_some() {
            variables.define_variable(&line, url)?;
        } else if line.tag_value("#EXT-X-STREAM-INF").is_some() {
            pending = Some(line);
        } else if let Some(list) = line.tag_value("#EXT-X-MEDIA") {
            let list = variables.substitute_variables(list, &line)?;
            add_media_rendition(&mut title, url, AttributeList(&list), &line)?;
        } else if line.tag_value("#EXT-X-I-FRAME-STREAM-INF").is_some() {
            title.add_note("I-frame playlists are ignored");
        } else if !line.is_tag_or_comment()
            && let Some(tag) = pending.take()
        {
            let list = tag.tag_value("#EXT-X-STREAM-INF").unwrap_or_default();
            let list = variables.substitute_variables(list, &tag)?;
            let uri = variables.substitute_variables(line.text, &line)?;
            add_variant(&mut title, url, AttributeList(&list), &uri)
                .map_err(|error| line.add_line_to_error(error))?;
        }
        if title.renditions.len() > RENDITIONS_MAX {
            let message = format!("more than {RENDITIONS_MAX} variants and renditions");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
    }
    mark_demuxed(&mut title);
    if title
        .renditions
        .iter()
        .all(|rendition| rendition.kind == RenditionKind::Text)
    {
        return Err(Error::new(ErrorKind::Empty, "no variant with a URI"));
    }
    Ok(title)
}

fn add_variant(
    title: &mut ParsedManifest,
    url: &Url,
    list: AttributeList<'_>,
    uri: &str,
) -> Result<()> {
    let codecs = list.get("CODECS").unwrap_or_default();
    let kind = if is_audio_only(codecs) {
        RenditionKind::Audio
    } else {
        RenditionKind::Muxed
    };
    title.renditions.push(ManifestRendition {
        id: uri.to_string(),
        kind,
        // Drops the audio group of an audio-only variant. Otherwise, other variants with this group
        // would be marked as video without audio.
        group: list
            .get("AUDIO")
            .map(str::to_string)
            .filter(|_| kind == RenditionKind::Muxed),
        bandwidth: list.get_integer("BANDWIDTH").unwrap_or(0),
        resolution: list.get_resolution("RESOLUTION"),
        frame_rate: list.get_decimal("FRAME-RATE"),
        codecs: codecs.to_string(),
        language: None,
        segment_sources: vec![SegmentListSource::Playlist(resolve_url(url, uri)?)],
    });
    Ok(())
}

/// Adds the rendition of an EXT-X-MEDIA tag. A rendition without a URI is ignored, because its
/// media is in the segments of the variants.
fn add_media_rendition(
    title: &mut ParsedManifest,
    url: &Url,
    list: AttributeList<'_>,
    line: &PlaylistLine<'_>,
) -> Result<()> {
    let kind = match list.get("TYPE") {
        Some("AUDIO") => RenditionKind::Audio,
        Some("SUBTITLES") => RenditionKind::Text,
        Some("VIDEO") => {
            title.add_note("alternative video renditions are ignored");
            return Ok(());
        }
        _ => return Ok(()),
    };
    let Some(uri) = list.get("URI") else {
        return Ok(());
    };
    let group = list.get("GROUP-ID").unwrap_or_default();
    title.renditions.push(ManifestRendition {
        id: uri.to_string(),
        kind,
        group: Some(group.to_string()),
        bandwidth: 0,
        resolution: None,
        frame_rate: None,
        codecs: String::new(),
        language: list.get("LANGUAGE").map(str::to_string),
        segment_sources: vec![SegmentListSource::Playlist(
            resolve_url(url, uri).map_err(|error| line.add_line_to_error(error))?,
        )],
    });
    Ok(())
}

/// Marks variants as video without audio, if their audio group has its own playlists.
fn mark_demuxed(title: &mut ParsedManifest) {
    let audio = title
        .renditions
        .iter()
        .filter(|rendition| rendition.kind == RenditionKind::Audio);
    let groups: Vec<String> = audio
        .filter_map(|rendition| rendition.group.clone())
        .collect();
    for rendition in &mut title.renditions {
        let group = rendition.group.as_ref();
        if rendition.kind == RenditionKind::Muxed
            && group.is_some_and(|group| groups.contains(group))
        {
            rendition.kind = RenditionKind::Video;
        }
    }
}

fn is_audio_only(codecs: &str) -> bool {
    let mut codecs = codecs
        .split(',')
        .map(str::trim)
        .filter(|codec| !codec.is_empty())
        .peekable();
    codecs.peek().is_some()
        && codecs.all(|codec| AUDIO_CODECS.iter().any(|audio| codec.starts_with(audio)))
}
