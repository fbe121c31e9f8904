//! An exponentially weighted moving average, as in hls.js and Shaka Player.

/// An average in which a sample loses half of its weight after each half-life.
#[derive(Debug, Clone)]
pub(super) struct Ewma {
    half_life: f64,
    sum: f64,
    weight: f64,
}

impl Ewma {
    /// Creates an average. The half-life has the unit of the weights.
    pub(super) fn new(half_life: f64) -> Ewma {
        Ewma {
            half_life,
            sum: 0.0,
            weight: 0.0,
        }
    }

    pub(super) fn add_weighted_sample(&mut self, weight: f64, value: f64) {
        let forget = 0.5_f64.powf(weight / self.half_life);
        self.sum = value * (1.0 - forget) + forget * self.sum;
        self.weight += weight;
    }

    /// Returns the average, corrected for its initial value of zero. Returns `None` without
    /// samples.
    pub(super) fn current_average(&self) -> Option<f64> {
        let share = 1.0 - 0.5_f64.powf(self.weight / self.half_life);
        (share > 0.0).then(|| self.sum / share)
    }
}
