//! Experiments as documents: a media source, functions, links and sinks, in arms that a sweep
//! spans, repeated in interleaved rounds (after MPEG NBMP, ISO/IEC 23090-8).
//!
//! A document's journey: [`Document`] is what was written, [`check`] says with its place what is
//! wrong in it, [`Plan`] is what will be done, `deploy.rs` brings one run up and always down again,
//! `run.rs` goes through the rounds and writes a [`Record`] a run; [`summary`] is made from records
//! alone, so that a new question needs no new run.

mod arms;
mod check;
mod deploy;
mod document;
mod fault;
mod health;
mod noise;
mod record;
mod run;
mod summary;

pub use arms::{Arm, Plan};
pub use check::check;
pub use document::Document;
pub use fault::Fault;
pub use record::Record;
pub use run::{Outcome, run};
pub use summary::{Summary, summary};
