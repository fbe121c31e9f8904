use super::*;

#[test]
fn a_lone_carriage_return_of_subrip_ends_a_line() {
    let list = parse_srt(
        "1\r00:00:01,000 --> 00:00:02,000\ra\r\rb\r",
        &mut Vec::new(),
    );
    assert_eq!(list.cues()[0].payload, "a\nb");
    let again = parse_vtt(&write_vtt(&list), &mut Vec::new());
    assert_eq!(again.cues(), list.cues());
}

#[test]
fn a_line_of_subrip_codes_does_not_end_its_cue() {
    let list = parse_srt(
        "1\n00:00:01,000 --> 00:00:02,000\na\n{\\pos(1,2)}\nb\n",
        &mut Vec::new(),
    );
    assert_eq!(list.cues()[0].payload, "a\nb");
}

#[test]
fn an_alignment_of_subrip_is_found_among_other_codes() {
    for (codes, settings) in [
        ("{\\an8\\pos(192,20)}", "line:0"),
        ("{\\pos(192,20)\\an7}", "line:0 align:left"),
        ("{\\fad(1,2) \\an9 }", "line:0 align:right"),
        ("{\\pos(192,20)}", ""),
        ("{\\an2\\anx}", ""),
    ] {
        let srt = format!("1\n00:00:01,000 --> 00:00:02,000\n{codes}a\n");
        let list = parse_srt(&srt, &mut Vec::new());
        let cue = &list.cues()[0];
        assert_eq!((&*cue.settings, &*cue.payload), (settings, "a"), "{codes}");
    }
}

#[test]
fn a_color_of_subrip_is_found_among_other_attributes() {
    for (attributes, class) in [
        ("color=\"yellow\" size=\"3\"", "c.yellow"),
        ("face='Arial' COLOR='#FFFF00'", "c.yellow"),
        ("size=3 color=yellow face=Arial", "c.yellow"),
        ("size=\"3\"color = \"green\"", "c.lime"),
        ("bgcolor=red color=cyan", "c.cyan"),
        ("bgcolor=red colors=cyan", "c"),
        ("color", "c"),
        ("color=", "c"),
        ("color=\"red", "c.red"),
    ] {
        let srt = format!("1\n00:00:01,000 --> 00:00:02,000\n<font {attributes}>a</font>\n");
        let list = parse_srt(&srt, &mut Vec::new());
        assert_eq!(
            list.cues()[0].payload,
            format!("<{class}>a</c>"),
            "{attributes}"
        );
    }
}
