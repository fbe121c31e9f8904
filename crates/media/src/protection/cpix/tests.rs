use super::*;
use crate::fixtures;
use crate::protection::base64_text::encode_base64;
use crate::protection::{ContentSystem, ProtectionScheme, RuleTrackProperties, format_key_id};

const SCHEME: ProtectionScheme = ProtectionScheme::Cbcs;
/// The base64 of the bytes 0 to 15.
const BLOCK: &str = "AAECAwQFBgcICQoLDA0ODw==";
const SD: &str = "00000000-0000-0000-0000-0000000000a1";
const HD: &str = "00000000-0000-0000-0000-0000000000a2";
const AUDIO: &str = "00000000-0000-0000-0000-0000000000a3";

fn key(kid: &str, attributes: &str) -> String {
    format!(
        "<c:ContentKey kid=\"{kid}\" {attributes}><c:Data><p:Secret><p:PlainValue>{BLOCK}</p:PlainValue></p:Secret></c:Data></c:ContentKey>"
    )
}

fn document(keys: &str, systems: &str, rules: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><c:CPIX version=\"2.3\" xmlns:c=\"urn:dashif:org:cpix\" xmlns:p=\"urn:ietf:params:xml:ns:keyprov:pskc\"><c:ContentKeyList>{keys}</c:ContentKeyList><c:DRMSystemList>{systems}</c:DRMSystemList><c:ContentKeyUsageRuleList>{rules}</c:ContentKeyUsageRuleList></c:CPIX>"
    )
}

fn rule(kid: &str, filters: &str) -> String {
    format!("<c:ContentKeyUsageRule kid=\"{kid}\">{filters}</c:ContentKeyUsageRule>")
}

fn three_keys() -> String {
    let keys = [SD, HD, AUDIO]
        .map(|kid| key(kid, "explicitIV=\"AAECAwQFBgcICQoLDA0ODw==\""))
        .concat();
    let rules = [
        rule(SD, "<c:VideoFilter maxPixels=\"442368\"/>"),
        rule(HD, "<c:VideoFilter minPixels=\"442369\"/>"),
        rule(AUDIO, "<c:AudioFilter/>"),
    ];
    document(&keys, "", &rules.concat())
}

#[test]
fn rules_select_tracks_by_pixels_and_kind() {
    let document = parse_key_document(&three_keys(), SCHEME).expect("a legal document");
    assert_eq!(document.keys.len(), 3);
    assert_eq!(
        document.keys[0].key[..],
        document.keys[0].explicit_iv.expect("an IV")
    );
    let rows = &[(512, 0, 4, true)];
    let track = |codec| fixtures::build_track(codec, 12_800, 0, rows);
    for (track, expected) in [
        (track(fixtures::build_avc_test_codec(768, 576)), SD),
        (track(fixtures::build_avc_test_codec(1280, 720)), HD),
        (track(fixtures::build_aac_test_codec()), AUDIO),
    ] {
        let facts = RuleTrackProperties::new(&track, 1);
        let applying = document.rules.iter().filter(|rule| rule.applies_to(&facts));
        let found: Vec<String> = applying.map(|rule| format_key_id(&rule.key_id)).collect();
        assert_eq!(found, [expected]);
    }
}

#[test]
fn keys_of_sources_need_no_rules_and_may_be_for_any_scheme() {
    let keys = key(SD, "commonEncryptionScheme=\"cens\"") + &key(HD, "");
    let text = document(&keys, "", "");
    assert!(parse_key_document(&text, SCHEME).is_err());
    let keys = list_content_keys(&text, None).expect("a legal document");
    let ids: Vec<String> = keys.iter().map(|key| format_key_id(&key.key_id)).collect();
    assert_eq!(ids, [SD, HD]);
    for wrong in [
        document("", "", ""),
        text.replace(HD, SD),
        text.replace("2.3", "3.0"),
    ] {
        assert!(list_content_keys(&wrong, None).is_err(), "{wrong}");
    }
}

#[test]
fn kinds_of_filters_must_all_match() {
    let filters = "<c:VideoFilter/><c:BitrateFilter minBitrate=\"10\" maxBitrate=\"20\"/>";
    let text = document(&key(SD, ""), "", &rule(SD, filters));
    let document = parse_key_document(&text, SCHEME).expect("a legal document");
    let video = fixtures::build_track(
        fixtures::build_avc_test_codec(640, 360),
        12_800,
        0,
        &[(512, 0, 4, true)],
    );
    let applies =
        |bitrate| document.rules[0].applies_to(&RuleTrackProperties::new(&video, bitrate));
    assert_eq!([9, 10, 20, 21].map(applies), [false, true, true, false]);
}

