//! Checks whether the server of a library responds at all.

use super::RemoteCore;
use super::endpoints::Endpoint;
use super::request_failure::RequestFailure;
use crate::http::{CALL, StorageRequestContext};
use crate::{Error, Key, RequestReason};
use object_store::GetOptions;
use std::sync::Arc;

impl RemoteCore {
    /// Requests the root of the library. Any HTTP response is a success, because the root need not
    /// be a file. These requests are not counted, because they read no object.
    pub(super) async fn probe(self: &Arc<RemoteCore>) -> Result<(), Error> {
        let root = Key::ROOT;
        let mut attempts = self.plan_retries(&root, RequestReason::Look);
        loop {
            let attempt = attempts.next_attempt().await?;
            match attempt.endpoint.probe().await {
                Ok(()) => return Ok(()),
                Err(failure) => attempts.record_failed_attempt(attempt, failure)?,
            }
        }
    }
}

impl Endpoint {
    async fn probe(&self) -> Result<(), RequestFailure> {
        let path = self
            .object_path(&Key::ROOT)
            .map_err(RequestFailure::from_permanent_error)?;
        let call = Arc::new(StorageRequestContext::new_metadata_call());
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        // Ignores the result, because the recorded facts show whether there was a response.
        let _ = CALL
            .scope(call.clone(), self.store.get_opts(&path, options))
            .await;
        match call.notes().error {
            Some(error) => Err(RequestFailure::from_transport(&error)),
            None => Ok(()),
        }
    }
}
