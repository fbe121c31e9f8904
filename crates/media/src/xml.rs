//! XML as a bounded tree of local names, attributes and text. No entity of the document's own is
//! expanded, no DTD is read.

use crate::error::{Error, Kind, Result};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// How deep elements may lie in each other.
const DEPTH_MAX: usize = 32;
/// The most elements.
const ELEMENTS_MAX: usize = 400_000;
/// The most attributes of an element.
const ATTRIBUTES_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Element {
    /// Without its namespace prefix.
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    pub(crate) text: String,
}

impl Element {
    /// An attribute's value, by its local name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(found, _)| found == name);
        // White space as XML counts it: other kinds may begin a name.
        found.map(|(_, value)| value.trim_matches([' ', '\t', '\r', '\n']))
    }

    /// A whole number.
    ///
    /// # Errors
    /// `Malformed` if it is there and is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let malformed = || {
            let text = crate::manifest::read::short(text);
            Error::malformed(format!("{}@{name} is no number: {text}", self.name))
        };
        text.parse().map(Some).map_err(|_| malformed())
    }

    /// The children of a name.
    pub(crate) fn all(&self, name: &'static str) -> impl Iterator<Item = &Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first child of a name.
    pub(crate) fn first(&self, name: &'static str) -> Option<&Element> {
        self.all(name).next()
    }
}

/// Reads a document.
pub(crate) fn parse(text: &str) -> Result<Element> {
    let mut reader = quick_xml::Reader::from_str(text);
    // What is above the place that is being read, outermost first; the first is no element.
    let mut open = vec![Element::default()];
    let mut elements = 0_usize;
    loop {
        let at = reader.buffer_position();
        let malformed =
            |error: &dyn std::fmt::Display| Error::malformed(format!("not XML: {error}")).at(at);
        match reader.read_event().map_err(|error| malformed(&error))? {
            Event::Start(start) => {
                open.push(element(&start).map_err(|error| error.at(at))?);
                elements += 1;
            }
            Event::Empty(start) => {
                let child = element(&start).map_err(|error| error.at(at))?;
                elements += 1;
                add(&mut open, child);
            }
            Event::End(_) => {
                if let Some(child) = open.pop() {
                    add(&mut open, child);
                }
            }
            Event::Text(text) => push_text(&mut open, &text.xml10_content()),
            Event::CData(text) => push_text(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content();
                let known =
                    quick_xml::escape::unescape(&format!("&{name};")).map(|text| text.into_owned());
                push_text(&mut open, &known.map_err(|error| malformed(&error))?);
            }
            Event::Eof => break,
            _ => {}
        }
        bound(open.len(), DEPTH_MAX, "elements deep").map_err(|error| error.at(at))?;
        bound(elements, ELEMENTS_MAX, "elements").map_err(|error| error.at(at))?;
    }
    if open.len() > 1 {
        let name = open.pop().unwrap_or_default().name;
        return Err(Error::new(Kind::Truncated, format!("<{name}> never ends")));
    }
    let root = open.pop().and_then(|root| root.children.into_iter().next());
    root.ok_or_else(|| Error::malformed("not XML: there is no element"))
}

fn element(start: &BytesStart<'_>) -> Result<Element> {
    let mut attributes = Vec::new();
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| Error::malformed(format!("not XML: {error}")))?;
        let value = attribute
            .normalized_value(XmlVersion::Explicit1_0)
            .map_err(|error| Error::malformed(format!("not XML: {error}")))?;
        attributes.push((
            attribute.key.local_name().as_ref().to_string(),
            value.into_owned(),
        ));
        bound(attributes.len(), ATTRIBUTES_MAX, "attributes")?;
    }
    Ok(Element {
        name: start.local_name().as_ref().to_string(),
        attributes,
        ..Element::default()
    })
}

fn add(open: &mut [Element], child: Element) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(child);
    }
}

fn push_text(open: &mut [Element], text: &str) {
    if let Some(parent) = open.last_mut() {
        parent.text.push_str(text);
    }
}

fn bound(count: usize, most: usize, what: &str) -> Result<()> {
    if count <= most {
        return Ok(());
    }
    let what = format!("more than {most} {what}");
    Err(Error::new(Kind::TooLarge, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_and_entities_are_plain() {
        let root = parse(
            "<?xml version='1.0'?><!DOCTYPE x><d:MPD a:b='1 &amp; 2'><!-- c --><d:U>x&amp;y<![CDATA[&]]></d:U></d:MPD>",
        )
        .unwrap();
        assert_eq!((root.name.as_str(), root.get("b")), ("MPD", Some("1 & 2")));
        assert_eq!(root.first("U").unwrap().text, "x&y&");
    }

    #[test]
    fn bombs_and_stumps_are_refused() {
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        assert_eq!(parse(&deep).unwrap_err().kind, Kind::TooLarge);
        let laughs = "<!DOCTYPE l [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><MPD>&b;</MPD>";
        assert!(parse(laughs).is_err());
        for stump in ["", "<", "<MPD", "<MPD>", "<MPD></XML>", "garbage", "</MPD>"] {
            assert!(parse(stump).is_err(), "{stump}");
        }
    }
}