#[test]
fn signaling_is_decoded_and_empty_elements_define_nothing() {
    let pssh = "AAAAIHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAAAA=";
    let line = "I0VYVC1YLUtFWTpNRVRIT0Q9U0FNUExFLUFFUw=="; // #EXT-X-KEY:METHOD=SAMPLE-AES
    let widevine = format!(
        "<c:DRMSystem kid=\"{SD}\" systemId=\"EDEF8BA9-79d6-4ace-a3c8-27dcd51d21ed\"><c:PSSH>{pssh}</c:PSSH><c:ContentProtectionData/><c:HLSSignalingData playlist=\"media\">{line}</c:HLSSignalingData></c:DRMSystem>"
    );
    let text = document(&key(SD, ""), &widevine, "");
    let document = parse_key_document(&text, SCHEME).expect("a legal document");
    let system = &document.keys[0].systems[0];
    assert_eq!(system.system, ContentSystem::Widevine);
    assert_eq!(system.pssh.as_ref().map(Vec::len), Some(32));
    assert_eq!(
        system.hls_media.as_deref(),
        Some("#EXT-X-KEY:METHOD=SAMPLE-AES")
    );
    assert_eq!(
        (&system.hls_multivariant, &system.dash_content),
        (&None, &None)
    );
}

fn assert_refused(text: &str, wrong: &str) {
    let error = parse_key_document(text, SCHEME).expect_err(wrong);
    assert!(error.message.contains(wrong), "{error} is not {wrong}");
    assert!(!error.message.contains(BLOCK), "{error}");
}

#[test]
fn documents_with_unusable_keys_are_refused_with_a_reason() {
    let encrypted = format!(
        "<ContentKey kid=\"{SD}\"><Data><Secret><EncryptedValue/></Secret></Data></ContentKey>"
    );
    let two = [key(SD, ""), key(HD, "")].concat();
    let twice = [key(SD, ""), key(SD, "")].concat();
    let short = key(SD, "").replace(BLOCK, "AAEC");
    for (keys, wrong) in [
        (two, "2 keys without usage rules"),
        (twice, "occurs twice"),
        (key(SD, "dependsOnKey=\"x\""), "depends on another key"),
        (
            key(SD, "commonEncryptionScheme=\"cenc\""),
            "is one for \"cenc\"",
        ),
        (
            key(SD, "explicitIV=\"AAEC\""),
            "explicitIV that is not 16 bytes",
        ),
        (key("1", ""), "ContentKey@kid is not a UUID"),
        (
            key(SD, "").replace("<c:Data>", "<c:HDCPData HLSHDCPLevel=\"TYPE-9\"/><c:Data>"),
            "has an HLSHDCPLevel other than",
        ),
        (short, "a value that is not 16 bytes"),
        (encrypted, "is encrypted"),
    ] {
        assert_refused(&document(&keys, "", ""), wrong);
    }
    let periods = "<CPIX><ContentKeyPeriodList><ContentKeyPeriod/><ContentKeyPeriod/></ContentKeyPeriodList></CPIX>";
    assert_refused(periods, "the keys change during the film");
    assert_refused("<smil/>", "not a CPIX document");
    assert_refused(
        "<CPIX version=\"3.0\"/>",
        "CPIX version 3.0 is not supported",
    );
    assert_refused("<CPIX/>", "contains no key");
}

#[test]
fn rules_that_cannot_be_evaluated_are_refused_by_name() {
    for (rule, wrong) in [
        (rule(HD, ""), "the unknown key"),
        (
            rule(SD, "<c:LabelFilter label=\"x\"/>"),
            "the filter LabelFilter",
        ),
        (
            rule(SD, "<c:VideoFilter maxPixels=\"x\"/>"),
            "maxPixels is not a number",
        ),
        (
            rule(SD, "<c:VideoFilter hdr=\"x\"/>"),
            "hdr is not a boolean",
        ),
    ] {
        assert_refused(&document(&key(SD, ""), "", &rule), wrong);
    }
}

