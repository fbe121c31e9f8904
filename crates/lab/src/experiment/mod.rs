//! Experiments as documents: a media source, functions, links and sinks, in arms that a sweep
//! spans, repeated in interleaved rounds (after MPEG NBMP, ISO/IEC 23090-8).
//!
//! A document's journey: [`Document`] is what was written, [`check`] says with its place what is
//! wrong in it, [`Plan`] is what will be done, [`run`] goes through the rounds (`run.rs`; [`Running`]
//! is the same on a thread) and says its [`Progress`]. `one.rs` carries one run out: `deploy.rs`
//! brings it up and always down again, `names.rs` and `command.rs` make a process of a text,
//! `collect.rs` reads what a sink said, `bounds.rs` throws away what the machine has spoilt. It
//! leaves a [`Record`]; [`report`](crate::report) is made from records alone, so that a new question
//! needs no new run.

mod arms;
mod bounds;
mod check;
mod collect;
mod command;
mod cpus;
mod deploy;
pub(crate) mod document;
mod fault;
mod folder;
mod health;
mod histograms;
mod joint;
mod machine;
mod measure;
mod names;
mod noise;
mod one;
mod printed;
mod process;
mod progress;
mod quantity;
mod record;
mod run;
mod running;
mod shapes;
mod source;
mod told;
mod used;
mod versions;
mod written;

pub(crate) use arms::plain;
pub use arms::{Arm, Plan};
pub use check::check;
pub(crate) use check::starting_order;
pub(crate) use collect::collect;
pub(crate) use deploy::Deployed;
pub use document::Document;
pub use fault::Fault;
pub(crate) use folder::Folders;
pub(crate) use histograms::{add as add_counts, decode as counts};
pub use machine::Machine;
pub(crate) use measure::{Measured, longest};
pub(crate) use names::{ONLY, Share, Where, joined, place_of};
pub(crate) use noise::{Noise, Ticks};
pub use progress::Progress;
pub use record::{Counted, Part, Record};
pub use run::{Job, Outcome, run};
pub use running::Running;
pub(crate) use source::sources;
pub(crate) use told::command_line;
pub use written::Written;
pub(crate) use written::{known, workflow};
