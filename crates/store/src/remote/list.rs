//! Lists folders of a remote library.

use super::request_failure::RequestFailure;
use super::retry::AttemptEndpoints;
use super::{ObservedVersion, RemoteCore};
use crate::http::{CALL, StorageRequestContext};
use crate::{Error, FolderEntry, Key, RequestReason};
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;
use std::sync::Arc;

/// Maximum number of entries of a folder.
const ENTRIES_MAX: usize = 65_536;
const ENTRIES_TOO_MANY: &str = "the folder has over 65536 entries";
/// Maximum number of entries that a storage returns in one response.
const PAGE_ENTRIES_MAX: usize = 1000;
/// Maximum number of pages without entries in one listing. Storages may return a few such pages.
const EMPTY_PAGES_MAX: usize = 100;
const EMPTY_PAGES_TOO_MANY: &str =
    "the storage's listing does not end: over 100 pages without entries";

impl RemoteCore {
    /// Lists a folder, sorted by name. The list is empty if the folder does not exist.
    pub(super) async fn list_folder(
        self: &Arc<RemoteCore>,
        key: &Key,
    ) -> Result<Vec<FolderEntry>, Error> {
        self.list_prefixed(key, "").await
    }

    /// Lists the entries of a folder whose names start with `prefix`. The storage filters the
    /// entries.
    pub(super) async fn list_prefixed(
        self: &Arc<RemoteCore>,
        key: &Key,
        prefix: &str,
    ) -> Result<Vec<FolderEntry>, Error> {
        let entries = self.list_at_most(key, prefix, ENTRIES_MAX + 1).await?;
        match entries.len() > ENTRIES_MAX {
            true => Err(Error::Refused(ENTRIES_TOO_MANY)),
            false => Ok(entries),
        }
    }

    /// Lists at most `entries_max` entries. Requests only as many pages as needed.
    pub(super) async fn list_at_most(
        self: &Arc<RemoteCore>,
        key: &Key,
        prefix: &str,
        entries_max: usize,
    ) -> Result<Vec<FolderEntry>, Error> {
        let mut plan = self.plan_listing(key);
        let mut entries = loop {
            let attempt = plan.next_attempt().await?;
            match self
                .list_at_endpoint(&attempt, key, prefix, entries_max)
                .await
            {
                Ok(listed) => break listed,
                Err(failure) => plan.record_failed_attempt(attempt, failure)?,
            }
        };
        entries.retain(|entry| key.child(&entry.name).is_ok());
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.truncate(entries_max);
        Ok(entries)
    }

    async fn list_at_endpoint(
        self: &Arc<RemoteCore>,
        attempt: &AttemptEndpoints,
        key: &Key,
        name_prefix: &str,
        entries_max: usize,
    ) -> Result<Vec<FolderEntry>, RequestFailure> {
        let endpoint = &attempt.endpoint;
        let Some(pages) = &endpoint.pages else {
            return Err(RequestFailure::from_permanent_error(Error::Unlisted));
        };
        let path = endpoint
            .object_path(key)
            .map_err(RequestFailure::from_permanent_error)?;
        let folder = match path.as_ref() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let prefix = Some(format!("{folder}{name_prefix}")).filter(|prefix| !prefix.is_empty());
        let (mut entries, mut page_token, mut empty_pages) = (Vec::new(), None, 0);
        loop {
            let mut guard = self.open_request_guard(
                endpoint,
                key,
                attempt.reason,
                RequestReason::Look,
                "LIST",
                StorageRequestContext::new_metadata_call(),
            );
            let options = PaginatedListOptions {
                delimiter: Some("/".into()),
                max_keys: Some((entries_max - entries.len()).min(PAGE_ENTRIES_MAX)),
                page_token: page_token.take(),
                ..PaginatedListOptions::default()
            };
            let list = pages.list_paginated(prefix.as_deref(), options);
            let page = CALL.scope(guard.call.clone(), list).await;
            let page = page.map_err(|error| {
                convert_404_to_denied(endpoint.classify_failure(&mut guard, &error))
            })?;
            endpoint.record_success();
            guard.mark_complete();
            page_token = page.page_token.clone();
            let count_before = entries.len();
            entries.extend(convert_listing_page(page, &path));
            if page_token.is_none() || entries.len() >= entries_max {
                return Ok(entries);
            }
            empty_pages += usize::from(entries.len() == count_before);
            if empty_pages > EMPTY_PAGES_MAX {
                let error = Error::Broken(EMPTY_PAGES_TOO_MANY.into());
                return Err(RequestFailure::from_permanent_error(error));
            }
        }
    }
}

/// Converts a 404 response to a listing request into [`Error::Denied`]. For a folder without
/// objects, storages return an empty list, so a 404 means that the address is wrong.
fn convert_404_to_denied(failure: RequestFailure) -> RequestFailure {
    let Error::NotFound = failure.error else {
        return failure;
    };
    let what =
        "the storage cannot list this address: status 404; check the endpoint and the bucket";
    RequestFailure::from_permanent_error(Error::Denied(what.into()))
}

/// Returns the entries of a page that are in the folder at `path`.
fn convert_listing_page(
    page: PaginatedListResult,
    path: &Path,
) -> impl Iterator<Item = FolderEntry> {
    let files = page.result.objects.into_iter();
    // An object with the name of the folder itself is not an entry.
    let files = files.filter(move |meta| meta.location != *path);
    let files = files.filter_map(|meta| {
        let name = meta.location.filename()?.to_owned();
        let file = Some(*ObservedVersion::new(meta).comparable_version());
        Some(FolderEntry { name, file })
    });
    let folders = page.result.common_prefixes.into_iter().filter_map(|path| {
        let name = path.filename()?.to_owned();
        Some(FolderEntry { name, file: None })
    });
    files.chain(folders)
}
