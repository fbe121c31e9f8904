//! Remedies for titles whose protection fails. Each kind of fault has its own remedy.

/// A kind of fault. An error is of this kind if its message contains one of the fragments.
struct ProtectionRemedy {
    fragments: &'static [&'static str],
    /// The remedy, in which `TITLE` is replaced by the title's path.
    remedy: &'static str,
}

/// The kinds of faults. The first kind that matches is used.
const PROTECTION_FAULTS: &[ProtectionRemedy] = &[
    ProtectionRemedy {
        fragments: &["status 401", "status 403"],
        remedy: "write the credentials for the key server to the file of drm-headers-file",
    },
    ProtectionRemedy {
        fragments: &["status 404"],
        remedy: "create the keys of TITLE at the key server, or correct the URL in drm-keys",
    },
    ProtectionRemedy {
        fragments: &["status 422", "status 400"],
        remedy: "change what the key server refuses; drm-speke-version, drm-scheme and drm-key-per \
                 change the request",
    },
    ProtectionRemedy {
        fragments: &["status 30"],
        remedy: "set drm-keys to the URL to which the key server redirects",
    },
    ProtectionRemedy {
        fragments: &["status "],
        remedy: "repair the key server; its log contains the reason",
    },
    ProtectionRemedy {
        fragments: &["response within", "timeout"],
        remedy: "make the key server respond within 10 s, or correct its address in drm-keys",
    },
    ProtectionRemedy {
        fragments: &["cannot read the key document"],
        remedy: "write the key document of TITLE, or correct the path in drm-keys",
    },
    ProtectionRemedy {
        fragments: &["does not declare x-speke-version"],
        remedy: "set drm-speke-version to the version of the key server",
    },
    ProtectionRemedy {
        fragments: &["lacks the requested key"],
        remedy: "the key server must return the key ids of the request (SPEKE 2.0); \
                 if it chooses them itself, use drm-keys = \"cpix:URL\"",
    },
    ProtectionRemedy {
        fragments: &["are mapped to one track", "have no usage rules"],
        remedy: "change the ContentKeyUsageRule elements so that each track matches exactly one",
    },
    ProtectionRemedy {
        fragments: &["the response has more than", "the response is not UTF-8"],
        remedy: "set drm-keys to the URL of a key document; the response is something else",
    },
    ProtectionRemedy {
        fragments: &["onnection ", "unreachable", "resolve", "lookup"],
        remedy: "start the key server, or correct its address in drm-keys",
    },
];

const DOCUMENT_REMEDY: &str = "correct the key document of TITLE";

/// Returns the text of an error, and the remedy. If no kind of fault matches, the remedy is the
/// part of the error after the semicolon, or a general remedy.
pub(super) fn choose_protection_remedy(error: &str, path: &str) -> (String, String) {
    let has = |text: &&str| error.contains(text);
    let fault = PROTECTION_FAULTS
        .iter()
        .find(|fault| fault.fragments.iter().any(has));
    let (what, remedy) = match (fault, error.split_once("; ")) {
        (Some(fault), _) => (error, fault.remedy),
        (None, Some((what, remedy))) => (what, remedy),
        (None, None) => (error, DOCUMENT_REMEDY),
    };
    (what.to_owned(), remedy.replace("TITLE", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_protection_fault_has_its_own_remedy() {
        for (error, what, remedy) in [
            (
                "keys: status 401 Unauthorized: \"a; b\"",
                "keys: status 401 Unauthorized: \"a; b\"",
                "drm-headers-file",
            ),
            (
                "keys: status 404 Not Found",
                "keys: status 404 Not Found",
                "the keys of kids/a.mp4",
            ),
            (
                "keys: status 422 Unprocessable Entity: \"Unsupported SPEKE version\"",
                "keys: status 422 Unprocessable Entity: \"Unsupported SPEKE version\"",
                "drm-speke-version",
            ),
            (
                "keys: 127.0.0.1:8080: no response within 5s",
                "keys: 127.0.0.1:8080: no response within 5s",
                "make the key server respond",
            ),
            (
                "keys: no key for audio; add one, or set drm-clear-tracks",
                "keys: no key for audio",
                "add one, or set drm-clear-tracks",
            ),
            (
                "keys: not a CPIX document: it starts with html",
                "keys: not a CPIX document: it starts with html",
                "correct the key document of kids/a.mp4",
            ),
        ] {
            let (found, fix) = choose_protection_remedy(error, "kids/a.mp4");
            assert_eq!(found, what);
            assert!(fix.contains(remedy), "{error}: {fix}");
        }
    }
}
