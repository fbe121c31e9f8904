//! The ids of the latest commands, so that a command that arrives twice is executed only once.

use std::collections::{HashSet, VecDeque};

/// A bounded set of ids. If the set is full, a new id replaces the oldest id.
#[derive(Debug)]
pub struct RecentIds {
    order: VecDeque<String>,
    known: HashSet<String>,
    count_max: usize,
}

impl RecentIds {
    pub fn new(count_max: usize) -> RecentIds {
        RecentIds {
            order: VecDeque::new(),
            known: HashSet::new(),
            count_max,
        }
    }

    /// Adds an id. Returns whether the id is new.
    pub fn insert_id(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > self.count_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_once_and_the_oldest_is_forgotten() {
        let mut ids = RecentIds::new(2);
        assert!(ids.insert_id("a") && ids.insert_id("b"));
        assert!(!ids.insert_id("a") && !ids.insert_id("b"));
        assert!(ids.insert_id("c") && ids.insert_id("a"));
        assert!(!ids.insert_id("c"));
        assert_eq!((ids.order.len(), ids.known.len()), (2, 2));
    }
}
