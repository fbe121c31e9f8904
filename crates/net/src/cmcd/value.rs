//! Values of CMCD keys: bare items and inner lists (RFC 9651 sections 3.1 and 3.3).

/// Limit on the number of items in an inner list. A longer list is malformed.
const ITEMS_MAX: usize = 32;
/// Limit on the number of parameters of an item. An item with more parameters is malformed.
const PARAMETERS_MAX: usize = 8;

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum CmcdValue {
    /// A number. A list of numbers (version 2) is represented by its greatest number.
    Number(f64),
    /// A string or a token.
    Text(String),
    /// A Boolean. A key without a value means `true`.
    Flag(bool),
}

/// An item of an inner list (version 2), such as `3000;v`.
#[derive(Debug, Clone, PartialEq)]
pub struct CmcdItem {
    /// The value, such as a bitrate or a relative URL.
    pub value: CmcdValue,
    /// Parameters with their names. The parameters of a bitrate are object types, such as `v` for
    /// video.
    pub parameters: Vec<(String, CmcdValue)>,
}

impl CmcdItem {
    /// Returns whether the item has a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|(key, _)| key == name)
    }
}

/// The parsed value of a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CmcdMemberValue {
    Single(CmcdValue),
    /// The value that represents an inner list, and the items of the list.
    List(CmcdValue, Vec<CmcdItem>),
}

impl CmcdMemberValue {
    /// Returns the value. A list with numbers is represented by its greatest number. In a list of
    /// bitrates, this is usually the bitrate of the video. Any other list is represented by its
    /// first item.
    pub(super) fn main_value(&self) -> &CmcdValue {
        match self {
            CmcdMemberValue::Single(value) | CmcdMemberValue::List(value, _) => value,
        }
    }
}

/// Parses the text after `=`. Returns `None` if the text is malformed or empty.
pub(super) fn parse_member_value(text: &str) -> Option<CmcdMemberValue> {
    if let Some(list) = text.strip_prefix('(') {
        return parse_inner_list(list);
    }
    if text.starts_with('"') {
        let (value, rest) = take_bare_item(text)?;
        let is_whole = rest.is_empty() || rest.starts_with(';');
        return is_whole.then_some(CmcdMemberValue::Single(value));
    }
    // Ignores the parameters of a single value, because they have no meaning.
    let bare = text.split(';').next().unwrap_or_default();
    Some(CmcdMemberValue::Single(parse_bare(bare.trim())?))
}

/// Parses an inner list after its opening parenthesis. In `5000;v 128;a)`, each item belongs to one
/// kind of media.
fn parse_inner_list(text: &str) -> Option<CmcdMemberValue> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.starts_with(')') {
        let (item, after) = take_item(rest)?;
        let is_separated = after.starts_with([' ', '\t', ')']);
        if !is_separated || items.len() == ITEMS_MAX {
            return None;
        }
        items.push(item);
        rest = after.trim_start();
    }
    let greatest = items.iter().filter_map(|item| match item.value {
        CmcdValue::Number(number) => Some(number),
        _ => None,
    });
    let main = match greatest.reduce(f64::max) {
        Some(number) => CmcdValue::Number(number),
        None => items.first()?.value.clone(),
    };
    Some(CmcdMemberValue::List(main, items))
}

/// Parses an item with its parameters. Returns the item and the text after the item.
fn take_item(text: &str) -> Option<(CmcdItem, &str)> {
    let (value, mut rest) = take_bare_item(text)?;
    let mut parameters = Vec::new();
    while let Some(after) = rest.strip_prefix(';') {
        let after = after.trim_start();
        let end = after.find(|c: char| !is_key_character(c));
        let (key, after) = after.split_at_checked(end.unwrap_or(after.len()))?;
        let (value, after) = match after.strip_prefix('=') {
            Some(text) => take_bare_item(text)?,
            None => (CmcdValue::Flag(true), after),
        };
        if key.is_empty() || parameters.len() == PARAMETERS_MAX {
            return None;
        }
        parameters.push((key.to_owned(), value));
        rest = after;
    }
    Some((CmcdItem { value, parameters }, rest))
}

/// Parses a bare item. Returns the item and the text after the item.
fn take_bare_item(text: &str) -> Option<(CmcdValue, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (value, rest) = take_string(quoted)?;
        return Some((CmcdValue::Text(value), rest));
    }
    let end = text.find([' ', '\t', ';', ',', '(', ')', '"']);
    let (bare, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    Some((parse_bare(bare)?, rest))
}

fn parse_bare(bare: &str) -> Option<CmcdValue> {
    Some(match bare {
        "" => return None,
        "?1" | "true" => CmcdValue::Flag(true),
        "?0" | "false" => CmcdValue::Flag(false),
        bare => match parse_number(bare) {
            Some(number) => CmcdValue::Number(number),
            None => CmcdValue::Text(bare.to_owned()),
        },
    })
}

/// Parses a decimal number with an optional `-`. The number has at most 18 characters after the
/// `-`.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let short = digits.len() <= 18 && digits.starts_with(|c: char| c.is_ascii_digit());
    (short && digits.bytes().all(plain)).then(|| text.parse().ok())?
}

/// Parses a string after its opening quote. Returns the string and the text after the closing
/// quote.
fn take_string(text: &str) -> Option<(String, &str)> {
    let (mut out, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                out.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((out, text.get(at + 1..)?)),
            _ => out.push(c),
        }
    }
    None
}

/// Returns whether the character may be part of a key.
pub(super) fn is_key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.*".contains(c)
}
