//! Reads the targets of recordings (`har:FILE` and `log:FILE`).

use super::setting_values::{parse_setting, parse_url};
use crate::rate::RequestTarget;
use crate::rate::recorded_requests::{RecordingError, RecordingFormat, read_recording};
use net::config::{SettingLayers, UsageError};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Reads the recording that an argument names. Returns `None` if the argument names another kind of
/// target.
///
/// # Errors
/// The file cannot be read, or an entry or line of the recording is invalid. The error names the
/// argument.
pub(super) fn read_recorded_targets(
    layers: &SettingLayers,
    argument: &str,
) -> Result<Option<Vec<RequestTarget>>, UsageError> {
    let formats = [
        ("har:", RecordingFormat::Har),
        ("log:", RecordingFormat::AccessLog),
    ];
    let named = formats
        .iter()
        .find_map(|(prefix, format)| Some((argument.strip_prefix(prefix)?, *format)));
    let Some((path, format)) = named else {
        return Ok(None);
    };
    let base = parse_setting(layers, "base", parse_url)?;
    let recording = open_recording(path)
        .map_err(RecordingError::from)
        .and_then(|input| read_recording(format, input, base.as_ref()));
    let recording = recording.map_err(|error| UsageError(format!("{argument}: {error}")))?;
    if recording.skipped > 0 {
        let (skipped, kept) = (recording.skipped, recording.targets.len());
        eprintln!("{argument}: {kept} requests; skipped {skipped} that cannot be repeated");
    }
    Ok(Some(recording.targets))
}

fn open_recording(path: &str) -> std::io::Result<Box<dyn BufRead>> {
    Ok(match path {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(BufReader::new(File::open(path)?)),
    })
}
