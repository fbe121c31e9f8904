//! The disk tier behind the memory tier.
//!
//! An object is written to disk when it is evicted from memory, when it is used a second time, and
//! when the process exits. A disk hit creates a memory entry that refers to the body in its file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use net::FatalError;
use net::metrics::{Counter, Gauge, MetricSpec, Metrics};
use store::cache::{EvictionListener, LeadOrFollow, MemoryCache};
use store::{DiskTier, ObjectToStore, TierHit};

use crate::Edge;
use crate::cache_entry::CacheEntry;
use crate::cache_key::CacheKey;
use crate::cached_object::CachedObject;
use crate::config::EdgeSettings;
use crate::disk_body::DiskBody;
use crate::object_body::SharedObjectBody;

mod deferred_tier;
mod persisted_entry;
#[cfg(test)]
mod tests;

use deferred_tier::DeferredTier;
use persisted_entry::PersistedEntry;

const BYTES: MetricSpec = MetricSpec {
    name: "cache_disk",
    unit: "bytes",
    help: "Size of the responses on disk, including their heads",
};
const OBJECTS: MetricSpec = MetricSpec {
    name: "cache_disk_objects",
    unit: "",
    help: "Responses on disk",
};
const WAITING: MetricSpec = MetricSpec {
    name: "cache_disk_waiting",
    unit: "",
    help: "Responses waiting to be written to disk",
};
const WRITTEN: MetricSpec = MetricSpec {
    name: "cache_disk_written",
    unit: "",
    help: "Responses written to disk",
};
const DROPPED: MetricSpec = MetricSpec {
    name: "cache_disk_dropped",
    unit: "",
    help: "Responses not written: the queue was full, or the write failed",
};
const BROKEN: MetricSpec = MetricSpec {
    name: "cache_disk_broken",
    unit: "",
    help: "Damaged files that were found on disk and removed",
};

/// The disk tier, if one is configured, and its metrics.
pub struct DiskCache {
    tier: DeferredTier,
    bytes_max: u64,
    memory: Arc<MemoryCache<CacheKey, CacheEntry>>,
    gauges: [Gauge; 3],
    counters: [Counter; 3],
}

/// Creates the memory tier, and opens the disk tier behind it if one is configured. If this process
/// `replaces` another process, the disk tier may be opened later (see [`DeferredTier`]).
///
/// # Errors
/// [`FatalError`] when the folder of the disk tier is unavailable.
pub fn open_memory_and_disk(
    settings: &EdgeSettings,
    metrics: &Metrics,
    replaces: bool,
) -> Result<MemoryAndDiskTiers, FatalError> {
    let tier = DeferredTier::new(settings.disk.clone());
    let what = format!("--disk-dir: cannot open {}", tier.folder_text());
    match tier.try_open_tier() {
        Err(error) if replaces && error.kind() == io::ErrorKind::AddrInUse => Ok(false),
        opened => opened.map_err(FatalError::cannot(what)),
    }?;
    let evicted = tier.clone();
    let leaving: EvictionListener<CacheKey, CacheEntry> = Arc::new(move |key, entry| {
        if let Some(tier) = evicted.get_if_open() {
            write_if_absent(tier, key, entry);
        }
    });
    let leaving = settings.disk.is_some().then_some(leaving);
    let memory = Arc::new(MemoryCache::new(settings.memory_bytes, leaving));
    let disk = DiskCache {
        tier,
        bytes_max: settings
            .disk
            .as_ref()
            .map_or(0, |(_, bytes_max)| *bytes_max),
        memory: memory.clone(),
        gauges: [&BYTES, &OBJECTS, &WAITING].map(|row| metrics.gauge(row)),
        counters: [&WRITTEN, &DROPPED, &BROKEN].map(|row| metrics.counter(row)),
    };
    Ok((memory, Arc::new(disk)))
}

/// The memory tier, and the disk tier behind it.
type MemoryAndDiskTiers = (Arc<MemoryCache<CacheKey, CacheEntry>>, Arc<DiskCache>);

