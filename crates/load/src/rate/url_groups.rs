//! Groups URLs in the results. All segments of a rendition are one group. Every other URL is its
//! own group.

use super::RequestKind;
use crate::result::{URL_GROUP_OTHER, URL_GROUPS_MAX};
use std::collections::BTreeMap;

/// The URL groups of a run. Each group has a name and an index.
#[derive(Debug, Default)]
pub(crate) struct UrlGroups {
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
}

impl UrlGroups {
    /// Returns the index of the group that contains a URL. Adds the group if it is new. If there
    /// are too many groups, returns the index of the last group, which contains all other URLs.
    pub(crate) fn group_index(&mut self, url: &str) -> usize {
        let name = url_group(url);
        if let Some(known) = self.indices.get(&name) {
            return *known;
        }
        if self.names.len() + 1 >= URL_GROUPS_MAX {
            return self.names.len();
        }
        self.indices.insert(name.clone(), self.names.len());
        self.names.push(name);
        self.names.len() - 1
    }

    /// Returns a group's name.
    pub(crate) fn group_name(&self, index: usize) -> &str {
        self.names
            .get(index)
            .map_or(URL_GROUP_OTHER, String::as_str)
    }
}

/// Returns the name of the group that contains a URL. The name is the URL without the query. For
/// segments, `*` replaces each number in the last component of the path.
pub(crate) fn url_group(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let (folder, file) = plain.rsplit_once('/').unwrap_or(("", plain));
    if RequestKind::kind_from_path(file) != RequestKind::Segment {
        return plain.to_owned();
    }
    let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
    let mut group = format!("{folder}/");
    for letter in stem.chars() {
        match letter.is_ascii_digit() {
            true if group.ends_with('*') => {}
            true => group.push('*'),
            false => group.push(letter),
        }
    }
    group + "." + extension
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_a_rendition_are_one_group_and_manifests_their_own() {
        let groups = [
            ("http://h/t/v=45/12.m4s?x=1", "http://h/t/v=45/*.m4s"),
            ("http://h/seg-12-v1.ts", "http://h/seg-*-v*.ts"),
            ("http://h/t/.m3u8", "http://h/t/.m3u8"),
            ("http://h/t/360.m3u8?a#b", "http://h/t/360.m3u8"),
            ("http://h/film-360p.mp4", "http://h/film-360p.mp4"),
            ("http://h", "http://h"),
        ];
        for (url, group) in groups {
            assert_eq!(url_group(url), group);
        }
    }

    #[test]
    fn groups_beyond_the_limit_are_one() {
        let mut groups = UrlGroups::default();
        for number in 0..2 * URL_GROUPS_MAX {
            groups.group_index(&format!("http://h/{number}.mpd"));
        }
        assert_eq!(groups.group_index("http://h/3.mpd"), 3);
        let beyond = groups.group_index("http://h/new.mpd");
        assert_eq!(
            (beyond, groups.group_name(beyond)),
            (URL_GROUPS_MAX - 1, URL_GROUP_OTHER)
        );
    }
}
