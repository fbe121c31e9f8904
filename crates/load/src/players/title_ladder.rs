//! A title in the form that a player uses: a ladder of quality levels with their audio tracks.

use media::Result;
use media::manifest::read::{
    ManifestRendition, ParsedManifest, RenditionKind, SegmentList, SegmentListSource,
};
use std::sync::Arc;

/// The audio that a viewer prefers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AudioPreference {
    /// Preferred language (BCP 47 tag). If this is `None`, or if the title lacks this language, the
    /// language of the audio that is listed first is selected.
    pub language: Option<String>,
    /// Preferred audio bitrate in bits per second. The nearest bitrate is selected. `None` selects
    /// the highest bitrate.
    pub audio_bps: Option<f64>,
}

/// A title ready for playback.
#[derive(Debug)]
pub struct TitleLadder {
    /// The manifest is HLS. Otherwise, the manifest is DASH.
    pub is_hls: bool,
    /// The quality levels, in ascending order of bitrate; never empty.
    pub levels: Vec<QualityLevel>,
    /// Bitrate of the quality level that the manifest lists first, in bits per second.
    pub first_listed_bps: f64,
    /// Separate audio tracks. Quality levels refer to these tracks by index.
    pub audios: Vec<RenditionSource>,
    /// The subtitles that the viewer shows, if any.
    pub text: Option<RenditionSource>,
    /// Descriptions of the parts of the manifest that were ignored.
    pub notes: Vec<String>,
}

/// One quality level.
#[derive(Debug)]
pub struct QualityLevel {
    /// Declared bitrate in bits per second.
    pub bps: f64,
    /// Coded width and height, if known.
    pub resolution: Option<(u32, u32)>,
    /// Frames per second, if known.
    pub frame_rate: Option<f64>,
    /// Content of the level: video, video with audio, or audio.
    pub kind: RenditionKind,
    /// The source of the level's segments.
    pub source: RenditionSource,
    /// Index of the separate audio track in `TitleLadder::audios`, if any.
    pub audio: Option<usize>,
}

/// The source of a rendition's segments.
#[derive(Debug)]
pub struct RenditionSource {
    /// Declared bitrate in bits per second; 0 or 1 if it is unknown.
    pub bps: f64,
    /// All segments, if no other document must be fetched to list them.
    pub known: Option<Arc<SegmentList>>,
    /// The documents that list the segments, in order. Segments that the manifest itself lists are
    /// separate entries of this list. Empty if `known` is set.
    pub segment_sources: Vec<SegmentListSource>,
}

impl TitleLadder {
    /// Builds the ladder of a manifest.
    ///
    /// # Errors
    /// `Empty` if nothing is playable; `TooLarge` if a rendition has too many segments or init
    /// segments.
    pub fn new(
        title: ParsedManifest,
        is_hls: bool,
        audio_preference: &AudioPreference,
    ) -> Result<TitleLadder> {
        let ParsedManifest {
            renditions, notes, ..
        } = title;
        let (audio_renditions, video_renditions): (Vec<ManifestRendition>, Vec<ManifestRendition>) =
            renditions
                .into_iter()
                .filter(|rendition| rendition.kind != RenditionKind::Text)
                .partition(|rendition| rendition.kind == RenditionKind::Audio);
        if video_renditions.is_empty() {
            return TitleLadder::build_audio_only_ladder(audio_renditions, is_hls, notes);
        }
        let video_renditions = keep_one_codec(video_renditions);
        let (picked, by_group) =
            choose_audio_tracks(&video_renditions, &audio_renditions, audio_preference);
        let mut levels = Vec::new();
        for (rendition, audio) in video_renditions.into_iter().zip(by_group) {
            let audio = audio.filter(|_| rendition.kind == RenditionKind::Video);
            levels.push(build_level(rendition, audio)?);
        }
        let mut audios = Vec::new();
        for n in picked {
            audios.push(build_source(audio_renditions[n].clone())?);
        }
        let first_listed_bps = levels[0].bps;
        sort_levels(&mut levels);
        Ok(TitleLadder {
            is_hls,
            levels,
            first_listed_bps,
            audios,
            text: None,
            notes,
        })
    }

    /// Returns the ladder with the subtitles that the viewer shows.
    #[must_use]
    pub fn with_text(self, text: Option<RenditionSource>) -> TitleLadder {
        TitleLadder { text, ..self }
    }

    /// Builds the ladder of a title that has audio but no video. Each level is an audio rendition.
    fn build_audio_only_ladder(
        audio_renditions: Vec<ManifestRendition>,
        is_hls: bool,
        notes: Vec<String>,
    ) -> Result<TitleLadder> {
        let first = audio_renditions
            .first()
            .map(|first| (first.group.clone(), first.language.clone()));
        let (group, language) = first.unwrap_or_default();
        let alike = audio_renditions
            .into_iter()
            .filter(|sound| sound.group == group && sound.language == language);
        let mut levels = alike
            .map(|sound| build_level(sound, None))
            .collect::<Result<Vec<_>>>()?;
        if levels.is_empty() {
            let what = "the manifest contains nothing playable";
            return Err(media::Error::new(media::error::ErrorKind::Empty, what));
        }
        let first_listed_bps = levels[0].bps;
        sort_levels(&mut levels);
        Ok(TitleLadder {
            is_hls,
            levels,
            first_listed_bps,
            audios: Vec::new(),
            text: None,
            notes,
        })
    }