impl DiskCache {
    /// Updates the metrics.
    pub fn update_metrics(&self) {
        let Some(tier) = self.tier.get_if_open() else {
            return;
        };
        let to_gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let bytes = i64::try_from(tier.stored_bytes()).unwrap_or(i64::MAX);
        let values = [
            bytes,
            to_gauge(tier.len()),
            to_gauge(tier.unwritten_count()),
        ];
        for (gauge, value) in self.gauges.iter().zip(values) {
            gauge.set(value);
        }
        let counts = tier.counts();
        let values = [counts.written, counts.dropped, counts.broken];
        for (counter, value) in self.counters.iter().zip(values) {
            counter.inc_by(value.saturating_sub(counter.get()));
        }
    }

    /// Returns the figures for the status page, or null while no disk tier is open.
    pub fn describe_status(&self) -> serde_json::Value {
        let Some(tier) = self.tier.get_if_open() else {
            return serde_json::Value::Null;
        };
        let counts = tier.counts();
        serde_json::json!({
            "bytes": tier.stored_bytes(), "bytes_max": self.bytes_max, "objects": tier.len(),
            "waiting": tier.unwritten_count(), "written": counts.written, "dropped": counts.dropped,
            "broken": counts.broken,
        })
    }

    /// Returns whether an entry can be read from disk now.
    pub fn has_entry(&self, key: &str) -> bool {
        self.tier
            .get_if_open()
            .is_some_and(|tier| tier.is_written(key))
    }

    /// Returns whether an entry may be on disk or waits to be written. While a configured tier is not
    /// open or reads its folder, this is unknown, and the result is `true`.
    pub fn may_have_entry(&self, key: &str) -> bool {
        // The order matters: the tier may open between the two calls.
        self.tier.is_unopened()
            || self
                .tier
                .get_even_if_released()
                .is_some_and(|tier| may_contain(tier, key))
    }

    /// Returns whether the disk tier is configured and has not been opened yet.
    pub fn is_unopened(&self) -> bool {
        self.tier.is_unopened()
    }

