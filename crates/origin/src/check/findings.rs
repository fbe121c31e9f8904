//! Finds playback problems. Each rule is one pure function, and each finding has a remedy.

mod protection;
mod text;

pub(super) use protection::find_protection_problems;

use super::report::{Finding, FindingLevel};
use media::codec::{AudioCoding, Codec};
use media::presentation::{Presentation, Rendition};
use media::protection::SubsampleParser;
use media::time::Time;

/// An average interval between key frames of more than this number of seconds is reported. Apple's
/// HLS authoring specification says: "key frames should be present every two seconds". The limit is
/// higher, because two seconds are not a whole number of frames at every frame rate.
const KEY_FRAMES_S: f64 = 2.1;
/// Two key frames count as simultaneous if their times differ by at most this number of seconds.
const SAME_MOMENT_S: f64 = 0.01;
/// Maximum ratio of the peak bitrate to the average bitrate. Apple's HLS authoring specification
/// limits the peak of a VOD variant to 200 % of its average.
const PEAK_OVER_AVERAGE: f64 = 2.0;
/// Two adjacent bitrates are reported if the factor between them is outside this range. Apple's HLS
/// authoring specification recommends a factor of 1.5 to 2.
const LADDER_STEP: (f64, f64) = (1.3, 2.5);
/// A rendition is reported if it ends more than this number of seconds before the longest
/// rendition.
const LENGTHS_APART_S: f64 = 0.5;
/// A rendition is reported if it starts more than this number of seconds after the first rendition.
/// In this case, some players wait, and others play silence.
const LATE_START_S: f64 = 0.25;

/// Applies every rule to a title. The worst findings come first.
///
/// `is_protected` states whether the settings require encryption of the title.
pub fn find_problems(title: &Presentation, is_protected: bool) -> Vec<Finding> {
    let rules: [fn(&Presentation, &mut Vec<Finding>); 12] = [
        report_index_notes,
        report_unaligned_key_frames,
        report_long_segments,
        report_rare_key_frames,
        report_short_renditions,
        report_late_starts,
        gops::report_open_gops,
        gops::report_trims_inside_gops,
        report_incompatible_codecs,
        report_bitrate_problems,
        report_missing_languages,
        text::find_text_problems,
    ];
    let mut found = Vec::new();
    rules.iter().for_each(|rule| rule(title, &mut found));
    report_encryption_obstacles(title, is_protected, &mut found);
    found.sort_by_key(|finding| finding.level);
    found
}

fn report_index_notes(title: &Presentation, found: &mut Vec<Finding>) {
    for (number, file) in title.files.iter().enumerate() {
        for note in &file.notes {
            let mut place = format!("file {}", number + 1);
            // Notes about the whole file have the track id 0, which is never the id of a track
            // (ISO/IEC 14496-12, 8.3.2).
            if note.track_id > 0 {
                place += &format!(", track {}", note.track_id);
            }
            if let Some(at) = note.time_ticks {
                place += &format!(", tick {at}");
            }
            let fix = gops::choose_index_note_remedy(&note.message);
            found.push(Finding::new(
                FindingLevel::Warning,
                &place,
                note.message.clone(),
                fix,
            ));
        }
    }
}

fn report_unaligned_key_frames(title: &Presentation, found: &mut Vec<Finding>) {
    let mut videos = video_renditions(title);
    let Some(first) = videos.next() else { return };
    let interval = recommended_key_frame_interval(title, first);
    let fix = &format!(
        "encode all renditions with the same frame rate and the same fixed key frame interval \
         (ffmpeg: -g {interval} -keyint_min {interval} -sc_threshold 0)"
    );
    for other in videos {
        let (few, alone) = count_unaligned(
            &key_frame_times(title, first),
            &key_frame_times(title, other),
        );
        let at = alone.map_or(String::new(), |(_, at)| {
            format!("; the first difference is at {at:.3} s")
        });
        let what = match alone {
            _ if other.switching_group != first.switching_group => format!(
                "its key frames are not aligned with those of {}{at}, so players cannot switch \
                 between them seamlessly",
                first.name
            ),
            Some((count, _)) => format!(
                "only {} of {few} key frames are aligned with those of {}{at}, so few segment \
                 boundaries are possible",
                few - count,
                first.name
            ),
            None => continue,
        };
        found.push(Finding::new(FindingLevel::Warning, &other.name, what, fix));
    }
}

/// Returns the number of frames in two seconds, for ffmpeg's `-g`.
fn recommended_key_frame_interval(title: &Presentation, rendition: &Rendition) -> u64 {
    let track = title.track(rendition);
    let seconds = track.duration().as_seconds_f64().max(0.001);
    let rate = f64::from(track.samples.len()) / seconds;
    ((2.0 * rate).round() as u64).max(1)
}

