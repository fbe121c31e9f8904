//! Parses XML into a bounded tree of local names, attributes and text. DTDs are not read, so a
//! reference to an entity that the document declares is an error.

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::read::{URL_BYTES_MAX, shorten_for_message};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// Maximum nesting depth of elements.
const DEPTH_MAX: usize = 32;
/// Maximum number of elements in a document.
const ELEMENTS_MAX: usize = 400_000;
/// Maximum number of attributes of an element.
const ATTRIBUTES_MAX: usize = 64;
/// Maximum length of the name of an attribute, and of its value, in bytes. Values may be URLs.
/// Without this limit, values that elements inherit could take much memory.
const ATTRIBUTE_BYTES_MAX: usize = URL_BYTES_MAX;

#[derive(Debug, Default)]
pub(crate) struct XmlElement {
    /// Local name, without the namespace prefix.
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) children: Vec<XmlElement>,
    /// All text directly in the element, without the text of its children.
    pub(crate) text: String,
    /// Length of the parent's text before this element, in bytes.
    text_position: usize,
}

/// Content of an element.
pub(crate) enum XmlNode<'a> {
    /// Text between elements.
    Text(&'a str),
    /// A child.
    Element(&'a XmlElement),
}

impl XmlElement {
    /// Returns the value of the attribute with this local name.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(found, _)| found == name);
        // Trims only the white space of XML, because other white space may be part of a name.
        found.map(|(_, value)| value.trim_matches([' ', '\t', '\r', '\n']))
    }

    /// Parses an attribute as a whole number. Returns `None` if the attribute is absent.
    ///
    /// # Errors
    /// `Malformed` if the value is not a number.
    pub(crate) fn parse_u64_attribute(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.attribute(name) else {
            return Ok(None);
        };
        let malformed = || {
            let text = shorten_for_message(text);
            Error::malformed(format!("{}@{name} is not a number: {text}", self.name))
        };
        text.parse().map(Some).map_err(|_| malformed())
    }

    /// Returns the children with this local name.
    pub(crate) fn children_named(&self, name: &'static str) -> impl Iterator<Item = &XmlElement> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns text and children in document order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = XmlNode<'_>> {
        let ends = self
            .children
            .iter()
            .map(|child| (child.text_position, Some(child)));
        let mut from = 0;
        ends.chain([(self.text.len(), None)])
            .flat_map(move |(end, child)| {
                let text = self.text.get(from..end).unwrap_or_default();
                from = end;
                [Some(XmlNode::Text(text)), child.map(XmlNode::Element)]
                    .into_iter()
                    .flatten()
            })
    }

    /// Returns the first child with this local name.
    pub(crate) fn first_child(&self, name: &'static str) -> Option<&XmlElement> {
        self.children_named(name).next()
    }
}

/// Parses a document and returns its root element.
///
/// # Errors
/// `Malformed` for invalid XML, and for text or elements outside of the root element; `Truncated`
/// for an element without an end; `TooLarge` for a document that exceeds a limit.
pub(crate) fn parse_xml_document(text: &str) -> Result<XmlElement> {
    let mut reader = quick_xml::Reader::from_str(text);
    // The open elements, outermost first. The first entry is a placeholder for the document.
    let mut open = vec![XmlElement::default()];
    let mut elements = 0_usize;
    loop {
        let at = reader.buffer_position();
        let malformed = |error: &dyn std::fmt::Display| {
            Error::malformed(format!("not XML: {error}")).with_byte_offset(at)
        };
        let add_offset = |error: Error| error.with_byte_offset(at);
        match reader.read_event().map_err(|error| malformed(&error))? {
            Event::Start(_) | Event::Empty(_) if has_root(&open) => {
                let message = "not XML: there is more than one root element";
                return Err(add_offset(Error::malformed(message)));
            }
            Event::Start(start) => {
                open.push(read_start_tag(&start).map_err(add_offset)?);
                elements += 1;
            }
            Event::Empty(start) => {
                let child = read_start_tag(&start).map_err(add_offset)?;
                elements += 1;
                append_child_element(&mut open, child);
            }
            Event::End(_) => {
                if let Some(child) = open.pop() {
                    append_child_element(&mut open, child);
                }
            }
            Event::Text(text) => {
                append_element_text(&mut open, &text.xml10_content()).map_err(add_offset)?;
            }
            Event::CData(text) => {
                append_element_text(&mut open, &text.xml10_content()).map_err(add_offset)?;
            }
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content();
                let known =
                    quick_xml::escape::unescape(&format!("&{name};")).map(|text| text.into_owned());
                let known = known.map_err(|error| malformed(&error))?;
                append_element_text(&mut open, &known).map_err(add_offset)?;
            }
            Event::Eof => break,
            _ => {}
        }
        check_limit(open.len(), DEPTH_MAX, "elements deep").map_err(add_offset)?;
        check_limit(elements, ELEMENTS_MAX, "elements").map_err(add_offset)?;
    }
    if open.len() > 1 {
        let name = open.pop().unwrap_or_default().name;
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("<{name}> has no end tag"),
        ));
    }
    let root = open.pop().and_then(|root| root.children.into_iter().next());
    root.ok_or_else(|| Error::malformed("not XML: there is no element"))
}

