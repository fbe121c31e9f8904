//! Asking the origin for one block of what is kept in parts.

use std::sync::Arc;

use http::StatusCode;
use http::header::{self, HeaderValue};
use net::{Error, range};
use store::cache::Lead;
use tokio::sync::oneshot;

use super::{Ask, Landed};
use crate::Edge;
use crate::entry::Entry;
use crate::key::Key;
use crate::object::Object;
use crate::origins::Reply;

/// Starts the fetch of block `n`; the receiver hears what came of it (nobody has to listen).
pub fn start(
    edge: &Arc<Edge>,
    lead: Lead<Key, Landed>,
    ask: &Arc<Ask>,
    object: &Arc<Object>,
    n: u64,
) -> oneshot::Receiver<Landed> {
    let (tell, told) = oneshot::channel();
    let hold = edge.shutdown.hold();
    let (edge, ask, object) = (edge.clone(), ask.clone(), object.clone());
    tokio::spawn(async move {
        edge.fetch_block(lead, &ask, &object, n, tell).await;
        drop(hold);
    });
    told
}

impl Edge {
    async fn fetch_block(
        &self,
        mut lead: Lead<Key, Landed>,
        ask: &Ask,
        object: &Arc<Object>,
        n: u64,
        tell: oneshot::Sender<Landed>,
    ) {
        let asked = self.ask_block(ask, object, n).await;
        let landed = match &asked {
            Ok(_) => Landed::Block(Arc::default()),
            Err(landed) => landed.clone(),
        };
        lead.land(landed.clone());
        if let Landed::Changed = landed {
            self.forget(object);
        }
        // Whoever led may be gone; all others hear the same.
        let _ = tell.send(landed.clone());
        let (Ok((reply, key, len)), Landed::Block(content)) = (asked, landed) else {
            return;
        };
        let whole = self.bring(&mut lead, &content, reply.answer, Some(len));
        if whole.await && !lead.purged() {
            self.put(key.clone(), Entry::Block(content));
            if lead.purged() {
                self.take(&key);
            }
        }
    }

    /// The answer to the block's range, if it is just that of the same object; where the block is
    /// kept, and its length.
    async fn ask_block(
        &self,
        ask: &Ask,
        object: &Object,
        n: u64,
    ) -> Result<(Reply, Key, u64), Landed> {
        let (Some(parts), Some(len)) = (&object.parts, object.len) else {
            return Err(Landed::Changed);
        };
        let wanted = parts.range(n, len);
        let last = wanted.end.saturating_sub(1);
        let mut headers = ask.forward.clone();
        let value = HeaderValue::try_from(format!("bytes={}-{last}", wanted.start));
        let etag = HeaderValue::from_str(&parts.etag);
        let (Ok(value), Ok(etag)) = (value, etag) else {
            return Err(Landed::Changed);
        };
        headers.insert(header::RANGE, value);
        headers.insert(header::IF_RANGE, etag.clone());
        let asked = self.origins.ask(ask.question(headers));
        let reply = asked
            .await
            .map_err(|error| Landed::Failed(Arc::new(error)))?;
        let said = |name| reply.answer.headers.get(name);
        let same_range = said(header::CONTENT_RANGE) == Some(&range::content_range(&wanted, len));
        let same_tag = said(header::ETAG) == Some(&etag);
        match reply.answer.status {
            StatusCode::PARTIAL_CONTENT if same_range && same_tag => {
                Ok((reply, parts.key(n), wanted.end - wanted.start))
            }
            status if status.is_server_error() => {
                let what = format_args!("the origin says {status} for a part");
                let error = Error::upstream(StatusCode::BAD_GATEWAY, what);
                Err(Landed::Failed(Arc::new(error)))
            }
            // An origin without ranges would otherwise be asked for the whole again and again.
            _ if same_tag => {
                self.apart(&parts.key, true);
                Err(Landed::Changed)
            }
            _ => Err(Landed::Changed),
        }
    }
}
