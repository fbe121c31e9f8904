//! Builds the responses for manifests, texts, files, keys and the web page, but not for media
//! segments. The module `responder` evaluates conditions and ranges for texts, files and media
//! segments.

pub(crate) mod compressible_text;
pub(crate) mod content_key;
pub(crate) mod content_types;
pub(crate) mod library_list;
pub(crate) mod license;
pub(crate) mod manifests;
pub(crate) mod progressive;
pub(crate) mod responder;
pub(crate) mod response_cache;
pub(crate) mod static_files;
pub(crate) mod text_renditions;
pub(crate) mod title_json;
pub(crate) mod web_assets;
