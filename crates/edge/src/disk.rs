//! The disk tier behind memory: what goes there, in which form, and how it comes back.
//!
//! An object goes to disk when it leaves memory, when it was used a second time, and when the
//! process ends. It comes back as an entry whose body stays in its file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use net::Failed;
use net::metrics::{Counter, Gauge, Metrics, Row};
use store::cache::{Joined, Memory, Told};
use store::{DiskTier, Found, Shelving};

use crate::Edge;
use crate::config::Settings;
use crate::content::Content;
use crate::entry::Entry;
use crate::filed::Filed;
use crate::key::Key;
use crate::object::Object;

mod stored;

use stored::Stored;

const BYTES: Row = Row {
    name: "cache_disk",
    unit: "bytes",
    help: "Kept answers on disk, their heads included",
};
const OBJECTS: Row = Row {
    name: "cache_disk_objects",
    unit: "",
    help: "Kept answers on disk",
};
const WAITING: Row = Row {
    name: "cache_disk_waiting",
    unit: "",
    help: "Answers that wait to be written to disk",
};
const WRITTEN: Row = Row {
    name: "cache_disk_written",
    unit: "",
    help: "Answers written to disk",
};
const DROPPED: Row = Row {
    name: "cache_disk_dropped",
    unit: "",
    help: "Answers not written: too many waited, or the disk would not",
};
const BROKEN: Row = Row {
    name: "cache_disk_broken",
    unit: "",
    help: "Damaged files found on disk, and removed",
};

/// The tier, if there is one, and what is counted of it.
pub struct Disk {
    tier: Option<DiskTier>,
    bytes_max: u64,
    memory: Arc<Memory<Key, Entry>>,
    gauges: [Gauge; 3],
    counters: [Counter; 3],
}

/// Objects that wait to be written take no more memory than this, one apart.
const WAITING_BYTES_MAX: u64 = 64 << 20;

