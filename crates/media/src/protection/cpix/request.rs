//! CPIX documents that request keys from a key server (SPEKE 2.0 and 2.1).

use crate::protection::base64_text::encode_base64;
use crate::protection::systems::escape_xml;
use crate::protection::{
    ContentSystem, MediaFilter, ProtectionScheme, UsageRule, VideoFilterLimits, format_key_id,
};
use std::fmt::Write;

/// A key to be requested.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedKey {
    /// Key id, and the tracks to which the key applies.
    pub rule: UsageRule,
    /// Constant IV of `cbcs`.
    pub explicit_iv: [u8; 16],
    /// `intendedTrackType` of SPEKE.
    pub track_type: &'static str,
}

/// A version of CPIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CpixVersion {
    /// CPIX 2.3, for SPEKE 2.0.
    #[default]
    V2_3,
    /// CPIX 2.4, for SPEKE 2.1.
    V2_4,
}

impl CpixVersion {
    fn name(self) -> &'static str {
        match self {
            CpixVersion::V2_3 => "2.3",
            CpixVersion::V2_4 => "2.4",
        }
    }

    /// Value of `HLSSignalingData@playlist` for multivariant playlists.
    fn multivariant_name(self) -> &'static str {
        match self {
            CpixVersion::V2_3 => "master",
            CpixVersion::V2_4 => "multiVariant",
        }
    }
}

/// A document that requests the keys of a title.
#[derive(Debug, Clone, PartialEq)]
pub struct CpixRequest<'a> {
    /// Version of the request and of the response.
    pub version: CpixVersion,
    /// Name of the title at the key server.
    pub content_id: &'a str,
    /// Protection scheme of all keys.
    pub scheme: ProtectionScheme,
    /// The keys.
    pub keys: &'a [RequestedKey],
    /// DRM systems whose signaling is requested.
    pub systems: &'a [ContentSystem],
    /// X.509 certificate (DER) of the recipient, for whom the key server encrypts the key values.
    /// Without a certificate, the key values in the response are not encrypted.
    pub certificate: Option<&'a [u8]>,
}

impl CpixRequest<'_> {
    /// Writes the document. The key server fills in the document's empty elements.
    pub fn to_xml(&self) -> String {
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<cpix:CPIX contentId=\"{}\" version=\"{}\" xmlns:cpix=\"urn:dashif:org:cpix\" xmlns:pskc=\"urn:ietf:params:xml:ns:keyprov:pskc\">\n",
            escape_xml(self.content_id),
            self.version.name()
        );
        self.write_recipient(&mut out);
        self.write_keys(&mut out);
        out.push_str("<cpix:DRMSystemList>\n");
        for key in self.keys {
            for system in self.systems {
                write_system(&mut out, self.version, key, *system);
            }
        }
        out.push_str("</cpix:DRMSystemList>\n<cpix:ContentKeyUsageRuleList>\n");
        self.keys.iter().for_each(|key| write_rule(&mut out, key));
        out.push_str("</cpix:ContentKeyUsageRuleList>\n</cpix:CPIX>\n");
        out
    }

    /// Writes the certificate. The key server adds the document key and the MAC key.
    fn write_recipient(&self, out: &mut String) {
        if let Some(certificate) = self.certificate {
            let _ = writeln!(
                out,
                "<cpix:DeliveryDataList><cpix:DeliveryData id=\"headwater\"><cpix:DeliveryKey><ds:X509Data xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data></cpix:DeliveryKey></cpix:DeliveryData></cpix:DeliveryDataList>",
                encode_base64(certificate)
            );
        }
    }

    fn write_keys(&self, out: &mut String) {
        out.push_str("<cpix:ContentKeyList>\n");
        for key in self.keys {
            let _ = write!(
                out,
                "<cpix:ContentKey kid=\"{}\" commonEncryptionScheme=\"{}\"",
                format_key_id(&key.rule.key_id),
                self.scheme.name()
            );
            if self.scheme == ProtectionScheme::Cbcs {
                let _ = write!(out, " explicitIV=\"{}\"", encode_base64(&key.explicit_iv));
            }
            out.push_str("/>\n");
        }
        out.push_str("</cpix:ContentKeyList>\n");
    }
}

fn write_rule(out: &mut String, key: &RequestedKey) {
    let id = format_key_id(&key.rule.key_id);
    let _ = write!(
        out,
        "<cpix:ContentKeyUsageRule kid=\"{id}\" intendedTrackType=\"{}\">",
        key.track_type
    );
    let filters = key.rule.media.iter();
    filters.for_each(|filter| write_filter(out, filter));
    out.push_str("</cpix:ContentKeyUsageRule>\n");
}

/// Writes the empty elements of a DRM system. FairPlay has no elements for DASH, because it is
/// signaled in HLS only.
fn write_system(out: &mut String, version: CpixVersion, key: &RequestedKey, system: ContentSystem) {
    let id = format_key_id(&key.rule.key_id);
    let _ = write!(
        out,
        "<cpix:DRMSystem kid=\"{id}\" systemId=\"{}\">",
        system.uuid()
    );
    if system != ContentSystem::FairPlay {
        out.push_str("<cpix:PSSH/><cpix:ContentProtectionData/>");
    }
    let multivariant = version.multivariant_name();
    let _ = writeln!(
        out,
        "<cpix:HLSSignalingData playlist=\"media\"/><cpix:HLSSignalingData playlist=\"{multivariant}\"/></cpix:DRMSystem>"
    );
}

fn write_filter(out: &mut String, filter: &MediaFilter) {
    match filter {
        MediaFilter::Audio(_) => out.push_str("<cpix:AudioFilter/>"),
        MediaFilter::Video(VideoFilterLimits { pixels, .. }) => {
            out.push_str("<cpix:VideoFilter");
            if *pixels.start() > 0 {
                let _ = write!(out, " minPixels=\"{}\"", pixels.start());
            }
            if *pixels.end() < u64::MAX {
                let _ = write!(out, " maxPixels=\"{}\"", pixels.end());
            }
            out.push_str("/>");
        }
    }
}
