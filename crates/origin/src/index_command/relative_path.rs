//! Relative references from a folder to a file.

use std::path::{Component, Path};

/// Returns `path` relative to `folder`, with `/` between names and without percent-encoding. Both
/// arguments must be absolute paths, without symbolic links, `.` or `..`. Returns `None` if a name
/// is not UTF-8.
pub(super) fn relative_path(folder: &Path, path: &Path) -> Option<String> {
    let shared = folder
        .components()
        .zip(path.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = folder.components().skip(shared).map(|_| Some(".."));
    let down = path.components().skip(shared).map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let names: Option<Vec<&str>> = up.chain(down).collect();
    names.map(|names| names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_up_and_down() {
        let name = |folder: &str, path: &str| relative_path(Path::new(folder), Path::new(path));
        for (folder, path, expected) in [
            ("/films", "/films/a.mp4", "a.mp4"),
            ("/films/index", "/films/a.mp4", "../a.mp4"),
            ("/films/index/x", "/films/tos/a b.mp4", "../../tos/a b.mp4"),
            ("/", "/a.mp4", "a.mp4"),
            ("/other", "/films/a.mp4", "../films/a.mp4"),
        ] {
            assert_eq!(name(folder, path).as_deref(), Some(expected));
        }
    }
}
