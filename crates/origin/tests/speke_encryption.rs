//! Tests of SPEKE with encrypted key values. The request contains a certificate, and the key server
//! encrypts the values for the owner of the certificate. `documents/recipient.crt` is the
//! certificate of `documents/recipient.pem`.
#![allow(clippy::unwrap_used)]

mod support;

use aws_lc_rs::cipher::{AES_256, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PrivateDecryptingKey};
use aws_lc_rs::{hmac, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};
use support::key_server::{KeyServer, fill_request, respond};
use support::keys::*;
use support::{TestServer, keys};

const ENC: &str = "http://www.w3.org/2001/04/xmlenc#";
const MAC_KEY: [u8; 64] = [7; 64];
const DOCUMENT_KEY: [u8; 32] = [9; 32];
const VERSIONS: [&str; 2] = ["2.0", "2.1"];

fn document_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/documents")
        .join(name)
}

fn read_pem(name: &str, label: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(document_path(name)).unwrap();
    let body = text.replace(&format!("-----BEGIN {label}-----"), "");
    let body = body.replace(&format!("-----END {label}-----"), "");
    STANDARD
        .decode(body.split_whitespace().collect::<String>())
        .unwrap()
}

fn cipher_data(algorithm: &str, bytes: &[u8]) -> String {
    let value = STANDARD.encode(bytes);
    format!(
        "<enc:EncryptionMethod Algorithm=\"{ENC}{algorithm}\"/><enc:CipherData><enc:CipherValue>{value}</enc:CipherValue></enc:CipherData>"
    )
}

/// Encrypts with the public key of `recipient.pem`. Returns the elements that `DeliveryData`
/// contains.
fn encrypt_for_recipient(plain: &[u8]) -> String {
    let key = PrivateDecryptingKey::from_pkcs8(&read_pem("recipient.pem", "PRIVATE KEY")).unwrap();
    let key = OaepPublicEncryptingKey::new(key.public_key()).unwrap();
    let mut out = vec![0; key.ciphertext_size()];
    let out = key
        .encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut out, None)
        .unwrap();
    cipher_data("rsa-oaep-mgf1p", out)
}

/// Encrypts a value with the document key. Returns the content of the `Secret` element.
fn encrypt_value(plain: &[u8]) -> String {
    let key = UnboundCipherKey::new(&AES_256, &DOCUMENT_KEY).unwrap();
    let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).unwrap();
    let mut bytes = plain.to_vec();
    let context = key.encrypt(&mut bytes).unwrap();
    let iv: &[u8] = (&context).try_into().unwrap();
    let value = [iv, &bytes].concat();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA512, &MAC_KEY), &value);
    let mac = STANDARD.encode(mac.as_ref());
    let data = cipher_data("aes256-cbc", &value);
    format!("<pskc:EncryptedValue>{data}</pskc:EncryptedValue><pskc:ValueMAC>{mac}</pskc:ValueMAC>")
}

/// Fills encrypted key values into a SPEKE request, as a key server does.
fn fill_encrypted(request: &str) -> String {
    let document_key = encrypt_for_recipient(&DOCUMENT_KEY);
    let mac_key = encrypt_for_recipient(&MAC_KEY);
    let delivery = format!(
        "</cpix:DeliveryKey><cpix:DocumentKey Algorithm=\"{ENC}aes256-cbc\"><cpix:Data><pskc:Secret><pskc:EncryptedValue>{document_key}</pskc:EncryptedValue></pskc:Secret></cpix:Data></cpix:DocumentKey><cpix:MACMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#hmac-sha512\"><cpix:Key>{mac_key}</cpix:Key></cpix:MACMethod>"
    );
    let value = encrypt_value(&STANDARD.decode(VALUE).unwrap());
    fill_request(request)
        .replace("</cpix:DeliveryKey>", &delivery)
        .replace("xmlns:pskc=", &format!("xmlns:enc=\"{ENC}\" xmlns:pskc="))
        .replace(&format!("<PlainValue>{VALUE}</PlainValue>"), &value)
}

fn serve_encrypted(server: &KeyServer, version: &str) -> TestServer {
    let [key, certificate] = ["recipient.pem", "recipient.crt"].map(document_path);
    let flags = [
        "--drm-key-per=type".to_owned(),
        "--drm-systems=widevine".to_owned(),
        format!("--drm-speke-version={version}"),
        format!("--drm-private-key={}", key.display()),
        format!("--drm-certificate={}", certificate.display()),
    ];
    serve_with_keys(&server.url("speke"), &flags.each_ref().map(String::as_str))
}

fn start_key_server(
    version: &'static str,
    fill: impl Fn(&str) -> String + Send + 'static,
) -> KeyServer {
    let headers = format!("X-Speke-Version: {version}\r\n");
    KeyServer::new(move |request| respond("200 OK", &headers, &fill(request)))
}

