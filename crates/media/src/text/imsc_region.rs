//! WebVTT cue settings (WebVTT, 4.4), as attributes of a TTML region.

/// Assumed height of a line of text, in percent of the video's height. The position of a cue is
/// computed from this value if the `line` setting of the cue is a line number.
const LINE_PERCENT: f64 = 5.0;
/// Width of a cue without a `size` setting, in percent of the video's width.
const DEFAULT_SIZE: f64 = 80.0;
/// Distance from the bottom of the video to a cue without a `line` setting, in percent of the
/// video's height.
const BOTTOM_PERCENT: f64 = 5.0;

/// Returns the attributes of the region in which a cue with these settings is shown. Equal settings
/// always result in equal attributes.
pub(super) fn describe_region(settings: &str) -> String {
    let value = |name: &str| {
        let mut pairs = settings
            .split_whitespace()
            .filter_map(|pair| pair.split_once(':'));
        let found = pairs.rfind(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    };
    let align = value("align")
        .filter(|align| matches!(*align, "start" | "end" | "left" | "right"))
        .unwrap_or("center");
    let (top, height, display) =
        value("line")
            .and_then(place_line)
            .unwrap_or((0.0, 100.0 - BOTTOM_PERCENT, "after"));
    let (left, width) = place_horizontally(value("size"), value("position"), align);
    format!(
        "tts:origin=\"{}% {}%\" tts:extent=\"{}% {}%\" tts:displayAlign=\"{display}\" tts:textAlign=\"{align}\"",
        round_to_hundredths(left),
        round_to_hundredths(top),
        round_to_hundredths(width),
        round_to_hundredths(height)
    )
}

/// Returns the top and the height of a region in percent, and its `tts:displayAlign`.
fn place_line(line: &str) -> Option<(f64, f64, &'static str)> {
    let (place, align) = line.split_once(',').unwrap_or((line, "start"));
    let Some(percent) = parse_percent(place) else {
        let lines = place.parse::<i32>().ok()?.clamp(-20, 19);
        let top = f64::from(lines) * LINE_PERCENT;
        // Negative line numbers count from the bottom.
        return Some(match lines < 0 {
            true => (0.0, 100.0 + top + LINE_PERCENT, "after"),
            false => (top, 100.0 - top, "before"),
        });
    };
    Some(match align {
        "end" => (0.0, percent, "after"),
        "center" => {
            let half = percent.min(100.0 - percent);
            (percent - half, half * 2.0, "center")
        }
        _ => (percent, 100.0 - percent, "before"),
    })
}

/// Returns the left side and the width of a region, in percent.
fn place_horizontally(size: Option<&str>, position: Option<&str>, align: &str) -> (f64, f64) {
    let width = size.and_then(parse_percent).unwrap_or(DEFAULT_SIZE);
    let (place, anchor) = match position.map(|text| text.split_once(',').unwrap_or((text, "auto")))
    {
        Some((place, anchor)) => (parse_percent(place), anchor),
        None => (None, "auto"),
    };
    let Some(place) = place else {
        return ((100.0 - width) / 2.0, width);
    };
    let left = match (anchor, align) {
        ("line-left", _) | ("auto", "start" | "left") => place,
        ("line-right", _) | ("auto", "end" | "right") => place - width,
        _ => place - width / 2.0,
    };
    (left.clamp(0.0, 100.0 - width), width)
}

fn parse_percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?.parse::<f64>().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// Rounds to two decimals.
fn round_to_hundredths(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::describe_region;

    #[test]
    fn settings_become_regions() {
        for (settings, origin, extent, display, align) in [
            ("", "10% 0%", "80% 95%", "after", "center"),
            (
                "line:0 align:start",
                "10% 0%",
                "80% 100%",
                "before",
                "start",
            ),
            ("line:-1", "10% 0%", "80% 100%", "after", "center"),
            (
                "line:90%,end size:40% position:20%,line-left",
                "20% 0%",
                "40% 90%",
                "after",
                "center",
            ),
            ("line:25%,center", "10% 0%", "80% 50%", "center", "center"),
            (
                "position:10% size:60% align:end",
                "0% 0%",
                "60% 95%",
                "after",
                "end",
            ),
            (
                "line:999% size:x position:nan% align:odd",
                "10% 0%",
                "80% 95%",
                "after",
                "center",
            ),
        ] {
            let expected = format!(
                "tts:origin=\"{origin}\" tts:extent=\"{extent}\" tts:displayAlign=\"{display}\" tts:textAlign=\"{align}\""
            );
            assert_eq!(describe_region(settings), expected, "{settings}");
        }
    }
}
