//! Samples of renditions whose source is already encrypted.

use crate::error::Result;
use crate::presentation::{Presentation, Rendition};
use crate::protection::{SampleDecipher, SourceProtection};
use std::ops::Range;

impl Presentation {
    /// Returns the source's own encryption of a rendition, if the samples are served with this
    /// encryption. Returns `None` if the source is not encrypted or if this server encrypts the
    /// samples.
    pub fn served_source_protection(&self, rendition: &Rendition) -> Option<&SourceProtection> {
        let source = self.track(rendition).protection.as_deref()?;
        let signaling = self.track_signaling(rendition);
        signaling
            .is_none_or(|signaling| signaling.is_of_source)
            .then_some(source)
    }

    /// Decrypts a range of samples of an encrypted source in place. The payload starts at the first
    /// sample of the range. Does nothing if the source is not encrypted.
    ///
    /// # Errors
    /// An error of the cipher, or `Malformed` if the payload does not match the samples.
    pub fn decrypt_samples_of(
        &self,
        rendition: &Rendition,
        samples: Range<u32>,
        payload: &mut [u8],
        cipher: &impl SampleDecipher,
    ) -> Result<()> {
        let track = self.track(rendition);
        let Some(source) = &track.protection else {
            return Ok(());
        };
        let sizes = track.samples.iter_range(samples.clone()).map(|s| s.size);
        source.decrypt_samples(payload, (samples, sizes), cipher)
    }
}
