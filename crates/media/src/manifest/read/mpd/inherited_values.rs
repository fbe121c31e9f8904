//! Values that MPD elements inherit: base URLs and segment information.

use super::super::resolve_url;
use crate::error::Result;
use crate::xml::XmlElement;
use std::sync::Arc;
use url::Url;

/// The values that an element inherits (ISO/IEC 23009-1, 5.3.9.2.2 and 5.6).
#[derive(Debug, Clone)]
pub(super) struct ElementScope<'a> {
    pub(super) base: Arc<Url>,
    /// `SegmentTemplate`, `SegmentList` or `SegmentBase` elements, innermost first.
    segment_information: Vec<&'a XmlElement>,
}

impl<'a> ElementScope<'a> {
    pub(super) fn new(url: &Url) -> ElementScope<'a> {
        ElementScope {
            base: Arc::new(url.clone()),
            segment_information: Vec::new(),
        }
    }

    /// Returns the scope inside an element. If the element has several BaseURLs, the scope uses the
    /// first BaseURL. Players that have no reason to prefer another BaseURL do the same.
    pub(super) fn enter_element(&self, element: &'a XmlElement) -> Result<ElementScope<'a>> {
        let mut inside = self.clone();
        if let Some(base) = element.first_child("BaseURL") {
            inside.base = Arc::new(resolve_url(&self.base, &base.text)?);
        }
        let named = ["SegmentTemplate", "SegmentList", "SegmentBase"];
        for name in named {
            if let Some(found) = element.first_child(name) {
                inside.segment_information.insert(0, found);
            }
        }
        Ok(inside)
    }

    /// Returns the name of the innermost segment information element.
    pub(super) fn addressing_element_name(&self) -> Option<&'a str> {
        self.segment_information
            .first()
            .map(|element| element.name.as_str())
    }

    /// Returns an attribute of the segment information. Searches only elements with the same name
    /// as the innermost element. If several elements have the attribute, returns the innermost
    /// value.
    pub(super) fn inherited_attribute(&self, name: &str) -> Option<&'a str> {
        self.addressing_elements()
            .find_map(|element| element.attribute(name))
    }

    /// Parses [`ElementScope::inherited_attribute`] as a number.
    pub(super) fn parse_u64_attribute(&self, name: &str) -> Result<Option<u64>> {
        let holder = self
            .addressing_elements()
            .find(|element| element.attribute(name).is_some());
        holder.map_or(Ok(None), |element| element.parse_u64_attribute(name))
    }

    /// Returns a child of the segment information. Searches only elements with the same name as the
    /// innermost element. If several elements have such a child, returns the child of the innermost
    /// of these elements.
    pub(super) fn child_element(&self, name: &'static str) -> Option<&'a XmlElement> {
        self.addressing_elements()
            .find_map(|element| element.first_child(name))
    }

    /// Returns the innermost segment information element.
    pub(super) fn innermost_addressing_element(&self) -> Option<&'a XmlElement> {
        self.segment_information.first().copied()
    }

    fn addressing_elements(&self) -> impl Iterator<Item = &'a XmlElement> {
        let kind = self.addressing_element_name().unwrap_or_default();
        self.segment_information
            .iter()
            .copied()
            .filter(move |element| element.name == kind)
    }
}
