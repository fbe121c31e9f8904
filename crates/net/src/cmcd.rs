//! Common Media Client Data, versions 1 and 2 (CTA-5004, CTA-5004-B). A player sends its state with
//! its requests, in one query argument or in four header fields.
//!
//! [`CmcdData`] parses the data of a client. [`CmcdReport`] writes the data of an emulated player.

mod parse;
mod value;
mod write;

pub use parse::CmcdData;
pub use value::{CmcdItem, CmcdValue};
pub use write::{CmcdFormat, CmcdObjectType, CmcdPlayerState, CmcdReport, format_uuid};

/// The header fields, in the order Object, Request, Session, Status.
const HEADERS: [&str; 4] = ["cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status"];