/// Returns the presentation times of the key frames, in seconds.
fn key_frame_times(title: &Presentation, rendition: &Rendition) -> Vec<f64> {
    let track = title.track(rendition);
    let keys = track.samples.sync_samples();
    keys.map(|n| track.presentation_time(n).as_seconds_f64())
        .collect()
}

/// Compares two lists of times, and returns the length of the shorter list. Also returns the number
/// of times in the shorter list that are missing in the longer list, and the first of these times.
/// Additional times in the longer list are ignored.
fn count_unaligned(one: &[f64], other: &[f64]) -> (usize, Option<(usize, f64)>) {
    let (few, many) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let is_missing = |time: &&f64| {
        let from = many.partition_point(|known| *known < **time - SAME_MOMENT_S);
        many.get(from)
            .is_none_or(|known| *known > **time + SAME_MOMENT_S)
    };
    let count = few.iter().filter(is_missing).count();
    let first = few.iter().find(is_missing);
    (few.len(), first.map(|at| (count, *at)))
}

fn report_long_segments(title: &Presentation, found: &mut Vec<Finding>) {
    let target = f64::from(title.segment_duration_ms) / 1000.0;
    for rendition in video_renditions(title) {
        let (longest, at) = find_longest_segment(title, rendition);
        if longest > target * 1.5 {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                format!(
                    "the segment at {at:.3} s lasts {longest:.3} s, because the next key frame \
                         is late; the target is {target:.3} s"
                ),
                &format!(
                    "encode with key frames every two seconds (ffmpeg: -g {}), or set longer \
                     segments (--segment)",
                    recommended_key_frame_interval(title, rendition)
                ),
            ));
        }
    }
}

/// Returns the length and the start of the longest segment, in seconds.
fn find_longest_segment(title: &Presentation, rendition: &Rendition) -> (f64, f64) {
    let timescale = title.track(rendition).timescale;
    let zero = title.presentation_time_offset.round_to(timescale);
    let at = |ticks: u64| Time::new(ticks as i64 - zero, timescale).as_seconds_f64();
    let lengths = rendition
        .segment_starts
        .windows(2)
        .map(|start| (at(start[1]) - at(start[0]), at(start[0])));
    lengths.fold(
        (0.0, 0.0),
        |longest, next| if next.0 > longest.0 { next } else { longest },
    )
}

fn report_rare_key_frames(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title) {
        let samples = &title.track(rendition).samples;
        let keys = samples.sync_samples().count().max(1) as f64;
        let every = title.track(rendition).duration().as_seconds_f64() / keys;
        if every > KEY_FRAMES_S {
            found.push(Finding::new(
                FindingLevel::Hint,
                &rendition.name,
                format!(
                    "a key frame every {every:.2} s; Apple requires one every two seconds, \
                         and seeking gets slower"
                ),
                &format!(
                    "encode with -g {}",
                    recommended_key_frame_interval(title, rendition)
                ),
            ));
        }
    }
}

fn report_short_renditions(title: &Presentation, found: &mut Vec<Finding>) {
    let ends: Vec<Time> = title
        .renditions
        .iter()
        .map(|r| rendition_end(title, r))
        .collect();
    let Some(last) = ends.iter().max() else {
        return;
    };
    for (rendition, end) in title.renditions.iter().zip(&ends) {
        let short = last.as_seconds_f64() - end.as_seconds_f64();
        if short > LENGTHS_APART_S {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                format!("ends {short:.3} s before the longest rendition"),
                "cut or pad all renditions to one length (ffmpeg: -shortest, or apad for audio)",
            ));
        }
    }
}

fn rendition_end(title: &Presentation, rendition: &Rendition) -> Time {
    let end = title.segment_start(rendition, rendition.segment_count());
    Time::new(end as i64, title.track(rendition).timescale)
}

fn report_late_starts(title: &Presentation, found: &mut Vec<Finding>) {
    // Pictures and audio that the edit list hides are ignored here.
    let zero = title.presentation_time_offset;
    let start = |r: &Rendition| title.rendition_start_time(r).max(zero).as_seconds_f64();
    let first = title
        .renditions
        .iter()
        .map(start)
        .fold(f64::INFINITY, f64::min);
    for rendition in &title.renditions {
        let late = start(rendition) - first;
        let effect = match title.track(rendition).codec.video().is_some() {
            true => "; over HLS, hls.js skips the audio before the first picture",
            false => "",
        };
        if late > LATE_START_S {
            found.push(Finding::new(
                FindingLevel::Hint,
                &rendition.name,
                format!(
                    "starts {late:.3} s after the first rendition (an empty edit or a late \
                         first fragment){effect}"
                ),
                "if this is not intended, export without an edit list",
            ));
        }
    }
}

