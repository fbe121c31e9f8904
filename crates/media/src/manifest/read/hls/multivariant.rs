//! Multivariant playlists: variants and the renditions that they name.

use super::super::{Kind as Carries, Piece, Rendition, Title, resolve};
use super::{Attributes, Line, Variables, lines};
use crate::error::{Error, Kind, Result};
use url::Url;

/// The most variants and renditions of one playlist.
const RENDITIONS_MAX: usize = 4096;

/// Codecs by which sound is told from pictures (RFC 6381's first four letters).
const AUDIO_CODECS: [&str; 10] = [
    "mp4a", "ac-3", "ec-3", "ac-4", "opus", "Opus", "fLaC", "flac", "alac", "mp3",
];

pub(super) fn read(url: &Url, text: &str) -> Result<Title> {
    let mut title = Title::default();
    let mut variables = Variables::default();
    let mut pending: Option<Line<'_>> = None;
    for line in lines(text) {
        let line = line?;
        if line.tag("#EXT-X-DEFINE").is_some() {
            variables.define(&line, url)?;
        } else if line.tag("#EXT-X-STREAM-INF").is_some() {
            pending = Some(line);
        } else if let Some(list) = line.tag("#EXT-X-MEDIA") {
            let list = variables.fill(list, &line)?;
            media(&mut title, url, Attributes(&list), &line)?;
        } else if line.tag("#EXT-X-I-FRAME-STREAM-INF").is_some() {
            title.note("I-frame playlists are ignored");
        } else if !line.is_tag()
            && let Some(tag) = pending.take()
        {
            let list = tag.tag("#EXT-X-STREAM-INF").unwrap_or_default();
            let list = variables.fill(list, &tag)?;
            let uri = variables.fill(line.text, &line)?;
            variant(&mut title, url, Attributes(&list), &uri).map_err(|error| line.place(error))?;
        }
        if title.renditions.len() > RENDITIONS_MAX {
            let what = format!("more than {RENDITIONS_MAX} variants and renditions");
            return Err(Error::new(Kind::TooLarge, what));
        }
    }
    mark_demuxed(&mut title);
    if title
        .renditions
        .iter()
        .all(|rendition| rendition.kind == Carries::Text)
    {
        return Err(Error::new(Kind::Empty, "no variant with a URI"));
    }
    Ok(title)
}

fn variant(title: &mut Title, url: &Url, list: Attributes<'_>, uri: &str) -> Result<()> {
    let codecs = list.get("CODECS").unwrap_or_default();
    let kind = if is_audio(codecs) {
        Carries::Audio
    } else {
        Carries::Muxed
    };
    title.renditions.push(Rendition {
        id: uri.to_string(),
        kind,
        // An audio-only variant is no member of a group.
        group: list
            .get("AUDIO")
            .map(str::to_string)
            .filter(|_| kind == Carries::Muxed),
        bandwidth: list.integer("BANDWIDTH").unwrap_or(0),
        resolution: list.resolution("RESOLUTION"),
        frame_rate: list.decimal("FRAME-RATE"),
        codecs: codecs.to_string(),
        language: None,
        pieces: vec![Piece::Playlist(resolve(url, uri)?)],
    });
    Ok(())
}

/// Renditions without a URI lie in the variants' own segments: nothing to fetch.
fn media(title: &mut Title, url: &Url, list: Attributes<'_>, line: &Line<'_>) -> Result<()> {
    let kind = match list.get("TYPE") {
        Some("AUDIO") => Carries::Audio,
        Some("SUBTITLES") => Carries::Text,
        Some("VIDEO") => {
            title.note("alternative video renditions are ignored");
            return Ok(());
        }
        _ => return Ok(()),
    };
    let Some(uri) = list.get("URI") else {
        return Ok(());
    };
    let group = list.get("GROUP-ID").unwrap_or_default();
    title.renditions.push(Rendition {
        id: uri.to_string(),
        kind,
        group: Some(group.to_string()),
        bandwidth: 0,
        resolution: None,
        frame_rate: None,
        codecs: String::new(),
        language: list.get("LANGUAGE").map(str::to_string),
        pieces: vec![Piece::Playlist(
            resolve(url, uri).map_err(|error| line.place(error))?,
        )],
    });
    Ok(())
}

/// A variant whose audio group has playlists of its own carries pictures alone.
fn mark_demuxed(title: &mut Title) {
    let audio = title
        .renditions
        .iter()
        .filter(|rendition| rendition.kind == Carries::Audio);
    let groups: Vec<String> = audio
        .filter_map(|rendition| rendition.group.clone())
        .collect();
    for rendition in &mut title.renditions {
        let group = rendition.group.as_ref();
        if rendition.kind == Carries::Muxed && group.is_some_and(|group| groups.contains(group)) {
            rendition.kind = Carries::Video;
        }
    }
}

fn is_audio(codecs: &str) -> bool {
    let mut codecs = codecs
        .split(',')
        .map(str::trim)
        .filter(|codec| !codec.is_empty())
        .peekable();
    codecs.peek().is_some()
        && codecs.all(|codec| AUDIO_CODECS.iter().any(|audio| codec.starts_with(audio)))
}
