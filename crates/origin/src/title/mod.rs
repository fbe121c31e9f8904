//! Finds, opens and indexes the files of a title, which is named by its path in the library.

pub(crate) mod caption_channels;
pub(crate) mod catalog;
pub(crate) mod embedded_text;
pub(crate) mod file_names;
pub(crate) mod index_cache;
pub(crate) mod indexer;
pub(crate) mod joined_ranges;
pub(crate) mod left_out;
pub(crate) mod natural_order;
pub(crate) mod opened_title;
pub(crate) mod progressive_layout;
pub mod references;
pub(crate) mod sample_reads;
pub(crate) mod several_films;
pub(crate) mod sidecar_name;
pub(crate) mod sources;
pub(crate) mod stores;
pub(crate) mod text_sidecars;
pub(crate) mod title_draft;
pub(crate) mod title_files;
