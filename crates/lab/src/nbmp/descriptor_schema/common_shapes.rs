//! Types of fields that occur in several descriptors.

use super::super::field_shape::FieldShape::{Form, IntegerFrom, List, NonEmptyText, StrictForm};
use super::super::field_shape::{DescriptorField, FieldNeed, FieldShape};
use super::super::text_syntax_checks::{
    is_country_or_subdivision, is_date_time, is_media_type, is_nbmp_brand, is_uri,
};

pub(super) const fn define_field(
    name: &'static str,
    need: FieldNeed,
    shape: FieldShape,
) -> DescriptorField {
    DescriptorField { name, need, shape }
}

pub(super) const URI: FieldShape = Form(is_uri, "a URI, such as http://127.0.0.1:8080/film");
pub(super) const TIME: FieldShape = Form(
    is_date_time,
    "a timestamp, such as 2026-11-21T00:00:00Z (RFC 3339)",
);
pub(super) const MEDIA_TYPE: FieldShape = Form(is_media_type, "a media type, such as video/mp4");
pub(super) const BRAND: FieldShape = StrictForm(
    is_nbmp_brand,
    "a brand, such as urn:mpeg:mpegi:nbmp:2023:loadtest",
);
pub(super) const PLACEMENT: FieldShape = Form(
    is_country_or_subdivision,
    "a country or subdivision, such as NL or US-CA",
);
pub(super) const TEXTS: FieldShape = List(&NonEmptyText, 1);
pub(super) const COUNT: FieldShape = IntegerFrom(0);
