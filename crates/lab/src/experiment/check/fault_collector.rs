//! Collects the faults of a document during its check.

use crate::experiment::DocumentFault;
use std::ops::Range;

/// The faults found so far.
pub(super) struct FaultCollector<'a> {
    pub(super) text: &'a str,
    pub(super) found: Vec<DocumentFault>,
}

impl FaultCollector<'_> {
    pub(super) fn add_fault(&mut self, span: Range<usize>, path: &str, what: impl Into<String>) {
        let fault = DocumentFault::at_span(self.text, Some(span), path, what.into());
        self.found.push(fault);
    }
}
