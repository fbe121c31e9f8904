//! A server behind us: kept connections, one request at a time on each, and what each took.
//!
//! Unlike [`crate::client`], which reads files, this relays: any answer is an answer, its body is
//! handed on piece by piece as the socket gives it, and nothing is read ahead of who takes it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::response::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::answer::Rest;
use self::connect::{Connect, Connection};
use self::pool::Pool;
use self::straight::Straight;
use crate::Body;
use crate::metrics::Counter;

mod answer;
mod authorities;
mod connect;
mod pool;
mod socket;
mod straight;

pub use answer::Answer;
pub use authorities::Authorities;

/// Bounds on what a server behind us may do to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, its TLS included.
    pub connect: Duration,
    /// From the request to the answer's head.
    pub first_byte: Duration,
    /// Between two pieces of a body.
    pub between: Duration,
    /// How long an unused connection is kept. Shorter than the server's own patience, so that
    /// few requests meet a connection that is just being closed.
    pub idle: Duration,
    /// Bytes of an answer's head.
    pub head_bytes_max: usize,
    /// Requests at a time; others wait as long as for a connection.
    pub at_once_max: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(15),
            between: Duration::from_secs(15),
            idle: Duration::from_secs(50),
            head_bytes_max: 64 << 10,
            at_once_max: 1024,
        }
    }
}

/// One server.
#[derive(Debug)]
pub struct Upstream {
    connect: Connect,
    pool: Arc<Pool>,
    patience: Patience,
    opened: Counter,
    seats: Arc<Semaphore>,
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Too late, rather than broken.
    pub late: bool,
    /// The request may have reached the server.
    pub sent: bool,
    /// What happened.
    pub why: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Failed {}

/// What an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The connection was there already.
    pub reused: bool,
    /// To connect, if it was not.
    pub connect: Duration,
    /// From sending to the answer's head.
    pub first_byte: Duration,
}

/// A request of which nothing can have reached the server, to be sent elsewhere.
pub type Unsent = Option<Box<Request<Body>>>;

impl Upstream {
    /// A server at this URL, `http` or `https`. Connections are kept apart for each of `workers`,
    /// whose runtimes they live on.
    ///
    /// # Errors
    /// When the URL names no server, or more than a server.
    pub fn new(
        url: &Uri,
        workers: usize,
        patience: Patience,
        authorities: &Authorities,
    ) -> io::Result<Upstream> {
        Ok(Upstream {
            connect: Connect::new(url, authorities)?,
            pool: Arc::new(Pool::new(workers, patience.idle)),
            seats: Arc::new(Semaphore::new(patience.at_once_max)),
            patience,
            opened: Counter::default(),
        })
    }

    /// Host and port as written in the URL.
    pub fn authority(&self) -> &str {
        self.connect.authority()
    }

    /// The same, that counts the connections it opens here.
    #[must_use]
    pub fn counting(self, opened: Counter) -> Upstream {
        Upstream { opened, ..self }
    }

    /// Asks without a body, on a connection of this worker's. If a kept connection turns out to be
    /// closed before anything of an answer came, the request is sent once more on a new one: only
    /// give requests that may be repeated.
    ///
    /// # Errors
    /// [`Failed`], when no answer's head came.
    pub async fn send(&self, worker: usize, request: &Request<()>) -> Result<Answer, Failed> {
        let seat = self.seat().await?;
        if let Some(connection) = self.pool.take(worker) {
            match self.ask(connection, bodiless(request), None).await {
                Err((failed, _)) if !failed.late => {}
                done => return done.map_err(|(failed, _)| failed).map(|a| a.seated(seat)),
            }
        }
        let asked = self.ask_anew(worker, bodiless(request)).await;
        asked.map_err(|(failed, _)| failed).map(|a| a.seated(seat))
    }

    /// Asks something that must not be done twice: it is sent again only if nothing of it can have
    /// reached the server.
    ///
    /// # Errors
    /// [`Failed`], when no answer's head came; with the request, if nothing of it was sent.
    pub async fn send_once(
        &self,
        worker: usize,
        mut request: Request<Body>,
    ) -> Result<Answer, (Failed, Unsent)> {
        let seat = match self.seat().await {
            Ok(seat) => seat,
            Err(failed) => return Err((failed, Some(Box::new(request)))),
        };
        if let Some(connection) = self.pool.take(worker) {
            match self.ask(connection, request, None).await {
                Err((_, Some(unsent))) => request = *unsent,
                done => return done.map(|answer| answer.seated(seat)),
            }
        }
        let asked = self.ask_anew(worker, request).await;
        asked.map(|answer| answer.seated(seat))
    }

