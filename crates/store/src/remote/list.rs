//! What is in a folder of a remote library.

use super::call::Trouble;
use super::tries::Try;
use super::{Core, Seen};
use crate::http::{CALL, Call};
use crate::{Entry, Error, Key, Reason};
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;
use std::sync::Arc;

/// Most entries told of one folder.
const ENTRIES_MAX: usize = 65_536;
const ENTRIES_TOO_MANY: &str = "the folder has over 65536 entries";
/// Most that the storages tell in one answer.
const PAGE_ENTRIES_MAX: usize = 1000;

impl Core {
    /// The entries of a folder, by name; none where there is no such folder.
    pub(super) async fn list(self: &Arc<Core>, key: &Key) -> Result<Vec<Entry>, Error> {
        let entries = self.list_first(key, ENTRIES_MAX + 1).await?;
        match entries.len() > ENTRIES_MAX {
            true => Err(Error::Refused(ENTRIES_TOO_MANY)),
            false => Ok(entries),
        }
    }

    /// The same, of which the rest is not asked for once there are `most`.
    pub(super) async fn list_first(
        self: &Arc<Core>,
        key: &Key,
        most: usize,
    ) -> Result<Vec<Entry>, Error> {
        let mut tries = self.tries(key, Reason::Look);
        let mut entries = loop {
            let there = tries.place().await?;
            match self.list_at(&there, key, most).await {
                Ok(listed) => break listed,
                Err(trouble) => tries.failed(there, trouble)?,
            }
        };
        entries.retain(|entry| key.join(&entry.name).is_ok());
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.truncate(most);
        Ok(entries)
    }

    async fn list_at(
        self: &Arc<Core>,
        there: &Try,
        key: &Key,
        most: usize,
    ) -> Result<Vec<Entry>, Trouble> {
        let endpoint = &there.endpoint;
        let Some(pages) = &endpoint.pages else {
            return Err(Trouble::last(Error::Unlisted));
        };
        let path = endpoint.path(key).map_err(Trouble::last)?;
        let prefix = (!path.as_ref().is_empty()).then(|| format!("{path}/"));
        let (mut entries, mut page_token) = (Vec::new(), None);
        loop {
            let mut line = self.line(
                endpoint,
                key,
                there.reason,
                Reason::Look,
                "LIST",
                Call::other(),
            );
            let options = PaginatedListOptions {
                delimiter: Some("/".into()),
                max_keys: Some((most - entries.len()).min(PAGE_ENTRIES_MAX)),
                page_token: page_token.take(),
                ..PaginatedListOptions::default()
            };
            let list = pages.list_paginated(prefix.as_deref(), options);
            let page = CALL.scope(line.call(), list).await;
            let page = page.map_err(|error| endpoint.trouble(&mut line, &error))?;
            endpoint.succeeded();
            line.whole();
            page_token = page.page_token.clone();
            entries.extend(told(page, &path));
            if page_token.is_none() || entries.len() >= most {
                return Ok(entries);
            }
        }
    }
}

/// What a page says is in the folder at `path`.
fn told(page: PaginatedListResult, path: &Path) -> impl Iterator<Item = Entry> {
    let files = page.result.objects.into_iter();
    // An object that marks the folder itself is not in it.
    let files = files.filter(move |meta| meta.location != *path);
    let files = files.filter_map(|meta| {
        let name = meta.location.filename()?.to_owned();
        let file = Some(*Seen::new(meta).identity());
        Some(Entry { name, file })
    });
    let folders = page.result.common_prefixes.into_iter().filter_map(|path| {
        let name = path.filename()?.to_owned();
        Some(Entry { name, file: None })
    });
    files.chain(folders)
}
