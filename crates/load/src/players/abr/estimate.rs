//! Throughput and latency, as averages that forget (dash.js and Sabre: "EWMA").

/// Half-lives in seconds: a fast and a slow average; the more careful one counts.
const HALF_LIVES_S: [f64; 2] = [3.0, 8.0];

/// Samples that robust MPC looks back at.
const RECENT: usize = 5;

/// One download.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Bits that came.
    pub bits: f64,
    /// From the first byte to the last.
    pub transfer_s: f64,
    /// From the request to the first byte.
    pub latency_s: f64,
    /// Seconds of media that it was.
    pub segment_s: f64,
}

/// What is thought of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Bits a second: the smaller of the averages.
    pub throughput_bps: f64,
    /// Seconds to the first byte: the larger of the averages.
    pub latency_s: f64,
    /// Harmonic mean of the last five samples, bits a second.
    pub harmonic_bps: f64,
}

/// Collects samples.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    throughput: [f64; 2],
    throughput_weight: f64,
    latency: [f64; 2],
    latency_weight: f64,
    recent: [f64; RECENT],
    count: usize,
}

impl Estimator {
    /// Takes a sample in. One without bits or without time says nothing.
    pub fn push(&mut self, sample: &Sample) {
        if !(sample.bits > 0.0 && sample.transfer_s > 0.0 && sample.segment_s > 0.0) {
            return;
        }
        let throughput = sample.bits / sample.transfer_s;
        for (n, half_life) in HALF_LIVES_S.into_iter().enumerate() {
            let forget = 0.5_f64.powf(sample.transfer_s / half_life);
            self.throughput[n] = forget * self.throughput[n] + (1.0 - forget) * throughput;
            let forget = 0.5_f64.powf(sample.segment_s / half_life);
            self.latency[n] = forget * self.latency[n] + (1.0 - forget) * sample.latency_s;
        }
        self.throughput_weight += sample.transfer_s;
        self.latency_weight += sample.segment_s;
        self.recent[self.count % RECENT] = throughput;
        self.count += 1;
    }

    /// What the samples say; the averages start at zero and are freed of it.
    pub fn estimate(&self) -> Option<Estimate> {
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
        Some(Estimate {
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
    fn constant_networks_are_known_at_once() {
        let mut estimator = Estimator::default();
        assert_eq!(estimator.estimate(), None);
        for n in 0..20 {
            let transfer_s = 0.5 + f64::from(n % 3);
            estimator.push(&Sample {
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
    fn falls_are_believed_before_rises() {
        let mut estimator = Estimator::default();
        let sample = |mbps: f64| Sample {
            bits: mbps * 1e6,
            transfer_s: 1.0,
            latency_s: 0.0,
            segment_s: 2.0,
        };
        (0..30).for_each(|_| estimator.push(&sample(8.0)));
        estimator.push(&sample(1.0));
        let fallen = estimator.estimate().unwrap().throughput_bps;
        (0..30).for_each(|_| estimator.push(&sample(1.0)));
        estimator.push(&sample(8.0));
        let risen = estimator.estimate().unwrap().throughput_bps;
        assert!(8e6 - fallen > risen - 1e6, "{fallen} {risen}");
    }

    #[test]
    fn empty_samples_say_nothing() {
        let mut estimator = Estimator::default();
        estimator.push(&Sample {
            bits: 0.0,
            transfer_s: 1.0,
            latency_s: 0.0,
            segment_s: 2.0,
        });
        estimator.push(&Sample {
            bits: 1.0,
            transfer_s: 0.0,
            latency_s: 0.0,
            segment_s: 2.0,
        });
        assert_eq!(estimator.estimate(), None);
    }
}
