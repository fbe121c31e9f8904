//! Histograms with several labels.

use super::{BucketBounds, Histogram, LabeledHistograms, MetricSpec, Metrics};

/// A histogram per combination of label values.
pub struct MultiLabelHistogram {
    labels: &'static [&'static str],
    inner: LabeledHistograms,
}

impl Metrics {
    /// Registers a histogram per combination of label values. `buckets` are the upper bounds of the
    /// buckets.
    pub fn multi_label_histogram(
        &self,
        row: &MetricSpec,
        labels: &'static [&'static str],
        buckets: &'static [f64],
    ) -> MultiLabelHistogram {
        let inner = LabeledHistograms::new_with_constructor(BucketBounds(buckets));
        self.register_metric(row, inner.clone());
        MultiLabelHistogram { labels, inner }
    }
}

impl MultiLabelHistogram {
    /// Returns the histogram of these label values, which must be in the order of the declared
    /// labels. Callers should store the histogram, because the look-up takes a lock.
    pub fn with_labels(&self, values: &[&str]) -> Histogram {
        let pairs = self.labels.iter().zip(values);
        let labels = pairs
            .map(|(label, value)| (*label, (*value).to_owned()))
            .collect();
        self.inner.get_or_create_owned(&labels)
    }
}
