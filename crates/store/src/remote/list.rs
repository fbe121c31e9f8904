//! What is in a folder of a remote library.

use super::call::Trouble;
use super::tries::Try;
use super::{Core, Seen};
use crate::http::CALL;
use crate::{Entry, Error, Key, Reason};
use object_store::ListResult;
use std::sync::Arc;

/// Most entries told of one folder.
const ENTRIES_MAX: usize = 65_536;
const ENTRIES_TOO_MANY: &str = "the folder has over 65536 entries";

impl Core {
    /// The entries of a folder, by name; none where there is no such folder.
    pub(super) async fn list(self: &Arc<Core>, key: &Key) -> Result<Vec<Entry>, Error> {
        let mut tries = self.tries(key, Reason::Look);
        let listed = loop {
            let there = tries.place().await?;
            match self.list_at(&there, key).await {
                Ok(listed) => break listed,
                Err(trouble) => tries.failed(there, trouble)?,
            }
        };
        if listed.objects.len() + listed.common_prefixes.len() > ENTRIES_MAX {
            return Err(Error::Refused(ENTRIES_TOO_MANY));
        }
        let files = listed.objects.into_iter().filter_map(|meta| {
            let name = meta.location.filename()?.to_owned();
            let file = Some(Seen::new(meta).identity());
            Some(Entry { name, file })
        });
        let folders = listed.common_prefixes.iter().filter_map(|path| {
            let name = path.filename()?.to_owned();
            Some(Entry { name, file: None })
        });
        let mut entries: Vec<_> = files.chain(folders).collect();
        entries.retain(|entry| key.join(&entry.name).is_ok());
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    async fn list_at(self: &Arc<Core>, there: &Try, key: &Key) -> Result<ListResult, Trouble> {
        let endpoint = &there.endpoint;
        if !endpoint.lists {
            return Err(Trouble::last(Error::Unlisted));
        }
        let path = endpoint.path(key).map_err(Trouble::last)?;
        let mut line = self.line(endpoint, key, there.reason, Reason::Look, "LIST", false);
        let list = endpoint.store.list_with_delimiter(Some(&path));
        match CALL.scope(line.call(), list).await {
            Ok(listed) => {
                endpoint.succeeded();
                line.whole();
                Ok(listed)
            }
            Err(error) => Err(endpoint.trouble(&mut line, &error)),
        }
    }
}
