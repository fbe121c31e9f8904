//! Checks that copies of files on pages equal the files in the repository.

use crate::{project_root, read_text};
use std::path::PathBuf;

/// The start of the comment above a block that shows a file. The comment names the file.
const MARK: &str = "<!-- copy: ";

fn pages() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(project_root().join("docs/how-to")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

/// Returns the file name and the block of each copy on a page.
fn find_copies(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split(MARK).skip(1).map(|rest| {
        let (file, rest) = rest.split_once(" -->\n").unwrap();
        let block = rest.split_once('\n').unwrap().1;
        (file, block.split_once("```\n").unwrap().0)
    })
}

/// The page about services once showed a systemd unit with fewer restrictions than the unit in the
/// package.
#[test]
fn a_page_shows_the_files_that_packages_contain() {
    let mut files = Vec::new();
    for path in pages()
        .iter()
        .filter(|path| path.extension() == Some("md".as_ref()))
    {
        let page = read_text(path);
        for (file, block) in find_copies(&page) {
            let original = read_text(&project_root().join(file));
            assert!(block == original, "{} differs from {file}", path.display());
            files.push(file.to_owned());
        }
    }
    let unit = "deploy/systemd/headwater.service";
    assert!(files.iter().any(|file| file == unit), "{files:?}");
}
