//! Body framing: the decoder returns the same body for any split of the same bytes.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

#[path = "../../../fuzz/bodies/http1.rs"]
mod fuzz_body;
#[path = "../../../fuzz/bodies/replay.rs"]
mod replay;

use fuzz_body::{DecodedBody, decode_in_pieces};
use http1::{BodyDecoder, ChunkEncoder, ChunkedDecoder, ProtocolError};
use proptest::prelude::*;

fn decode_chunks(stream: &[u8]) -> Result<DecodedBody, ProtocolError> {
    let chunked = BodyDecoder::Chunked(ChunkedDecoder::default());
    let pieces: [&[usize]; 3] = [&[usize::MAX], &[1], &[2, 3]];
    let [whole, bytewise, mixed] = pieces.map(|lens| decode_in_pieces(chunked, stream, lens));
    assert_eq!(whole, bytewise, "{stream:?}");
    assert_eq!(whole, mixed, "{stream:?}");
    whole
}

#[test]
fn chunks_are_joined_and_the_next_response_is_left_alone() {
    let stream = b"4\r\nWiki\r\n7 \t;a=\"b\"\r\npedia i\r\nB \r\nn \r\nchunks.\r\n0;x\r\nX: y\r\nz:\r\n\r\nnext";
    let decoded = decode_chunks(stream).unwrap();
    assert_eq!(decoded.data, b"Wikipedia in \r\nchunks.");
    assert!(decoded.is_complete);
    assert_eq!(&stream[decoded.consumed..], b"next");
}

#[test]
fn malformed_chunks_are_errors() {
    for (stream, error) in [
        (&b"x\r\n"[..], ProtocolError::ChunkSize),
        (b"\r\n", ProtocolError::ChunkSize),
        (b" 1\r\n", ProtocolError::ChunkSize),
        (b"-1\r\n", ProtocolError::ChunkSize),
        (b"0x1\r\n", ProtocolError::ChunkSize),
        (b"1x\r\n", ProtocolError::ChunkSize),
        (b"1 x\r\n", ProtocolError::ChunkSize),
        (b"1;\0\r\n", ProtocolError::ChunkSize),
        (b"1\na\r\n", ProtocolError::ChunkSize),
        (b"1;a\nb\r\n", ProtocolError::ChunkSize),
        (b"1\r\r\n", ProtocolError::ChunkSize),
        (b"1000000000000000\r\n", ProtocolError::ChunkSize),
        (b"0000000000000001\r\n", ProtocolError::ChunkSize),
        (b"1\r\nab\r\n", ProtocolError::ChunkEnd),
        (b"1\r\na\n", ProtocolError::ChunkEnd),
        (b"1\r\na\rb", ProtocolError::ChunkEnd),
        (b"0\r\n\n", ProtocolError::Trailer),
        (b"0\r\nno field\r\n", ProtocolError::Trailer),
        (b"0\r\nx: y\n", ProtocolError::Trailer),
        (b"0\r\n x: y\r\n", ProtocolError::Trailer),
        (b"0\r\n: y\r\n", ProtocolError::Trailer),
    ] {
        assert_eq!(
            decode_chunks(stream),
            Err(error),
            "{}",
            stream.escape_ascii()
        );
    }
}

#[test]
fn framing_without_data_is_bounded() {
    let too_long = Err(ProtocolError::ChunkExtensionsTooLong);
    let line = [b"1;", &[b'x'; 4096][..]].concat();
    assert_eq!(decode_chunks(&line), too_long);
    let extensions = format!("1;{}\r\na\r\n", "x".repeat(1000)).repeat(17);
    assert_eq!(decode_chunks(extensions.as_bytes()), too_long);
    let fields = format!("0\r\n{}", "x: y\r\n".repeat(101));
    assert_eq!(
        decode_chunks(fields.as_bytes()),
        Err(ProtocolError::TrailersTooLong)
    );
    let field = format!("0\r\nx: {}", "y".repeat(8 << 10));
    assert_eq!(
        decode_chunks(field.as_bytes()),
        Err(ProtocolError::TrailersTooLong)
    );
}

/// Mutation testing showed that no other test fails if the size checks use `==` instead of `>`.
/// With `==`, the decoder would reject the longest allowed trailers.
#[test]
fn the_longest_trailers_and_extensions_are_accepted() {
    let trailers = |len: usize| format!("0\r\nx:{}\r\n\r\n", "y".repeat(len - 6));
    let longest = decode_chunks(trailers(8 << 10).as_bytes());
    assert!(longest.unwrap().is_complete);
    let longer = decode_chunks(trailers((8 << 10) + 1).as_bytes());
    assert_eq!(longer, Err(ProtocolError::TrailersTooLong));
    let fields = format!("0\r\n{}\r\n", "x: y\r\n".repeat(100));
    assert!(decode_chunks(fields.as_bytes()).unwrap().is_complete);
    // The limit of 4096 bytes includes the digit of the size, the semicolon and the CR.
    let line = |len: usize| format!("0;{}\r\n\r\n", "x".repeat(len - 3));
    assert!(decode_chunks(line(4096).as_bytes()).unwrap().is_complete);
    let longer = decode_chunks(line(4097).as_bytes());
    assert_eq!(longer, Err(ProtocolError::ChunkExtensionsTooLong));
}

#[test]
fn lengths_and_closed_connections_end_bodies() {
    for (body, consumed, is_complete) in [
        (BodyDecoder::Length(3), 3, true),
        (BodyDecoder::Length(9), 8, false),
        (BodyDecoder::UntilClose, 8, false),
    ] {
        let decoded = decode_in_pieces(body, b"filmHTTP", &[1]).unwrap();
        assert_eq!(decoded.data, b"filmHTTP"[..consumed]);
        assert_eq!(
            (decoded.consumed, decoded.is_complete),
            (consumed, is_complete)
        );
    }
    assert_eq!(BodyDecoder::UntilClose.decode_eof(), Ok(()));
    assert_eq!(BodyDecoder::Length(0).decode_eof(), Ok(()));
    for mut body in [
        BodyDecoder::Length(1),
        BodyDecoder::Chunked(ChunkedDecoder::default()),
    ] {
        assert_eq!(body.decode_eof(), Err(ProtocolError::Truncated));
    }
}

proptest! {
    #[test]
    fn encoded_chunks_decode_to_the_same_bytes_in_any_split(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        lens in prop::collection::vec(1usize..50, 1..8),
    ) {
        let mut stream = Vec::new();
        for chunk in &chunks {
            ChunkEncoder::write_chunk_start(&mut stream, chunk.len());
            stream.extend(chunk);
            stream.extend(ChunkEncoder::CHUNK_END);
        }
        stream.extend(ChunkEncoder::BODY_END);
        let end = stream.len();
        stream.extend(b"HTTP/1.1");
        let body = BodyDecoder::Chunked(ChunkedDecoder::default());
        let decoded = decode_in_pieces(body, &stream, &lens).unwrap();
        prop_assert_eq!(decoded, DecodedBody { data: chunks.concat(), is_complete: true, consumed: end });
    }

    #[test]
    fn arbitrary_bytes_decode_alike_in_any_split(
        stream in "([0-9a-f]{0,2}[;\r\n ax:]{0,3}\n?){0,12}",
    ) {
        let _ = decode_chunks(stream.as_bytes());
    }
}

#[test]
fn the_fuzz_corpus_passes() {
    replay::replay_corpus("http1", fuzz_body::run);
}
