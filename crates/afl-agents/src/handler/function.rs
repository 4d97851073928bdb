//! Functions of this process as handlers (`ToolRegistry` of document 000).

use std::sync::Arc;

use async_trait::async_trait;
use tokio::task;

use super::{Call, Handler, HandlerFailure, Outcome, of_panic};

/// A function that returns a future, which is dropped when the call is stopped.
pub fn concurrent<F, R>(function: F) -> impl Handler
where
    F: Fn(Call) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send,
{
    FunctionHandler(function)
}

/// A function that may block its thread. It cannot be ended from outside.
pub fn blocking<F>(function: F) -> impl Handler
where
    F: Fn(Call) -> Outcome + Send + Sync + 'static,
{
    let function = Arc::new(function);
    concurrent(move |call| {
        let function = function.clone();
        async move {
            task::spawn_blocking(move || function(call)).await.unwrap_or_else(|error| {
                Err(match error.try_into_panic() {
                    Ok(panic) => of_panic(panic.as_ref()),
                    Err(error) => HandlerFailure::crash(format!("the handler did not run: {error}")),
                })
            })
        }
    })
}

struct FunctionHandler<F>(F);

#[async_trait]
impl<F, R> Handler for FunctionHandler<F>
where
    F: Fn(Call) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send,
{
    async fn run(&self, call: Call) -> Outcome {
        (self.0)(call).await
    }
}
