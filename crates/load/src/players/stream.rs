//! A title as a player plays it: a ladder of levels, and the sound that goes with each.

use media::Result;
use media::manifest::read::{Kind, Piece, Rendition, Segments, Title};
use std::sync::Arc;

/// What a viewer wants to hear.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// BCP 47; the first language listed where `None` or not offered.
    pub language: Option<String>,
    /// Bits a second of the audio; the highest where `None`.
    pub audio_bps: Option<f64>,
}

/// A title, ready to be played.
#[derive(Debug)]
pub struct Stream {
    /// HLS; else DASH.
    pub is_hls: bool,
    /// Ascending by bitrate; never empty.
    pub levels: Vec<Level>,
    /// Sound apart from pictures, as levels point at it.
    pub audios: Vec<Source>,
    /// What was left out of the manifest, for people.
    pub notes: Vec<String>,
}

/// One bitrate.
#[derive(Debug)]
pub struct Level {
    /// Bits a second, as the manifest says.
    pub bps: f64,
    /// Coded width and height, where known.
    pub resolution: Option<(u32, u32)>,
    /// Pictures a second, where known.
    pub frame_rate: Option<f64>,
    /// What it carries: pictures alone, with sound, or sound alone.
    pub kind: Kind,
    /// Where its segments come from.
    pub source: Source,
    /// Which sound is fetched beside it.
    pub audio: Option<usize>,
}

/// Where segments come from.
#[derive(Debug)]
pub struct Source {
    /// Bits a second, where known.
    pub bps: f64,
    /// All segments, where the manifest names them.
    pub known: Option<Arc<Segments>>,
    /// What has to be fetched and read first, else; in order.
    pub pieces: Vec<Piece>,
}

impl Stream {
    /// What a player makes of a manifest.
    ///
    /// # Errors
    /// `Empty` if nothing in it can be played; `TooLarge` where periods are too many to be joined.
    pub fn new(title: Title, is_hls: bool, wish: &Wish) -> Result<Stream> {
        let Title {
            renditions, notes, ..
        } = title;
        let (sounds, pictures): (Vec<Rendition>, Vec<Rendition>) = renditions
            .into_iter()
            .filter(|rendition| rendition.kind != Kind::Text)
            .partition(|rendition| rendition.kind == Kind::Audio);
        if pictures.is_empty() {
            return Stream::of_sound(sounds, is_hls, notes);
        }
        let pictures = one_family(pictures);
        let (picked, by_group) = pick_sounds(&pictures, &sounds, wish);
        let mut levels = Vec::new();
        for (rendition, audio) in pictures.into_iter().zip(by_group) {
            let audio = audio.filter(|_| rendition.kind == Kind::Video);
            levels.push(level(rendition, audio)?);
        }
        let mut audios = Vec::new();
        for n in picked {
            audios.push(source(sounds[n].clone())?);
        }
        sort(&mut levels);
        Ok(Stream {
            is_hls,
            levels,
            audios,
            notes,
        })
    }

    /// A title without pictures: its audio is the ladder.
    fn of_sound(sounds: Vec<Rendition>, is_hls: bool, notes: Vec<String>) -> Result<Stream> {
        let first = sounds
            .first()
            .map(|first| (first.group.clone(), first.language.clone()));
        let (group, language) = first.unwrap_or_default();
        let alike = sounds
            .into_iter()
            .filter(|sound| sound.group == group && sound.language == language);
        let mut levels = alike
            .map(|sound| level(sound, None))
            .collect::<Result<Vec<_>>>()?;
        if levels.is_empty() {
            let what = "nothing in the manifest can be played";
            return Err(media::Error::new(media::error::Kind::Empty, what));
        }
        sort(&mut levels);
        Ok(Stream {
            is_hls,
            levels,
            audios: Vec::new(),
            notes,
        })
    }

    /// A title of one media playlist.
    pub fn of_segments(segments: Arc<Segments>) -> Stream {
        let source = Source {
            bps: 1.0,
            known: Some(segments),
            pieces: Vec::new(),
        };
        let level = Level {
            bps: 1.0,
            resolution: None,
            frame_rate: None,
            kind: Kind::Muxed,
            source,
            audio: None,
        };
        Stream {
            is_hls: true,
            levels: vec![level],
            audios: Vec::new(),
            notes: Vec::new(),
        }
    }
}

fn sort(levels: &mut [Level]) {
    levels.sort_by(|a, b| a.bps.total_cmp(&b.bps));
}

fn level(rendition: Rendition, audio: Option<usize>) -> Result<Level> {
    Ok(Level {
        bps: (rendition.bandwidth as f64).max(1.0),
        resolution: rendition.resolution,
        frame_rate: rendition.frame_rate,
        kind: rendition.kind,
        audio,
        source: source(rendition)?,
    })
}

