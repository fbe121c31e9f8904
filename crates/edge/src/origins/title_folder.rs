//! Finds the folder of a title in the path of a playlist, a segment or another resource of that
//! title.
//!
//! A title's folder contains one folder per set of segments, which contains one folder per
//! rendition (docs/reference/urls.md). Paths of origins other than Headwater contain no such
//! folders.

/// Returns the folder of the title. For `/films/tos/.m3u8` and
/// `/films/tos/6000-9f86d081884c7d65/video=4500000/1.m4s`, the folder is `/films/tos`. For other
/// paths, returns the part before the last slash.
pub fn find_title_folder(path: &str) -> &str {
    let last = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let is_title = |at: &usize| {
        let mut below = path.get(at + 1..).unwrap_or_default().split('/');
        let (set, rendition) = (below.next(), below.next());
        set.is_some_and(is_segment_set_folder) && rendition.is_some_and(|name| name.contains('='))
    };
    let title = slashes.rev().find(is_title);
    title.and_then(|at| path.get(..at)).unwrap_or(last)
}

/// Returns whether `name` is the folder name of a set of segments (`6000-9f86d081884c7d65`) or of a
/// version of the text tracks (`t-9f86d081884c7d65`).
fn is_segment_set_folder(name: &str) -> bool {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name.split_once('-')
        .is_some_and(|(kind, hash)| (kind == "t" || is_number(kind)) && is_hash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_a_title_have_its_folder() {
        for (title, names) in [
            (
                "/films/tos.mp4",
                [
                    ".m3u8",
                    ".mpd",
                    "6000-9f86d081884c7d65/video=4500000/hls.m3u8",
                    "6000-9f86d081884c7d65/audio=128000/n/7.m4s",
                    "6000-9f86d081884c7d65/video=4500000/key/455.m4s",
                    "t-9f86d081884c7d65/text=en/455.vtt",
                ],
            ),
            (
                "",
                [
                    "a.bin",
                    "6000-9f86d081884c7d65/v=1/1.m4s",
                    "t-9f86d081884c7d65/text=en/n/1.m4s",
                    ".m3u8",
                    ".json",
                    "x",
                ],
            ),
        ] {
            for name in names {
                assert_eq!(
                    find_title_folder(&format!("{title}/{name}")),
                    title,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn other_paths_have_their_last_folder() {
        for (path, folder) in [
            ("/films/2001-odyssey/a=b/1.m4s", "/films/2001-odyssey/a=b"),
            (
                "/a/6000-9f86d081884c7d65/video/1.m4s",
                "/a/6000-9f86d081884c7d65/video",
            ),
            ("/a/6000-9f/video=1/1.m4s", "/a/6000-9f/video=1"),
            ("/ä/é/1", "/ä/é"),
            ("x", "x"),
            ("", ""),
        ] {
            assert_eq!(find_title_folder(path), folder);
        }
    }
}
