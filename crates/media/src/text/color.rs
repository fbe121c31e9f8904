//! Colours that WebVTT defines as classes (WebVTT, 5).

/// Names of the WebVTT colour classes, with the colour values of SubRip and TTML.
pub(super) const COLORS: [(&str, &str); 8] = [
    ("white", "#ffffff"),
    ("lime", "#00ff00"),
    ("cyan", "#00ffff"),
    ("red", "#ff0000"),
    ("yellow", "#ffff00"),
    ("magenta", "#ff00ff"),
    ("blue", "#0000ff"),
    ("black", "#000000"),
];

/// Name and value of the colour `green` in HTML and TTML.
const GREEN: (&str, &str) = ("green", "#008000");

/// Returns the WebVTT class of a colour. The colour is a name or a value, in upper or lower case.
/// The alpha channel of a value is ignored.
///
/// No class has the value of `green`, so `green` becomes `lime`, which CEA-608 calls green. Viewers
/// can therefore still distinguish speakers by colour.
pub(super) fn find_color_class(color: &str) -> Option<&'static str> {
    let color = color.trim().to_ascii_lowercase();
    let value = color.get(..7).unwrap_or(&color);
    if color == GREEN.0 || value == GREEN.1 {
        return Some("lime");
    }
    let mut known = COLORS.iter();
    let found = known.find(|(name, hex)| color == *name || value == *hex);
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_have_the_same_class() {
        for color in ["yellow", " Yellow", "#ffff00", "#FFFF00", "#ffff0080"] {
            assert_eq!(find_color_class(color), Some("yellow"), "{color}");
        }
        for color in ["green", "Green", "#008000", "#008000ff", "lime", "#00FF00"] {
            assert_eq!(find_color_class(color), Some("lime"), "{color}");
        }
        for other in ["", "#", "orange", "#ffff01", "ÿellow", "yellowish"] {
            assert_eq!(find_color_class(other), None, "{other}");
        }
    }
}
