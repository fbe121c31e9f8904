//! Stops an experiment whose first attempts all fail in the same way: repeating them is useless.

use std::sync::Mutex;

/// The first attempts of all arms, until one of them counts or fails in another way.
#[derive(Debug)]
pub(super) struct FirstFailures {
    arms: usize,
    state: Mutex<FailureState>,
}

#[derive(Debug)]
enum FailureState {
    /// All attempts so far failed in the same way: their reason without numbers, and the number of arms.
    Same { reason: Option<String>, arms: usize },
    /// Attempts differ, or a run counts.
    Different,
}

impl FirstFailures {
    /// Watches the first attempts of `arms` arms. Watches nothing if a run of the experiment
    /// already counts.
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

    /// Notes the first attempt of an arm. `failure` is the reason of the failure; `None` if the
    /// attempt counts or the machine disturbed it. Returns whether all attempts so far failed in
    /// the same way.
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

    /// Returns whether every arm has failed, all in the same way.
    pub(super) fn is_hopeless(&self) -> bool {
        let state = self.state.lock();
        state.is_ok_and(
            |state| matches!(&*state, FailureState::Same { arms, .. } if *arms >= self.arms),
        )
    }
}

/// Replaces numbers, which differ between attempts: ports, process ids, times.
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
