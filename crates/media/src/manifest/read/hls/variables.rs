//! Variables of `EXT-X-DEFINE` (draft-pantos-hls-rfc8216bis, 4.4.2.3). A playlist refers to the
//! value of a variable as `{$name}`.

use super::super::MANIFEST_BYTES_MAX;
use super::AttributeList;
use super::playlist_lines::{LINE_BYTES_MAX, PlaylistLine};
use crate::error::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use url::Url;

/// Maximum number of variables of one playlist.
const VARIABLES_MAX: usize = 256;

#[derive(Default)]
pub(super) struct PlaylistVariables {
    values: HashMap<String, String>,
    /// Total length of the texts in which variables were replaced, in bytes. A short line may
    /// become a long URL, so the length of the playlist does not limit this length.
    substituted_bytes: usize,
}

impl PlaylistVariables {
    /// Adds a variable. Its value is in the tag, or in the query of the playlist's own URL.
    /// `IMPORT` is refused, because a media playlist is parsed without its multivariant playlist.
    pub(super) fn define_variable(&mut self, line: &PlaylistLine<'_>, url: &Url) -> Result<()> {
        let attributes = AttributeList(line.tag_value("#EXT-X-DEFINE").unwrap_or_default());
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
            return Err(line.add_line_to_error(Error::unsupported("EXT-X-DEFINE by IMPORT")));
        };
        if self.values.len() >= VARIABLES_MAX {
            let message = format!("more than {VARIABLES_MAX} variables");
            return Err(line.add_line_to_error(Error::new(ErrorKind::TooLarge, message)));
        }
        self.values.insert(name.to_string(), value);
        Ok(())
    }

    /// Replaces the variables in `text`. Variables in the inserted values are not replaced.
    ///
    /// # Errors
    /// `Malformed` for an undefined variable. `TooLarge` if the line would exceed
    /// [`LINE_BYTES_MAX`], or all lines with variables would exceed [`MANIFEST_BYTES_MAX`].
    pub(super) fn substitute_variables<'a>(
        &mut self,
        text: &'a str,
        line: &PlaylistLine<'_>,
    ) -> Result<Cow<'a, str>> {
        if self.values.is_empty() || !text.contains("{$") {
            return Ok(Cow::Borrowed(text));
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{$") {
            let known = after.split_once('}');
            let known = known.and_then(|(name, after)| Some((self.values.get(name)?, after)));
            let (value, after) = known.ok_or_else(|| line.malformed_error("undefined variable"))?;
            push_within_line_limit(&mut out, before, line)?;
            push_within_line_limit(&mut out, value, line)?;
            rest = after;
        }
        push_within_line_limit(&mut out, rest, line)?;
        self.substituted_bytes += out.len();
        if self.substituted_bytes > MANIFEST_BYTES_MAX {
            let message =
                format!("a playlist of more than {MANIFEST_BYTES_MAX} bytes with its variables");
            return Err(line.add_line_to_error(Error::new(ErrorKind::TooLarge, message)));
        }
        Ok(Cow::Owned(out))
    }
}

/// Appends a part of a line with its variables. The limit is checked first, so that `out` never
/// exceeds it.
fn push_within_line_limit(out: &mut String, part: &str, line: &PlaylistLine<'_>) -> Result<()> {
    if out.len() + part.len() > LINE_BYTES_MAX {
        let message = format!("a line of more than {LINE_BYTES_MAX} bytes with its variables");
        return Err(line.add_line_to_error(Error::new(ErrorKind::TooLarge, message)));
    }
    out.push_str(part);
    Ok(())
}