/// Returns whether the root element has ended.
fn has_root(open: &[XmlElement]) -> bool {
    matches!(open, [document] if !document.children.is_empty())
}

fn read_start_tag(start: &BytesStart<'_>) -> Result<XmlElement> {
    let mut attributes = Vec::new();
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| Error::malformed(format!("not XML: {error}")))?;
        let value = attribute
            .normalized_value(XmlVersion::Explicit1_0)
            .map_err(|error| Error::malformed(format!("not XML: {error}")))?;
        let name = attribute.key.local_name();
        let bytes = name.as_ref().len().max(value.len());
        if bytes > ATTRIBUTE_BYTES_MAX {
            let name = shorten_for_message(name.as_ref());
            let message = format!(
                "attribute {name} has {bytes} bytes; at most {ATTRIBUTE_BYTES_MAX} are read"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        attributes.push((name.as_ref().to_string(), value.into_owned()));
        check_limit(attributes.len(), ATTRIBUTES_MAX, "attributes")?;
    }
    Ok(XmlElement {
        name: start.local_name().as_ref().to_string(),
        attributes,
        ..XmlElement::default()
    })
}

fn append_child_element(open: &mut [XmlElement], mut child: XmlElement) {
    if let Some(parent) = open.last_mut() {
        child.text_position = parent.text.len();
        parent.children.push(child);
    }
}

/// Appends text to the innermost open element. Outside of the root element, only white space is
/// allowed.
fn append_element_text(open: &mut [XmlElement], text: &str) -> Result<()> {
    match open {
        [] | [_] if text.trim_ascii().is_empty() => Ok(()),
        [] | [_] => Err(Error::malformed(
            "not XML: there is text outside of the root element",
        )),
        [.., parent] => {
            parent.text.push_str(text);
            Ok(())
        }
    }
}

fn check_limit(count: usize, limit: usize, message: &str) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    let message = format!("more than {limit} {message}");
    Err(Error::new(ErrorKind::TooLarge, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_dropped_and_entities_decoded() {
        let root = parse_xml_document(
            "<?xml version='1.0'?><!DOCTYPE x><d:MPD a:b='1 &amp; 2'><!-- c --><d:U>x&amp;y<![CDATA[&]]></d:U></d:MPD>",
        )
        .unwrap();
        assert_eq!(
            (root.name.as_str(), root.attribute("b")),
            ("MPD", Some("1 & 2"))
        );
        assert_eq!(root.first_child("U").unwrap().text, "x&y&");
    }

    #[test]
    fn entity_bombs_and_truncated_documents_are_refused() {
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        assert_eq!(
            parse_xml_document(&deep).unwrap_err().kind,
            ErrorKind::TooLarge
        );
        let laughs = "<!DOCTYPE l [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><MPD>&b;</MPD>";
        assert!(parse_xml_document(laughs).is_err());
        for stump in ["", "<", "<MPD", "<MPD>", "<MPD></XML>", "garbage", "</MPD>"] {
            assert!(parse_xml_document(stump).is_err(), "{stump}");
        }
    }

    #[test]
    fn only_one_root_element_and_no_text_beside_it_are_accepted() {
        for legal in [
            "<a/>",
            "\u{feff} <!-- b --><a>x</a>\r\n<!-- b -->\n",
            "<a><b/><b/></a>",
        ] {
            assert!(parse_xml_document(legal).is_ok(), "{legal}");
        }
        for illegal in [
            "<a/><b/>",
            "<a></a><b></b>",
            "<a/>x",
            "x<a/>",
            "<a/>&amp;",
            "<a/><![CDATA[x]]>",
        ] {
            let error = parse_xml_document(illegal).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Malformed, "{illegal}");
            assert!(error.message.contains("root element"), "{illegal}: {error}");
        }
    }

    #[test]
    fn attributes_longer_than_a_url_are_refused_by_name() {
        let parse = |name: &str, value: usize| {
            parse_xml_document(&format!("<a {name}='{}'/>", "x".repeat(value)))
        };
        assert!(parse("media", URL_BYTES_MAX).is_ok());
        let error = parse("media", URL_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
        assert!(
            error.message.contains("attribute media has 8193 bytes"),
            "{error}"
        );
        assert!(parse(&"n".repeat(URL_BYTES_MAX + 1), 1).is_err());
    }
}
