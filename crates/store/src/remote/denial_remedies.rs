//! Remedies for refused requests, selected by the storage's error code.

/// Returns whether the code means that the bucket or container does not exist.
pub(super) fn is_missing_bucket(code: &str) -> bool {
    matches!(code, "NoSuchBucket" | "ContainerNotFound")
}

/// Returns the remedy for a request that the storage denied. The text contains no credential.
pub(super) fn remedy_for(code: Option<&str>) -> &'static str {
    match code {
        Some("SignatureDoesNotMatch") => "check the secret key (AWS_SECRET_ACCESS_KEY)",
        Some("InvalidAccessKeyId") => "check the access key (AWS_ACCESS_KEY_ID)",
        Some("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => {
            "renew the session token (AWS_SESSION_TOKEN)"
        }
        Some("RequestTimeTooSkewed") => "set the clock of this machine",
        Some("AuthorizationHeaderMalformed") => "check the region (AWS_REGION)",
        Some("AccessDenied" | "AllAccessDisabled") => {
            "allow the credentials to list the bucket and to read its objects"
        }
        Some("AuthenticationFailed" | "InvalidAuthenticationInfo") => {
            "check the account's key or shared access signature"
        }
        _ => "check the credentials and their permissions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_have_their_own_remedy() {
        for (code, part) in [
            (Some("SignatureDoesNotMatch"), "secret key"),
            (Some("InvalidAccessKeyId"), "access key"),
            (Some("AuthorizationHeaderMalformed"), "region"),
            (Some("RequestTimeTooSkewed"), "clock"),
            (Some("SomethingNew"), "credentials and their permissions"),
            (None, "credentials and their permissions"),
        ] {
            assert!(remedy_for(code).contains(part), "{code:?}");
        }
    }
}