#[test]
fn encrypted_values_of_a_speke_server_encrypt_as_plain_ones() {
    let certificate = STANDARD.encode(read_pem("recipient.crt", "CERTIFICATE"));
    for version in VERSIONS {
        let keys = start_key_server(version, fill_encrypted);
        let encrypted = serve_encrypted(&keys, version);
        let plain_keys = start_key_server(version, fill_request);
        let flags = [
            "--drm-key-per=type",
            "--drm-systems=widevine",
            "--drm-speke-version",
            version,
        ];
        let plain = serve_with_keys(&plain_keys.url("speke"), &flags);
        let mut compared = 0;
        for playlist in playlists(&plain, "film") {
            assert_eq!(
                encrypted.text(&playlist),
                plain.text(&playlist),
                "{playlist}"
            );
            for url in segments(&plain, &playlist) {
                assert_eq!(encrypted.get(&url).body, plain.get(&url).body, "{url}");
                compared += 1;
            }
        }
        assert!(compared > 10, "{compared}");
        let request = keys.requests().remove(0);
        let element = format!("<ds:X509Certificate>{certificate}</ds:X509Certificate>");
        assert!(request.contains(&element), "{request}");
        // The request contains no document key, because the key server chooses the document key. A
        // request without a certificate names no recipients.
        assert!(!request.contains("DocumentKey"), "{request}");
        let request = plain_keys.requests().remove(0);
        assert!(!request.contains("DeliveryData"), "{request}");
    }
}

#[test]
fn a_speke_server_that_ignores_the_certificate_is_refused() {
    let keys = start_key_server("2.0", fill_request);
    let response = serve_encrypted(&keys, "2.0").get("/film/.mpd");
    let error = response.header("headwater-error");
    assert_eq!(response.status, 503, "{error}");
    assert!(
        error.contains("is not encrypted, although the request"),
        "{error}"
    );
    assert!(!error.contains(VALUE), "{error}");
}

#[test]
fn damaged_encrypted_values_of_a_speke_server_are_refused() {
    let wrong_mac =
        |request: &str| fill_encrypted(request).replace("<pskc:ValueMAC>", "<pskc:ValueMAC>AAAA");
    let without_recipient =
        |request: &str| fill_encrypted(request).replace("DeliveryDataList", "OtherList");
    // Replaces the document key by bytes that are not encrypted for this recipient.
    let of_others = |request: &str| {
        let mut bytes = vec![0; 256];
        rand::fill(&mut bytes).unwrap();
        bytes[0] = 0;
        let other = cipher_data("rsa-oaep-mgf1p", &bytes);
        let filled = fill_encrypted(request);
        let start = filled.find("<pskc:EncryptedValue>").unwrap() + "<pskc:EncryptedValue>".len();
        let end = filled.find("</pskc:EncryptedValue>").unwrap();
        [&filled[..start], &other, &filled[end..]].concat()
    };
    type Fill = Box<dyn Fn(&str) -> String + Send>;
    let cases: [(Fill, &str); 3] = [
        (Box::new(wrong_mac), "wrong MAC"),
        (Box::new(without_recipient), "no delivery data"),
        (Box::new(of_others), "no delivery data"),
    ];
    for (fill, wrong) in cases {
        let keys = start_key_server("2.0", fill);
        let response = serve_encrypted(&keys, "2.0").get("/film/.m3u8");
        let error = response.header("headwater-error");
        assert_eq!(response.status, 503, "{error}");
        assert!(error.contains(wrong), "{wrong}: {error}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_at_the_start() {
    let key = document_path("recipient.pem").display().to_string();
    let pem = std::fs::read_to_string(document_path("recipient.crt")).unwrap();
    // A certificate with the modulus of another key.
    let other = pem.replacen("AQEAyO3RBBb6", "AQEAyO3RBBb7", 1);
    for (text, wrong) in [
        (
            pem.replace("CERTIFICATE", "PUBLIC KEY"),
            "BEGIN CERTIFICATE",
        ),
        (pem.replace("MII", "M*I"), "is damaged"),
        (other, "not the certificate of the key"),
    ] {
        assert_ne!(text, pem, "{wrong}");
        let file = keys::TextFile::new(&text);
        let path = file.path().display().to_string();
        let flags = [
            "--drm-keys",
            "speke:http://127.0.0.1:1/",
            "--drm-private-key",
            &key,
        ];
        let flags = [&flags[..], &["--drm-certificate", &path]].concat();
        let error = support::start(&support::demo_folder(), &flags)
            .err()
            .unwrap();
        let error = error.to_string();
        assert!(error.contains("--drm-certificate: cannot use"), "{error}");
        assert!(error.contains(wrong), "{error}");
    }
}
