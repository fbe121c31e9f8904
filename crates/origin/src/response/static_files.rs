//! Static files, such as films in their stored form and folders of pre-packaged segments.

use crate::error;
use crate::response::content_types::content_type_of;
use crate::response::progressive;
use crate::response::responder::{ClientRequest, RepresentationHeaders};
use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::title::catalog::{Catalog, background_check_age};
use crate::title::file_names::is_media;
use crate::title::stores;
use http::Response;
use http::header::HeaderValue;
use net::conditional::{LastModified, Validators};
use net::{Body, Error};
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Key, Object, ObjectVersion, RequestReason, Store};

/// Maximum number of open files.
const OPEN_FILES_MAX: usize = 4096;
/// Maximum number of cached paths at which no file exists.
const ABSENT_PATHS_MAX: usize = 4096;
/// Caches must revalidate a file soon, because the file may be replaced at any time.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");

/// Static files of the library, with a cache of open files.
pub(crate) struct StaticFiles {
    store: Arc<Store>,
    open_files: Cache<Key, OpenStaticFile>,
    /// Paths of manifests at which no file exists. This is the usual case, because most manifests
    /// are generated. The value is the time of the look-up in milliseconds since `started`.
    absent_paths: Cache<Key, u64>,
    /// Time for which the result of a look-up is used. After this time, the file is looked up
    /// again.
    recheck_after: Duration,
    started: Instant,
}

#[derive(Clone)]
struct OpenStaticFile {
    object: Arc<Object>,
    /// Whether the file is an index MP4, which references a film in other files.
    is_index_mp4: bool,
    checked_ms: Arc<AtomicU64>,
    /// Whether a background check is running. The result of the check replaces this entry.
    is_checking: Arc<AtomicBool>,
}

impl StaticFiles {
    pub(crate) fn new(store: Arc<Store>, recheck: Duration) -> StaticFiles {
        StaticFiles {
            store,
            open_files: Cache::new(OPEN_FILES_MAX),
            absent_paths: Cache::new(ABSENT_PATHS_MAX),
            recheck_after: recheck,
            started: Instant::now(),
        }
    }

    /// Responds with a file, or with the film that an index MP4 references.
    pub(crate) async fn respond_with_static_file(
        self: &Arc<Self>,
        catalog: &Arc<Catalog>,
        key: &Key,
        request: &ClientRequest<'_>,
    ) -> Result<Response<Body>, Error> {
        let open = self
            .open_file(key)
            .await
            .map_err(|e| error::from_store(&e))?;
        if open.is_index_mp4 {
            return progressive::respond_with_film(catalog, key, request).await;
        }
        let object = open.object;
        let pieces = Arc::new([PlannedPart::FileRange(0..object.len())]);
        let facts = file_headers(key, &object);
        let source = BodySource {
            object,
            reason: RequestReason::Plain,
            is_copied: request.is_copied,
            is_verified: false,
            sibling_ranges: None,
            following_objects: Arc::new([]),
        };
        request.respond_with_body(&facts, source, pieces).await
    }

    /// Returns whether no file exists at this path. The result `true` is cached for the same time
    /// as an open file. Without this cache, every playlist request would wait for a look-up in the
    /// library. A file to which access is refused counts as absent, because some storages refuse
    /// access to missing files.
    ///
    /// # Errors
    /// If the look-up fails, so that the file may exist.
    pub(crate) async fn is_absent(self: &Arc<Self>, key: &Key) -> Result<bool, Error> {
        let now_ms = self.now_ms();
        if let Some(checked_ms) = self.absent_paths.get(key)
            && self.is_within_recheck_time(checked_ms, now_ms)
        {
            return Ok(true);
        }
        let found = self.open_file(key).await;
        let found = found.map_err(|e| error::from_store(&e));
        let is_absent = error::require_storage(found)?.is_none();
        if is_absent {
            self.absent_paths.insert(key.clone(), now_ms);
        }
        Ok(is_absent)
    }