    /// Builds the ladder of a single media playlist.
    pub fn from_segments(segments: Arc<SegmentList>) -> TitleLadder {
        let source = RenditionSource {
            bps: 1.0,
            known: Some(segments),
            segment_sources: Vec::new(),
        };
        let level = QualityLevel {
            bps: 1.0,
            resolution: None,
            frame_rate: None,
            kind: RenditionKind::Muxed,
            source,
            audio: None,
        };
        TitleLadder {
            is_hls: true,
            first_listed_bps: level.bps,
            levels: vec![level],
            audios: Vec::new(),
            text: None,
            notes: Vec::new(),
        }
    }
}

fn sort_levels(levels: &mut [QualityLevel]) {
    levels.sort_by(|a, b| a.bps.total_cmp(&b.bps));
}

fn build_level(rendition: ManifestRendition, audio: Option<usize>) -> Result<QualityLevel> {
    Ok(QualityLevel {
        bps: (rendition.bandwidth as f64).max(1.0),
        resolution: rendition.resolution,
        frame_rate: rendition.frame_rate,
        kind: rendition.kind,
        audio,
        source: build_source(rendition)?,
    })
}

/// Returns the source of a rendition's segments: the complete list, or the documents from which the
/// list is built.
///
/// # Errors
/// `TooLarge` if there are too many segments or init segments.
pub(super) fn build_source(rendition: ManifestRendition) -> Result<RenditionSource> {
    let bps = rendition.bandwidth as f64;
    let listed = rendition
        .segment_sources
        .iter()
        .all(|piece| matches!(piece, SegmentListSource::Segments(_)));
    if !listed {
        return Ok(RenditionSource {
            bps,
            known: None,
            segment_sources: rendition.segment_sources,
        });
    }
    let mut known = SegmentList::default();
    for piece in rendition.segment_sources {
        if let SegmentListSource::Segments(segments) = piece {
            known.append(segments)?;
        }
    }
    Ok(RenditionSource {
        bps,
        known: Some(Arc::new(known)),
        segment_sources: Vec::new(),
    })
}

/// Keeps only the renditions of one codec family, because players do not switch codecs. The family
/// is AVC if the title has AVC, and otherwise the family that is listed first. A playlist that is
/// listed for several audio groups is kept once.
fn keep_one_codec(video_renditions: Vec<ManifestRendition>) -> Vec<ManifestRendition> {
    let wanted = video_renditions
        .iter()
        .map(codec_family)
        .find(|family| *family == "avc");
    let wanted = wanted
        .or(video_renditions.first().map(codec_family))
        .unwrap_or_default();
    let mut kept: Vec<ManifestRendition> = Vec::new();
    for rendition in video_renditions {
        let again = kept
            .iter()
            .any(|kept| kept.segment_sources == rendition.segment_sources);
        if codec_family(&rendition) == wanted && !again {
            kept.push(rendition);
        }
    }
    kept
}

/// Returns the codec family, which is for example `avc` for `avc1.64001f` and for `avc3…`.
fn codec_family(rendition: &ManifestRendition) -> &'static str {
    const FAMILIES: [(&str, &str); 9] = [
        ("avc", "avc"),
        ("hvc", "hevc"),
        ("hev", "hevc"),
        ("dvh", "hevc"),
        ("av01", "av1"),
        ("vp09", "vp9"),
        ("vp9", "vp9"),
        ("vvc", "vvc"),
        ("vvi", "vvc"),
    ];
    let codecs = rendition.codecs.split(',').map(str::trim);
    let mut known =
        codecs.filter_map(|codec| FAMILIES.iter().find(|(start, _)| codec.starts_with(start)));
    // Renditions without a known codec are treated as AVC, which all players support.
    known.next().map_or("avc", |(_, family)| *family)
}

/// Chooses the audio for each video rendition. Returns the indexes of all chosen audio renditions.
/// For each video rendition, also returns the position of its audio in this list.
fn choose_audio_tracks(
    video_renditions: &[ManifestRendition],
    audio_renditions: &[ManifestRendition],
    audio_preference: &AudioPreference,
) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut picked: Vec<usize> = Vec::new();
    let of = |rendition: &ManifestRendition| {
        let found = choose_audio(
            audio_renditions,
            rendition.group.as_deref(),
            audio_preference,
        )?;
        let at = picked.iter().position(|known| *known == found);
        Some(at.unwrap_or_else(|| {
            picked.push(found);
            picked.len() - 1
        }))
    };
    let by_group = video_renditions.iter().map(of).collect();
    (picked, by_group)
}

