//! Suggestions for misspelled names.

/// Returns the known name that was probably meant, or `None` if all known names are too different.
pub(crate) fn find_closest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let with = known
        .iter()
        .map(|known| (edit_distance(name, known), *known));
    let (distance_min, close) = with.min_by_key(|(distance, _)| *distance)?;
    (distance_min <= 1 + name.len() / 4).then_some(close)
}

/// Returns the Levenshtein distance of two names.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = i + 1;
        let mut next = vec![before];
        for ((y, diagonal), above) in b.chars().zip(&row).zip(row.iter().skip(1)) {
            before = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(before + 1);
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["keywords", "image"];
        assert_eq!(find_closest_name("keyword", &known), Some("keywords"));
        assert_eq!(find_closest_name("x", &known), None);
    }
}