/// Memory, and the disk behind it if one is wanted.
///
/// # Errors
/// When its folder cannot be had.
pub fn tiers(settings: &Settings, metrics: &Metrics) -> Result<Tiers, Failed> {
    let open = |(folder, bytes_max): &(PathBuf, u64)| {
        let opened = DiskTier::open(folder, *bytes_max, WAITING_BYTES_MAX);
        opened.map_err(Failed::cannot(folder.display()))
    };
    let tier = settings.disk.as_ref().map(open).transpose()?;
    let leaving = tier
        .clone()
        .map(|tier| -> Told<Key, Entry> { Arc::new(move |key, entry| keep(&tier, key, entry)) });
    let memory = Arc::new(Memory::new(settings.memory_bytes, leaving));
    let disk = Disk {
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

/// Memory, and the disk behind it.
type Tiers = (Arc<Memory<Key, Entry>>, Arc<Disk>);

impl Disk {
    /// Brings what is counted up to date.
    pub fn show(&self) {
        let Some(tier) = &self.tier else {
            return;
        };
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let bytes = i64::try_from(tier.bytes()).unwrap_or(i64::MAX);
        let values = [bytes, whole(tier.len()), whole(tier.waiting())];
        for (gauge, value) in self.gauges.iter().zip(values) {
            gauge.set(value);
        }
        let counts = tier.counts();
        let values = [counts.written, counts.dropped, counts.broken];
        for (counter, value) in self.counters.iter().zip(values) {
            counter.inc_by(value.saturating_sub(counter.get()));
        }
    }

    /// The same for people; nothing where there is no disk.
    pub fn state(&self) -> serde_json::Value {
        let Some(tier) = &self.tier else {
            return serde_json::Value::Null;
        };
        let counts = tier.counts();
        serde_json::json!({
            "bytes": tier.bytes(), "bytes_max": self.bytes_max, "objects": tier.len(),
            "waiting": tier.waiting(), "written": counts.written, "dropped": counts.dropped,
            "broken": counts.broken,
        })
    }

    /// It can be had from there at once.
    pub fn has(&self, key: &str) -> bool {
        self.tier.as_ref().is_some_and(|tier| tier.is_written(key))
    }

    /// Keeps an entry there, if it is of that kind and not there yet.
    pub fn keep(&self, key: &Key, entry: &Entry) {
        if let Some(tier) = &self.tier {
            keep(tier, key, entry);
        }
    }

    /// What is kept there is another one by now.
    pub fn remove(&self, key: &str) {
        if let Some(tier) = self.tier.as_ref().filter(|tier| tier.has(key)) {
            tier.remove(key);
        }
    }

    /// Forgets what `which` names by key and tags.
    pub fn purge(&self, which: impl Fn(&str, &str) -> bool) -> usize {
        self.tier.as_ref().map_or(0, |tier| tier.purge(which))
    }
}

fn keep(tier: &DiskTier, key: &Key, entry: &Entry) {
    if !tier.has(key.as_str())
        && let Some(shelving) = shelving(key, entry)
    {
        // What finds no room is counted.
        tier.put(shelving);
    }
}

fn shelving(key: &Key, entry: &Entry) -> Option<Shelving> {
    let (tags, body) = match entry {
        Entry::Object(object) if object.purged.load(Relaxed) => return None,
        Entry::Object(object) => {
            let body = match object.parts {
                Some(_) => store::ShelvedBody::Memory(Vec::new()),
                None => object.content.shelved()?,
            };
            (object.tags.join(" "), body)
        }
        Entry::Block(content) => (String::new(), content.shelved()?),
        Entry::Varies(_) => (String::new(), store::ShelvedBody::Memory(Vec::new())),
        Entry::Apart { .. } => return None,
    };
    Some(Shelving {
        key: key.as_str().to_owned(),
        tags,
        head: Stored::of(entry, SystemTime::now())?.write()?,
        body,
    })
}

fn entry(found: Found) -> Option<Entry> {
    let stored = Stored::read(&found.head)?;
    let filed = Filed::new(found.file, found.body);
    stored.entry(Content::filed(filed), SystemTime::now())
}

impl Edge {
    /// Brings what is on disk back to where it is looked for. One look for all who ask.
    pub(crate) async fn recall(&self, key: &Key) {
        let Some(tier) = &self.disk.tier else {
            return;
        };
        match self.flights.join(key) {
            Joined::Lead(lead) => {
                let (tier, name) = (tier.clone(), key.clone());
                let found = tokio::task::spawn_blocking(move || {
                    let found = entry(tier.get(name.as_str())?);
                    if found.is_none() {
                        // Of another version of this program, say.
                        tier.remove(name.as_str());
                    }
                    found
                });
                if let Ok(Some(entry)) = found.await
                    && !lead.purged()
                {
                    self.memory.insert(key.clone(), entry);
                    if lead.purged() {
                        self.memory.remove(key);
                    }
                }
            }
            // Whatever it is: look again then.
            Joined::Follow(follow) => drop(follow.landed().await),
        }
    }

    /// Keeps an entry in memory; what is on disk under its key is another one.
    pub(crate) fn put(&self, key: Key, entry: Entry) {
        self.disk.remove(key.as_str());
        self.memory.insert(key, entry);
    }

    /// Forgets what is kept under a key.
    pub(crate) fn take(&self, key: &Key) {
        self.memory.remove(key);
        self.disk.remove(key.as_str());
    }

    /// An object has been delivered. The second time shows that it is worth more: to lie where the
    /// kernel sends it from, and to be on disk.
    pub(crate) fn used(self: &Arc<Edge>, object: &Arc<Object>, key: impl FnOnce() -> Key) {
        let first = object.uses.load(Relaxed) < 2;
        if first || object.proven.load(Relaxed) || object.proven.swap(true, Relaxed) {
            return;
        }
        let key = key();
        self.lay(&key, object);
        self.disk.keep(&key, &Entry::Object(object.clone()));
        if !object.vary.is_empty()
            && let Some(varies @ Entry::Varies(_)) = self.memory.get(key.primary())
        {
            self.disk.keep(&Key::from(key.primary()), &varies);
        }
    }

    /// Puts an object's bytes where the kernel can send them from, unless it is being fetched anew.
    /// Copying tens of megabytes is no work for a worker, on which others wait.
    fn lay(self: &Arc<Edge>, key: &Key, object: &Arc<Object>) {
        if !object.content.is_to_be_laid() {
            return;
        }
        let Joined::Lead(lead) = self.flights.join(key) else {
            return;
        };
        if !self.keeps(key, object) {
            return;
        }
        let (arena, copied) = (self.arena.clone(), object.clone());
        let laid = tokio::task::spawn_blocking(move || copied.content.laid(&arena));
        // The copier knows nothing of the edge: a worker does not wait for it when all ends, and what
        // is written then, records and the disk tier's last, must not be left to it.
        let (edge, key, object) = (self.clone(), key.clone(), object.clone());
        tokio::spawn(async move {
            // Meanwhile it may have made room, or a variant may have come by its URL's fetch.
            if let Ok(Some(content)) = laid.await
                && edge.keeps(&key, &object)
            {
                let laid = Arc::new(object.with(content));
                edge.memory.insert(key.clone(), Entry::Object(laid));
                if lead.purged() {
                    edge.memory.remove(&key);
                }
            }
        });
    }

    /// This very object is what is in memory.
    fn keeps(&self, key: &Key, object: &Arc<Object>) -> bool {
        matches!(self.memory.get(key), Some(Entry::Object(now)) if Arc::ptr_eq(&now, object))
    }
}

/// Nobody answers any more: what waits is written, and all that is left in memory. Blocks.
impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(tier) = &self.tier {
            let rest = self.memory.all();
            let rest = rest.iter().filter(|(key, _)| !tier.has(key.as_str()));
            tier.close(rest.filter_map(|(key, entry)| shelving(key, entry)));
        }
    }
}