#[test]
fn signaling_that_would_break_a_manifest_is_refused() {
    // The decoded value has two lines, and only the first line is an `#EXT-X-KEY` line.
    let two_tags = "<HLSSignalingData>I0VYVC1YLUtFWTpBCiNFWFQtWC1FTkRMSVNU</HLSSignalingData>";
    let siblings = encode_base64(b"</ContentProtection><BaseURL/><ContentProtection>");
    let siblings = format!("<ContentProtectionData>{siblings}</ContentProtectionData>");
    for cpc in ["a:b&quot;", "a", "", "a:b&#10;,c:d", "a:b, c:d"] {
        let system = format!(
            "<c:DRMSystem kid=\"{SD}\" systemId=\"edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\" HLSAllowedCPC=\"{cpc}\"/>"
        );
        assert_refused(&document(&key(SD, ""), &system, ""), "HLSAllowedCPC");
    }
    for (content, wrong) in [
        ("<PSSH>AAEC</PSSH>", "not one complete pssh box"),
        ("<PSSH>*</PSSH>", "PSSH is not base64"),
        (
            "<ContentProtectionData>PGE+</ContentProtectionData>",
            "ContentProtectionData",
        ),
        (&siblings, "more than one root element"),
        (two_tags, "#EXT-X-KEY: lines"),
    ] {
        let system = format!(
            "<c:DRMSystem kid=\"{SD}\" systemId=\"edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\">{content}</c:DRMSystem>"
        );
        assert_refused(&document(&key(SD, ""), &system, ""), wrong);
    }
}

#[test]
fn keys_are_not_printed() {
    let document = parse_key_document(&three_keys(), SCHEME).expect("a legal document");
    let printed = format!("{:?}", document.keys[0]);
    assert!(
        printed.starts_with("KeyDocumentEntry { key_id: "),
        "{printed}"
    );
    assert!(!printed.contains("1, 2, 3"), "{printed}");
}

#[test]
fn keys_are_wiped_on_drop() {
    fn require_wiping<T: zeroize::ZeroizeOnDrop>(_: &T) {}
    let document = parse_key_document(&three_keys(), SCHEME).expect("a legal document");
    require_wiping(&document.keys[0].key);
    let keys = DocumentKeys {
        document_key: vec![1; 32].into(),
        mac_key: vec![2; 64].into(),
    };
    require_wiping(&keys.document_key);
    require_wiping(&keys.mac_key);
}

#[test]
fn requests_are_documents_without_values() {
    let rule = |kid, media| crate::protection::UsageRule {
        key_id: crate::protection::parse_key_id(kid).expect("a UUID"),
        media,
        bitrates: Vec::new(),
    };
    let video = crate::protection::VideoFilterLimits {
        pixels: 0..=442_368,
        ..Default::default()
    };
    let keys = [
        RequestedKey {
            rule: rule(SD, vec![crate::protection::MediaFilter::Video(video)]),
            explicit_iv: [0; 16],
            track_type: "SD",
        },
        RequestedKey {
            rule: rule(
                AUDIO,
                vec![crate::protection::MediaFilter::Audio(0..=u32::MAX)],
            ),
            explicit_iv: [0; 16],
            track_type: "AUDIO",
        },
    ];
    let systems = [ContentSystem::Widevine, ContentSystem::FairPlay];
    let request = CpixRequest {
        version: CpixVersion::V2_3,
        content_id: "a&b",
        scheme: SCHEME,
        keys: &keys,
        systems: &systems,
        certificate: None,
    };
    let text = request.to_xml();
    assert!(
        text.contains("contentId=\"a&amp;b\" version=\"2.3\""),
        "{text}"
    );
    assert!(
        text.contains("intendedTrackType=\"SD\"><cpix:VideoFilter maxPixels=\"442368\"/>"),
        "{text}"
    );
    let newer = CpixRequest {
        version: CpixVersion::V2_4,
        ..request
    };
    let newer = newer.to_xml();
    let same = newer.replace("version=\"2.4\"", "version=\"2.3\"");
    assert_eq!(same.replace("\"multiVariant\"", "\"master\""), text);
    let error = parse_key_document(&text, SCHEME).expect_err("keys without values");
    assert!(error.message.contains("has no value"), "{error}");
    // A key server responds with the same document, in which the values are filled in.
    let value = format!(
        "explicitIV=\"AAAAAAAAAAAAAAAAAAAAAA==\"><Data><Secret><PlainValue>{BLOCK}</PlainValue></Secret></Data></cpix:ContentKey>"
    );
    let filled = text.replace("explicitIV=\"AAAAAAAAAAAAAAAAAAAAAA==\"/>", &value);
    let document = parse_key_document(&filled, SCHEME).expect("a filled request");
    assert_eq!(document.rules, keys.map(|key| key.rule));
    assert_eq!(document.keys[0].systems.len(), 2);
}

/// A generator of reproducible mutations (xorshift).
fn next_random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

