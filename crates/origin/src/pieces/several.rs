//! Pieces of several objects that lie one behind the other: a body for each run of pieces of the
//! same object, begun when the one before has ended.

use super::{Piece, Source};
use futures_util::stream;
use http_body_util::BodyExt;
use net::body::Cut;
use net::{Body, Chunk};
use std::collections::VecDeque;
use std::sync::Arc;
use store::{Error, Object};

/// Pieces of one object, by its own counting.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    object: usize,
    pieces: Vec<Piece>,
}

/// Makes a body of pieces, the first of whose bytes are there when this returns.
pub(super) async fn body(source: Source, pieces: &[Piece]) -> Result<Body, Error> {
    let len = pieces.iter().map(Piece::len).sum();
    let objects: Vec<Arc<Object>> = std::iter::once(&source.object)
        .chain(&*source.behind)
        .cloned()
        .collect();
    let lens: Vec<u64> = objects.iter().map(|object| object.len()).collect();
    let mut coming = Coming {
        runs: runs(pieces, &lens).ok_or(Error::Changed)?,
        objects,
        source,
    };
    let first = coming.next().await?;
    let frames = stream::try_unfold((first, coming), |(mut now, mut coming)| async {
        while let Some(body) = &mut now {
            match body.frame().await.transpose()? {
                Some(frame) => {
                    let chunk = frame
                        .into_data()
                        .unwrap_or_else(|_| Chunk::pieces(Vec::new()));
                    return Ok(Some((chunk, (now, coming))));
                }
                None => now = coming.next().await.map_err(Cut::new)?,
            }
        }
        Ok::<_, Cut>(None)
    });
    Ok(Body::stream(len, frames))
}

/// Runs on their way.
struct Coming {
    runs: VecDeque<Run>,
    objects: Vec<Arc<Object>>,
    source: Source,
}

impl Coming {
    async fn next(&mut self) -> Result<Option<Body>, Error> {
        let Some(run) = self.runs.pop_front() else {
            return Ok(None);
        };
        let source = Source {
            object: self.objects.get(run.object).ok_or(Error::Changed)?.clone(),
            behind: Arc::new([]),
            ..self.source.clone()
        };
        super::one(source, run.pieces.into()).await.map(Some)
    }
}

/// Pieces by object; what we made goes with what comes before it. `None`: a range that is in none.
fn runs(pieces: &[Piece], lens: &[u64]) -> Option<VecDeque<Run>> {
    let mut runs: VecDeque<Run> = VecDeque::new();
    for piece in pieces {
        let (object, piece) = match piece {
            Piece::Made(_) => (runs.back().map_or(0, |run| run.object), piece.clone()),
            Piece::Of(range) => {
                let mut base = 0;
                let found = lens.iter().position(|len| {
                    base += len;
                    range.start < base
                })?;
                let base = base - lens.get(found)?;
                if range.end - base > *lens.get(found)? {
                    return None;
                }
                (found, Piece::Of(range.start - base..range.end - base))
            }
        };
        match runs.back_mut() {
            Some(run) if run.object == object => run.pieces.push(piece),
            _ => runs.push_back(Run {
                object,
                pieces: vec![piece],
            }),
        }
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn ranges_find_their_objects() {
        let made = Piece::Made(Bytes::from_static(b"x"));
        let pieces = [
            made.clone(),
            Piece::Of(0..10),
            Piece::Of(10..12),
            made.clone(),
            Piece::Of(3..4),
        ];
        let found = runs(&pieces, &[10, 5]).unwrap();
        let run = |object, pieces: &[Piece]| Run {
            object,
            pieces: pieces.to_vec(),
        };
        let expected = [
            run(0, &[made.clone(), Piece::Of(0..10)]),
            run(1, &[Piece::Of(0..2), made]),
            run(0, &[Piece::Of(3..4)]),
        ];
        assert_eq!(found, expected);
        for wrong in [9..11, 15..16, 14..16] {
            assert_eq!(runs(&[Piece::Of(wrong)], &[10, 5]), None);
        }
    }
}
