//! Reads the end of a certificate's validity (RFC 5280 section 4.1.2.5) without a certificate
//! library.

use rustls::pki_types::CertificateDer;

const INTEGER_OR_SEQUENCE: [u8; 2] = [0x02, 0x30];
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The DER tag of the field `version`, which certificates of version 1 omit.
const VERSION: u8 = 0xa0;

/// Returns the earliest end of validity in a certificate chain, in seconds since 1970. A
/// certificate that cannot be parsed is skipped and causes no error, because the TLS library has
/// already accepted the chain.
pub(super) fn find_earliest_expiry(chain: &[CertificateDer<'_>]) -> Option<u64> {
    chain.iter().filter_map(|der| read_expiry(der)).min()
}

/// Returns `notAfter` in seconds since 1970.
fn read_expiry(certificate: &[u8]) -> Option<u64> {
    let (_, certificate, _) = split_der_element(certificate)?;
    let (_, mut fields, _) = split_der_element(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = split_der_element(fields)?.2;
    }
    // Skips the serial number, the signature algorithm and the issuer, which precede the validity.
    for _ in 0..3 {
        let (tag, _, rest) = split_der_element(fields)?;
        INTEGER_OR_SEQUENCE.contains(&tag).then_some(())?;
        fields = rest;
    }
    let (SEQUENCE, validity, _) = split_der_element(fields)? else {
        return None;
    };
    let (_, _, after) = split_der_element(validity)?;
    let (tag, text, _) = split_der_element(after)?;
    parse_asn1_time(tag, text)
}

/// Splits DER bytes into the tag of the first element, the content of this element, and the
/// remaining bytes.
fn split_der_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (len, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let join = |sum, byte: &u8| sum << 8 | usize::from(*byte);
            (len.iter().fold(0, join), rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(len)?;
    Some((tag, content, behind))
}

/// Converts a time of the form `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ` to seconds since 1970. Returns
/// zero for times before 1970.
fn parse_asn1_time(tag: u8, text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    text.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    let (year, rest) = match tag {
        UTC_TIME if text.len() == 12 => {
            let year: i64 = text.get(..2)?.parse().ok()?;
            let century = if year < 50 { 2000 } else { 1900 };
            (century + year, text.get(2..)?)
        }
        GENERALIZED_TIME if text.len() == 14 => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let field = |index: usize| rest.get(2 * index..2 * index + 2)?.parse::<i64>().ok();
    let days = count_days(year, field(0)?, field(1)?);
    let seconds = days * 86_400 + field(2)? * 3600 + field(3)? * 60 + field(4)?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar. The calculation
/// starts each year in March, so that a leap day is the last day of its year.
fn count_days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_seconds_since_1970() {
        for (tag, text, seconds) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "240229235959Z", Some(1_709_251_199)),
            (UTC_TIME, "500101000000Z", Some(0)),
            (GENERALIZED_TIME, "20500301000000Z", Some(2_529_705_600)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "2402292359Z", None),
            (UTC_TIME, "24022923595Z", None),
            (UTC_TIME, "+40229235959Z", None),
        ] {
            assert_eq!(parse_asn1_time(tag, text.as_bytes()), seconds, "{text}");
        }
    }

    #[test]
    fn the_earliest_expiry_of_a_chain_is_found_and_no_prefix_panics() {
        let make = |year| {
            let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 3, 1);
            let key = rcgen::KeyPair::generate().unwrap();
            params.self_signed(&key).unwrap().der().clone()
        };
        let chain = [make(2060), make(2040)];
        assert_eq!(find_earliest_expiry(&chain), Some(2_214_172_800));
        assert_eq!(find_earliest_expiry(&chain[..1]), Some(2_845_324_800));
        for len in 0..chain[0].len() {
            read_expiry(&chain[0][..len]);
        }
        assert_eq!(
            find_earliest_expiry(&[CertificateDer::from(vec![0; 9])]),
            None
        );
    }
}
