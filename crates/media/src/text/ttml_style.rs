//! Styles and regions of TTML, as far as WebVTT can express them.

use super::color::find_color_class;
use crate::xml::XmlElement;
use std::collections::HashMap;

/// Maximum depth of style references, and maximum number of styles that one element may reference.
const STYLE_DEPTH_MAX: usize = 8;
/// Maximum number of referenced styles that are applied to an element. Without this limit,
/// references could form a very large tree.
const STYLES_APPLIED_MAX: usize = 64;
/// Maximum number of elements of a region that are searched for styles.
const REGION_CHILDREN_MAX: usize = 64;
/// Maximum length of an attribute that declares a style or a region, in bytes. Longer attributes
/// are ignored, because a style is evaluated again for each element and each cue.
const STYLE_ATTRIBUTE_BYTES_MAX: usize = 512;

/// The computed style of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TtmlStyle {
    is_bold: bool,
    is_italic: bool,
    is_underlined: bool,
    color: Option<&'static str>,
    /// Value of the WebVTT setting `align`.
    align: Option<&'static str>,
    region: Option<String>,
}

/// The styles and regions that a document declares.
pub(super) struct TtmlStyles<'a> {
    styles: HashMap<&'a str, &'a XmlElement>,
    regions: HashMap<&'a str, &'a XmlElement>,
}

impl<'a> TtmlStyles<'a> {
    pub(super) fn from_document(root: &'a XmlElement) -> TtmlStyles<'a> {
        let head = root.first_child("head");
        let named = |group: &'static str, name: &'static str| {
            let groups = head
                .into_iter()
                .flat_map(move |head| head.children_named(group));
            let elements = groups.flat_map(move |group| group.children_named(name));
            elements
                .filter_map(|element| Some((element.attribute("id")?, element)))
                .collect()
        };
        TtmlStyles {
            styles: named("styling", "style"),
            regions: named("layout", "region"),
        }
    }

    /// Returns the style of an element, which inherits the style of its parent.
    pub(super) fn resolve_style(&self, element: &XmlElement, parent: &TtmlStyle) -> TtmlStyle {
        let mut style = parent.clone();
        if let Some(region) = short_attribute(element, "region") {
            style.region = Some(region.to_owned());
        }
        let mut budget = STYLES_APPLIED_MAX;
        self.apply_style_attributes(element, &mut style, STYLE_DEPTH_MAX, &mut budget);
        style
    }

    /// Applies referenced styles, then the attributes of the element itself.
    fn apply_style_attributes(
        &self,
        element: &XmlElement,
        style: &mut TtmlStyle,
        depth: usize,
        budget: &mut usize,
    ) {
        for named in self.referenced_styles(element) {
            if depth > 0 && *budget > 0 {
                *budget -= 1;
                self.apply_style_attributes(named, style, depth - 1, budget);
            }
        }
        let attribute = |name| short_attribute(element, name);
        if let Some(weight) = attribute("fontWeight") {
            style.is_bold = weight == "bold";
        }
        if let Some(slant) = attribute("fontStyle") {
            style.is_italic = matches!(slant, "italic" | "oblique");
        }
        if let Some(decoration) = attribute("textDecoration") {
            style.is_underlined = decoration
                .split_whitespace()
                .any(|word| word == "underline");
        }
        if let Some(color) = attribute("color") {
            style.color = find_non_default_color_class(color);
        }
        if let Some(align) = attribute("textAlign") {
            style.align = match align {
                "left" => Some("left"),
                "right" => Some("right"),
                "start" => Some("start"),
                "end" => Some("end"),
                _ => None,
            };
        }
    }

    /// Returns the WebVTT cue settings for the alignment and the region of a style.
    pub(super) fn cue_settings(&self, style: &TtmlStyle) -> String {
        let region = style
            .region
            .as_deref()
            .and_then(|region| self.regions.get(region));
        let mut settings: Vec<String> = Vec::new();
        let origin =
            region.and_then(|region| parse_percentages(self.region_attribute(region, "origin")?));
        let extent =
            region.and_then(|region| parse_percentages(self.region_attribute(region, "extent")?));
        let display = region.and_then(|region| self.region_attribute(region, "displayAlign"));
        if let (Some(origin), Some(extent)) = (origin, extent) {
            let line = match display {
                Some("after") => (origin.1 + extent.1, ",end"),
                Some("center") => (origin.1 + extent.1 / 2.0, ",center"),
                _ => (origin.1, ""),
            };
            settings.push(format!("line:{}%{}", round_percentage(line.0), line.1));
            if extent.0 < 100.0 {
                settings.push(format!("size:{}%", round_percentage(extent.0)));
                let middle = origin.0 + extent.0 / 2.0;
                settings.push(format!("position:{}%,center", round_percentage(middle)));
            }
        }
        settings.extend(style.align.map(|align| format!("align:{align}")));
        settings.join(" ")
    }

    /// Returns an attribute of a region. If the region itself does not have the attribute, its
    /// nested styles are searched, and then the styles that it references.
    fn region_attribute<'b>(&'b self, region: &'b XmlElement, name: &str) -> Option<&'b str> {
        let children = region.children.iter().take(REGION_CHILDREN_MAX);
        let nested = children
            .filter(|child| child.name == "style")
            .find_map(|style| short_attribute(style, name));
        let named = || {
            let mut styles = self.referenced_styles(region);
            styles.find_map(|style| short_attribute(style, name))
        };
        short_attribute(region, name).or(nested).or_else(named)
    }

    /// Iterates over the styles that an element references.
    fn referenced_styles(&self, element: &XmlElement) -> impl Iterator<Item = &'a XmlElement> {
        let names = short_attribute(element, "style").unwrap_or_default();
        let names = names.split_whitespace().take(STYLE_DEPTH_MAX);
        names.filter_map(move |name| self.styles.get(name).copied())
    }
}

/// Returns an attribute with at most [`STYLE_ATTRIBUTE_BYTES_MAX`] bytes.
fn short_attribute<'a>(element: &'a XmlElement, name: &str) -> Option<&'a str> {
    let value = element.attribute(name)?;
    (value.len() <= STYLE_ATTRIBUTE_BYTES_MAX).then_some(value)
}

impl TtmlStyle {
    /// Returns the WebVTT tags for the properties of this style that `other` does not have.
    pub(super) fn additional_tags(&self, other: &TtmlStyle) -> Vec<String> {
        let faces = [
            (self.is_bold && !other.is_bold, "b"),
            (self.is_italic && !other.is_italic, "i"),
            (self.is_underlined && !other.is_underlined, "u"),
        ];
        let faces = faces
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, tag)| tag.to_owned());
        let color = self.color.filter(|_| self.color != other.color);
        faces
            .chain(color.map(|color| format!("c.{color}")))
            .collect()
    }
}

/// Returns the WebVTT class of a colour. White needs no class, because players show white text by
/// default.
fn find_non_default_color_class(color: &str) -> Option<&'static str> {
    find_color_class(color).filter(|class| *class != "white")
}

fn parse_percentages(text: &str) -> Option<(f64, f64)> {
    let (x, y) = text.trim().split_once(' ')?;
    let number = |text: &str| {
        let number = text.trim().strip_suffix('%')?.parse::<f64>().ok()?;
        (0.0..=100.0).contains(&number).then_some(number)
    };
    Some((number(x)?, number(y)?))
}

/// Limits a percentage to 100 and rounds it to two decimals.
fn round_percentage(number: f64) -> f64 {
    (number.min(100.0) * 100.0).round() / 100.0
}
