//! What elements hand down to those inside them: base URLs and segment information.

use super::super::resolve;
use crate::error::Result;
use crate::xml::Element;
use std::sync::Arc;
use url::Url;

/// The state of inheritance at some depth (5.3.9.2.2, 5.6).
#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    pub(super) base: Arc<Url>,
    /// `SegmentTemplate`, `SegmentList` or `SegmentBase` elements, innermost first.
    chain: Vec<&'a Element>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(url: &Url) -> Scope<'a> {
        Scope {
            base: Arc::new(url.clone()),
            chain: Vec::new(),
        }
    }

    /// The scope inside an element. Of several BaseURLs the first is taken, as players do that
    /// know no better.
    pub(super) fn enter(&self, element: &'a Element) -> Result<Scope<'a>> {
        let mut inside = self.clone();
        if let Some(base) = element.first("BaseURL") {
            inside.base = Arc::new(resolve(&self.base, &base.text)?);
        }
        let named = ["SegmentTemplate", "SegmentList", "SegmentBase"];
        for name in named {
            if let Some(found) = element.first(name) {
                inside.chain.insert(0, found);
            }
        }
        Ok(inside)
    }

    /// The kind of segment information that rules here: the innermost.
    pub(super) fn kind(&self) -> Option<&'a str> {
        self.chain.first().map(|element| element.name.as_str())
    }

    /// An attribute of the ruling kind, from the innermost element that has it.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.ruling().find_map(|element| element.get(name))
    }

    /// As [`Scope::get`], as a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>> {
        let holder = self.ruling().find(|element| element.get(name).is_some());
        holder.map_or(Ok(None), |element| element.number(name))
    }

    /// A child of the ruling kind, from the innermost element that has it.
    pub(super) fn child(&self, name: &'static str) -> Option<&'a Element> {
        self.ruling().find_map(|element| element.first(name))
    }

    /// The innermost element of the ruling kind.
    pub(super) fn innermost(&self) -> Option<&'a Element> {
        self.chain.first().copied()
    }

    fn ruling(&self) -> impl Iterator<Item = &'a Element> {
        let kind = self.kind().unwrap_or_default();
        self.chain
            .iter()
            .copied()
            .filter(move |element| element.name == kind)
    }
}
