//! Files that the generator writes during a run.

use super::{HdrLogWriter, RecordWriter, RequestStats};
use crate::rate::RequestKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// A failed write to an output file.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Writing the HDR interval log failed.
    #[error("cannot write the HDR log: {0}; free disk space or choose another file")]
    HdrLogWriter(io::Error),
    /// Writing the raw records failed.
    #[error("cannot write the records: {0}; free disk space or choose another file")]
    Records(io::Error),
}

/// The output files that the user requested.
#[derive(Default)]
pub struct RunOutputs {
    /// The HDR interval log.
    pub hdr: Option<HdrLogWriter<BufWriter<Box<dyn Write + Send>>>>,
    /// Raw records.
    pub records: Option<RecordWriter>,
}

impl RunOutputs {
    /// Writes the latencies of one second to the HDR log, by step and kind of request.
    pub(crate) fn log_second(
        &mut self,
        second: u64,
        cells: &BTreeMap<(u32, RequestKind), RequestStats>,
    ) -> Result<(), OutputError> {
        let Some(log) = &mut self.hdr else {
            return Ok(());
        };
        for ((step, kind), cell) in cells {
            for (what, times) in [("due", &cell.from_due), ("sent", &cell.from_sent)] {
                let tag = format!("step{}/{}/{what}", step + 1, kind.name());
                log.write_interval(&tag, second as f64, 1.0, times)
                    .map_err(OutputError::HdrLogWriter)?;
            }
        }
        Ok(())
    }

    /// Writes records to the file of raw records, one per line.
    pub(crate) fn write_records(&mut self, records: &[impl Serialize]) -> Result<(), OutputError> {
        let written = self
            .records
            .as_mut()
            .map_or(Ok(()), |out| out.write_lines(records));
        written.map_err(OutputError::Records)
    }

    /// Flushes and closes the files.
    pub(crate) fn finish_files(self) -> Result<(), OutputError> {
        let RunOutputs { hdr, records } = self;
        hdr.map_or(Ok(()), HdrLogWriter::flush_log)
            .map_err(OutputError::HdrLogWriter)?;
        records
            .map_or(Ok(()), RecordWriter::finish_file)
            .map_err(OutputError::Records)
    }
}
