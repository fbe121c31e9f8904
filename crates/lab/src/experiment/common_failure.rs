//! Detects an experiment in which the first attempts of all arms fail in the same way. Such an
//! experiment stops, because repetitions would fail as well.

use std::sync::Mutex;

/// The failures of the arms' first attempts, until an attempt succeeds or fails in a different way.
#[derive(Debug)]
pub(super) struct CommonFailureDetector {
    arms: usize,
    state: Mutex<FailureAgreement>,
}

#[derive(Debug)]
enum FailureAgreement {
    /// All first attempts so far failed in the same way. `reason` is their common reason without
    /// numbers, and `arms` is the number of these attempts.
    Same { reason: Option<String>, arms: usize },
    /// First attempts had different results, or a run has succeeded. Later attempts are ignored.
    Different,
}

impl CommonFailureDetector {
    /// Creates the state for an experiment with `arms` arms. If an earlier session of the
    /// experiment had a successful run, `any_counts` is true. All attempts are then ignored.
    pub(super) fn new(arms: usize, any_counts: bool) -> CommonFailureDetector {
        let state = match any_counts {
            true => FailureAgreement::Different,
            false => FailureAgreement::Same {
                reason: None,
                arms: 0,
            },
        };
        CommonFailureDetector {
            arms,
            state: Mutex::new(state),
        }
    }

    /// Records the first attempt of an arm. `failure` is the reason why the attempt failed. It is
    /// `None` if the attempt succeeded. It is also `None` if the cause may be temporary, so that a
    /// retry may succeed. Returns whether all first attempts so far failed in the same way.
    pub(super) fn record_first_attempt(&self, failure: Option<&str>) -> bool {
        let Ok(mut state) = self.state.lock() else {
            return false;
        };
        let same = match (&mut *state, failure) {
            (FailureAgreement::Same { reason, arms }, Some(failure)) => {
                let failure = without_numbers(failure);
                *arms += 1;
                *reason.get_or_insert_with(|| failure.clone()) == failure
            }
            _ => false,
        };
        if !same {
            *state = FailureAgreement::Different;
        }
        same
    }

    /// Returns whether the first attempts of all arms have failed in the same way.
    pub(super) fn has_common_failure(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(
            |state| matches!(&*state, FailureAgreement::Same { arms, .. } if *arms >= self.arms),
        )
    }
}

/// Replaces each number by `#`, because ports, process IDs and times differ between attempts.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            false => out.push(c),
            true if out.ends_with('#') => {}
            true => out.push('#'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_failures_of_every_arm_are_hopeless() {
        let same = CommonFailureDetector::new(2, false);
        assert!(same.record_first_attempt(Some("port 81: exited")) && !same.has_common_failure());
        assert!(same.record_first_attempt(Some("port 7: exited")) && same.has_common_failure());
        for second in [None, Some("no such file")] {
            let other = CommonFailureDetector::new(2, false);
            assert!(other.record_first_attempt(Some("exited")));
            assert!(
                !other.record_first_attempt(second) && !other.has_common_failure(),
                "{second:?}"
            );
            assert!(!other.record_first_attempt(Some("exited")));
        }
        let resumed = CommonFailureDetector::new(1, true);
        assert!(!resumed.record_first_attempt(Some("exited")) && !resumed.has_common_failure());
    }
}
