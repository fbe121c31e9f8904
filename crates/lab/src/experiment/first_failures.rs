//! Detects an experiment in which the first attempts of all arms fail in the same way. Such an
//! experiment stops, because repetitions would fail as well.

use std::sync::Mutex;

/// The results of the arms' first attempts, until one attempt counts or fails in a different way.
#[derive(Debug)]
pub(super) struct FirstFailures {
    arms: usize,
    state: Mutex<FailureState>,
}

#[derive(Debug)]
enum FailureState {
    /// All first attempts so far failed in the same way. `reason` is their common reason without
    /// numbers, and `arms` is the number of these attempts.
    Same { reason: Option<String>, arms: usize },
    /// First attempts had different results, or a run counts. Later attempts are ignored.
    Different,
}

impl FirstFailures {
    /// Creates the state for an experiment with `arms` arms. If `any_counts` is true, a run already
    /// counts, so all later attempts are ignored.
    pub(super) fn new(arms: usize, any_counts: bool) -> FirstFailures {
        let state = match any_counts {
            true => FailureState::Different,
            false => FailureState::Same {
                reason: None,
                arms: 0,
            },
        };
        FirstFailures {
            arms,
            state: Mutex::new(state),
        }
    }

    /// Records the first attempt of an arm. `failure` is the reason of its failure. It is `None` if
    /// the attempt counts or if the machine disturbed it. Returns whether all first attempts so far
    /// failed in the same way.
    pub(super) fn note(&self, failure: Option<&str>) -> bool {
        let Ok(mut state) = self.state.lock() else {
            return false;
        };
        let same = match (&mut *state, failure) {
            (FailureState::Same { reason, arms }, Some(failure)) => {
                let failure = without_numbers(failure);
                *arms += 1;
                *reason.get_or_insert_with(|| failure.clone()) == failure
            }
            _ => false,
        };
        if !same {
            *state = FailureState::Different;
        }
        same
    }

    /// Returns whether the first attempts of all arms have failed in the same way.
    pub(super) fn is_hopeless(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(
            |state| matches!(&*state, FailureState::Same { arms, .. } if *arms >= self.arms),
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
        let same = FirstFailures::new(2, false);
        assert!(same.note(Some("port 81: exited")) && !same.is_hopeless());
        assert!(same.note(Some("port 7: exited")) && same.is_hopeless());
        for second in [None, Some("no such file")] {
            let other = FirstFailures::new(2, false);
            assert!(other.note(Some("exited")));
            assert!(!other.note(second) && !other.is_hopeless(), "{second:?}");
            assert!(!other.note(Some("exited")));
        }
        let resumed = FirstFailures::new(1, true);
        assert!(!resumed.note(Some("exited")) && !resumed.is_hopeless());
    }
}
