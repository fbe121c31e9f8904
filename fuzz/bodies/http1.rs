//! Checks that the result of decoding does not depend on the pieces in which a response arrives,
//! and that no response causes a panic.

use http1::{BodyDecoder, HeadLimits, ProtocolError, ResponseHead};

/// The result of decoding a whole body.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedBody {
    pub data: Vec<u8>,
    pub is_complete: bool,
    /// Number of bytes of the stream that belong to the body and its framing.
    pub consumed: usize,
}

/// The first byte selects how the response is split into pieces. The rest is the response.
pub fn run(data: &[u8]) {
    let Some((split, received)) = data.split_first() else {
        return;
    };
    let split = usize::from(*split) + 1;
    let limits = HeadLimits::default();
    let Ok(Some((head, _))) = ResponseHead::parse_to_map(received, limits, false) else {
        return;
    };
    let (bytes, rest) = received.split_at(head.len);
    for cut in [split.min(bytes.len() - 1), bytes.len() - 1] {
        let partial = ResponseHead::parse(&bytes[..cut], limits, false, |_, _, _| {});
        assert_eq!(
            partial,
            Ok(None),
            "the start of a valid head is incomplete, not invalid"
        );
    }
    let whole = decode_in_pieces(head.body, rest, &[usize::MAX]);
    assert_eq!(whole, decode_in_pieces(head.body, rest, &[1]));
    assert_eq!(whole, decode_in_pieces(head.body, rest, &[split, 1, 7]));
    if let (Ok(body), Some(len)) = (whole, head.body.remaining()) {
        assert!(
            body.data.len() as u64 <= len && body.is_complete == (body.data.len() as u64 == len)
        );
    }
}

/// Decodes a body that is received in pieces. The lengths of the pieces are `lens`, repeated. Bytes
/// that the decoder does not consume are passed again with the next piece, because a connection
/// also keeps such bytes in its buffer.
pub fn decode_in_pieces(
    mut body: BodyDecoder,
    stream: &[u8],
    lens: &[usize],
) -> Result<DecodedBody, ProtocolError> {
    let (mut data, mut consumed, mut received) = (Vec::new(), 0, 0_usize);
    for len in lens.iter().cycle() {
        received = received.saturating_add((*len).max(1)).min(stream.len());
        loop {
            let found = body.next_data(&stream[consumed..received])?;
            data.extend_from_slice(&stream[consumed..received][found.clone()]);
            consumed += found.end;
            if found.is_empty() {
                break;
            }
        }
        if body.is_complete() || received == stream.len() {
            break;
        }
    }
    let is_complete = body.is_complete();
    Ok(DecodedBody {
        data,
        is_complete,
        consumed,
    })
}
