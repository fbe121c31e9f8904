//! Content codings (RFC 9110 section 12.5.3).