/// Returns encrypted values unchanged, so that mutated values also reach the code that follows the
/// decryption.
struct TransparentDecryptor;

impl KeyDocumentDecryptor for TransparentDecryptor {
    fn decrypt_for_recipient(&self, value: &[u8]) -> Option<zeroize::Zeroizing<Vec<u8>>> {
        // In the test documents, 15 zero bytes stand for a value that is encrypted for another
        // recipient.
        (value != [0; 15]).then(|| value.to_vec().into())
    }

    fn decrypt_value(
        &self,
        _keys: &DocumentKeys,
        value: &[u8],
        mac: &[u8],
    ) -> Option<zeroize::Zeroizing<Vec<u8>>> {
        (!mac.is_empty()).then(|| value.to_vec().into())
    }
}

/// Returns a document whose key has the signaling of two systems.
fn signaled_key() -> String {
    let pssh = "AAAAIHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAAAA=";
    let line = "I0VYVC1YLUtFWTpNRVRIT0Q9U0FNUExFLUFFUw=="; // #EXT-X-KEY:METHOD=SAMPLE-AES
    let session = "I0VYVC1YLVNFU1NJT04tS0VZOkE9Qgo="; // #EXT-X-SESSION-KEY:A=B
    let element = "PGE+PGIvPjwvYT4="; // <a><b/></a>
    let uri = "c2tkOi8vMQ=="; // skd://1
    let systems = [
        "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",
        "3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c",
    ]
    .map(|id| {
        format!(
            "<c:DRMSystem kid=\"{SD}\" systemId=\"{id}\"><c:PSSH>{pssh}</c:PSSH><c:ContentProtectionData>{element}</c:ContentProtectionData><c:HLSSignalingData playlist=\"media\">{line}</c:HLSSignalingData><c:HLSSignalingData playlist=\"master\">{session}</c:HLSSignalingData><c:URIExtXKey>{uri}</c:URIExtXKey></c:DRMSystem>"
        )
    });
    document(&key(SD, ""), &systems.concat(), "")
}

/// Returns a document for two recipients, with an encrypted key value.
fn encrypted_key() -> String {
    let cipher = |algorithm: &str, value: &str| {
        format!(
            "<EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#{algorithm}\"/><CipherData><CipherValue>{value}</CipherValue></CipherData>"
        )
    };
    let recipient = |document_key: &str| {
        let document_key = cipher("rsa-oaep-mgf1p", document_key);
        let mac_key = cipher("rsa-oaep-mgf1p", BLOCK);
        format!(
            "<DeliveryData><DocumentKey Algorithm=\"http://www.w3.org/2001/04/xmlenc#aes256-cbc\"><Data><Secret><EncryptedValue>{document_key}</EncryptedValue></Secret></Data></DocumentKey><MACMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#hmac-sha512\"><Key>{mac_key}</Key></MACMethod></DeliveryData>"
        )
    };
    // The base64 of 15 and of 32 zero bytes.
    let (other, own) = ("A".repeat(20), "A".repeat(43) + "=");
    let recipients = recipient(&other) + &recipient(&own);
    let value = cipher("aes256-cbc", BLOCK);
    let secret = format!("<EncryptedValue>{value}</EncryptedValue><ValueMAC>{BLOCK}</ValueMAC>");
    let key = key(SD, "").replace(&format!("<p:PlainValue>{BLOCK}</p:PlainValue>"), &secret);
    let list = format!("<DeliveryDataList>{recipients}</DeliveryDataList><c:ContentKeyList>");
    document(&key, "", "").replace("<c:ContentKeyList>", &list)
}

#[test]
fn ten_thousand_mutated_documents_do_not_panic() {
    let mut state = 0x2545_f491_4f6c_dd1d;
    let decrypt = |text: &str| decrypt_key_document(text, SCHEME, Some(&TransparentDecryptor));
    for whole in [three_keys(), signaled_key(), encrypted_key()] {
        decrypt(&whole).expect("a legal document");
        let mut accepted = 0;
        for _ in 0..10_000 {
            let mut bytes = whole.clone().into_bytes();
            for _ in 0..1 + next_random(&mut state) % 4 {
                if bytes.len() < 2 {
                    break;
                }
                let at = next_random(&mut state) % bytes.len();
                match next_random(&mut state) % 3 {
                    0 => bytes[at] = next_random(&mut state) as u8,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            accepted += usize::from(decrypt(&String::from_utf8_lossy(&bytes)).is_ok());
        }
        assert!((1..9_000).contains(&accepted), "{accepted}: {whole}");
    }
}
