//! Converts planned parts to a body for the response writer.

pub(crate) mod body_parts;
pub(crate) mod body_source;
pub(crate) mod build_body;
mod concatenated;
mod local_file;
mod piped_remote_body;
mod remote_object;

pub(crate) use remote_object::PartStream;
