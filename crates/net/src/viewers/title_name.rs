//! The name of a title, from a report or from a URL.

use crate::cmcd::CmcdData;

/// Maximum number of characters of a title's name. CMCD limits `cid` to 64 characters, but a
/// percent-encoded `cid` may be longer.
const NAME_CHARS_MAX: usize = 128;

/// Returns the title that a report is about. The title is the content id (`cid`), or else the part
/// of the requested path that names the film. An event without a content id has no title.
pub(super) fn find_title(data: &CmcdData, path: &str) -> Option<String> {
    let id = data.string_value("cid").filter(|id| !id.is_empty());
    let name = id.or_else(|| title_path(path))?;
    Some(bound_text(&percent_decode(name), NAME_CHARS_MAX))
}

/// Shortens a text from a client to `chars_max` characters, and replaces its control characters.
pub(super) fn bound_text(text: &str, chars_max: usize) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(chars_max).map(visible).collect()
}

/// Number of hexadecimal digits of the title version in a folder's name.
const VERSION_DIGITS: usize = 16;

/// Returns the title's folder in the path of a manifest or segment. Folders for versions and
/// renditions are removed. For example, `/films/tos.mp4/6000-9f86d081884c7d65/video=4500000/1.m4s`
/// becomes `films/tos.mp4`.
fn title_path(path: &str) -> Option<&str> {
    let (folder, _) = path.strip_prefix('/')?.rsplit_once('/')?;
    let title =
        path_before_generated_folder(folder).unwrap_or_else(|| path_without_renditions(folder));
    (!title.is_empty()).then_some(title)
}

/// Returns the path before the last folder whose name the origin generated; `None` if there is no
/// such folder.
fn path_before_generated_folder(folder: &str) -> Option<&str> {
    let mut rest = folder;
    loop {
        let (before, last) = rest.rsplit_once('/').unwrap_or(("", rest));
        if is_generated_name(last) {
            return Some(before);
        }
        if before.is_empty() {
            return None;
        }
        rest = before;
    }
}

/// Removes rendition folders from the end of a path. For example, `a/video=4500000` becomes `a`.
fn path_without_renditions(folder: &str) -> &str {
    let mut title = folder;
    while let Some((before, last)) = title.rsplit_once('/')
        && last.contains('=')
    {
        title = before;
    }
    title
}

/// Returns whether the origin generated a folder's name. A folder of segments has a name such as
/// `6000-9f86d081884c7d65`, and a folder of text has a name such as `t-9f86d081884c7d65`. Folders
/// such as `2001-odyssey` belong to the library.
fn is_generated_name(name: &str) -> bool {
    let is_version = |text: &str| {
        text.len() == VERSION_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_duration =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-')
        .is_some_and(|(start, end)| (start == "t" || is_duration(start)) && is_version(end))
}

/// Decodes `%xx`. If the decoded bytes are not UTF-8, returns the text unchanged.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let escaped = (*first == b'%').then(|| Some(digit(0)? * 16 + digit(1)?));
        let escaped = escaped.flatten().and_then(|code| u8::try_from(code).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = after
            .get(if escaped.is_some() { 2 } else { 0 }..)
            .unwrap_or_default();
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn title_of(query: &str, path: &str) -> Option<String> {
        find_title(&CmcdData::parse_cmcd(Some(query), &HeaderMap::new()), path)
    }

    #[test]
    fn the_content_id_names_the_title_before_the_path_does() {
        let id = "CMCD=cid%3D%22films%252Ftos.mp4%22";
        assert_eq!(title_of(id, "/a/b.m4s"), Some("films/tos.mp4".into()));
        for (path, title) in [
            ("/films/tos.mp4/.m3u8", Some("films/tos.mp4")),
            (
                "/films/tos.mp4/6000-9f86d081884c7d65/video=4500000/45.m4s",
                Some("films/tos.mp4"),
            ),
            (
                "/films/tos.mp4/t-9f86d081884c7d65/text=en/n/1.m4s",
                Some("films/tos.mp4"),
            ),
            ("/6000-9f86d081884c7d65/video=4500000/45.m4s", None),
            ("/film/video=4500000/45.m4s", Some("film")),
            ("/%C3%84/.mpd", Some("\u{c4}")),
            ("/%ff/%zz/.mpd", Some("%ff/%zz")),
            ("/a.mp4", None),
            ("", None),
        ] {
            assert_eq!(title_of("", path).as_deref(), title, "{path}");
        }
    }

    #[test]
    fn folders_of_the_library_with_numbers_and_hyphens_belong_to_the_title() {
        for (path, title) in [
            ("/films/2001-odyssey/.m3u8", "films/2001-odyssey"),
            (
                "/films/2001-odyssey/tos.mp4/.mpd",
                "films/2001-odyssey/tos.mp4",
            ),
            (
                "/films/1984-2012/a=b/tos.mp4/.mpd",
                "films/1984-2012/a=b/tos.mp4",
            ),
            (
                "/films/2001-odyssey/6000-9f86d081884c7d65/video=1/45.m4s",
                "films/2001-odyssey",
            ),
        ] {
            assert_eq!(title_of("", path).as_deref(), Some(title), "{path}");
        }
    }

    #[test]
    fn a_long_or_hostile_name_is_bounded() {
        let long = format!("CMCD=cid%3D%22{}%22", "\u{e4}".repeat(500));
        assert_eq!(title_of(&long, "").unwrap().chars().count(), NAME_CHARS_MAX);
        let name = title_of("CMCD=cid%3D%22a%2500%250Ab%22", "").unwrap();
        assert_eq!(name, "a\u{fffd}\u{fffd}b");
    }
}
