//! Removes tests, comments and literals from Rust source text, and splits the text into tokens.

use std::ops::Range;

const TEST_ATTRIBUTE: &str = "#[cfg(test)]";

#[test]
fn code_after_a_test_item_is_kept() {
    let source = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\nimpl C {\n    #[cfg(test)]\n    \
        #[must_use]\n    fn d(x: [u8; 2]) -> D {\n        \"}\"; '}';\n    }\n    fn e() {}\n}\n\
        struct F {\n    #[cfg(test)]\n    g: BTreeMap<u8, u8>,\n    h: u8,\n}\n\
        // #[cfg(test)]\nfn i() {}\n#[cfg(test)]\nmod tests {\n    const J: &str = r#\"\n}\"#;\n}\n";
    let kept: String = without_tests(source).split_whitespace().collect();
    assert_eq!(
        kept,
        "fna(){}fnb(){}implC{fne(){}}structF{h:u8,}//#[cfg(test)]fni(){}"
    );
}

#[test]
fn comments_and_literals_are_blanked() {
    let source = "a /* { /* */ } */ b // }\n'{' 'c \"\\\"}\" r#\"\"}\"# '\\'' r#d br#\"\"{\"#";
    let code: Vec<_> = blank_literals(source)
        .split_whitespace()
        .map(String::from)
        .collect();
    assert_eq!(code, ["a", "b", "'c", "r", "r#d", "br"]);
    assert_eq!(blank_literals(source).len(), source.len());
}

/// Returns the text of a file without the items that `#[cfg(test)]` marks.
pub(crate) fn without_tests(text: &str) -> String {
    let code = blank_literals(text);
    let mut kept = String::new();
    let mut end = 0;
    for (start, _) in code.match_indices(TEST_ATTRIBUTE) {
        if start >= end {
            kept.push_str(&text[end..start]);
            end = item_end(code.as_bytes(), start);
        }
    }
    kept + &text[end..]
}

/// Returns the names of the modules that a file declares with `#[cfg(test)]`.
pub(crate) fn test_modules(text: &str) -> Vec<String> {
    let code = blank_literals(text);
    let starts = code.match_indices(TEST_ATTRIBUTE);
    let items = starts.map(|(start, _)| &code[start..item_end(code.as_bytes(), start)]);
    let name = |item: &str| match tokens(item).as_slice() {
        [.., "mod", name, ";"] => Some((*name).to_owned()),
        _ => None,
    };
    items.filter_map(name).collect()
}

/// Returns the position after the item, field or statement that starts with attributes.
fn item_end(code: &[u8], start: usize) -> usize {
    let (mut brackets, mut angles) = (0, 0);
    let mut is_attribute = false;
    for at in start..code.len() {
        match code[at] {
            b'#' if brackets == 0 => is_attribute = true,
            b'(' | b'[' | b'{' => brackets += 1,
            b')' | b']' | b'}' => brackets -= 1,
            b'<' => angles += 1,
            b'>' if ![b'-', b'='].contains(&code[at - 1]) => angles -= 1,
            _ => {}
        }
        let is_end = match code[at] {
            b';' | b'}' => brackets == 0,
            b',' => brackets == 0 && angles <= 0,
            _ => false,
        };
        if brackets < 0 {
            return at;
        }
        if is_attribute && code[at] == b']' && brackets == 0 {
            is_attribute = false;
        } else if is_end && !is_attribute {
            return at + 1 + usize::from(code.get(at + 1) == Some(&b';'));
        }
    }
    code.len()
}

/// Replaces comments and literals with spaces, so that their braces and words are ignored.
pub(crate) fn blank_literals(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        let Some(blank) = literal(&text.as_bytes()[at..]) else {
            at += 1;
            continue;
        };
        for byte in &mut code[at + blank.start..at + blank.end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += blank.end;
    }
    String::from_utf8(code).unwrap()
}

/// Returns the range of the comment or literal that starts at the first byte.
fn literal(text: &[u8]) -> Option<Range<usize>> {
    let find = |from: usize, end: &[u8]| {
        let rest = text.get(from..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|window| window == end);
        found.map_or(text.len(), |found| from + found + end.len())
    };
    match text {
        [b'/', b'/', ..] => Some(0..find(2, b"\n")),
        [b'/', b'*', ..] => Some(0..block_comment_end(text)),
        [b'"', ..] => Some(0..string_end(text)),
        [b'r', rest @ ..] => {
            let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
            let end = [b"\"", "#".repeat(hashes).as_bytes()].concat();
            (rest.get(hashes) == Some(&b'"')).then(|| 1..find(hashes + 2, &end))
        }
        [b'\'', b'\\', _, ..] => Some(0..find(3, b"'")),
        [b'\'', ..] => {
            let end = (2..=5).find(|at| text.get(*at) == Some(&b'\''))?;
            let inner = std::str::from_utf8(&text[1..end]).ok()?;
            (inner.chars().count() == 1).then_some(0..end + 1)
        }
        _ => None,
    }
}

fn block_comment_end(text: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at + 1 < text.len() {
        match &text[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_end(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Splits code without literals into words, `::` and single characters.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let word = bytes[at..]
            .iter()
            .take_while(|byte| is_word(**byte))
            .count();
        let length = match word {
            0 if code[at..].starts_with("::") => 2,
            0 => code[at..].chars().next().map_or(1, char::len_utf8),
            word => word,
        };
        if !bytes[at].is_ascii_whitespace() {
            tokens.push(&code[at..at + length]);
        }
        at += length;
    }
    tokens
}
