//! Checks that no read fails while one of two storage servers is killed repeatedly.

use crate::nginx::port;
use crate::real_servers::create_folder;
use crate::servers::skip_server;
use crate::suite::{concat_ranges, object_bytes, parse_key, read_parts, uncached_options};
use std::fs;
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{Error, Key, Options, RequestObserver, RequestReason, Store, WeightedEndpoint};

const KILLS: usize = 10;
const READERS: usize = 32;
const FILMS: usize = 16;

/// An nginx that runs as a single process, so that one signal closes all its connections.
struct LonelyNginx {
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl LonelyNginx {
    /// Starts an nginx that serves `root`. The rate limit slows down the responses, so that some
    /// responses are in flight at any time. Returns `None` if nginx is not installed.
    fn start(folder: PathBuf, root: &Path) -> Option<LonelyNginx> {
        fs::create_dir_all(&folder).unwrap();
        let (dir, root, port) = (folder.display(), root.display(), port::free());
        let config = format!(
            "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 512; }}
             http {{ access_log off; client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2;
               fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
               server {{ listen 127.0.0.1:{port}; root {root}; limit_rate 4m; }} }}"
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let child = LonelyNginx::spawn(&folder)?;
        let mut nginx = LonelyNginx {
            folder,
            port,
            child,
        };
        nginx.wait_until_reachable();
        Some(nginx)
    }

    fn spawn(folder: &Path) -> Option<Child> {
        let mut command = Command::new("nginx");
        command.arg("-c").arg(folder.join("nginx.conf"));
        command.arg("-e").arg(folder.join("start.log"));
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().ok()
    }

    fn wait_until_reachable(&mut self) {
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert_eq!(self.child.try_wait().unwrap(), None, "nginx has exited");
            assert!(Instant::now() < until, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn restart(&mut self) {
        self.child = LonelyNginx::spawn(&self.folder).unwrap();
        self.wait_until_reachable();
    }
}

impl Drop for LonelyNginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn film_key(n: usize) -> Key {
    parse_key(&format!("film{}.mp4", n % FILMS))
}

/// Performs one of four kinds of access, selected by `n`. The error describes a failed access or
/// wrong bytes.
fn read_once(store: &Store, n: usize, film: &[u8]) -> Result<(), String> {
    let key = film_key(n);
    let describe = |error: Error| format!("{key}, read {}: {error}", n % 4);
    let at = (n as u64 * 7919) % 2_000_000;
    let check = |read: &[u8], ranges: &[Range<u64>]| match read == concat_ranges(film, ranges) {
        true => Ok(()),
        false => Err(format!("{key}: wrong bytes of {ranges:?}")),
    };
    if n % 4 == 3 {
        let found = store.look_up(&key).map_err(describe)?;
        return match found.is_some_and(|found| found.len == film.len() as u64) {
            true => Ok(()),
            false => Err(format!("{key}: {found:?}")),
        };
    }
    let object = store.open(&key).map_err(describe)?;
    if n % 4 == 2 {
        let range = at..at + 80_000;
        let read = object.read(range.clone(), RequestReason::Index);
        return check(&read.map_err(describe)?, &[range]);
    }
    let ranges = match n % 4 {
        0 => vec![at..at + 700_000],
        _ => vec![at..at + 200_000, at + 300_000..at + 700_000],
    };
    match read_parts(&object, &ranges, RequestReason::Segment) {
        (_, Some(error)) => Err(describe(error)),
        (read, None) => check(&read, &ranges),
    }
}

/// Returns an observer and a counter. The observer counts the complete responses of one endpoint.
fn watch_endpoint(url: &str) -> (RequestObserver, Arc<AtomicUsize>) {
    let (url, count) = (url.to_owned(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    let observer = RequestObserver::new(move |done| {
        counted.fetch_add(usize::from(done.complete && *done.endpoint == *url), SeqCst);
    });
    (observer, count)
}

#[test]
fn no_read_fails_when_one_of_two_endpoints_is_killed() {
    let dir = create_folder();
    let library = dir.path().join("films");
    fs::create_dir_all(&library).unwrap();
    let film = object_bytes("film.mp4");
    for n in 0..FILMS {
        fs::write(library.join(film_key(n).as_str()), &film).unwrap();
    }
    let start = |name: &str| LonelyNginx::start(dir.path().join(name), &library);
    let (Some(steady), Some(mut killed)) = (start("one"), start("two")) else {
        return skip_server("nginx is not installed; run scripts/install.sh test");
    };
    let (watch, served) = watch_endpoint(&killed.url());
    let endpoints = [steady.url(), killed.url()].map(|url| WeightedEndpoint { url, weight: 1.0 });
    let options = Options {
        endpoints: endpoints.to_vec(),
        watch: Some(watch),
        ..uncached_options()
    };
    let store = Store::new(&steady.url(), options).unwrap();
    let (stop, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let read = read_once(&store, reads.fetch_add(1, SeqCst), &film);
                    failures.lock().unwrap().extend(read.err());
                }
            });
        }
        for n in 0..KILLS {
            let (before, until) = (
                served.load(SeqCst),
                Instant::now() + Duration::from_secs(30),
            );
            while served.load(SeqCst) < before + 20 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Kills the server at a different moment in each round.
            std::thread::sleep(Duration::from_millis(n as u64 * 37 % 100));
            killed.kill();
            std::thread::sleep(Duration::from_millis(n as u64 % 4 * 200));
            killed.restart();
        }
        stop.store(true, SeqCst);
    });
    let failures = failures.into_inner().unwrap();
    let served = served.load(SeqCst);
    assert!(served >= 20 * KILLS, "the endpoint served only {served}");
    assert!(
        failures.is_empty(),
        "{} of {} reads failed: {:#?}",
        failures.len(),
        reads.load(SeqCst),
        failures.iter().take(20).collect::<Vec<_>>()
    );
}
