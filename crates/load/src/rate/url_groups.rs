//! Groups of URLs: requests of the same rendition or of the same manifest are reported together.

use super::RequestKind;
use crate::result::{URL_GROUP_OTHER, URL_GROUPS_MAX};
use std::collections::BTreeMap;

/// Groups of a run's targets, and the index of each target's group.
#[derive(Debug, Default)]
pub(crate) struct UrlGroups {
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
}

impl UrlGroups {
    /// Returns the index of a URL's group, which may be new. The last group is that of all URLs
    /// beyond the limit.
    pub(crate) fn index_of(&mut self, url: &str) -> usize {
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
    pub(crate) fn name(&self, index: usize) -> &str {
        self.names
            .get(index)
            .map_or(URL_GROUP_OTHER, String::as_str)
    }
}

/// Returns the name of a URL's group: the URL without query. A segment has `*` in place of each
/// number in its last path component.
pub(crate) fn url_group(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let (folder, file) = plain.rsplit_once('/').unwrap_or(("", plain));
    if RequestKind::of_path(file) != RequestKind::Segment {
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
            groups.index_of(&format!("http://h/{number}.mpd"));
        }
        assert_eq!(groups.index_of("http://h/3.mpd"), 3);
        let beyond = groups.index_of("http://h/new.mpd");
        assert_eq!(
            (beyond, groups.name(beyond)),
            (URL_GROUPS_MAX - 1, URL_GROUP_OTHER)
        );
    }
}