    /// Opens the disk tier if no other process uses it any more. Returns true if no further attempt
    /// is needed, because the tier is open, is not configured, or cannot be opened.
    pub fn try_open_tier(&self) -> bool {
        match self.tier.try_open_tier() {
            Ok(opened) => {
                self.write_reused_entries();
                opened
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => false,
            Err(error) => {
                tracing::error!(%error, folder = self.tier.folder_text(), "no disk tier");
                true
            }
        }
    }

    /// Writes the objects that are only in memory, and releases the disk tier for a successor
    /// process. Blocks the thread.
    pub fn flush_and_release(&self) {
        self.tier
            .flush_and_release(self.collect_memory_only_objects());
    }

    /// Returns the objects in memory that are not on disk.
    fn collect_memory_only_objects(&self) -> Vec<ObjectToStore> {
        let Some(tier) = self.tier.get_if_open() else {
            return Vec::new();
        };
        let entries = self.memory.all_entries().into_iter();
        let rest = entries.filter(|(key, _)| !tier.has(key.as_str()));
        rest.filter_map(|(key, entry)| to_tier_object(&key, &entry))
            .collect()
    }

    /// Writes an entry, unless the entry is already on disk or is of a kind that is never stored on
    /// disk.
    pub fn write_entry(&self, key: &CacheKey, entry: &CacheEntry) {
        if let Some(tier) = self.tier.get_if_open() {
            write_if_absent(tier, key, entry);
        }
    }

    /// Writes the objects that were used a second time before the tier was open, and the variant
    /// indexes.
    fn write_reused_entries(&self) {
        for (key, entry) in self.memory.all_entries() {
            let is_due = match &entry {
                CacheEntry::Object(object) => object.is_reused.load(Relaxed),
                CacheEntry::Variants(_) => true,
                CacheEntry::Block(_) | CacheEntry::Unshareable { .. } => false,
            };
            if is_due {
                self.write_entry(&key, &entry);
            }
        }
    }

    /// Removes the entry of a key from disk. If the tier is not open yet, notes the key, so that
    /// the entry is removed later.
    pub fn remove_entry(&self, key: &str) {
        self.tier.note_removed(key);
        let tier = self.tier.get_even_if_released();
        if let Some(tier) = tier.filter(|tier| may_contain(tier, key)) {
            tier.remove(key);
        }
    }

    /// Removes all entries of a URL. If the tier is not open yet, notes the URL. Returns the number
    /// of removed entries (see [`DiskTier::remove_group`]).
    pub fn remove_url(&self, url: &str) -> usize {
        self.tier.note_removed_url(url);
        let tier = self.tier.get_even_if_released();
        tier.map_or(0, |tier| tier.remove_group(url))
    }

    /// Removes the entries that `which` selects by key and tags. Returns the number of removed
    /// entries (see [`DiskTier::purge`]). If the tier is not open yet, it starts empty, because
    /// only keys and URLs can be noted.
    pub fn purge_entries(
        &self,
        which: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> usize {
        self.tier.note_purge();
        let tier = self.tier.get_even_if_released();
        tier.map_or(0, |tier| tier.purge(which))
    }
}

/// Returns whether an entry contains a body.
fn has_cached_body(entry: &CacheEntry) -> bool {
    match entry {
        CacheEntry::Object(object) => object.blocks.is_none(),
        CacheEntry::Block(_) => true,
        CacheEntry::Variants(_) | CacheEntry::Unshareable { .. } => false,
    }
}

/// Returns whether an entry is on disk or queued, or may be in a file that the tier has not read
/// yet.
fn may_contain(tier: &DiskTier, key: &str) -> bool {
    // The order matters: the scan may add the entry and end between the two calls.
    tier.is_scanning() || tier.has(key)
}

fn write_if_absent(tier: &DiskTier, key: &CacheKey, entry: &CacheEntry) {
    if !tier.has(key.as_str())
        && let Some(tier_object) = to_tier_object(key, entry)
    {
        // If the queue has no room for the entry, the tier drops the entry and counts it as
        // dropped.
        tier.put(tier_object);
    }
}

fn to_tier_object(key: &CacheKey, entry: &CacheEntry) -> Option<ObjectToStore> {
    let (tags, body) = match entry {
        CacheEntry::Object(object) if object.is_purged.load(Relaxed) => return None,
        CacheEntry::Object(object) => {
            let body = match object.blocks {
                Some(_) => store::TierBodySource::Memory(Vec::new()),
                None => object.body.to_tier_body()?,
            };
            (object.surrogate_keys.join(" "), body)
        }
        CacheEntry::Block(content) => (String::new(), content.to_tier_body()?),
        CacheEntry::Variants(_) => (String::new(), store::TierBodySource::Memory(Vec::new())),
        CacheEntry::Unshareable { .. } => return None,
    };
    Some(ObjectToStore {
        key: key.as_str().to_owned(),
        tags,
        head: PersistedEntry::from_entry(entry, SystemTime::now())?.to_json()?,
        body,
    })
}

fn decode_tier_hit(found: TierHit) -> Option<CacheEntry> {
    let stored = PersistedEntry::from_json(&found.head)?;
    let filed = DiskBody::new(found.file, found.body);
    stored.into_entry(SharedObjectBody::from_disk(filed), SystemTime::now())
}

impl Edge {
    /// Loads an entry from disk into memory. Concurrent requests for the same key share one read.
    pub(crate) async fn load_from_disk(&self, key: &CacheKey) {
        let Some(tier) = self.disk.tier.get_if_open() else {
            return;
        };
        match self.flights.lead_or_join(key) {
            LeadOrFollow::Lead(lead) => {
                let (tier, name) = (tier.clone(), key.clone());
                let found = tokio::task::spawn_blocking(move || {
                    let found = decode_tier_hit(tier.get(name.as_str())?);
                    if found.is_none() {
                        // The format of the entry is unknown, for example because another version
                        // of the program wrote the entry.
                        tier.remove(name.as_str());
                    }
                    found
                });
                if let Ok(Some(entry)) = found.await
                    && !lead.is_purged()
                {
                    self.memory.insert(key.clone(), entry);
                    if lead.is_purged() {
                        self.memory.remove(key);
                    }
                }
            }
            // The outcome is ignored, because the caller does another lookup in any case.
            LeadOrFollow::Follow(follow) => drop(follow.wait_for_result().await),
        }
    }

    /// Inserts an entry into memory, and removes the old entry of this key from disk.
    ///
    /// While memory is short, inserts only entries without a body, and entries that replace a
    /// cached entry.
    pub(crate) fn insert_into_memory(&self, key: CacheKey, entry: CacheEntry) {
        self.disk.remove_entry(key.as_str());
        if self.overload.has_memory_to_cache()
            || !has_cached_body(&entry)
            || self.memory.get(&key).is_some()
        {
            self.memory.insert(key, entry);
        }
    }

    /// Removes an entry from memory and disk.
    pub(crate) fn remove_cached(&self, key: &CacheKey) {
        self.memory.remove(key);
        self.disk.remove_entry(key.as_str());
    }

    /// Records that an object was delivered. At the second use, moves the object's body to the
    /// arena and writes the object to disk.
    pub(crate) fn persist_on_second_use(
        self: &Arc<Edge>,
        object: &Arc<CachedObject>,
        key: impl FnOnce() -> CacheKey,
    ) {
        let first = object.use_count.load(Relaxed) < 2;
        if first || object.is_reused.load(Relaxed) || object.is_reused.swap(true, Relaxed) {
            return;
        }
        let key = key();
        if self.overload.has_memory_to_cache() {
            self.move_to_arena(&key, object);
        }
        self.disk
            .write_entry(&key, &CacheEntry::Object(object.clone()));
        if !object.vary.is_empty()
            && let Some(varies @ CacheEntry::Variants(_)) = self.memory.get(key.primary_key())
        {
            self.disk
                .write_entry(&CacheKey::from(key.primary_key()), &varies);
        }
    }

    /// Moves an object's body to the arena, unless the object is being fetched again. The copy runs
    /// on a blocking thread, because a copy of tens of megabytes would block the other requests of
    /// the worker.
    fn move_to_arena(self: &Arc<Edge>, key: &CacheKey, object: &Arc<CachedObject>) {
        if !object.body.belongs_in_arena() {
            return;
        }
        let LeadOrFollow::Lead(lead) = self.flights.lead_or_join(key) else {
            return;
        };
        if !self.is_still_cached(key, object) {
            return;
        }
        let (arena, copied) = (self.arena.clone(), object.clone());
        let copy_task = tokio::task::spawn_blocking(move || copied.body.copy_to_arena(&arena));
        // The blocking task must hold no reference to the edge. At exit, dropping the last
        // reference writes the remaining records and objects. If the blocking task dropped the last
        // reference, the workers would not wait for these writes.
        let (edge, key, object) = (self.clone(), key.clone(), object.clone());
        tokio::spawn(async move {
            // The object may have been evicted or replaced during the copy.
            if let Ok(Some(content)) = copy_task.await
                && edge.is_still_cached(&key, &object)
            {
                let in_arena = Arc::new(object.with_body(content));
                edge.memory
                    .insert(key.clone(), CacheEntry::Object(in_arena));
                if lead.is_purged() {
                    edge.memory.remove(&key);
                }
            }
        });
    }

    /// Returns whether exactly this object is still cached in memory under this key.
    fn is_still_cached(&self, key: &CacheKey, object: &Arc<CachedObject>) -> bool {
        matches!(self.memory.get(key), Some(CacheEntry::Object(now)) if Arc::ptr_eq(&now, object))
    }
}

/// Writes the queued objects, and the objects that are only in memory. The tier is dropped when the
/// last request has finished. Blocks the thread.
impl Drop for DiskCache {
    fn drop(&mut self) {
        if let Some(tier) = self.tier.get_if_open() {
            tier.close(self.collect_memory_only_objects());
        }
    }
}
