use std::sync::Mutex;

use bytes::Buf;
use http_body_util::BodyExt;

use super::*;

/// Returns the body with a hook, and the completions that the hook records.
fn with_recorded_end(mut body: Body) -> (Body, Arc<Mutex<Vec<BodyCompletion>>>) {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&ends);
    body.on_end(true, move |end| recorded.lock().unwrap().push(end.clone()));
    (body, ends)
}

fn summarize_ends(ends: &Mutex<Vec<BodyCompletion>>) -> Vec<(u64, bool, bool, bool)> {
    let row = |end: &BodyCompletion| {
        (
            end.bytes,
            end.complete,
            end.first_byte.is_some(),
            end.error.is_some(),
        )
    };
    ends.lock().unwrap().iter().map(row).collect()
}

fn next_frame(body: &mut Body) -> Option<Result<CopiedFrame, BodyError>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let frame = runtime.block_on(body.frame())?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

fn letters_body() -> Body {
    Body::from_pieces(vec![
        Bytes::from_static(b"abc"),
        Bytes::new(),
        Bytes::from_static(b"de"),
    ])
}

#[test]
fn the_hook_reports_a_complete_body_after_its_last_byte() {
    let (mut body, ends) = with_recorded_end(letters_body());
    let mut chunk = next_frame(&mut body).unwrap().unwrap();
    drop(body);
    chunk.advance(4);
    assert_eq!(summarize_ends(&ends), []);
    chunk.advance(1);
    drop(chunk);
    assert_eq!(summarize_ends(&ends), [(5, true, true, false)]);
}

#[test]
fn the_hook_reports_an_unsent_body() {
    let (body, ends) = with_recorded_end(letters_body());
    drop(body);
    assert_eq!(summarize_ends(&ends), [(0, false, false, false)]);
    let (mut body, ends) = with_recorded_end(letters_body());
    let mut chunk = next_frame(&mut body).unwrap().unwrap();
    chunk.advance(2);
    drop((body, chunk));
    assert_eq!(summarize_ends(&ends), [(2, false, true, false)]);
}

#[test]
fn the_response_to_head_is_complete_without_a_byte() {
    let (mut body, ends) = with_recorded_end(letters_body());
    body.discard_bytes_for_head();
    assert!(next_frame(&mut body).is_none());
    drop(body);
    assert_eq!(summarize_ends(&ends), [(0, true, false, false)]);
}

#[test]
fn two_hooks_are_both_called() {
    let (body, first) = with_recorded_end(letters_body());
    let (mut body, second) = with_recorded_end(body);
    let mut chunk = next_frame(&mut body).unwrap().unwrap();
    chunk.advance(5);
    drop((body, chunk));
    assert_eq!(summarize_ends(&first), [(5, true, true, false)]);
    assert_eq!(summarize_ends(&second), [(5, true, true, false)]);
}

struct ScriptedSource(std::vec::IntoIter<Result<Bytes, BodyError>>);

impl Stream for ScriptedSource {
    type Item = Result<Bytes, BodyError>;

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
            Some("more bytes than declared"),
        ),
        (
            5,
            vec![chunk("abc"), Err(BodyError::new("the disk is gone"))],
            Some("the disk is gone"),
        ),
        (0, vec![chunk("abc")], None),
    ];
    for (len, chunks, expected) in cases {
        let (mut body, ends) =
            with_recorded_end(Body::sized_stream(len, ScriptedSource(chunks.into_iter())));
        let mut bytes = 0;
        let mut failure = None;
        while let Some(chunk) = next_frame(&mut body) {
            match chunk {
                Ok(mut chunk) => {
                    bytes += chunk.remaining() as u64;
                    chunk.advance(chunk.remaining());
                }
                Err(cut) => failure = Some(cut.to_string()),
            }
        }
        drop(body);
        let is_expected = failure
            .as_deref()
            .map(|text| expected.is_some_and(|part| text.contains(part)));
        assert_eq!(is_expected, expected.map(|_| true), "{failure:?}");
        assert_eq!(
            summarize_ends(&ends),
            [(bytes, bytes == len, bytes > 0, expected.is_some())]
        );
    }
}

/// Returns a body that contains a file of `len` bytes between two short buffers. Also returns the
/// file and the file's bytes.
fn file_body(len: usize) -> (Body, std::fs::File, Vec<u8>) {
    use std::io::Write;
    let bytes: Vec<u8> = (0..len).map(|n| (n / 7 % 251) as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let stat = rustix::fs::fstat(&file).unwrap();
    let modified_ns = stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec as i64;
    let same = Arc::new(file.try_clone().unwrap());
    let body_file = BodyFile::new(same, None, len as u64, modified_ns);
    let parts = vec![
        BodyPart::Bytes(Bytes::from_static(b"head")),
        BodyPart::File(0..len as u64),
        BodyPart::Bytes(Bytes::from_static(b"tail")),
    ];
    let body = Body::from_chunk(Chunk::from_parts(Some(body_file), parts));
    (body, file, bytes)
}

#[test]
fn a_file_is_copied_in_small_frames() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut body, _file, bytes) = file_body(300_000);
    assert_eq!(body.len(), 300_008);
    let mut all = Vec::new();
    while let Some(frame) = runtime.block_on(body.frame()) {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.remaining() <= 64 << 10, "{}", data.remaining());
        all.extend_from_slice(data.chunk());
        let left = http_body::Body::size_hint(&body).exact().unwrap();
        assert_eq!(left + all.len() as u64, 300_008);
    }
    assert!(all == [&b"head"[..], &bytes, b"tail"].concat());
}

#[test]
fn a_file_that_changes_between_two_frames_cuts_the_body() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut body, file, _) = file_body(300_000);
    assert!(runtime.block_on(body.frame()).unwrap().is_ok());
    file.set_len(10_000).unwrap();
    assert!(runtime.block_on(body.frame()).unwrap().is_err());
}
