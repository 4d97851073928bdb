//! The host of functions of this process (`ToolRegistry` of document 000).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task;

use super::{Host, Offers};
use crate::handler::{Call, Handler, HandlerFailure, Outcome, of_panic};

/// Functions by the names of their facets, qualified or short.
#[derive(Clone, Default)]
pub(crate) struct FunctionHost(BTreeMap<String, Arc<dyn Handler>>);

impl FunctionHost {
    pub(crate) fn register(&mut self, facet: &str, handler: Arc<dyn Handler>) {
        self.0.insert(facet.to_owned(), handler);
    }
}

impl Host for FunctionHost {
    fn offers(&self) -> Offers<'_> {
        Box::new(self.0.iter().map(|(name, handler)| (name.as_str(), handler)))
    }
}

/// A function that may block its thread. It cannot be ended from outside.
pub struct Blocking<F>(Arc<F>);

/// A function that returns a future, which is dropped when the call is stopped.
pub struct Concurrent<F>(F);

pub fn blocking<F>(function: F) -> Blocking<F>
where
    F: Fn(Call) -> Outcome + Send + Sync + 'static,
{
    Blocking(Arc::new(function))
}

pub fn concurrent<F, R>(function: F) -> Concurrent<F>
where
    F: Fn(Call) -> R + Send + Sync,
    R: Future<Output = Outcome> + Send,
{
    Concurrent(function)
}

#[async_trait]
impl<F> Handler for Blocking<F>
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

impl<F> fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blocking")
    }
}

impl<F> fmt::Debug for Concurrent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Concurrent")
    }
}
