//! The outbox on every store: a message for each end, whatever happens at its commit.

use std::sync::Arc;

use afl_runtime::outbox::{Channel, ChannelTarget, Envelope};
use afl_runtime::{Millis, Service};
use afl_store::collection::CollectionItem as _;
use afl_store::fault::{Fault, FaultMoment, Faulty, at_write};
use afl_store::store::Store;
use serde_json::json;

use crate::site::Site;
use crate::work::{claim, examine, finish, settle, start};

async fn open(service: &Service) {
    let channel = Channel {
        to: ChannelTarget::Feed,
        topics: vec!["*".to_owned()],
        facets: Vec::new(),
        secret: None,
        enabled: true,
        created: Millis(0),
        updated: Millis(0),
    };
    service.open_channel("all", channel).await.unwrap();
}

async fn read(service: &Service) -> Vec<Envelope> {
    service.feed("all", 100).await.unwrap()
}

#[tokio::test]
async fn xr9_on_every_store_an_end_and_its_message_are_both_there_or_neither_is() {
    for site in Site::all() {
        for moment in [FaultMoment::Before, FaultMoment::After] {
            let backend = Arc::new(Faulty::new(site.backend().await, |_| Fault::None));
            let service = Service::new(backend.clone(), site.tenant.clone());
            open(&service).await;
            let run = start(&service, "Two", json!({"n": 1})).await;
            let held = claim(&service, 1).await.remove(0);
            let next = backend.counts().writes() + 1;
            backend.plan(at_write(next, Fault::Gone(moment)));
            settle(&service, &held).await.unwrap_err();

            let service = site.service().await;
            let task = service.task(&run, &held.ticket.step).await.unwrap().unwrap();
            let letters = read(&service).await;
            let found = (task.state.is_terminal(), letters.len());
            let expected = if moment == FaultMoment::After { (true, 1) } else { (false, 0) };
            assert_eq!(found, expected, "{:?} {moment:?}", site.kind);

            settle(&service, &held).await.unwrap();
            finish(&service).await;
            let topics: Vec<&str> = read(&service).await.iter().map(|letter| letter.topic.name()).collect();
            assert_eq!(topics, ["task.completed", "task.completed", "run.completed"], "{:?}", site.kind);
            let ids: Vec<String> = read(&service).await.into_iter().map(|letter| letter.id).collect();
            assert_eq!(service.acknowledge("all", &ids).await.unwrap(), 3);
            assert_eq!(read(&service).await, []);
            examine(&service).await;
        }
    }
}

#[tokio::test]
async fn a_new_channel_reaches_processes_that_started_before_it() {
    for site in Site::all() {
        let (service, backend) = (site.service().await, site.backend().await);
        let other = Service::new(backend.clone(), site.tenant.clone());
        // It has looked, and knows of none.
        start(&other, "Two", json!({"n": 1})).await;
        finish(&other).await;
        let mut heard = Store::new(backend, site.tenant.clone()).watch(Channel::COLLECTION);
        open(&service).await;
        heard.changed().await;
        start(&other, "Two", json!({"n": 1})).await;
        finish(&other).await;
        assert_eq!(read(&service).await.len(), 3, "{:?}", site.kind);
    }
}
