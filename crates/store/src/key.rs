//! Object names that cannot lead out of the library.

use std::fmt;

/// A path inside the library. It consists of names that are joined by `/`, without a `/` at the
/// start or end. The empty path is the root.
///
/// No name is empty, starts with a dot, contains a control character or a backslash, or is longer
/// than 255 bytes. The whole path has at most 4096 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key(String);

/// The reason why a string is not a [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadKey {
    /// An empty name, as in `a//b`, or a slash at the start or end.
    Empty,
    /// `.` or `..`.
    Dots,
    /// A name other than `.` and `..` that starts with a dot.
    Hidden,
    /// NUL, another control character, or a backslash.
    Character,
    /// A name of more than 255 bytes, or a key of more than 4096 bytes.
    TooLong,
}

/// Longest name, in bytes. Linux file systems have the same limit.
const NAME_BYTES_MAX: usize = 255;
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 4096;

impl Key {
    /// The library's root.
    pub const ROOT: Key = Key(String::new());

    /// Parses a path. A path from a URL must already be percent-decoded, exactly once.
    ///
    /// # Errors
    /// [`BadKey`] when the path violates the rules described at [`Key`].
    pub fn parse(path: &str) -> Result<Key, BadKey> {
        if path.len() > KEY_BYTES_MAX {
            return Err(BadKey::TooLong);
        }
        if !path.is_empty() {
            path.split('/').try_for_each(check_name)?;
        }
        Ok(Key(path.to_owned()))
    }

    /// Returns the key of the entry `name` in this folder.
    ///
    /// # Errors
    /// Same as [`Key::parse`]. A `/` in `name` is a [`BadKey::Character`].
    pub fn child(&self, name: &str) -> Result<Key, BadKey> {
        if name.contains('/') {
            return Err(BadKey::Character);
        }
        if self.0.is_empty() {
            check_name(name)?;
            return Key::parse(name);
        }
        Key::parse(&format!("{}/{name}", self.0))
    }

    /// Returns whether this key is the library's root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last name of the path. It is empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The key of the containing folder, or `None` for the root.
    pub fn parent(&self) -> Option<Key> {
        if self.is_root() {
            return None;
        }
        let cut = self.0.rfind('/').unwrap_or(0);
        Some(Key(self.0[..cut].to_owned()))
    }

    /// The path with `/` between names.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_name(name: &str) -> Result<(), BadKey> {
    match name.as_bytes() {
        [] => Err(BadKey::Empty),
        [b'.'] | [b'.', b'.'] => Err(BadKey::Dots),
        [b'.', ..] => Err(BadKey::Hidden),
        bytes if bytes.len() > NAME_BYTES_MAX => Err(BadKey::TooLong),
        bytes if bytes.iter().any(|&b| b < 0x20 || b == 0x7f || b == b'\\') => {
            Err(BadKey::Character)
        }
        _ => Ok(()),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadKey::Empty => "the path has an empty name in it",
            BadKey::Dots => "the path contains `.` or `..`",
            BadKey::Hidden => "names that begin with a dot are not served",
            BadKey::Character => {
                "the path contains a control character, a backslash or an encoded slash"
            }
            BadKey::TooLong => "the path is over 4096 bytes, or a name in it is over 255 bytes",
        })
    }
}

impl std::error::Error for BadKey {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_follow_the_naming_rules() {
        for good in [
            "",
            "a",
            "a/b.mp4",
            "films/Das Boot (1981).mp4",
            "ü/é",
            "a..b",
            "a/b.",
        ] {
            assert_eq!(Key::parse(good).map(|key| key.0), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("/", BadKey::Empty),
            ("/a", BadKey::Empty),
            ("a/", BadKey::Empty),
            ("a//b", BadKey::Empty),
            ("..", BadKey::Dots),
            ("a/../b", BadKey::Dots),
            ("a/./b", BadKey::Dots),
            (".git/config", BadKey::Hidden),
            ("a\0b", BadKey::Character),
            ("a\\..\\b", BadKey::Character),
            ("a\nb", BadKey::Character),
        ] {
            assert_eq!(Key::parse(bad), Err(why), "{bad:?}");
        }
        assert_eq!(Key::parse(&"a".repeat(256)), Err(BadKey::TooLong));
        assert_eq!(Key::parse(&"a/".repeat(3000)), Err(BadKey::TooLong));
    }

    #[test]
    fn keys_have_parents_and_names() {
        let key = Key::parse("a/b/c.mp4").unwrap();
        assert_eq!(key.name(), "c.mp4");
        assert_eq!(key.parent(), Some(Key::parse("a/b").unwrap()));
        assert_eq!(Key::parse("a").unwrap().parent(), Some(Key::ROOT));
        assert_eq!(Key::ROOT.parent(), None);
        assert_eq!(Key::ROOT.child("x").unwrap().as_str(), "x");
        assert!(Key::ROOT.child("").is_err());
        assert!(Key::ROOT.child("a/b").is_err());
    }

    proptest! {
        #[test]
        fn a_key_never_leaves_the_library(path in "[a./\\\\\0]{0,12}") {
            if let Ok(key) = Key::parse(&path) {
                prop_assert!(!key.as_str().starts_with('/'));
                for name in key.as_str().split('/') {
                    prop_assert!(name != ".." && name != ".");
                }
            }
        }

        #[test]
        fn joining_a_name_then_taking_the_parent_returns_the_folder(folder in "[a-z]{1,3}(/[a-z]{1,3}){0,3}", name in "[a-z]{1,5}") {
            let folder = Key::parse(&folder).unwrap();
            let key = folder.child(&name).unwrap();
            prop_assert_eq!(key.name(), name.as_str());
            prop_assert_eq!(key.parent(), Some(folder));
        }
    }
}
