//! AES-128 as HLS has it (RFC 8216, 4.3.2.4 and 5.2): whole segments in cipher block chaining with
//! PKCS#7 padding. Each title has a key, derived from one secret and the title's path, so that any
//! number of origins, or a key server that is not ours, come to the same without speaking. A
//! segment's initialization vector is its number in the playlist.

use crate::error;
use crate::route;
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use media::manifest::hls::encrypted_len;
use net::Error;
use std::sync::Arc;
use store::Key;

/// Bytes of a key, and of a block.
const BLOCK: usize = 16;
/// Shortest and longest secret, in bytes.
pub(crate) const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;
/// A key's address from the folder of a rendition.
const HERE: &str = "../../.key";
/// What stands for the title's path in a key's address.
pub(crate) const TITLE: &str = "{title}";

/// All that titles' keys come from.
pub(crate) struct Secret {
    secret: hmac::Key,
    /// Where players ask for keys, if not here.
    key_url: Option<String>,
}

/// How a title is encrypted.
pub(crate) struct Seal {
    bytes: [u8; BLOCK],
    key: Arc<EncryptingKey>,
    /// Where players ask for the key, if not here.
    elsewhere: Option<String>,
    version: u64,
}

/// How one segment of it is.
pub(crate) struct Sealed {
    key: Arc<EncryptingKey>,
    iv: [u8; BLOCK],
}

/// A segment that is being encrypted in the place where it is written.
pub(crate) struct Sealing {
    key: Arc<EncryptingKey>,
    iv: [u8; BLOCK],
    done: usize,
}

impl Secret {
    /// From a secret's bytes, whose length is among [`SECRET_BYTES`].
    pub(crate) fn new(secret: &[u8], key_url: Option<&str>) -> Secret {
        Secret {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            key_url: key_url.map(str::to_owned),
        }
    }

    /// The title's key: the first half of HMAC-SHA256 of its path behind words of ours.
    pub(crate) fn seal(&self, title: &Key) -> Result<Seal, Error> {
        let bytes: [u8; BLOCK] = self.derive(&["headwater aes-128\n", title.as_str()]);
        let key = UnboundCipherKey::new(&AES_128, &bytes).and_then(EncryptingKey::cbc);
        let elsewhere = self.key_url.as_ref();
        Ok(Seal {
            bytes,
            key: Arc::new(key.map_err(broken)?),
            elsewhere: elsewhere.map(|url| url.replace(TITLE, &route::escaped(title))),
            version: u64::from_be_bytes(self.derive(&["headwater set\n"])),
        })
    }

    fn derive<const N: usize>(&self, words: &[&str]) -> [u8; N] {
        let mut context = hmac::Context::with_key(&self.secret);
        words
            .iter()
            .for_each(|word| context.update(word.as_bytes()));
        let tag = context.sign();
        std::array::from_fn(|at| tag.as_ref().get(at).copied().unwrap_or_default())
    }
}

impl Seal {
    /// The key, if players are to ask for it here.
    pub(crate) fn key(&self) -> Option<[u8; BLOCK]> {
        self.elsewhere.is_none().then_some(self.bytes)
    }

    /// Where players ask for the key, as the title's media playlists name it.
    pub(crate) fn key_url(&self) -> &str {
        self.elsewhere.as_deref().unwrap_or(HERE)
    }

    /// Another one for each secret: what is encrypted otherwise has other addresses.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// How the segment with this media sequence number is encrypted.
    pub(crate) fn of(&self, sequence: u64) -> Sealed {
        Sealed {
            key: self.key.clone(),
            iv: u128::from(sequence).to_be_bytes(),
        }
    }
}

impl Sealed {
    /// Begins to encrypt.
    pub(crate) fn begin(&self) -> Sealing {
        Sealing {
            key: self.key.clone(),
            iv: self.iv,
            done: 0,
        }
    }
}

impl Sealing {
    /// Encrypts what has come to stand in `out`, whose first `written` bytes are there, as far as
    /// whole blocks go.
    pub(crate) fn advance(&mut self, out: &mut [u8], written: usize) -> Result<(), Error> {
        let whole = written - written % BLOCK;
        let blocks = out.get_mut(self.done..whole).unwrap_or_default();
        if blocks.is_empty() {
            return Ok(());
        }
        let context = EncryptionContext::Iv128(FixedLength::from(self.iv));
        let sealed = self.key.less_safe_encrypt(blocks, context);
        sealed.map_err(broken)?;
        if let Some(last) = blocks.last_chunk() {
            self.iv = *last;
        }
        self.done = whole;
        Ok(())
    }

