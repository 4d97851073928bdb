//! Runs AgentFlow programs over any store, in any Rust program.
//!
//! [`Service`] is the façade: it publishes programs, starts runs, hands their tasks to agents, takes results in, and
//! answers questions about runs. Runs advance while a process drives the store: [`Service::serve`] drives all runs
//! until its caller stops it, [`Service::turn`] does one round.
//!
//! ```
//! use std::sync::Arc;
//!
//! use afl_runtime::agent::{ClaimRequest, FacetFilter};
//! use afl_runtime::{Service, StartRequest, compile};
//! use afl_store::clock::Clock;
//! use afl_store::memory::Memory;
//! use afl_store::record::Tenant;
//! use serde_json::json;
//!
//! const PROGRAM: &str = r#"
//! namespace greet {
//!     event facet Translate(text: String) => (text: String)
//!     workflow Hello(name: String) => (greeting: String)
//!         andThen {
//!             translated = Translate(text = "Hello " ++ $.name)
//!             yield Hello(greeting = translated.text)
//!         }
//! }
//! "#;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = Service::new(Arc::new(Memory::new(Clock::System)), Tenant::new("local")?);
//! let hash = service.publish(&compile("hello.afl", PROGRAM)?).await?;
//!
//! // One durable commit: the run is accepted and evaluated as far as it goes by itself.
//! let mut request = StartRequest::new(hash);
//! request.inputs.insert("name".into(), json!("Ada"));
//! let started = service.start(request).await?;
//!
//! // An agent in this process: claims a task, does the work, and settles it in one durable commit.
//! let claims = service.claim(&ClaimRequest::new(FacetFilter::All, "greeter")).await?;
//! for claim in claims {
//!     let text = claim.payload["text"].as_str().unwrap_or_default().replace("Hello", "Bonjour");
//!     let result = json!({ "text": text }).as_object().cloned().unwrap_or_default();
//!     service.complete(&claim.ticket, &result).await?;
//! }
//!
//! service.turn().await?;
//! let outputs = service.outputs(&started.run).await?;
//! assert_eq!(outputs["greeting"], "Bonjour Ada");
//! # Ok(())
//! # }
//! ```

pub mod agent;
mod answer;
mod canonical;
mod control;
mod cursor;
pub mod doctor;
mod drive;
mod error;
mod find;
mod find_work;
mod janitor;
mod notices;
pub mod outbox;
mod plans;
mod quarantine;
mod query;
mod retry;
mod rounds;
mod run_driver;
mod run_id;
mod scheduler;
mod serve;
mod service;
mod start;
mod stats;
mod subscribe;
mod system;
mod tasks;
pub mod view;
mod why;

pub use afl_engine::id::{RunId, StepId};
pub use afl_engine::plan::{FacetDeclaration, RenderedPrompt};
pub use afl_engine::time::{Backoff, Millis};
pub use afl_engine::value::{JsonError, read_json};
pub use afl_engine::wire_enum;
pub use afl_lang::program::{Parameter, Program};
pub use afl_lang::types::TypeRef;
pub use afl_store::backend::Durability;
pub use afl_store::conflict::retry_on_conflict;
pub use afl_store::{collection, lock, notification, server, watch};
pub use answer::{AnswerResult, ReportedOutcome};
pub use control::CancelResult;
pub use cursor::{NotACursor, PageCursor};
pub use drive::{Arrival, DriveResult, DriveStatus, RunWork};
pub use error::{Contention, Corruption, Error, InvalidRequest, NotFound, StateRefusal};
pub use find_work::{RunWithWork, RunsWithWork, WorkScan};
pub use notices::{Mark, Notice};
pub use plans::{NotCompiled, compile, pick_workflow};
pub use query::{RunList, RunQuery, StepList, StepMove, StepView};
pub use retry::Again;
pub use rounds::Rounds;
pub use run_driver::{RunDriver, RunTurn};
pub use serve::Health;
pub use service::{ExtensionItem, Service};
pub use start::{MAX_KEY_BYTES, StartRequest, StartResult};
pub use stats::{BACKLOG_COUNTED, Backlog, COUNTED, Stats};
pub use subscribe::{TraceRecord, TraceSubscription};
pub use system::EXECUTE;
pub use tasks::{TaskList, TaskQuery};
pub use why::{ChainLink, LeftTo, On, Wait, Why, WhyReason};
