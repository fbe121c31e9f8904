//! Writes XML attributes and DASH descriptors.

use crate::manifest::escaping::XmlText;
use std::fmt::Write;

/// Writes ` name="value"` with the value escaped.
pub(super) fn write_attribute(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, " {name}=\"{}\"", XmlText(&value.to_string()));
}

/// Writes a descriptor element with a scheme and a value.
pub(super) fn write_property(out: &mut String, element: &str, scheme: &str, value: &str) {
    let _ = write!(out, "      <{element}");
    write_attribute(out, "schemeIdUri", scheme);
    write_attribute(out, "value", value);
    out.push_str("/>\n");
}
