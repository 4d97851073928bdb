//! The final state of a run without the parts that may differ between equal runs: ids, times, versions, attempts and
//! the history of iterations. Equal runs have the same text on every store (G6).

use std::fmt::Write as _;

use afl_engine::id::RunId;
use afl_engine::timer::TimerFacet;
use afl_store::paging::Pages;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::service::Service;

const PAGE: usize = 1_000;

const OF_RUN: &[&str] = &[
    "id",
    "created",
    "updated",
    "ended",
    "labels",
    "idempotency_key",
    "iterations",
    "iterations_per_run",
    "iterations_now",
    "turn",
];
const OF_STEP: &[&str] = &["created", "ended", "rests"];
const OF_EVENT: &[&str] = &["times_out"];
/// The result of a wait is a time.
const OF_WAITING_STEP: &[&str] = &["created", "ended", "rests", "attributes"];
const OF_WAIT: &[&str] = &["times_out", "result"];
const OF_TASK: &[&str] = &[
    "workflow_id",
    "created",
    "turn",
    "updated",
    "started",
    "ended",
    "token",
    "claims",
    "deliveries",
    "attempts",
    "lease",
    "not_before",
    "times_out",
    "error",
    "error_kind",
    "history",
];

impl Service {
    /// One line for the run and for each step, event and task, in order of their ids.
    pub async fn canonical(&self, run: &RunId) -> Result<String, Error> {
        let mut text = String::new();
        line(&mut text, "run", &self.run(run).await?, OF_RUN);
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_page(run, pages.after(), PAGE).await?;
            for step in &page.items {
                let left_out = if is_wait(&step.item.facet_name) { OF_WAITING_STEP } else { OF_STEP };
                line(&mut text, step.item.id.as_str(), &step.item, left_out);
            }
            pages.follow(page.next);
        }
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.events_page(run, pages.after(), PAGE).await?;
            for event in &page.items {
                let left_out = if is_wait(&event.item.event_type) { OF_WAIT } else { OF_EVENT };
                line(&mut text, &format!("event {}", event.item.step_id), &event.item, left_out);
            }
            pages.follow(page.next);
        }
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.tasks_page(run, pages.after(), PAGE).await?;
            for task in &page.items {
                line(&mut text, &format!("task {}", task.item.step_id), &task.item, OF_TASK);
            }
            pages.follow(page.next);
        }
        Ok(text)
    }
}

fn is_wait(facet: &str) -> bool {
    facet == TimerFacet::Wait.name()
}

fn line(text: &mut String, name: &str, item: &impl Serialize, left_out: &[&str]) {
    let mut value = serde_json::to_value(item).expect("records have a JSON form");
    if let Value::Object(entries) = &mut value {
        entries.retain(|name, _| !left_out.contains(&name.as_str()));
    }
    writeln!(text, "{name} {value}").expect("writing to a string does not fail");
}
