//! What TCP sees of a response: at its start, while it leaves, when the last byte was handed to
//! the kernel, and when the client has it all.

use std::time::{Duration, Instant, SystemTime};

use http::Response;
use http_body::Body as _;
use net::metrics::{Histograms, Metrics, Row};
use net::record::{Bounded, Recorder, Tcp, micros};
use net::{Body, Conn, TcpInfo, Watch};

use crate::observe::Seen;

const RTT: Row = Row {
    name: "tcp_rtt",
    unit: "seconds",
    help: "Round-trip time at the end of responses of 64 KiB and more, by algorithm",
};
const DELIVERY: Row = Row {
    name: "tcp_delivery_rate",
    unit: "bytes_per_second",
    help: "Delivery rate at the end of responses of 64 KiB and more, by algorithm",
};
const RTT_S: &[f64] = &[
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0,
];
const DELIVERY_BYTES_PER_S: &[f64] = &[
    62_500.0, 125e3, 250e3, 500e3, 1e6, 2e6, 4e6, 8e6, 16e6, 32e6, 125e6, 1.25e9,
];

/// Shorter responses say little about the network.
const BYTES_MIN: u64 = 64 << 10;
/// How long a client may take for what waits in the socket, until nobody looks any more.
const ACKED_WAIT_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether all was taken, where `tcp-interval` is zero.
const ACKED_PERIOD: Duration = Duration::from_millis(50);

/// Writes down what TCP sees.
#[derive(Clone)]
pub struct Watcher {
    interval: Duration,
    recorder: Option<Recorder>,
    rtt: Histograms,
    delivery: Histograms,
}

/// One response's name in the records.
#[derive(Clone)]
struct Name {
    request_id: Bounded,
    connection: u64,
    request: u64,
    began: Instant,
}

impl Watcher {
    pub fn new(interval: Duration, metrics: &Metrics, recorder: Option<Recorder>) -> Watcher {
        Watcher {
            interval,
            recorder,
            rtt: metrics.histograms(&RTT, "algorithm", RTT_S),
            delivery: metrics.histograms(&DELIVERY, "algorithm", DELIVERY_BYTES_PER_S),
        }
    }

    /// Looks from now on until the answer has left.
    pub fn watch(&self, seen: &Seen, conn: &Conn, response: Response<Body>) -> Response<Body> {
        let recorder = self
            .recorder
            .clone()
            .filter(|_| !response.body().is_empty());
        let short = response.body().size_hint().exact();
        if recorder.is_none() && short.is_some_and(|len| len < BYTES_MIN) {
            return response;
        }
        let name = seen.named().map(|(request_id, began)| Name {
            request_id: request_id.clone(),
            connection: conn.id(),
            request: conn.request,
            began,
        });
        let (rtt, delivery) = (self.rtt.clone(), self.delivery.clone());
        let watch = conn.watch();
        let sampled = recorder.zip(name).map(|(recorder, name)| {
            if let Some(info) = watch.tcp() {
                recorder.tcp(name.record("start", info));
            }
            let (sent, over) = tokio::sync::oneshot::channel();
            let task = sample(
                watch.clone(),
                self.interval,
                recorder.clone(),
                name.clone(),
                over,
            );
            tokio::spawn(task);
            (recorder, name, sent)
        });
        response.map(|body| {
            body.on_end(false, move |end| {
                if sampled.is_none() && end.bytes < BYTES_MIN {
                    return;
                }
                let Some(info) = watch.tcp() else {
                    return;
                };
                if end.bytes >= BYTES_MIN {
                    observe(&rtt, &delivery, &info);
                }
                if let Some((recorder, name, sent)) = sampled {
                    recorder.tcp(name.record("sent", info));
                    // The task may have ended with the connection.
                    let _ = sent.send(());
                }
            })
        })
    }
}

fn observe(rtt: &Histograms, delivery: &Histograms, info: &TcpInfo) {
    if let Some(us) = info.rtt_us {
        rtt.observe(&info.algorithm, f64::from(us) / 1e6);
    }
    if let Some(rate) = info.delivery_rate_bytes_per_s {
        delivery.observe(&info.algorithm, rate as f64);
    }
}

/// Looks every interval until the response is handed over, and then until it is acknowledged.
async fn sample(
    watch: Watch,
    interval: Duration,
    recorder: Recorder,
    name: Name,
    mut over: tokio::sync::oneshot::Receiver<()>,
) {
    let period = if interval.is_zero() {
        ACKED_PERIOD
    } else {
        interval
    };
    loop {
        tokio::select! {
            sent = &mut over => match sent {
                Ok(()) => break,
                // The body ended without a word: the connection is gone.
                Err(_) => return,
            },
            () = tokio::time::sleep(period) => {}
        }
        let Some(info) = watch.tcp() else {
            return;
        };
        if !interval.is_zero() {
            recorder.tcp(name.record("sending", info));
        }
    }
    let until = Instant::now() + ACKED_WAIT_MAX;
    while Instant::now() < until {
        // With the next request on it, the connection's figures are no longer this response's.
        let Some(info) = watch
            .tcp()
            .filter(|_| watch.requests() == Some(name.request))
        else {
            return;
        };
        if info.unacked_packets == Some(0) && info.notsent_bytes.unwrap_or(0) == 0 {
            recorder.tcp(name.record("acked", info));
            return;
        }
        if !interval.is_zero() {
            recorder.tcp(name.record("sending", info));
        }
        tokio::time::sleep(period).await;
    }
}

impl Name {
    fn record(&self, phase: &'static str, info: TcpInfo) -> Tcp {
        Tcp {
            time: SystemTime::now(),
            record: "tcp",
            request_id: self.request_id.clone(),
            connection: self.connection,
            request: self.request,
            phase,
            since_us: micros(self.began.elapsed()),
            info,
        }
    }
}
