//! An S3 server that returns listing pages without entries.

use crate::real_servers::s3_options;
use crate::servers::SECRET;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use store::{Error, Key, Store};

const EMPTY_PAGE: &str = "<ListBucketResult><IsTruncated>true</IsTruncated>\
    <NextContinuationToken>next</NextContinuationToken></ListBucketResult>";
const LAST_PAGE: &str = "<ListBucketResult><IsTruncated>false</IsTruncated>\
    <Contents><Key>library/film.mp4</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified>\
    <ETag>\"a\"</ETag><Size>5</Size></Contents></ListBucketResult>";

/// Starts a server that returns `empty_pages` pages without entries, and then the last page.
/// Returns a library on the server.
fn start_library(empty_pages: usize) -> Store {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let served = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let served = served.clone();
            std::thread::spawn(move || serve_pages(stream, empty_pages, &served));
        }
    });
    Store::new("s3://films/library", s3_options(&endpoint, SECRET)).unwrap()
}

fn serve_pages(mut stream: TcpStream, empty_pages: usize, served: &AtomicUsize) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    // An empty line ends each request.
    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
        let is_last = served.fetch_add(1, SeqCst) >= empty_pages;
        let page = if is_last { LAST_PAGE } else { EMPTY_PAGE };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        if stream.write_all((head + page).as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_listing_with_some_empty_pages_is_complete() {
    let entries = start_library(50).list_folder(&Key::ROOT).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].name, "film.mp4");
}

#[test]
fn a_listing_that_never_ends_is_an_error() {
    let error = start_library(usize::MAX)
        .list_folder(&Key::ROOT)
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Broken(_)), "{text}");
    assert!(text.contains("over 100 pages without entries"), "{text}");
}
