//! An agent that does nothing but answer, so that the bench measures the way to it and back.

use std::sync::Arc;
use std::time::SystemTime;

use afl_engine::value::{Map, Value};
use afl_runtime::Service;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

/// How many tasks an agent does at once.
const SLOTS: usize = 64;

/// A task in the hands of an agent: its run, and when.
pub(crate) type Picked = (String, SystemTime);

/// Claims and answers until it is dropped.
pub(crate) async fn work(service: Service, picked: Option<mpsc::UnboundedSender<Picked>>) {
    let slots = Arc::new(Semaphore::new(SLOTS));
    let mut tasks = service.watch_tasks("default");
    loop {
        drop(slots.acquire().await.expect("it is never closed"));
        // Tasks that are settled in one commit come back together; so they are replaced together.
        tokio::task::yield_now().await;
        let request =
            ClaimRequest { max: slots.available_permits(), ..ClaimRequest::new(FacetFilter::All, "bench") };
        let claims = service.claim(&request).await.expect("the store works");
        let now = SystemTime::now();
        if claims.is_empty() {
            tasks.changed().await;
            continue;
        }
        for claim in claims {
            if let Some(picked) = &picked {
                picked.send((claim.ticket.run.to_string(), now)).expect("the bench waits for it");
            }
            let slot = slots.clone().acquire_owned().await.expect("it is never closed");
            let service = service.clone();
            tokio::spawn(async move {
                service.complete(&claim.ticket, &answer(&claim)).await.expect("the result is accepted");
                drop(slot);
            });
        }
    }
}

fn answer(claim: &Claim) -> Map<String, Value> {
    let n = claim.payload.get("n").and_then(Value::as_i64).unwrap_or_default();
    Map::from_iter([("n".to_owned(), json!(n + 1))])
}
