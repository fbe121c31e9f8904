//! Suggestions for misspelled names.

/// Returns the known name that is most similar to `name`, or `None` if no name is similar enough.
pub(super) fn closest_name<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = known.map(|known| (edit_distance(name, known), known));
    let (distance, known) = near.min()?;
    (distance <= 1 + name.len() / 3).then_some(known)
}

/// Returns the Levenshtein distance. This is the smallest number of bytes to add, remove or replace
/// in order to change `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
