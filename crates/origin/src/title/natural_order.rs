//! Orders the titles of a list. Numbers are compared by value, so that "Episode 2" precedes
//! "Episode 10".

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

/// Compares names as people sort them. The case of letters is ignored, and numbers are compared by
/// value. Names that differ only in case or in leading zeros are compared by their bytes, so that
/// only identical names compare as equal.
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    compare_folded(a, b).then_with(|| a.cmp(b))
}

/// Compares paths folder by folder. A slash precedes all other characters.
pub(crate) fn compare_paths(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.split('/'), b.split('/'));
    loop {
        match (left.next(), right.next()) {
            (Some(x), Some(y)) => match compare_names(x, y) {
                Ordering::Equal => {}
                different => return different,
            },
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
    }
}

fn compare_folded(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.chars().peekable(), b.chars().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                compare_numbers(&take_digits(&mut left), &take_digits(&mut right))
            }
            (Some(_), Some(_)) => {
                take_char_as_lowercase(&mut left).cmp(take_char_as_lowercase(&mut right))
            }
            (x, y) => return x.is_some().cmp(&y.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn take_char_as_lowercase(chars: &mut Peekable<Chars<'_>>) -> impl Iterator<Item = char> {
    chars.next().into_iter().flat_map(char::to_lowercase)
}

fn take_digits(chars: &mut Peekable<Chars<'_>>) -> String {
    let digits = std::iter::from_fn(|| chars.next_if(char::is_ascii_digit));
    digits.collect()
}

/// Compares two numbers of any length, given as digits. Without leading zeros, the number with more
/// digits is larger.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_by_value() {
        let ordered = [
            "Episode 1",
            "Episode 02",
            "Episode 2",
            "episode 3",
            "Episode 10",
            "Episode 10a",
            "Episode 99999999999999999999998",
            "Episode 99999999999999999999999",
            "Äpfel",
        ];
        let mut shuffled: Vec<_> = ordered.iter().rev().copied().collect();
        shuffled.sort_by(|a, b| compare_names(a, b));
        assert_eq!(shuffled, ordered);
    }

    #[test]
    fn a_folder_precedes_folders_whose_names_continue_its_name() {
        let ordered = ["a", "a/1", "a/z", "a b/1", "a2/1", "a10/1", "b"];
        let mut shuffled: Vec<_> = ordered.iter().rev().copied().collect();
        shuffled.sort_by(|a, b| compare_paths(a, b));
        assert_eq!(shuffled, ordered);
    }
}