fn source(rendition: Rendition) -> Result<Source> {
    let bps = rendition.bandwidth as f64;
    let listed = rendition
        .pieces
        .iter()
        .all(|piece| matches!(piece, Piece::Segments(_)));
    if !listed {
        return Ok(Source {
            bps,
            known: None,
            pieces: rendition.pieces,
        });
    }
    let mut known = Segments::default();
    for piece in rendition.pieces {
        if let Piece::Segments(segments) = piece {
            known.append(segments)?;
        }
    }
    Ok(Source {
        bps,
        known: Some(Arc::new(known)),
        pieces: Vec::new(),
    })
}

/// Players do not switch between codecs: AVC where there is some, else what is listed first. The
/// same playlist under several audio groups counts once.
fn one_family(pictures: Vec<Rendition>) -> Vec<Rendition> {
    let wanted = pictures.iter().map(family).find(|family| *family == "avc");
    let wanted = wanted.or(pictures.first().map(family)).unwrap_or_default();
    let mut kept: Vec<Rendition> = Vec::new();
    for rendition in pictures {
        let again = kept.iter().any(|kept| kept.pieces == rendition.pieces);
        if family(&rendition) == wanted && !again {
            kept.push(rendition);
        }
    }
    kept
}

/// A codec without its version: `avc` of `avc1.64001f` and of `avc3…`.
fn family(rendition: &Rendition) -> &'static str {
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
    // Where nothing is said, it is what everything plays.
    known.next().map_or("avc", |(_, family)| *family)
}

/// For each of the pictures, which sound; and which sounds those are.
fn pick_sounds(
    pictures: &[Rendition],
    sounds: &[Rendition],
    wish: &Wish,
) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut picked: Vec<usize> = Vec::new();
    let of = |rendition: &Rendition| {
        let found = pick(sounds, rendition.group.as_deref(), wish)?;
        let at = picked.iter().position(|known| *known == found);
        Some(at.unwrap_or_else(|| {
            picked.push(found);
            picked.len() - 1
        }))
    };
    let by_group = pictures.iter().map(of).collect();
    (picked, by_group)
}

/// The sound of a group (of all, where there are no groups) that is wished for.
fn pick(sounds: &[Rendition], group: Option<&str>, wish: &Wish) -> Option<usize> {
    let of_group = |sound: &&(usize, &Rendition)| sound.1.group.as_deref() == group;
    let all: Vec<(usize, &Rendition)> = sounds.iter().enumerate().collect();
    let members: Vec<&(usize, &Rendition)> = all.iter().filter(of_group).collect();
    let speaks = |sound: &&&(usize, &Rendition)| {
        wish.language.is_some() && sound.1.language == wish.language
    };
    let language = members
        .iter()
        .find(speaks)
        .or(members.first())?
        .1
        .language
        .clone();
    let distance = |sound: &Rendition| match wish.audio_bps {
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
    use media::manifest::read::hls::{Playlist, read};
    use media::manifest::read::{Url, mpd};

    fn hls(text: &str, wish: &Wish) -> Stream {
        let url = Url::parse("http://o.test/m.m3u8").unwrap();
        match read(&url, text.as_bytes()).unwrap() {
            Playlist::Multivariant(title) => Stream::new(title, true, wish).unwrap(),
            Playlist::Media(media) => Stream::of_segments(Arc::new(media.segments)),
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
    fn a_ladder_of_one_codec_with_its_sounds() {
        let french = Wish {
            language: Some("fr".into()),
            audio_bps: None,
        };
        for (wish, low) in [(Wish::default(), "lo-en"), (french, "lo-fr")] {
            let stream = hls(MASTER, &wish);
            let bps: Vec<f64> = stream.levels.iter().map(|level| level.bps).collect();
            assert_eq!(bps, [900_000.0, 4_000_000.0]);
            let sound = |level: usize| {
                let source = &stream.audios[stream.levels[level].audio.unwrap()];
                let Piece::Playlist(url) = &source.pieces[0] else {
                    panic!()
                };
                url.path().trim_start_matches('/').to_string()
            };
            assert_eq!((sound(0).as_str(), sound(1).as_str()), (low, "hi-en"));
        }
    }

    #[test]
    fn a_playlist_by_itself_and_sound_by_itself() {
        let one = hls("#EXTM3U\n#EXTINF:2\na.ts\n", &Wish::default());
        assert_eq!((one.levels.len(), one.levels[0].kind), (1, Kind::Muxed));
        let sound = hls(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"mp4a.40.5\"\na\n",
            &Wish::default(),
        );
        assert_eq!((sound.levels.len(), sound.levels[0].kind), (1, Kind::Audio));
    }

    #[test]
    fn dash_takes_the_bitrate_of_sound_that_is_wished() {
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
            let title = mpd::read(&url, text.as_bytes()).unwrap();
            let wish = Wish {
                language: None,
                audio_bps,
            };
            let stream = Stream::new(title, false, &wish).unwrap();
            assert_eq!(stream.levels[0].bps, 1_000_000.0);
            assert_eq!(stream.audios[0].bps, bps);
        }
    }
}
