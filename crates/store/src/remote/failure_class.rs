//! Causes of failed storage requests.

use super::denial_remedies::{is_missing_bucket, remedy_for};
use super::endpoints::Endpoint;
use super::request_failure::RequestFailure;
use super::request_guard::RequestGuard;
use crate::Error;

impl Endpoint {
    /// Classifies an error of `object_store` by the facts that the HTTP client recorded. The text
    /// of the error is not used, because this text quotes URLs and responses.
    pub(super) fn classify_failure(
        &self,
        line: &mut RequestGuard,
        error: &object_store::Error,
    ) -> RequestFailure {
        use object_store::Error as E;
        let notes = line.call.notes();
        let describe_status = |status: u16| match &notes.code {
            Some(code) => format!("{status} {code}"),
            None => status.to_string(),
        };
        let failure = match (&notes.error, notes.status) {
            (Some(failed), _) => RequestFailure::from_transport(failed),
            (None, Some(status)) if notes.credentials => {
                let text = format!(
                    "credentials for the storage are unavailable: status {}; check the role and the token",
                    describe_status(status)
                );
                RequestFailure::from_status(status, Error::Denied(text))
            }
            (None, Some(status @ 404)) if notes.code.as_deref().is_some_and(is_missing_bucket) => {
                RequestFailure::from_permanent_error(Error::Denied(format!(
                    "the storage has no such bucket: status {}; check the name of the bucket and the region",
                    describe_status(status)
                )))
            }
            (None, Some(404 | 410)) => RequestFailure::from_permanent_error(Error::NotFound),
            (None, Some(412)) => RequestFailure::from_permanent_error(Error::Changed),
            (None, Some(status @ (401 | 403))) => {
                RequestFailure::from_permanent_error(Error::Denied(format!(
                    "the storage denies access: status {}; {}",
                    describe_status(status),
                    remedy_for(notes.code.as_deref())
                )))
            }
            (None, Some(416)) => RequestFailure::from_permanent_error(Error::Changed),
            (None, Some(200)) if notes.ranged => RequestFailure::from_permanent_error(Error::Broken(
                "the storage ignores Range: it responds with 200 and the whole file; use a server that supports range requests"
                    .into(),
            )),
            (None, Some(206)) => RequestFailure::from_permanent_error(Error::Broken(
                "the storage responds with another range than requested, or without Content-Range"
                    .into(),
            )),
            (None, Some(status @ (429 | 500..=599))) => {
                let text = format!(
                    "the storage responds with status {}",
                    describe_status(status)
                );
                RequestFailure::from_status(status, Error::Broken(text))
            }
            (None, Some(status)) => RequestFailure::from_permanent_error(Error::Broken(format!(
                "unexpected status from the storage: {}",
                describe_status(status)
            ))),
            (None, None) => RequestFailure::from_permanent_error(match error {
                E::NotFound { .. } => Error::NotFound,
                E::NotSupported { .. } | E::NotImplemented { .. } => Error::Unlisted,
                _ => Error::Denied("credentials for the storage are missing or unavailable".into()),
            }),
        };
        match failure.is_retryable {
            true => self.count_failure(),
            false if notes.status.is_some() => self.record_success(),
            false => {}
        }
        if matches!(failure.error, Error::Denied(_) | Error::Broken(_)) {
            tracing::debug!(endpoint = &*self.name, error = %failure.error, "storage");
        }
        line.record_failure(failure)
    }
}
