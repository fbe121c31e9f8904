//! Manifests, namely playlists, MPDs and JSON descriptions, which are written once per title
//! version.

use crate::error;
use crate::response::compressible_text::CompressibleText;
use crate::response::{text_renditions, title_json};
use crate::route::{DashAddressing, HlsContainer, ManifestKind, TextPlaylist, TextSetId};
use crate::segment::hls_aes128::{self, TitleAes128Key};
use crate::title::catalog::Catalog;
use crate::title::opened_title::Title;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use media::manifest::dash::{self, TemplateAddressing};
use media::manifest::{HlsTextForm, SegmentFormat, hls};
use media::presentation::{Presentation, Rendition};
use net::{Body, Error, headers};
use std::sync::Arc;
use store::Key;

/// A manifest changes with its title, so caches must revalidate the manifest soon.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");

/// Result of looking up a manifest URL.
pub(crate) enum ManifestLookup {
    /// The manifest, and the title version that it describes.
    Current(Arc<Title>, Arc<CompressibleText>),
    /// The film or its segmentation has changed, so the playlist has moved to another set of
    /// segments. A player that has read only the old multivariant playlist can continue with the
    /// new playlist.
    Redirect(HeaderValue),
}

/// Finds a manifest of a title, or writes it on first use.
pub(crate) async fn find_or_write_manifest(
    catalog: &Arc<Catalog>,
    title: &Key,
    manifest: &ManifestKind,
) -> Result<ManifestLookup, Error> {
    let title = catalog.load_title(title).await?;
    let now = manifest.clone().replace_sets(
        title.hls_segment_set_id(),
        TextSetId(title.hls.text_version()),
    );
    if now != *manifest {
        // The redirect target is relative to the folder of a rendition.
        let place = HeaderValue::try_from(format!("../../{now}"));
        return place
            .map(ManifestLookup::Redirect)
            .map_err(Error::new_internal_error);
    }
    let text = match title.texts.get(manifest) {
        Some(text) => text,
        None => {
            let text = write_manifest(&title, manifest)?.move_into_arena(catalog.arena());
            title.texts.insert(manifest, Arc::new(text))
        }
    };
    Ok(ManifestLookup::Current(title, text))
}

/// Redirects to the playlist of the current title version.
pub(crate) fn redirect_to_current(place: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes("the playlist has moved\n"));
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, place);
    headers.insert(header::CACHE_CONTROL, SOON);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers::allow_any_origin(headers);
    response
}

fn write_manifest(title: &Title, manifest: &ManifestKind) -> Result<CompressibleText, Error> {
    const HLS: &str = "application/vnd.apple.mpegurl";
    let (content_type, text) = match manifest {
        ManifestKind::Multivariant(HlsContainer::Ts)
        | ManifestKind::Media(_, HlsContainer::Ts, _)
            if title.hls.is_protected() =>
        {
            return Err(hls_aes128::unavailable_with_drm(
                "this manifest is unavailable",
            ));
        }
        ManifestKind::Multivariant(packing) => {
            let text = hls::write_multivariant_playlist(
                &title.hls,
                segment_format(*packing),
                title.encryption.is_some(),
            );
            (HLS, text.ok_or_else(codec_not_in_ts)?)
        }
        ManifestKind::Media(_, packing, name) => {
            let rendition = find_rendition(&title.hls, name)?;
            let key_url = title.encryption.as_ref().map(TitleAes128Key::key_url);
            let text =
                hls::write_media_playlist(&title.hls, rendition, segment_format(*packing), key_url);
            (HLS, text.ok_or_else(codec_not_in_ts)?)
        }
        ManifestKind::Text(_, playlist, name) => {
            text_renditions::find_text_rendition(&title.hls, name)?;
            let form = match playlist {
                TextPlaylist::Vtt(container) => HlsTextForm::WebVtt(segment_format(*container)),
                TextPlaylist::Imsc => HlsTextForm::Imsc,
            };
            let text = hls::write_text_playlist(&title.hls, form);
            (HLS, text.ok_or_else(error::no_such_segment)?)
        }
        ManifestKind::KeyFrames(..) | ManifestKind::Dash(_) if title.encryption.is_some() => {
            return Err(hls_aes128::unavailable_when_encrypted(
                "this manifest is unavailable",
            ));
        }
        ManifestKind::KeyFrames(_, name) => {
            let rendition = find_rendition(&title.hls, name)?;
            let text = hls::write_iframe_playlist(&title.hls, rendition);
            (
                HLS,
                text.ok_or_else(|| error::not_found("the rendition has no video"))?,
            )
        }
        ManifestKind::Dash(addressing) => {
            let template = match addressing {
                DashAddressing::Time => TemplateAddressing::Time,
                DashAddressing::Number => TemplateAddressing::Number,
            };
            (
                "application/dash+xml",
                dash::write_mpd(&title.dash, template),
            )
        }
        ManifestKind::Description => ("application/json", title_json::write_title_json(title)?),
    };
    let content_type = HeaderValue::from_static(content_type);
    Ok(CompressibleText::new(
        content_type,
        SOON,
        // Manifests of encrypted titles have no modification date, because keys and key URLs may
        // change although the film does not.
        title
            .modified
            .clone()
            .filter(|_| title.encryption.is_none() && title.drm.is_none()),
        text.into(),
    ))
}

pub(crate) fn segment_format(packing: HlsContainer) -> SegmentFormat {
    match packing {
        HlsContainer::Cmaf => SegmentFormat::Cmaf,
        HlsContainer::Ts => SegmentFormat::Ts,
    }
}

fn find_rendition<'a>(presentation: &'a Presentation, name: &str) -> Result<&'a Rendition, Error> {
    let found = presentation
        .find_rendition(name)
        .map(|(_, rendition)| rendition);
    found.ok_or_else(|| error::not_found("unknown rendition"))
}

fn codec_not_in_ts() -> Error {
    error::not_found("transport streams cannot carry this codec; request CMAF segments")
}
