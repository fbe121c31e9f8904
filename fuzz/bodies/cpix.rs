//! Checks that no key document makes its parser panic. An accepted document must have keys, and its
//! rules must name these keys.

use media::protection::ProtectionScheme;
use media::protection::cpix::parse_key_document;

/// `data` is a CPIX document.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_key_document(&text, ProtectionScheme::Cbcs) {
        Ok(document) => {
            assert!(!document.keys.is_empty());
            assert!(document.keys.len() == 1 || !document.rules.is_empty());
            let known = |id| document.keys.iter().any(|key| key.key_id == id);
            assert!(document.rules.iter().all(|rule| known(rule.key_id)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
