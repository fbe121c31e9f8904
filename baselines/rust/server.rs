//! A static file server on Tokio and Hyper in the most obvious form. The body is a stream of small
//! chunks, and each chunk is read through `tokio::fs`. The server follows the contract of
//! ../README.md.
//!
//! `--chunk` and `--read` each change one property, so that the cost of the property can be
//! measured (docs/why-rust-was-slow.md).

use bytes::{Bytes, BytesMut};
use clap::{Parser, ValueEnum};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, Empty, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

/// A static file server on Tokio and Hyper.
#[derive(Parser)]
struct Args {
    /// HOST:PORT; port 0 chooses a free port.
    #[arg(long)]
    listen: String,
    /// Method of reading a chunk.
    #[arg(long, value_enum, default_value = "tokio-fs")]
    read: Read,
    /// Bytes per chunk; 4096 is the default of tokio-util's `ReaderStream`.
    #[arg(long, default_value = "4096")]
    chunk: NonZeroUsize,
    /// Whether to set TCP_NODELAY, which neither Tokio nor Hyper sets by default.
    #[arg(long)]
    nodelay: bool,
    /// Folder to serve.
    folder: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Read {
    /// `tokio::fs::File` as a stream: each read moves to the pool of blocking threads and back, and
    /// its bytes are copied from a buffer there.
    TokioFs,
    /// `pread` on that pool, without the copy.
    Blocking,
    /// `pread` on the thread of the request.
    Inline,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let args = Arc::new(Args::parse());
    let listener = TcpListener::bind(&args.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let mut end = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = end.recv() => return Ok(()),
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                tokio::spawn(connection(stream, args.clone()));
            },
        }
    }
}

async fn connection(stream: TcpStream, args: Arc<Args>) {
    if args.nodelay {
        // Ignores errors, because responses without TCP_NODELAY are slower but correct.
        let _ = stream.set_nodelay(true);
    }
    let service = service_fn(move |request| {
        let args = args.clone();
        async move { answer(&request, &args).await }
    });
    // Ignores the error, because it means only that the client has disconnected.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: &Request<Incoming>, args: &Args) -> io::Result<Response<Body>> {
    let mut response = Response::new(empty());
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return Ok(response);
    }
    let Some((file, size)) = open(&args.folder, request.uri().path()).await else {
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    let range = request.headers().get(header::RANGE);
    let part = range.and_then(|value| part(value.to_str().ok()?, size));
    let range = match &part {
        None => 0..size,
        Some(Some(range)) => range.clone(),
        Some(None) => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            set(
                &mut response,
                header::CONTENT_RANGE,
                format!("bytes */{size}"),
            );
            return Ok(response);
        }
    };
    if part.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let stated = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        set(&mut response, header::CONTENT_RANGE, stated);
    }
    set(&mut response, header::CONTENT_TYPE, "video/mp4".into());
    set(&mut response, header::ACCEPT_RANGES, "bytes".into());
    let length = range.end - range.start;
    set(&mut response, header::CONTENT_LENGTH, length.to_string());
    if request.method() == Method::GET {
        *response.body_mut() = body(file, range, args).await?;
    }
    Ok(response)
}

fn set(response: &mut Response<Body>, name: header::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Opens a file by its path below the folder. Returns the file and its size.
async fn open(folder: &Path, path: &str) -> Option<(File, u64)> {
    let path = Path::new(path.strip_prefix('/')?);
    if !path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return None;
    }
    let found = tokio::fs::metadata(folder.join(path)).await.ok()?;
    let file = File::open(folder.join(path)).await.ok()?;
    found.is_file().then_some((file, found.len()))
}

/// Parses a single byte range (RFC 9110, 14.1.2). Returns `Some(None)` if the range is
/// unsatisfiable, and `None` if the header must be ignored.
fn part(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.parse::<u64>().ok();
    let range = match (first, last) {
        ("", last) => size.saturating_sub(number(last)?)..size,
        (first, "") => number(first)?..size,
        (first, last) if number(last)? < number(first)? => return None,
        (first, last) => number(first)?..number(last)?.saturating_add(1).min(size),
    };
    Some(Some(range).filter(|range| !range.is_empty()))
}

async fn body(mut file: File, range: Range<u64>, args: &Args) -> io::Result<Body> {
    let length = range.end - range.start;
    Ok(match args.read {
        Read::TokioFs => {
            file.seek(io::SeekFrom::Start(range.start)).await?;
            let chunks =
                tokio_util::io::ReaderStream::with_capacity(file.take(length), args.chunk.get());
            StreamBody::new(chunks.map_ok(Frame::data)).boxed_unsync()
        }
        Read::Blocking | Read::Inline => {
            let file = Arc::new(file.into_std().await);
            let chunks = chunks(
                file,
                range,
                args.chunk.get(),
                matches!(args.read, Read::Blocking),
            );
            StreamBody::new(chunks.map_ok(Frame::data)).boxed_unsync()
        }
    })
}

/// Streams a range of a file in chunks. The stream ends with an error if the file has become
/// shorter.
fn chunks(
    file: Arc<std::fs::File>,
    range: Range<u64>,
    chunk: usize,
    apart: bool,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let starts = stream::iter(range.clone().step_by(chunk));
    starts.then(move |start| {
        let file = file.clone();
        let length = (range.end - start).min(chunk as u64) as usize;
        async move {
            let read = move || {
                let mut bytes = BytesMut::zeroed(length);
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes.freeze())
            };
            if !apart {
                return read();
            }
            tokio::task::spawn_blocking(read).await?
        }
    })
}
