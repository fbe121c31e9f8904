//! Converts planned parts to a body for the response writer.

pub(crate) mod body_parts;
pub(crate) mod body_source;
pub(crate) mod build_body;
mod concatenated;
mod local_file;
mod remote_object;
mod spliced_body;

pub(crate) use remote_object::PartStream;
