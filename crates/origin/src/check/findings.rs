//! What a player will stumble over: one function a rule, each pure and with its remedy.

use super::report::{Finding, Level};
use media::codec::{AudioCoding, Codec};
use media::presentation::{Presentation, Rendition};
use media::time::Time;

/// Apple's HLS authoring specification: "key frames should be present every two seconds"; with
/// room for frame rates that do not divide it.
const KEY_FRAMES_S: f64 = 2.1;
/// Key frames this near to each other are one moment.
const TOGETHER_S: f64 = 0.01;
/// The same: peak of a VOD variant at most 200 % of its average.
const PEAK_OVER_AVERAGE: f64 = 2.0;
/// The same: neighbouring bitrates a factor of 1.5 to 2 apart; we speak up outside of 1.3 to 2.5.
const LADDER_STEP: (f64, f64) = (1.3, 2.5);
/// A rendition that ends this much before the others leaves a player without it.
const LENGTHS_APART_S: f64 = 0.5;
/// A start later than this is worth a word: some players wait, some play silence.
const LATE_START_S: f64 = 0.25;

/// Every rule over a title, in the order people should read them.
pub fn all(title: &Presentation) -> Vec<Finding> {
    let rules: [fn(&Presentation, &mut Vec<Finding>); 10] = [
        notes_of_the_index,
        key_frames_line_up,
        segments_near_the_wish,
        key_frames_are_frequent,
        lengths_agree,
        starts_agree,
        pictures_start_segments,
        codecs_players_know,
        bitrates_are_steady,
        languages_are_said,
    ];
    let mut found = Vec::new();
    rules.iter().for_each(|rule| rule(title, &mut found));
    found.sort_by_key(|finding| finding.level);
    found
}

fn notes_of_the_index(title: &Presentation, found: &mut Vec<Finding>) {
    for (number, file) in title.files.iter().enumerate() {
        for note in &file.notes {
            let place = match note.at {
                Some(at) => format!("file {}, track {}, tick {at}", number + 1, note.track),
                None => format!("file {}, track {}", number + 1, note.track),
            };
            let fix = "export the file again if this was not meant; what is there is served";
            found.push(Finding::new(Level::Warning, &place, note.what.clone(), fix));
        }
    }
}

fn key_frames_line_up(title: &Presentation, found: &mut Vec<Finding>) {
    let mut videos = videos(title);
    let Some(first) = videos.next() else { return };
    let fix = "encode all renditions with one fixed distance of key frames (ffmpeg: -g 48 \
               -keyint_min 48 -sc_threshold 0, the same frame rate)";
    for other in videos {
        let (few, alone) = alone(&key_times(title, first), &key_times(title, other));
        let at = alone.map_or(String::new(), |(_, at)| format!("; they part at {at:.3} s"));
        let what = match alone {
            _ if other.group != first.group => format!(
                "its key frames do not line up with those of {}{at}, so players cannot switch \
                 between them without a seam",
                first.name
            ),
            Some((count, _)) => format!(
                "only {} of {few} key frames line up with those of {}{at}, so segments can begin \
                 at few times",
                few - count,
                first.name
            ),
            None => continue,
        };
        found.push(Finding::new(Level::Warning, &other.name, what, fix));
    }
}

/// When its key frames are shown, in seconds.
fn key_times(title: &Presentation, rendition: &Rendition) -> Vec<f64> {
    let track = title.track(rendition);
    let keys = track.samples.sync_samples();
    keys.map(|n| track.shown(n).seconds()).collect()
}

/// Of two lists of times the length of the shorter, how many of its times the longer one does
/// not have, and the first of them. That the longer one has more does no harm.
fn alone(one: &[f64], other: &[f64]) -> (usize, Option<(usize, f64)>) {
    let (few, many) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let apart = |time: &&f64| {
        let from = many.partition_point(|known| *known < **time - TOGETHER_S);
        many.get(from)
            .is_none_or(|known| *known > **time + TOGETHER_S)
    };
    let count = few.iter().filter(apart).count();
    let first = few.iter().find(apart);
    (few.len(), first.map(|at| (count, *at)))
}

fn segments_near_the_wish(title: &Presentation, found: &mut Vec<Finding>) {
    let wished = f64::from(title.segment_ms) / 1000.0;
    for rendition in videos(title) {
        let (longest, at) = longest_segment(title, rendition);
        if longest > wished * 1.5 {
            found.push(Finding::new(
                Level::Warning,
                &rendition.name,
                format!(
                    "a segment of {longest:.3} s begins at {at:.3} s, because no key frame \
                         comes sooner; {wished:.3} s was wished"
                ),
                "encode with key frames every two seconds, or wish for longer segments (--segment)",
            ));
        }
    }
}

/// Length and start, in seconds.
fn longest_segment(title: &Presentation, rendition: &Rendition) -> (f64, f64) {
    let track = title.track(rendition);
    let at = |n: u32| track.samples.dts(n) as f64 / f64::from(track.timescale);
    let lengths = rendition
        .cuts
        .windows(2)
        .map(|cut| (at(cut[1]) - at(cut[0]), at(cut[0])));
    lengths.fold(
        (0.0, 0.0),
        |longest, next| if next.0 > longest.0 { next } else { longest },
    )
}

fn key_frames_are_frequent(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in videos(title) {
        let samples = &title.track(rendition).samples;
        let keys = samples.sync_samples().count().max(1) as f64;
        let every = title.track(rendition).duration().seconds() / keys;
        if every > KEY_FRAMES_S {
            found.push(Finding::new(
                Level::Hint,
                &rendition.name,
                format!(
                    "a key frame every {every:.2} s; Apple asks for one every two seconds, \
                         and seeking shows a picture no sooner"
                ),
                "encode with -g at twice the frame rate",
            ));
        }
    }
}

