//! Conditional requests (RFC 9110 section 13).