    /// Encrypts the rest, and says how long all of it is. `out` has room for the padding.
    pub(crate) fn end(mut self, out: &mut [u8], written: usize) -> Result<usize, Error> {
        let len = encrypted_len(written as u64) as usize;
        let padding = out.get_mut(written..len);
        let padding = padding.ok_or_else(|| Error::internal("no room for padding"))?;
        padding.fill(padding.len() as u8);
        self.advance(out, len)?;
        Ok(len)
    }
}

fn broken(_: Unspecified) -> Error {
    Error::internal("a segment could not be encrypted")
}

/// What cannot be had of a title that is encrypted.
pub(crate) fn refused(what: &str) -> Error {
    error::not_found(&format!(
        "{what}: films are encrypted here, and played as HLS only"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn title(path: &str) -> Key {
        Key::parse(path).unwrap_or_else(|bad| panic!("{path}: {bad}"))
    }

    fn seal(path: &str) -> Seal {
        Secret::new(&[7; 32], None).seal(&title(path)).unwrap()
    }

    /// Encrypted in steps.
    fn sealed(sealed: &Sealed, clear: &[u8], steps: &[usize]) -> Vec<u8> {
        let (mut out, mut sealing, mut written) = (clear.to_vec(), sealed.begin(), 0);
        out.resize(encrypted_len(clear.len() as u64) as usize, 0xee);
        for step in steps {
            written = clear.len().min(written + step);
            sealing.advance(&mut out, written).unwrap();
        }
        let len = sealing.end(&mut out, clear.len()).unwrap();
        assert_eq!(len, out.len());
        out
    }

    /// NIST SP 800-38A, F.2.1: the same key and vector, the first block.
    #[test]
    fn a_known_block() {
        let key = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c,
        ];
        let clear = [
            0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93,
            0x17, 0x2a,
        ];
        let key = UnboundCipherKey::new(&AES_128, &key).and_then(EncryptingKey::cbc);
        let known = Sealed {
            key: Arc::new(key.unwrap()),
            iv: std::array::from_fn(|n| n as u8),
        };
        let expected = [
            0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9,
            0x19, 0x7d,
        ];
        assert_eq!(sealed(&known, &clear, &[])[..16], expected);
    }

    #[test]
    fn titles_and_secrets_have_keys_of_their_own() {
        let other = Secret::new(&[8; 32], None).seal(&title("a")).unwrap();
        let (a, b) = (seal("a"), seal("b"));
        assert_ne!(a.key(), b.key());
        assert_ne!(a.key(), other.key());
        assert_eq!(a.version(), b.version());
        assert_ne!(a.version(), other.version());
        assert_eq!(a.key(), seal("a").key());
    }

    #[test]
    fn a_key_elsewhere_is_not_given_here() {
        let secret = Secret::new(&[7; 32], Some("https://keys.example/{title}?v=1"));
        let seal = secret.seal(&title("a&b=c+d/ü 1.mp4")).unwrap();
        assert_eq!(seal.key(), None);
        let url = "https://keys.example/a%26b%3Dc%2Bd/%C3%BC%201.mp4?v=1";
        assert_eq!(seal.key_url(), url);
    }

    proptest! {
        #[test]
        fn in_steps_as_at_once_and_back(
            clear in prop::collection::vec(any::<u8>(), 0..400),
            steps in prop::collection::vec(0usize..90, 0..8),
            sequence: u64,
        ) {
            use aws_lc_rs::cipher::{DecryptionContext, PaddedBlockDecryptingKey};
            let seal = seal("a");
            let mut out = sealed(&seal.of(sequence), &clear, &steps);
            prop_assert_eq!(&out, &sealed(&seal.of(sequence), &clear, &[]));
            prop_assert_eq!(out.len() as u64, encrypted_len(clear.len() as u64));
            let key = UnboundCipherKey::new(&AES_128, &seal.bytes).unwrap();
            let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).unwrap();
            let iv = u128::from(sequence).to_be_bytes();
            let context = DecryptionContext::Iv128(FixedLength::from(iv));
            prop_assert_eq!(key.decrypt(&mut out, context).unwrap(), &clear[..]);
        }
    }
}