fn report_incompatible_codecs(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in &title.renditions {
        let codec = &title.track(rendition).codec;
        let place = &rendition.name;
        if let Some(ios) = sample_entry_for_apple(codec) {
            let what = format!(
                "its parameter sets may be in-band ({}); Apple's players \
                                require {ios}",
                media::error::format_fourcc(codec.fourcc)
            );
            let fix = format!("write the file with -tag:v {ios}");
            found.push(Finding::new(FindingLevel::Warning, place, what, &fix));
        }
    }
    let codings: Vec<AudioCoding> = title
        .renditions
        .iter()
        .filter_map(|r| Some(title.track(r).codec.audio()?.coding))
        .collect();
    if !codings.is_empty() && !codings.contains(&AudioCoding::Aac) {
        found.push(Finding::new(
            FindingLevel::Hint,
            "audio",
            "there is no AAC audio; some browsers and most old devices play nothing else".into(),
            "add an AAC rendition of the audio",
        ));
    }
}

/// Reports tracks that are already encrypted or that cannot be encrypted. If the settings require
/// protection (`[drm]`), a title with a track that cannot be encrypted is refused.
fn report_encryption_obstacles(title: &Presentation, is_protected: bool, found: &mut Vec<Finding>) {
    for rendition in &title.renditions {
        if let Some(source) = &title.track(rendition).protection {
            let what = format!(
                "{}; without drm-source-keys, it is passed through",
                source.describe_protection()
            );
            let fix = "signal its license server with [drm], or serve the unencrypted film";
            found.push(Finding::new(FindingLevel::Hint, &rendition.name, what, fix));
            continue;
        }
        let Err(error) = SubsampleParser::check_protectable_track(&title.track(rendition).codec)
        else {
            continue;
        };
        let (what, fix) = error
            .message
            .split_once("; ")
            .unwrap_or((&error.message, ""));
        let (level, fix) = match is_protected {
            true => (FindingLevel::Error, fix.to_owned()),
            false => (FindingLevel::Hint, format!("{fix}, if the film needs DRM")),
        };
        found.push(Finding::new(level, &rendition.name, what.to_owned(), &fix));
    }
}

/// For a sample entry code that allows in-band parameter sets, returns the code that Apple's
/// players require instead.
fn sample_entry_for_apple(codec: &Codec) -> Option<&'static str> {
    match &codec.fourcc {
        b"hev1" => Some("hvc1"),
        b"avc3" => Some("avc1"),
        b"dvhe" => Some("dvh1"),
        _ => None,
    }
}

fn report_bitrate_problems(title: &Presentation, found: &mut Vec<Finding>) {
    for rendition in video_renditions(title) {
        let ratio = rendition.bandwidth.peak as f64 / rendition.bandwidth.average.max(1) as f64;
        if ratio > PEAK_OVER_AVERAGE {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                format!(
                    "its peak is {ratio:.1} times its average; Apple allows twice for video on \
                         demand, and players select by the peak"
                ),
                "encode with -maxrate at most twice -b:v, and -bufsize to match",
            ));
        }
    }
    let mut rates: Vec<u64> = video_renditions(title)
        .map(|r| r.bandwidth.average)
        .collect();
    rates.sort_unstable();
    for pair in rates.windows(2) {
        let step = pair[1] as f64 / pair[0].max(1) as f64;
        if step < LADDER_STEP.0 || step > LADDER_STEP.1 {
            found.push(Finding::new(
                FindingLevel::Hint,
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

fn report_missing_languages(title: &Presentation, found: &mut Vec<Finding>) {
    let audio: Vec<&Rendition> = title
        .renditions
        .iter()
        .filter(|r| title.track(r).codec.audio().is_some())
        .collect();
    let has_no_language = |r: &&&Rendition| title.track(r).language == "und";
    if audio.len() > 1 {
        for rendition in audio.iter().filter(has_no_language) {
            found.push(Finding::new(
                FindingLevel::Warning,
                &rendition.name,
                "it declares no language, and the title has several audio tracks".into(),
                "set it (ffmpeg: -metadata:s:a:0 language=eng)",
            ));
        }
    }
}

fn video_renditions(title: &Presentation) -> impl Iterator<Item = &Rendition> {
    title
        .renditions
        .iter()
        .filter(|r| title.track(r).codec.video().is_some())
}

mod gops;
#[cfg(test)]
mod tests;
