//! Tests of CPIX documents with encrypted key values. `documents/encrypted.cpix` was written with
//! pycpix and pyca/cryptography for two recipients. `recipient.pem` is the private key of the
//! second recipient.
#![allow(clippy::unwrap_used)]

mod support;

use support::keys::*;
use support::{TestServer, keys};

const DOCUMENT: &str = include_str!("documents/encrypted.cpix");

fn recipient_key() -> String {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("documents/recipient.pem").display().to_string()
}

fn serve_document(text: &str, flags: &[&str]) -> TestServer {
    let document = TextFile::new(text);
    let server = serve_with_keys(&document.keys("cpix"), flags);
    // This request loads the keys. The document is removed at the end of this function.
    server.get("/film/.m3u8");
    server
}

#[test]
fn encrypted_values_give_the_bytes_of_plain_ones() {
    let plain = keys::cpix(&[
        (LOW, "AAECAwQFBgcICQoLDA0ODw==", "<VideoFilter/>"),
        (AUDIO, "EBESExQVFhcYGRobHB0eHw==", "<AudioFilter/>"),
    ]);
    let key = recipient_key();
    let encrypted = serve_document(DOCUMENT, &["--drm-private-key", &key]);
    let plain = serve_document(&plain, &[]);
    for playlist in playlists(&plain, "film") {
        for url in segments(&plain, &playlist) {
            let (ours, theirs) = (encrypted.get(&url), plain.get(&url));
            assert_eq!((ours.status, theirs.status), (200, 200), "{url}");
            assert_eq!(ours.body, theirs.body, "{url}");
        }
    }
}

#[test]
fn values_that_cannot_be_verified_are_refused() {
    let key = recipient_key();
    let with_key = ["--drm-private-key", key.as_str()];
    let second_mac = DOCUMENT.rfind("<pskc:ValueMAC>").unwrap() + "<pskc:ValueMAC>".len();
    let mut wrong_mac = DOCUMENT.to_owned();
    let flipped = if &wrong_mac[second_mac..=second_mac] == "A" {
        "B"
    } else {
        "A"
    };
    wrong_mac.replace_range(second_mac..=second_mac, flipped);
    let second = DOCUMENT.rfind("<DeliveryData>").unwrap();
    let end = DOCUMENT.rfind("</DeliveryDataList>").unwrap();
    let of_others = [&DOCUMENT[..second], &DOCUMENT[end..]].concat();
    let other_algorithm = DOCUMENT.replace("rsa-oaep-mgf1p", "rsa-1_5");
    let without_mac = DOCUMENT.replace("ValueMAC", "Other");
    for (text, flags, wrong) in [
        (DOCUMENT, &[][..], "is encrypted; set drm-private-key"),
        (&wrong_mac, &with_key, "an encrypted value with a wrong MAC"),
        (
            &of_others,
            &with_key,
            "is for the private key of drm-private-key",
        ),
        (&other_algorithm, &with_key, "rsa-1_5\"; only "),
        (&without_mac, &with_key, "Secret has no ValueMAC"),
    ] {
        let response = serve_document(text, flags).get("/film/.m3u8");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn a_private_key_of_another_form_is_refused_at_the_start() {
    let pem = std::fs::read_to_string(recipient_key()).unwrap();
    for (text, wrong) in [
        (
            pem.replace("PRIVATE KEY", "RSA PRIVATE KEY"),
            "openssl pkcs8 -topk8",
        ),
        (pem.replace("MII", "MIJ"), "expected an RSA key"),
    ] {
        let file = TextFile::new(&text);
        let flags = ["--drm-keys", "cpix:none.cpix", "--drm-private-key"];
        let path = file.path();
        let flags = [&flags[..], &[path.to_str().unwrap()]].concat();
        let error = support::start(&support::demo_folder(), &flags)
            .err()
            .unwrap();
        let error = error.to_string();
        assert!(error.contains("--drm-private-key: cannot use"), "{error}");
        assert!(error.contains(wrong), "{error}");
        assert!(!error.contains("MII") && !error.contains("MIJ"), "{error}");
    }
}
