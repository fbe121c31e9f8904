//! A common interface for the compared eviction policies.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use store::cache::{MemoryCache, MemoryWeight};

/// A cache whose total size in bytes is limited.
pub trait Policy {
    /// Requests an object, and returns whether the request was a hit. On a miss, the policy may
    /// insert the object.
    fn request_object(&mut self, object: u64, size: u64) -> bool;
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name(u64);

#[derive(Clone)]
struct Size(u64);

impl MemoryWeight for Name {
    fn weight_bytes(&self) -> u64 {
        0
    }
}

impl MemoryWeight for Size {
    fn weight_bytes(&self) -> u64 {
        self.0
    }
}

/// The memory cache of this crate.
pub struct MemoryTier(MemoryCache<Name, Size>);

impl MemoryTier {
    pub fn new(bytes_max: u64) -> MemoryTier {
        MemoryTier(MemoryCache::new(bytes_max, None))
    }
}

impl Policy for MemoryTier {
    fn request_object(&mut self, object: u64, size: u64) -> bool {
        let found = self.0.get(&Name(object)).is_some();
        if !found {
            self.0.insert(Name(object), Size(size));
        }
        found
    }
}

/// A cache that evicts the least recently used object.
pub struct Lru {
    bytes_max: u64,
    bytes: u64,
    now: u64,
    used: HashMap<u64, (u64, u64)>,
    order: BTreeMap<u64, u64>,
}

impl Lru {
    pub fn new(bytes_max: u64) -> Lru {
        Lru {
            bytes_max,
            bytes: 0,
            now: 0,
            used: HashMap::new(),
            order: BTreeMap::new(),
        }
    }
}

impl Policy for Lru {
    fn request_object(&mut self, object: u64, size: u64) -> bool {
        self.now += 1;
        let before = self.used.insert(object, (self.now, size));
        self.order.insert(self.now, object);
        if let Some((then, _)) = before {
            self.order.remove(&then);
            return true;
        }
        self.bytes += size;
        while self.bytes > self.bytes_max {
            let (_, oldest) = self.order.pop_first().unwrap();
            self.bytes -= self.used.remove(&oldest).unwrap().1;
        }
        false
    }
}

/// S3-FIFO (Yang et al., SOSP 2023). The small queue gets a tenth of the bytes. Each cached object
/// has a use counter of two bits. The ghost queue remembers as many evicted objects as the main
/// queue contains.
pub struct S3Fifo {
    bytes_max: u64,
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    small_bytes: u64,
    main_bytes: u64,
    /// Size in bytes and use counter of each cached object.
    kept: HashMap<u64, (u64, u8)>,
    ghosts: VecDeque<u64>,
    ghost: HashSet<u64>,
}

impl S3Fifo {
    pub fn new(bytes_max: u64) -> S3Fifo {
        S3Fifo {
            bytes_max,
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_bytes: 0,
            main_bytes: 0,
            kept: HashMap::new(),
            ghosts: VecDeque::new(),
            ghost: HashSet::new(),
        }
    }

    fn evict(&mut self) {
        if self.small_bytes > self.bytes_max / 10 || self.main.is_empty() {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        let object = self.small.pop_front().unwrap();
        let (size, uses) = self.kept[&object];
        self.small_bytes -= size;
        if uses > 0 {
            self.kept.insert(object, (size, 0));
            self.main_bytes += size;
            self.main.push_back(object);
            return;
        }
        self.kept.remove(&object);
        self.ghosts.push_back(object);
        self.ghost.insert(object);
        while self.ghosts.len() > self.main.len().max(16) {
            let oldest = self.ghosts.pop_front().unwrap();
            self.ghost.remove(&oldest);
        }
    }

    fn evict_main(&mut self) {
        let object = self.main.pop_front().unwrap();
        let (size, uses) = self.kept[&object];
        if uses > 0 {
            self.kept.insert(object, (size, uses - 1));
            self.main.push_back(object);
        } else {
            self.main_bytes -= size;
            self.kept.remove(&object);
        }
    }
}

impl Policy for S3Fifo {
    fn request_object(&mut self, object: u64, size: u64) -> bool {
        if let Some((_, uses)) = self.kept.get_mut(&object) {
            *uses = 3.min(*uses + 1);
            return true;
        }
        if size > self.bytes_max {
            return false;
        }
        while self.small_bytes + self.main_bytes + size > self.bytes_max {
            self.evict();
        }
        self.kept.insert(object, (size, 0));
        if self.ghost.remove(&object) {
            self.main_bytes += size;
            self.main.push_back(object);
        } else {
            self.small_bytes += size;
            self.small.push_back(object);
        }
        false
    }
}