    /// Room for one more request.
    async fn seat(&self) -> Result<OwnedSemaphorePermit, Failed> {
        let waiting = timeout(self.patience.connect, self.seats.clone().acquire_owned());
        let seat = waiting.await.ok().and_then(Result::ok);
        seat.ok_or_else(|| Failed {
            late: true,
            sent: false,
            why: format!(
                "{} requests are under way to {}, and none ended within {:?}",
                self.patience.at_once_max,
                self.authority(),
                self.patience.connect
            ),
        })
    }

    async fn ask_anew(
        &self,
        worker: usize,
        request: Request<Body>,
    ) -> Result<Answer, (Failed, Unsent)> {
        let began = Instant::now();
        let failed = match self.connect(worker).await {
            Ok(connection) => {
                let took = began.elapsed();
                return self.ask(connection, request, Some(took)).await;
            }
            Err(failed) => failed,
        };
        Err((failed, Some(Box::new(request))))
    }

    async fn connect(&self, worker: usize) -> Result<Connection, Failed> {
        let bounds = self.patience.head_bytes_max;
        let connecting = timeout(self.patience.connect, self.connect.connect(bounds)).await;
        let connected = connecting.map_err(|_| Failed {
            late: true,
            sent: false,
            why: format!(
                "no connection to {} within {:?}",
                self.authority(),
                self.patience.connect
            ),
        })?;
        let mut connection = connected.map_err(|error| Failed {
            late: false,
            sent: false,
            why: format!("{}: {error}", self.authority()),
        })?;
        connection.worker = worker;
        self.opened.inc();
        Ok(connection)
    }

    async fn ask(
        &self,
        mut connection: Connection,
        request: Request<Body>,
        connect: Option<Duration>,
    ) -> Result<Answer, (Failed, Unsent)> {
        // What is long on its way to the server is no late answer.
        let bodiless = request.body().is_empty();
        let upload = if bodiless { Duration::ZERO } else { UPLOAD_MAX };
        let began = Instant::now();
        let patience = self.patience.first_byte + upload;
        let asked = timeout(patience, connection.send(request)).await;
        let asked = asked.map_err(|_| {
            let why = format!("no answer from {} within {patience:?}", self.authority());
            let (late, sent) = (true, true);
            (Failed { late, sent, why }, None)
        })?;
        let response = asked.map_err(|(error, unsent)| {
            let why = format!("{}: {}", self.authority(), chain(&error));
            let (late, sent) = (false, unsent.is_none());
            (Failed { late, sent, why }, unsent.map(Box::new))
        })?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it: a client that believed it would read what follows as its own.
            let why = format!("{} switches protocols unasked", self.authority());
            let (late, sent) = (false, true);
            return Err((Failed { late, sent, why }, None));
        }
        let first_byte = began.elapsed();
        let (head, rest) = rest(response, connection, bodiless).await;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            timing: Timing {
                reused: connect.is_none(),
                connect: connect.unwrap_or_default(),
                first_byte,
            },
            rest,
            patience: self.patience.between,
            pool: Arc::clone(&self.pool),
            seat: None,
        })
    }
}

/// How a body is read: straight from the socket where it is long, its length is known, and nothing of
/// the request can still be on its way.
async fn rest(
    response: Response<Incoming>,
    mut connection: Connection,
    bodiless: bool,
) -> (Parts, Rest) {
    let len = response.body().size_hint().exact().unwrap_or(0);
    let released = if bodiless && len >= straight::BYTES_MIN {
        connection.release().await
    } else {
        None
    };
    let (head, body) = response.into_parts();
    match released {
        Some(released) => {
            let straight = Straight::new(released, len, &head, body).await;
            (head, Rest::Straight(Box::new(straight)))
        }
        None => (head, Rest::Framed(body, connection)),
    }
}

/// A request's body may take so long to leave.
const UPLOAD_MAX: Duration = Duration::from_secs(60);

fn bodiless(request: &Request<()>) -> Request<Body> {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// An error with its causes: hyper's own words alone say little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
