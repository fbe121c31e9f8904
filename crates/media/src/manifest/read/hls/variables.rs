//! `EXT-X-DEFINE` (draft-pantos-hls-rfc8216bis, 4.4.2.3): `{$name}` stands for a value.

use super::{Attributes, LINE_BYTES_MAX, Line};
use crate::error::{Error, Kind, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use url::Url;

/// The most variables of one playlist.
const VARIABLES_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Variables(HashMap<String, String>);

impl Variables {
    /// Takes in a definition: by value, or from the query of the playlist's own URL. What a
    /// multivariant playlist exports is not known to media playlists here.
    pub(super) fn define(&mut self, line: &Line<'_>, url: &Url) -> Result<()> {
        let attributes = Attributes(line.tag("#EXT-X-DEFINE").unwrap_or_default());
        let (name, value) = if let Some(name) = attributes.get("NAME") {
            (
                name,
                attributes.get("VALUE").unwrap_or_default().to_string(),
            )
        } else if let Some(name) = attributes.get("QUERYPARAM") {
            let found = url.query_pairs().find(|(key, _)| key == name);
            (
                name,
                found
                    .map(|(_, value)| value.into_owned())
                    .unwrap_or_default(),
            )
        } else {
            return Err(line.place(Error::unsupported("EXT-X-DEFINE by IMPORT")));
        };
        if self.0.len() >= VARIABLES_MAX {
            let what = format!("more than {VARIABLES_MAX} variables");
            return Err(line.place(Error::new(Kind::TooLarge, what)));
        }
        self.0.insert(name.to_string(), value);
        Ok(())
    }

    /// Text with variables replaced, once: values are not looked into.
    pub(super) fn fill<'a>(&self, text: &'a str, line: &Line<'_>) -> Result<Cow<'a, str>> {
        if self.0.is_empty() || !text.contains("{$") {
            return Ok(Cow::Borrowed(text));
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{$") {
            let known = after.split_once('}');
            let known = known.and_then(|(name, after)| Some((self.0.get(name)?, after)));
            let (value, after) =
                known.ok_or_else(|| line.malformed("a variable that is not defined"))?;
            out.push_str(before);
            out.push_str(value);
            if out.len() > LINE_BYTES_MAX {
                let what = format!("a line of more than {LINE_BYTES_MAX} bytes with its variables");
                return Err(line.place(Error::new(Kind::TooLarge, what)));
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(Cow::Owned(out))
    }
}
