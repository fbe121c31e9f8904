//! Deliberate bugs that `tests/faults` must find. Only builds with the feature `planted-bugs`
//! contain them.

/// Returns whether the environment variable `PLANTED_BUG` names this bug.
#[cfg(feature = "planted-bugs")]
pub fn is_bug_planted(bug: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = NAME.get_or_init(|| std::env::var("PLANTED_BUG").ok());
    name.as_deref() == Some(bug)
}

/// Returns `false`, because this build contains no planted bugs.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub const fn is_bug_planted(_bug: &str) -> bool {
    false
}
