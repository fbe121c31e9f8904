//! No bytes can make a parser of text panic. Cues are sorted and shown for a time, and WebVTT that is
//! written is read back.

use media::text::{
    CueList, decode_text, parse_srt, parse_ttml, parse_tx3g_sample, parse_vtt, parse_wvtt_sample,
    write_vtt,
};

/// The first byte of `data` selects the parser.
pub fn run(data: &[u8]) {
    let Some((selector, data)) = data.split_first() else {
        return;
    };
    let mut problems = Vec::new();
    let parse = match selector % 5 {
        0 => parse_vtt,
        1 => parse_srt,
        2 => parse_ttml,
        3 => return drop(parse_tx3g_sample(data)),
        _ => return drop(parse_wvtt_sample(data)),
    };
    let list = parse(&decode_text(data, &mut problems), &mut problems);
    check_cues(&list);
    let again = parse_vtt(&write_vtt(&list), &mut problems);
    assert_eq!(again.cues().len(), list.cues().len());
}

fn check_cues(list: &CueList) {
    let cues = list.cues();
    assert!(cues.iter().all(|cue| cue.start_ms < cue.end_ms));
    assert!(
        cues.windows(2)
            .all(|pair| pair[0].start_ms <= pair[1].start_ms)
    );
    let middle = cues.get(cues.len() / 2).map_or(0, |cue| cue.start_ms);
    let shown = list.cues_within(middle..middle.saturating_add(1)).count();
    assert!(shown > 0 || cues.is_empty());
}
