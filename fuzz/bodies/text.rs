//! Checks that no bytes make a parser of text panic. Cues must be sorted and end after they start.
//! A written WebVTT file must be parsed to the same cues.

use media::text::{
    Cue, CueList, decode_text, parse_srt, parse_ttml, parse_tx3g_sample, parse_vtt,
    parse_wvtt_sample, write_vtt,
};

/// The first byte of `data` selects the parser: WebVTT, SubRip, TTML, or samples of `tx3g` or
/// `wvtt`.
pub fn run(data: &[u8]) {
    let Some((selector, data)) = data.split_first() else {
        return;
    };
    let mut problems = Vec::new();
    let parse = match selector % 5 {
        0 => parse_vtt,
        1 => parse_srt,
        2 => |text: &str, problems: &mut Vec<_>| parse_ttml(text, 3_600_000, problems),
        3 => return check_list(&list_of(parse_tx3g_sample(data))),
        _ => return check_list(&list_of(parse_wvtt_sample(data))),
    };
    check_list(&parse(&decode_text(data, &mut problems), &mut problems));
}

/// Returns a list of the cues of a sample. Sets the end of each cue to one second.
fn list_of(cues: impl IntoIterator<Item = Cue>) -> CueList {
    let cues = cues.into_iter().map(|cue| Cue {
        end_ms: 1000,
        ..cue
    });
    CueList::from_cues(String::new(), cues.collect(), &mut Vec::new())
}

fn check_list(list: &CueList) {
    let cues = list.cues();
    assert!(cues.iter().all(|cue| cue.start_ms < cue.end_ms));
    assert!(
        cues.windows(2)
            .all(|pair| pair[0].start_ms <= pair[1].start_ms)
    );
    let middle = cues.get(cues.len() / 2).map_or(0, |cue| cue.start_ms);
    let shown = list.cues_within(middle..middle.saturating_add(1)).count();
    assert!(shown > 0 || cues.is_empty());
    let again = parse_vtt(&write_vtt(list), &mut Vec::new());
    assert_eq!(again.cues(), cues);
    assert_eq!(again.header, list.header);
}
