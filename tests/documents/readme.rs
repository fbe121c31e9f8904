//! Checks that the README stays short.

use crate::{project_root, read_text};

const WORDS_MAX: usize = 900;

#[test]
fn the_readme_has_at_most_900_words() {
    let text = read_text(&project_root().join("README.md"));
    let words = text
        .split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric));
    let count = words.count();
    assert!(count <= WORDS_MAX, "README.md has {count} words");
}