    /// Returns whether the result of a look-up at `checked_ms` may still be used.
    fn is_within_recheck_time(&self, checked_ms: u64, now_ms: u64) -> bool {
        Duration::from_millis(now_ms.saturating_sub(checked_ms)) < self.recheck_after
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn open_file(self: &Arc<Self>, key: &Key) -> Result<OpenStaticFile, store::Error> {
        let elapsed = self.now_ms();
        if let Some(open) = self.open_files.get(key) {
            let checked_ms = open.checked_ms.load(Relaxed);
            if self.is_within_recheck_time(checked_ms, elapsed) && !open.object.changed() {
                let age = Duration::from_millis(elapsed.saturating_sub(checked_ms));
                if age >= background_check_age(self.recheck_after)
                    && !open.is_checking.swap(true, Relaxed)
                {
                    // Checks early and in the background, so that requests for a popular file never
                    // wait for the check.
                    let (files, key) = (self.clone(), key.clone());
                    tokio::spawn(
                        async move { files.look_up_and_open(&key, elapsed).await.is_ok() },
                    );
                }
                return Ok(open);
            }
        }
        self.look_up_and_open(key, elapsed).await
    }

    async fn look_up_and_open(
        &self,
        key: &Key,
        elapsed: u64,
    ) -> Result<OpenStaticFile, store::Error> {
        let (store, name) = (self.store.clone(), key.clone());
        let old = self.open_files.peek(key);
        let look = tokio::task::spawn_blocking(move || match old {
            // An unchanged file stays open, and its memory mapping is reused.
            Some(old) if store.look_up(&name)? == Some(*old.object.version()) => {
                Ok((old.object, old.is_index_mp4))
            }
            _ => {
                let object = Arc::new(stores::open_in_store(&store, &name, RequestReason::Plain)?);
                let is_index = is_media(name.name()) && progressive::is_index_mp4(&name, &object);
                object.free_first_bytes();
                Ok((object, is_index))
            }
        });
        let outcome = look
            .await
            .unwrap_or_else(|e| Err(store::Error::Io(std::io::Error::other(e))));
        match outcome {
            Ok((object, is_index)) => {
                let checked_ms = Arc::new(AtomicU64::new(elapsed));
                let open = OpenStaticFile {
                    object,
                    is_index_mp4: is_index,
                    checked_ms,
                    is_checking: Arc::default(),
                };
                // Another check may have started after this check, and finished before it. The
                // result of the other check is newer, and is therefore not replaced.
                let later = self.open_files.peek(key);
                let later = later.filter(|later| later.checked_ms.load(Relaxed) > elapsed);
                if later.is_none() {
                    self.open_files.insert(key.clone(), open.clone());
                }
                Ok(open)
            }
            Err(error) => {
                self.open_files.remove(key);
                Err(error)
            }
        }
    }
}

fn file_headers(key: &Key, object: &Object) -> RepresentationHeaders {
    RepresentationHeaders {
        content_type: HeaderValue::from_static(content_type_of(key.name())),
        cache_control: SOON,
        validators: validators_of(object.version()),
        content_coding: None,
    }
}

/// Returns the validators of a file. The length alone does not identify a version, so a file whose
/// storage reports neither an entity tag nor a modification time has no entity tag. If the entity
/// tag of the storage is weak, the entity tag of the file is weak, too (RFC 9110 section 8.8.1).
fn validators_of(version: &ObjectVersion) -> Validators {
    let (len, time, tag) = (version.len, version.mtime_ns, version.tag);
    let weak = if version.has_weak_tag { "W/" } else { "" };
    let etag = match tag {
        0 if time == 0 => return Validators::default(),
        0 => format!("\"{len:x}-{time:x}\""),
        tag => format!("{weak}\"{len:x}-{time:x}-{tag:x}\""),
    };
    Validators {
        modified: version.modified().and_then(LastModified::from_time),
        ..Validators::from_etag(&etag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Options;

    fn version(mtime_ns: i64, tag: u64) -> ObjectVersion {
        ObjectVersion {
            len: 5,
            mtime_ns,
            tag,
            ..ObjectVersion::default()
        }
    }

    #[test]
    fn versions_of_equal_length_never_have_the_same_entity_tag() {
        let etag = |mtime_ns, tag| validators_of(&version(mtime_ns, tag)).etag;
        assert_eq!(etag(0, 0), None);
        assert_eq!(etag(1, 0).unwrap(), "\"5-1\"");
        let mut tags = [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (1, 2)]
            .map(|(mtime_ns, tag)| etag(mtime_ns, tag).unwrap().to_str().unwrap().to_owned())
            .to_vec();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 6, "{tags:?}");
    }

    #[test]
    fn a_weak_entity_tag_of_the_storage_stays_weak() {
        let weak = ObjectVersion {
            has_weak_tag: true,
            ..version(1, 7)
        };
        assert_eq!(validators_of(&weak).etag.unwrap(), "W/\"5-1-7\"");
        assert_eq!(validators_of(&version(1, 7)).etag.unwrap(), "\"5-1-7\"");
    }

    #[test]
    fn an_unknown_modification_time_is_not_sent() {
        assert!(validators_of(&version(0, 1)).modified.is_none());
        assert!(validators_of(&version(1, 1)).modified.is_some());
    }

    #[tokio::test]
    async fn a_failed_look_up_does_not_count_as_a_missing_file() {
        let open = |place: &str| {
            let store = Store::new(place, Options::default()).unwrap();
            Arc::new(StaticFiles::new(Arc::new(store), Duration::from_secs(3600)))
        };
        let key = Key::parse("film/main.m3u8").unwrap();
        // After the listener is dropped, connections to its port are refused.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let failing = open(&url);
        assert!(failing.is_absent(&key).await.is_err());
        assert!(failing.absent_paths.get(&key).is_none());
        let folder = tempfile::tempdir().unwrap();
        let local = open(folder.path().to_str().unwrap());
        assert!(local.is_absent(&key).await.unwrap());
        assert!(local.absent_paths.get(&key).is_some());
    }
}
