//! Writes the text segments of a title, as WebVTT or CMAF, from the cues in memory.

use crate::error;
use crate::response::compressible_text::CompressibleText;
use crate::response::manifests::segment_format;
use crate::response::responder::ClientRequest;
use crate::route::{CmafTextFormat, TextResource, TextUrl};
use crate::title::catalog::Catalog;
use bytes::Bytes;
use http::Response;
use http::header::HeaderValue;
use media::presentation::Presentation;
use media::text::{
    TextRendition, TextSegmentTimes, write_imsc_init, write_imsc_segment, write_vtt,
    write_vtt_segment, write_wvtt_init, write_wvtt_segment,
};
use net::{Body, Error};
use std::sync::Arc;

/// A text URL identifies its content, which therefore never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const VTT: &str = "text/vtt; charset=utf-8";
const MP4: &str = "application/mp4";

/// Responds with a segment, an init segment or all cues of a text rendition.
///
/// # Errors
/// Status 410 if the URL belongs to another version of the title or its text. Status 404 if the
/// current version has no such text resource.
pub(crate) async fn respond_with_text_rendition(
    catalog: &Arc<Catalog>,
    url: &TextUrl,
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, Error> {
    let title = catalog.load_title(&url.title).await?;
    let mut presentations = [&title.hls, &title.dash].into_iter();
    let presentation = presentations.find(|p| p.text_version() == url.version.0);
    let presentation = presentation.ok_or_else(error::version_gone)?;
    let rendition = find_text_rendition(presentation, &url.rendition)?;
    let grid = presentation
        .text_segment_times()
        .ok_or_else(error::no_such_segment)?;
    let (content_type, bytes) = write_text_resource(&grid, rendition, url.part)?;
    let content_type = HeaderValue::from_static(content_type);
    let text = CompressibleText::new(content_type, IMMUTABLE, title.modified.clone(), bytes);
    Ok(Arc::new(text).respond_in_preferred_coding(request).await)
}

/// Finds a text rendition by its name in URLs.
pub(crate) fn find_text_rendition<'a>(
    presentation: &'a Presentation,
    name: &str,
) -> Result<&'a TextRendition, Error> {
    let found = presentation.text.find_rendition(name);
    found.ok_or_else(|| error::not_found("unknown rendition"))
}

fn write_text_resource(
    grid: &TextSegmentTimes<'_>,
    rendition: &TextRendition,
    part: TextResource,
) -> Result<(&'static str, Bytes), Error> {
    let cues = &rendition.cues;
    let at = |time| grid.find_segment(time).ok_or_else(error::no_such_segment);
    let numbered = |number: u32| {
        let index = (number as usize).checked_sub(1);
        let index = index.filter(|index| *index < grid.segment_count());
        index.ok_or_else(error::no_such_segment)
    };
    let segment = |n: usize, form| match form {
        CmafTextFormat::Wvtt => write_wvtt_segment(grid, cues, n),
        CmafTextFormat::Imsc => {
            write_imsc_segment(grid, rendition.language_tag().as_deref(), cues, n)
        }
    };
    Ok(match part {
        TextResource::Init(CmafTextFormat::Wvtt) => {
            (MP4, write_wvtt_init(grid, &rendition.language, cues).into())
        }
        TextResource::Init(CmafTextFormat::Imsc) => {
            (MP4, write_imsc_init(grid, &rendition.language).into())
        }
        TextResource::Cmaf(time, form) => (MP4, segment(at(time)?, form).into()),
        TextResource::Number(number, form) => (MP4, segment(numbered(number)?, form).into()),
        TextResource::Vtt(time, container) => {
            let (shown, format) = (grid.shown_ms(at(time)?), segment_format(container));
            (
                VTT,
                write_vtt_segment(cues, shown, grid.served_film_start(), format).into(),
            )
        }
        TextResource::Whole => (VTT, write_vtt(cues).into()),
    })
}
