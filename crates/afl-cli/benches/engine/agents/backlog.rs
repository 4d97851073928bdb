//! How long a claim takes when few tasks wait, and when very many do.

use std::time::{Duration, Instant};

use afl_runtime::agent::{ClaimRequest, FacetFilter};
use serde_json::{Value, json};

use super::work::AgentWork;
use crate::ground::Ground;
use crate::place::{BenchStoreKind, Opened};

const SAMPLES: usize = 400;

#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    pub(crate) sizes: [usize; 2],
    /// Each in order.
    waits: [Vec<Duration>; 2],
}

impl Backlog {
    /// A store for each size, and a claim from one after a claim from the other, so that both have the same weather.
    pub(crate) async fn measure(kind: BenchStoreKind, sizes: [usize; 2], ground: &Ground) -> Self {
        let mut stores = Vec::new();
        for size in sizes {
            let opened = Opened::at(&ground.fresh(kind).await).await;
            AgentWork::Echo.start(&opened.service, size).await;
            // The start makes the first tasks; the driver's rounds make the others.
            while opened.service.turn().await.expect("the store works") > 0 {}
            stores.push(opened);
        }
        let mut waits = [const { Vec::new() }; 2];
        for _ in 0..SAMPLES {
            for (opened, waits) in stores.iter().zip(&mut waits) {
                let request = ClaimRequest::new(FacetFilter::All, "bench");
                let start = Instant::now();
                let claims = opened.service.claim(&request).await.expect("the store works");
                waits.push(start.elapsed());
                assert_eq!(claims.len(), 1, "a task waits");
            }
        }
        for waits in &mut waits {
            waits.sort_unstable();
        }
        Self { sizes, waits }
    }

    pub(crate) fn median_ms(&self) -> [f64; 2] {
        [0, 1].map(|at| self.waits[at][SAMPLES / 2].as_secs_f64() * 1e3)
    }

    pub(crate) fn growth(&self) -> f64 {
        let [few, many] = self.median_ms();
        many / few
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "pending": self.sizes, "medianMs": self.median_ms(), "growth": self.growth() })
    }
}
