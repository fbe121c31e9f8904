use std::io::IoSlice;
use std::sync::Mutex;

use bytes::Buf;
use http_body_util::BodyExt;
use proptest::prelude::*;

use super::*;

/// What the hook was told, once it was.
fn watched(body: Body) -> (Body, Arc<Mutex<Vec<End>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    (
        body.on_end(true, move |end| teller.lock().unwrap().push(end.clone())),
        told,
    )
}

fn summary(told: &Mutex<Vec<End>>) -> Vec<(u64, bool, bool, bool)> {
    let row = |end: &End| {
        (
            end.bytes,
            end.complete,
            end.first_byte.is_some(),
            end.error.is_some(),
        )
    };
    told.lock().unwrap().iter().map(row).collect()
}

fn next(body: &mut Body) -> Option<Result<Chunk, Cut>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let frame = runtime.block_on(body.frame())?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

fn letters() -> Body {
    Body::pieces(vec![
        Bytes::from_static(b"abc"),
        Bytes::new(),
        Bytes::from_static(b"de"),
    ])
}

#[test]
fn the_hook_hears_of_a_whole_body_when_its_last_byte_was_taken() {
    let (mut body, told) = watched(letters());
    let mut chunk = next(&mut body).unwrap().unwrap();
    drop(body);
    chunk.advance(4);
    assert_eq!(summary(&told), []);
    chunk.advance(1);
    drop(chunk);
    assert_eq!(summary(&told), [(5, true, true, false)]);
}

#[test]
fn the_hook_hears_of_a_body_that_nobody_took() {
    let (body, told) = watched(letters());
    drop(body);
    assert_eq!(summary(&told), [(0, false, false, false)]);
    let (mut body, told) = watched(letters());
    let mut chunk = next(&mut body).unwrap().unwrap();
    chunk.advance(2);
    drop((body, chunk));
    assert_eq!(summary(&told), [(2, false, true, false)]);
}

#[test]
fn the_answer_to_head_is_whole_without_a_byte() {
    let (body, told) = watched(letters());
    let mut body = body.silenced();
    assert!(next(&mut body).is_none());
    drop(body);
    assert_eq!(summary(&told), [(0, true, false, false)]);
}

#[test]
fn two_hooks_are_both_called() {
    let (body, first) = watched(letters());
    let (mut body, second) = watched(body);
    let mut chunk = next(&mut body).unwrap().unwrap();
    chunk.advance(5);
    drop((body, chunk));
    assert_eq!(summary(&first), [(5, true, true, false)]);
    assert_eq!(summary(&second), [(5, true, true, false)]);
}

struct List(std::vec::IntoIter<Result<Bytes, Cut>>);

impl Stream for List {
    type Item = Result<Bytes, Cut>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

#[test]
fn a_stream_keeps_its_promise_or_is_cut() {
    let chunk = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
    let cases = [
        (5, vec![chunk("abc"), chunk(""), chunk("de")], None),
        (5, vec![chunk("abc")], Some("ended 2 bytes early")),
        (
            5,
            vec![chunk("abc"), chunk("def")],
            Some("more bytes than promised"),
        ),
        (
            5,
            vec![chunk("abc"), Err(Cut::new("the disk is gone"))],
            Some("the disk is gone"),
        ),
        (0, vec![chunk("abc")], None),
    ];
    for (len, chunks, expected) in cases {
        let (mut body, told) = watched(Body::stream(len, List(chunks.into_iter())));
        let mut bytes = 0;
        let mut failure = None;
        while let Some(chunk) = next(&mut body) {
            match chunk {
                Ok(mut chunk) => {
                    bytes += chunk.len();
                    chunk.advance(chunk.remaining());
                }
                Err(cut) => failure = Some(cut.to_string()),
            }
        }
        drop(body);
        let said = failure
            .as_deref()
            .map(|text| expected.is_some_and(|part| text.contains(part)));
        assert_eq!(said, expected.map(|_| true), "{failure:?}");
        assert_eq!(
            summary(&told),
            [(bytes, bytes == len, bytes > 0, expected.is_some())]
        );
    }
}

proptest! {
    #[test]
    fn vectored_slices_are_the_rest_however_far_it_went(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..200),
        steps in prop::collection::vec(0usize..40, 0..40),
        slots in 1usize..80,
    ) {
        let whole = pieces.concat();
        let mut chunk = Chunk::pieces(pieces.into_iter().map(Bytes::from).collect());
        let mut at = 0;
        for step in steps {
            let mut slices = vec![IoSlice::new(&[]); slots];
            let count = chunk.chunks_vectored(&mut slices);
            let seen: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            prop_assert!(whole[at..].starts_with(&seen));
            prop_assert!(slices[..count].iter().all(|slice| !slice.is_empty()));
            prop_assert_eq!(chunk.remaining(), whole.len() - at);
            prop_assert_eq!(count == 0, chunk.chunk().is_empty());
            prop_assert_eq!(chunk.chunk().is_empty(), at == whole.len());
            let step = step.min(seen.len());
            chunk.advance(step);
            at += step;
        }
    }
}
