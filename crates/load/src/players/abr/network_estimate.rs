//! Exponentially weighted averages of throughput and latency, as in dash.js and Sabre.

/// Half-lives of a fast and a slow average, in seconds. The estimate uses the more pessimistic of
/// the two averages.
const HALF_LIVES_S: [f64; 2] = [3.0, 8.0];

/// Weight of one second of transfer time in dash.js 5, where
/// `weightDownloadTimeMultiplicationFactor` is 0.0015 per millisecond.
const DASH_JS_WEIGHT: f64 = 1.5;

/// Number of samples for the harmonic mean.
const RECENT: usize = 5;

/// One download.
#[derive(Debug, Clone, Copy)]
pub struct DownloadSample {
    /// Bits received.
    pub bits: f64,
    /// Seconds from the first byte to the last byte.
    pub transfer_s: f64,
    /// Seconds from the request to the first byte.
    pub latency_s: f64,
    /// Duration of the media, in seconds.
    pub segment_s: f64,
}

/// An estimate of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkEstimate {
    /// Throughput in bits per second. This is the smaller of the fast and the slow average.
    pub throughput_bps: f64,
    /// Time to the first byte in seconds. This is the larger of the fast and the slow average.
    pub latency_s: f64,
    /// Harmonic mean of the last five samples, in bits per second.
    pub harmonic_bps: f64,
}

/// Averages download samples.
#[derive(Debug, Clone)]
pub struct EwmaEstimator {
    /// Weight of one second of transfer time.
    second_weight: f64,
    throughput: [f64; 2],
    throughput_weight: f64,
    latency: [f64; 2],
    latency_weight: f64,
    recent: [f64; RECENT],
    count: usize,
}

impl Default for EwmaEstimator {
    fn default() -> EwmaEstimator {
        EwmaEstimator {
            second_weight: 1.0,
            throughput: [0.0; 2],
            throughput_weight: 0.0,
            latency: [0.0; 2],
            latency_weight: 0.0,
            recent: [0.0; RECENT],
            count: 0,
        }
    }
}

impl EwmaEstimator {
    /// Creates an estimator with the weights of dash.js 5. The default estimator has the weights of
    /// Sabre.
    pub fn with_dash_js_weights() -> EwmaEstimator {
        EwmaEstimator {
            second_weight: DASH_JS_WEIGHT,
            ..EwmaEstimator::default()
        }
    }

    /// Adds a sample. Ignores samples without bits or duration.
    pub fn add_sample(&mut self, sample: &DownloadSample) {
        if !(sample.bits > 0.0 && sample.transfer_s > 0.0 && sample.segment_s > 0.0) {
            return;
        }
        let throughput = sample.bits / sample.transfer_s;
        let weight = sample.transfer_s * self.second_weight;
        for (n, half_life) in HALF_LIVES_S.into_iter().enumerate() {
            let forget = 0.5_f64.powf(weight / half_life);
            self.throughput[n] = forget * self.throughput[n] + (1.0 - forget) * throughput;
            let forget = 0.5_f64.powf(sample.segment_s / half_life);
            self.latency[n] = forget * self.latency[n] + (1.0 - forget) * sample.latency_s;
        }
        self.throughput_weight += weight;
        self.latency_weight += sample.segment_s;
        self.recent[self.count % RECENT] = throughput;
        self.count += 1;
    }

    /// Returns the estimate, or `None` without samples. Corrects the averages for their initial
    /// value of zero.
    pub fn estimate(&self) -> Option<NetworkEstimate> {
        if self.count == 0 {
            return None;
        }
        let freed = |value: f64, weight: f64, half_life: f64| {
            value / (1.0 - 0.5_f64.powf(weight / half_life))
        };
        let throughput =
            |n: usize| freed(self.throughput[n], self.throughput_weight, HALF_LIVES_S[n]);
        let latency = |n: usize| freed(self.latency[n], self.latency_weight, HALF_LIVES_S[n]);
        let recent = &self.recent[..self.count.min(RECENT)];
        let inverse: f64 = recent.iter().map(|sample| 1.0 / sample).sum();
        Some(NetworkEstimate {
            throughput_bps: throughput(0).min(throughput(1)),
            latency_s: latency(0).max(latency(1)),
            harmonic_bps: recent.len() as f64 / inverse,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_networks_are_estimated_exactly() {
        let mut estimator = EwmaEstimator::default();
        assert_eq!(estimator.estimate(), None);
        for n in 0..20 {
            let transfer_s = 0.5 + f64::from(n % 3);
            estimator.add_sample(&DownloadSample {
                bits: 4e6 * transfer_s,
                transfer_s,
                latency_s: 0.05,
                segment_s: 2.0,
            });
            let estimate = estimator.estimate().unwrap();
            assert!((estimate.throughput_bps - 4e6).abs() < 1.0, "{estimate:?}");
            assert!((estimate.latency_s - 0.05).abs() < 1e-9);
            assert!((estimate.harmonic_bps - 4e6).abs() < 1.0);
        }
    }

    #[test]
    fn falls_change_the_estimate_faster_than_rises() {
        let mut estimator = EwmaEstimator::default();
        let sample = |mbps: f64| DownloadSample {
            bits: mbps * 1e6,
            transfer_s: 1.0,
            latency_s: 0.0,
            segment_s: 2.0,
        };
        (0..30).for_each(|_| estimator.add_sample(&sample(8.0)));
        estimator.add_sample(&sample(1.0));
        let fallen = estimator.estimate().unwrap().throughput_bps;
        (0..30).for_each(|_| estimator.add_sample(&sample(1.0)));
        estimator.add_sample(&sample(8.0));
        let risen = estimator.estimate().unwrap().throughput_bps;
        assert!(8e6 - fallen > risen - 1e6, "{fallen} {risen}");
    }

    #[test]
    fn empty_samples_are_ignored() {
        let mut estimator = EwmaEstimator::default();
        estimator.add_sample(&DownloadSample {
            bits: 0.0,
            transfer_s: 1.0,
            latency_s: 0.0,
            segment_s: 2.0,
        });
        estimator.add_sample(&DownloadSample {
            bits: 1.0,
            transfer_s: 0.0,
            latency_s: 0.0,
            segment_s: 2.0,
        });
        assert_eq!(estimator.estimate(), None);
    }
}
