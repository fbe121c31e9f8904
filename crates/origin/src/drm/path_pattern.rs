//! Patterns of title paths.

use store::Key;

/// Maximum length of a pattern, in bytes.
const CHARS_MAX: usize = 1024;

/// A pattern of a path. `*` stands for any characters within one name, and the name `**` stands for
/// zero or more names. `kids/**` therefore also matches the title `kids`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    names: Vec<String>,
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The reason why the text is not a pattern.
    pub fn parse_pattern(text: &str) -> Result<PathPattern, String> {
        let names = text.strip_prefix('/').unwrap_or(text).split('/');
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_invalid = |name: &String| {
            let mixes_stars = name.contains("**") && name != "**";
            name.is_empty() || name.starts_with('.') || mixes_stars
        };
        match names.iter().any(is_invalid) || text.len() > CHARS_MAX {
            true => Err("expected a path such as kids/**, films/*.mp4 or **".to_owned()),
            false => Ok(PathPattern { names }),
        }
    }

    /// Returns whether the pattern matches a whole path.
    pub fn matches(&self, key: &Key) -> bool {
        let names: Vec<&str> = match key.is_root() {
            true => Vec::new(),
            false => key.as_str().split('/').collect(),
        };
        let is_any = |name: &String| name == "**";
        match_sequence(&self.names, &names, &is_any, &|pattern, name| {
            match_name(pattern, name)
        })
    }
}

fn match_name(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    match_sequence(pattern, name, &|byte| *byte == b'*', &|a, b| a == b)
}

/// Matches items against a pattern in which a wildcard stands for any number of items. Takes at
/// most quadratic time, because after a mismatch only the last wildcard is extended.
fn match_sequence<P, T>(
    pattern: &[P],
    items: &[T],
    is_any: &impl Fn(&P) -> bool,
    is_match: &impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut at) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while let Some(item) = items.get(at) {
        match pattern.get(p) {
            Some(own) if is_any(own) => {
                last_any = Some((p, at));
                p += 1;
            }
            Some(own) if is_match(own, item) => (p, at) = (p + 1, at + 1),
            _ => {
                let Some((any, taken)) = last_any else {
                    return false;
                };
                last_any = Some((any, taken + 1));
                (p, at) = (any + 1, taken + 1);
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, matching, others) in [
            (
                "kids/**",
                &["kids", "kids/a.mp4", "kids/b/c.mp4"][..],
                &["", "kids2/a.mp4", "more/kids/a.mp4"][..],
            ),
            (
                "/films/*.mp4",
                &["films/a.mp4"],
                &["films/a/b.mp4", "films"],
            ),
            (
                "**/trailer.mp4",
                &["trailer.mp4", "a/b/trailer.mp4"],
                &["a/trailer.mp4/b"],
            ),
            (
                "a/**/b*c/**/d",
                &["a/bc/d", "a/x/y/bxc/z/d"],
                &["a/bx/d", "a/bc"],
            ),
            ("**", &["", "a", "a/b"], &[]),
            ("*a*b", &["xaab", "ab", "abab"], &["aba", "b"]),
        ] {
            let pattern = PathPattern::parse_pattern(pattern).unwrap();
            let is_match = |path: &&str| pattern.matches(&Key::parse(path).unwrap());
            for path in matching {
                assert!(is_match(path), "{pattern:?} {path}");
            }
            for path in others {
                assert!(!is_match(path), "{pattern:?} {path}");
            }
        }
    }

    #[test]
    fn patterns_without_meaning_are_refused() {
        for text in ["", "/", "a//b", "kids/", "a**", "../a"] {
            assert!(PathPattern::parse_pattern(text).is_err(), "{text}");
        }
    }

    #[test]
    fn many_stars_take_little_time() {
        let pattern = PathPattern::parse_pattern(&"*a".repeat(500)).unwrap();
        let key = Key::parse(&["a".repeat(250).as_str(); 16].join("/")).unwrap();
        assert!(!pattern.matches(&key));
    }
}
