//! Files that are written while a run goes on.

use super::{Cell, HdrLog, Records};
use crate::rate::Kind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};

/// Those that were asked for.
#[derive(Default)]
pub struct Outputs {
    /// The HDR interval log.
    pub hdr: Option<HdrLog<BufWriter<File>>>,
    /// Raw records.
    pub records: Option<Records>,
}

impl Outputs {
    /// Logs what was counted in a second, by step and kind.
    pub(crate) fn log(
        &mut self,
        second: u64,
        cells: &BTreeMap<(u32, Kind), Cell>,
    ) -> Result<(), String> {
        let Some(log) = &mut self.hdr else {
            return Ok(());
        };
        for ((step, kind), cell) in cells {
            for (what, times) in [("due", &cell.from_due), ("sent", &cell.from_sent)] {
                let tag = format!("step{}/{}/{what}", step + 1, kind.name());
                log.write(&tag, second as f64, 1.0, times)
                    .map_err(|error| format!("the HDR log could not be written: {error}"))?;
            }
        }
        Ok(())
    }

    /// Writes records, one a line.
    pub(crate) fn record(&mut self, records: &[impl Serialize]) -> Result<(), String> {
        let written = self
            .records
            .as_mut()
            .map_or(Ok(()), |out| out.write(records));
        written.map_err(|error| format!("records could not be written: {error}"))
    }

    /// Writes out what is left.
    pub(crate) fn finish(self) -> Result<(), String> {
        let Outputs { hdr, records } = self;
        let wrong = |error: io::Error| format!("what was measured could not be written: {error}");
        hdr.map_or(Ok(()), HdrLog::finish).map_err(wrong)?;
        records.map_or(Ok(()), Records::finish).map_err(wrong)
    }
}
