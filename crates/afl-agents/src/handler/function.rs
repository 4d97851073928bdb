//! Functions of this process as handlers (`ToolRegistry` of document 000).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task;

use super::{Call, Handler, HandlerFailure, Outcome, of_panic};

/// A function that may block its thread. It cannot be ended from outside.
pub struct BlockingFunction<F>(Arc<F>);

/// A function that returns a future, which is dropped when the call is stopped.
pub struct Concurrent<F>(F);

pub fn blocking<F>(function: F) -> BlockingFunction<F>
where
    F: Fn(Call) -> Outcome + Send + Sync + 'static,
{
    BlockingFunction(Arc::new(function))
}

pub fn concurrent<F, R>(function: F) -> Concurrent<F>
where
    F: Fn(Call) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send,
{
    Concurrent(function)
}

#[async_trait]
impl<F> Handler for BlockingFunction<F>
where
    F: Fn(Call) -> Outcome + Send + Sync + 'static,
{
    async fn run(&self, call: Call) -> Outcome {
        let function = self.0.clone();
        match task::spawn_blocking(move || function(call)).await {
            Ok(outcome) => outcome,
            Err(error) => Err(match error.try_into_panic() {
                Ok(panic) => of_panic(panic.as_ref()),
                Err(error) => HandlerFailure::crash(format!("the handler did not run: {error}")),
            }),
        }
    }
}

#[async_trait]
impl<F, R> Handler for Concurrent<F>
where
    F: Fn(Call) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send,
{
    async fn run(&self, call: Call) -> Outcome {
        (self.0)(call).await
    }
}

impl<F> fmt::Debug for BlockingFunction<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blocking")
    }
}

impl<F> fmt::Debug for Concurrent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Concurrent")
    }
}
