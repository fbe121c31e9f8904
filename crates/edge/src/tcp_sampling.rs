//! Samples of `TCP_INFO` for a response: at its start, while it is sent, after the last write, and
//! when the client has acknowledged all bytes.

use std::time::{Duration, Instant, SystemTime};

use http::Response;
use http_body::Body as _;
use net::metrics::{HistogramFamily, MetricSpec, Metrics};
use net::record::{BoundedText, Recorder, TcpRecord, micros};
use net::{Body, Conn, TcpInfo, WeakConnection};

use crate::telemetry::PendingRecord;

const RTT: MetricSpec = MetricSpec {
    name: "tcp_rtt",
    unit: "seconds",
    help: "Round-trip time at the end of responses of 64 KiB and more, by algorithm",
};
const DELIVERY: MetricSpec = MetricSpec {
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

/// Minimum size of a response whose samples enter the histograms. Shorter responses reveal little
/// about the network.
const SAMPLED_BYTES_MIN: u64 = 64 << 10;
/// Time limit for the client's acknowledgement of all bytes, after the last write.
const ACKED_WAIT_MAX: Duration = Duration::from_secs(60);
/// Interval at which the connection is checked if `tcp-interval` is zero.
const ACKED_PERIOD: Duration = Duration::from_millis(50);

/// Samples `TCP_INFO`, and writes the samples to records and histograms.
#[derive(Clone)]
pub struct TcpSampler {
    interval: Duration,
    recorder: Option<Recorder>,
    rtt: HistogramFamily,
    delivery: HistogramFamily,
}

/// The fields that identify a response in records.
#[derive(Clone)]
struct ResponseRecordIds {
    request_id: BoundedText,
    connection: u64,
    request: u64,
    started: Instant,
}

impl TcpSampler {
    pub fn new(interval: Duration, metrics: &Metrics, recorder: Option<Recorder>) -> TcpSampler {
        TcpSampler {
            interval,
            recorder: recorder.filter(Recorder::records_more_than_access),
            rtt: metrics.histogram_family(&RTT, "algorithm", RTT_S),
            delivery: metrics.histogram_family(&DELIVERY, "algorithm", DELIVERY_BYTES_PER_S),
        }
    }

    /// Samples the connection when the response ends, for the histograms. If TCP records are
    /// enabled, also samples the connection from the start of the response until the client's
    /// acknowledgement, for the records.
    pub fn sample_during_response(
        &self,
        pending: &PendingRecord,
        conn: &Conn,
        response: &mut Response<Body>,
    ) {
        let recorder = self
            .recorder
            .clone()
            .filter(|_| !response.body().is_empty());
        let short = response.body().size_hint().exact();
        if recorder.is_none() && short.is_some_and(|len| len < SAMPLED_BYTES_MIN) {
            return;
        }
        let name = pending
            .request_identity()
            .map(|(request_id, started)| ResponseRecordIds {
                request_id: request_id.clone(),
                connection: conn.id(),
                request: conn.request,
                started,
            });
        let (rtt, delivery) = (self.rtt.clone(), self.delivery.clone());
        let watch = conn.weak_handle();
        let sampled = recorder.zip(name).map(|(recorder, name)| {
            if let Some(info) = watch.tcp_info() {
                recorder.record_tcp(name.to_tcp_record("start", info));
            }
            let (sent, sent_signal) = tokio::sync::oneshot::channel();
            let task = sample_until_acked(
                watch.clone(),
                self.interval,
                recorder.clone(),
                name.clone(),
                sent_signal,
            );
            tokio::spawn(task);
            (recorder, name, sent)
        });
        response.body_mut().on_end(false, move |end| {
            if sampled.is_none() && end.bytes < SAMPLED_BYTES_MIN {
                return;
            }
            let Some(info) = watch.tcp_info() else {
                return;
            };
            if end.bytes >= SAMPLED_BYTES_MIN {
                observe_tcp_info(&rtt, &delivery, &info);
            }
            if let Some((recorder, name, sent)) = sampled {
                recorder.record_tcp(name.to_tcp_record("sent", info));
                // Sending the signal fails if the sampling task has already stopped because the
                // connection was closed.
                let _ = sent.send(());
            }
        });
    }
}

fn observe_tcp_info(rtt: &HistogramFamily, delivery: &HistogramFamily, info: &TcpInfo) {
    if let Some(us) = info.rtt_us {
        rtt.observe(&info.algorithm, f64::from(us) / 1e6);
    }
    if let Some(rate) = info.delivery_rate_bytes_per_s {
        delivery.observe(&info.algorithm, rate as f64);
    }
}

/// Samples the connection until the response is written, and then until the client has acknowledged
/// all bytes. If `interval` is zero, records only the sample after the acknowledgement.
async fn sample_until_acked(
    watch: WeakConnection,
    interval: Duration,
    recorder: Recorder,
    name: ResponseRecordIds,
    mut sent_signal: tokio::sync::oneshot::Receiver<()>,
) {
    let period = if interval.is_zero() {
        ACKED_PERIOD
    } else {
        interval
    };
    loop {
        tokio::select! {
            sent = &mut sent_signal => match sent {
                Ok(()) => break,
                // The sender of `sent_signal` was dropped because the connection is closed.
                Err(_) => return,
            },
            () = tokio::time::sleep(period) => {}
        }
        let Some(info) = watch.tcp_info() else {
            return;
        };
        if !interval.is_zero() {
            recorder.record_tcp(name.to_tcp_record("sending", info));
        }
    }
    let until = Instant::now() + ACKED_WAIT_MAX;
    while Instant::now() < until {
        // After the next request on the connection, `TCP_INFO` describes another response.
        let Some(info) = watch
            .tcp_info()
            .filter(|_| watch.request_count() == Some(name.request))
        else {
            return;
        };
        if info.unacked_packets == Some(0) && info.notsent_bytes.unwrap_or(0) == 0 {
            recorder.record_tcp(name.to_tcp_record("acked", info));
            return;
        }
        if !interval.is_zero() {
            recorder.record_tcp(name.to_tcp_record("sending", info));
        }
        tokio::time::sleep(period).await;
    }
}

impl ResponseRecordIds {
    fn to_tcp_record(&self, phase: &'static str, info: TcpInfo) -> TcpRecord {
        TcpRecord {
            time: SystemTime::now(),
            record: "tcp",
            request_id: self.request_id.clone(),
            connection: self.connection,
            request: self.request,
            phase,
            since_us: micros(self.started.elapsed()),
            info,
        }
    }
}