/// Returns the index of the preferred audio of a group. If `group` is `None`, chooses among the
/// audio that has no group.
fn choose_audio(
    audio_renditions: &[ManifestRendition],
    group: Option<&str>,
    audio_preference: &AudioPreference,
) -> Option<usize> {
    let of_group = |sound: &&(usize, &ManifestRendition)| sound.1.group.as_deref() == group;
    let all: Vec<(usize, &ManifestRendition)> = audio_renditions.iter().enumerate().collect();
    let members: Vec<&(usize, &ManifestRendition)> = all.iter().filter(of_group).collect();
    let has_preferred_language = |sound: &&&(usize, &ManifestRendition)| {
        audio_preference.language.is_some() && sound.1.language == audio_preference.language
    };
    let language = members
        .iter()
        .find(has_preferred_language)
        .or(members.first())?
        .1
        .language
        .clone();
    let distance = |sound: &ManifestRendition| match audio_preference.audio_bps {
        Some(bps) => (sound.bandwidth as f64 - bps).abs(),
        None => -(sound.bandwidth as f64),
    };
    let alike = members.iter().filter(|sound| sound.1.language == language);
    let nearest = alike.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    nearest.map(|sound| sound.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::manifest::read::hls::{ParsedPlaylist, parse_playlist};
    use media::manifest::read::{Url, mpd};

    fn read_hls(text: &str, audio_preference: &AudioPreference) -> TitleLadder {
        let url = Url::parse("http://o.test/m.m3u8").unwrap();
        match parse_playlist(&url, text.as_bytes()).unwrap() {
            ParsedPlaylist::Multivariant(title) => {
                TitleLadder::new(title, true, audio_preference).unwrap()
            }
            ParsedPlaylist::Media(media) => TitleLadder::from_segments(Arc::new(media.segments)),
        }
    }

    const MASTER: &str = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"lo\",NAME=\"e\",LANGUAGE=\"en\",URI=\"lo-en\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"lo\",NAME=\"f\",LANGUAGE=\"fr\",URI=\"lo-fr\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"e\",LANGUAGE=\"en\",URI=\"hi-en\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=4000000,AUDIO=\"hi\",CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720\nv2\n\
        #EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO=\"lo\",CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360\nv1\n\
        #EXT-X-STREAM-INF:BANDWIDTH=4100000,AUDIO=\"lo\",CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=1280x720\nv2\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2000000,AUDIO=\"hi\",CODECS=\"hvc1.1.6.L93,mp4a.40.2\"\nh1\n\
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.5\"\na\n";

    #[test]
    fn a_ladder_has_one_codec_with_its_audio() {
        let french = AudioPreference {
            language: Some("fr".into()),
            audio_bps: None,
        };
        for (audio_preference, low) in [(AudioPreference::default(), "lo-en"), (french, "lo-fr")] {
            let stream = read_hls(MASTER, &audio_preference);
            let bps: Vec<f64> = stream.levels.iter().map(|level| level.bps).collect();
            assert_eq!(bps, [900_000.0, 4_000_000.0]);
            let sound = |level: usize| {
                let source = &stream.audios[stream.levels[level].audio.unwrap()];
                let SegmentListSource::Playlist(url) = &source.segment_sources[0] else {
                    panic!()
                };
                url.path().trim_start_matches('/').to_string()
            };
            assert_eq!((sound(0).as_str(), sound(1).as_str()), (low, "hi-en"));
        }
    }

    #[test]
    fn a_single_media_playlist_and_audio_alone_are_titles() {
        let one = read_hls("#EXTM3U\n#EXTINF:2\na.ts\n", &AudioPreference::default());
        assert_eq!(
            (one.levels.len(), one.levels[0].kind),
            (1, RenditionKind::Muxed)
        );
        let sound = read_hls(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"mp4a.40.5\"\na\n",
            &AudioPreference::default(),
        );
        assert_eq!(
            (sound.levels.len(), sound.levels[0].kind),
            (1, RenditionKind::Audio)
        );
    }

    #[test]
    fn dash_audio_follows_the_preferred_bitrate() {
        let set = |kind: &str, ids: [u32; 2]| {
            let inside = ids.map(|bps| format!("<Representation id='{bps}' bandwidth='{bps}'><BaseURL>{bps}.mp4</BaseURL></Representation>"));
            format!(
                "<AdaptationSet contentType='{kind}'>{}</AdaptationSet>",
                inside.concat()
            )
        };
        let text = format!(
            "<MPD mediaPresentationDuration='PT9S'><Period>{}{}</Period></MPD>",
            set("video", [5_000_000, 1_000_000]),
            set("audio", [64_000, 132_000])
        );
        let url = Url::parse("http://o.test/m.mpd").unwrap();
        for (audio_bps, bps) in [(None, 132_000.0), (Some(70_000.0), 64_000.0)] {
            let title = mpd::parse_mpd(&url, text.as_bytes()).unwrap();
            let audio_preference = AudioPreference {
                language: None,
                audio_bps,
            };
            let stream = TitleLadder::new(title, false, &audio_preference).unwrap();
            assert_eq!(stream.levels[0].bps, 1_000_000.0);
            assert_eq!(stream.audios[0].bps, bps);
        }
    }
}