fn lengths_agree(title: &Presentation, found: &mut Vec<Finding>) {
    let ends: Vec<Time> = title.renditions.iter().map(|r| end(title, r)).collect();
    let Some(last) = ends.iter().max() else {
        return;
    };
    for (rendition, end) in title.renditions.iter().zip(&ends) {
        let short = last.seconds() - end.seconds();
        if short > LENGTHS_APART_S {
            found.push(Finding::new(
                Level::Warning,
                &rendition.name,
                format!("it ends {short:.3} s before the longest rendition"),
                "cut or pad all renditions to one length (ffmpeg: -shortest, or apad for sound)",
            ));
        }
    }
}

fn end(title: &Presentation, rendition: &Rendition) -> Time {
    let track = title.track(rendition);
    Time::new(
        rendition.start + track.samples.end() as i64,
        track.timescale,
    )
}

fn starts_agree(title: &Presentation, found: &mut Vec<Finding>) {
    let start = |r: &Rendition| Time::new(r.start, title.track(r).timescale).seconds();
    let first = title
        .renditions
        .iter()
        .map(start)
        .fold(f64::INFINITY, f64::min);
    for rendition in &title.renditions {
        let late = start(rendition) - first;
        if late > LATE_START_S {
            found.push(Finding::new(
                Level::Hint,
                &rendition.name,
                format!(
                    "it starts {late:.3} s after the first rendition (an empty edit or a late \
                         first fragment)"
                ),
                "if that was not meant, export without an edit list; it is served as the file says",
            ));
        }
    }
}

/// Segments are named and listed by decode time plus a constant delay; where a key frame's
/// composition offset differs from the first one's, its picture is shown a little beside it.
fn pictures_start_segments(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in videos(title) {
        let samples = &title.track(rendition).samples;
        let beside = |n: &&u32| **n < samples.len() && samples.cts(**n) + rendition.cts_shift != 0;
        let count = rendition.cuts.iter().filter(beside).count();
        if count > 0 {
            found.push(Finding::new(
                Level::Hint,
                &rendition.name,
                format!(
                    "{count} of its segments show their first picture beside the time at \
                         which they are listed: composition offsets of key frames differ"
                ),
                "encode with a constant delay (fixed number of B-frames, constant frame rate)",
            ));
        }
    }
}

fn codecs_players_know(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in &title.renditions {
        let codec = &title.track(rendition).codec;
        let place = &rendition.name;
        if let Some(ios) = in_band(codec) {
            let what = format!(
                "its parameter sets may lie in the pictures ({}); Apple's players \
                                want {ios}",
                media::error::fourcc(codec.fourcc)
            );
            let fix = format!("write the file with -tag:v {ios}");
            found.push(Finding::new(Level::Warning, place, what, &fix));
        }
    }
    let codings: Vec<AudioCoding> = title
        .renditions
        .iter()
        .filter_map(|r| Some(title.track(r).codec.audio()?.coding))
        .collect();
    if !codings.is_empty() && !codings.contains(&AudioCoding::Aac) {
        found.push(Finding::new(
            Level::Hint,
            "sound",
            "there is no AAC sound; some browsers and most old devices play nothing else".into(),
            "add an AAC rendition of the sound beside this one",
        ));
    }
}

/// The code that Apple's players want, where this one is of the in-band kind.
fn in_band(codec: &Codec) -> Option<&'static str> {
    match &codec.fourcc {
        b"hev1" => Some("hvc1"),
        b"avc3" => Some("avc1"),
        b"dvhe" => Some("dvh1"),
        _ => None,
    }
}

fn bitrates_are_steady(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in videos(title) {
        let ratio = rendition.bandwidth.peak as f64 / rendition.bandwidth.average.max(1) as f64;
        if ratio > PEAK_OVER_AVERAGE {
            found.push(Finding::new(
                Level::Warning,
                &rendition.name,
                format!(
                    "its peak is {ratio:.1} times its average; Apple allows twice for video on \
                         demand, and players choose by the peak"
                ),
                "encode with -maxrate at most twice -b:v, and -bufsize to match",
            ));
        }
    }
    let mut rates: Vec<u64> = videos(title).map(|r| r.bandwidth.average).collect();
    rates.sort_unstable();
    for pair in rates.windows(2) {
        let step = pair[1] as f64 / pair[0].max(1) as f64;
        if step < LADDER_STEP.0 || step > LADDER_STEP.1 {
            found.push(Finding::new(
                Level::Hint,
                "ladder",
                format!(
                    "from {} to {} kbit/s is a factor of {step:.2}; Apple suggests 1.5 to 2",
                    pair[0] / 1000,
                    pair[1] / 1000
                ),
                "add a rendition between them, or drop one of the two",
            ));
        }
    }
}

fn languages_are_said(title: &Presentation, found: &mut Vec<Finding>) {
    let audio: Vec<&Rendition> = title
        .renditions
        .iter()
        .filter(|r| title.track(r).codec.audio().is_some())
        .collect();
    let unsaid = |r: &&&Rendition| title.track(r).language == "und";
    if audio.len() > 1 {
        for rendition in audio.iter().filter(unsaid) {
            found.push(Finding::new(
                Level::Warning,
                &rendition.name,
                "its language is not said, and the title has more than one sound".into(),
                "set it (ffmpeg: -metadata:s:a:0 language=eng)",
            ));
        }
    }
}

fn videos(title: &Presentation) -> impl Iterator<Item = &Rendition> {
    title
        .renditions
        .iter()
        .filter(|r| title.track(r).codec.video().is_some())
}

#[cfg(test)]
mod tests;
