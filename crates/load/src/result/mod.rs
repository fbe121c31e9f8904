//! What a run leaves behind: distributions, counts, logs and records.

mod cell;
mod histogram;
mod log;
mod outputs;
mod records;
mod run;

pub use cell::Cell;
pub use histogram::Times;
pub use log::{HdrLog, read as read_log};
pub use outputs::Outputs;
pub use records::{Record, Records, read as read_records};
pub use run::{LAG_P99_MAX_MS, Run, Second, Stretch, VERSION};
