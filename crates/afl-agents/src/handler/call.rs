//! One attempt at one task, as its handler sees it.

use afl_runtime::{FacetDeclaration, RunId, Service};
use serde_json::{Value, json};

use super::{Context, HandlerFailure, Object};

#[derive(Clone, Debug)]
pub struct Call {
    /// The qualified name of the event facet.
    pub facet: String,
    pub payload: Object,
    pub context: Context,
    /// The run whose program declares the facet.
    run: Option<(Service, RunId)>,
}

impl Call {
    pub fn new(facet: impl Into<String>, payload: Object, context: Context) -> Self {
        Self { facet: facet.into(), payload, context, run: None }
    }

    #[must_use]
    pub(crate) fn of_run(self, service: &Service, run: &RunId) -> Self {
        Self { run: Some((service.clone(), run.clone())), ..self }
    }

    /// The facet as its program declares it: doc comment, parameters, returns and prompt. It is looked up when asked for,
    /// because most handlers do not need it. A script, and a call that belongs to no run, have none.
    pub async fn declaration(&self) -> Result<Option<FacetDeclaration>, HandlerFailure> {
        let Some((service, run)) = &self.run else { return Ok(None) };
        service.declaration(run, &self.facet).await.map_err(|error| {
            let message = format!("cannot read the declaration of {}: {error}", self.facet);
            HandlerFailure::unavailable(message)
        })
    }

    /// With the fields that a registered handler finds in its payload beside the facet's parameters (document 000 §8.7).
    #[must_use]
    pub fn with_system_fields(mut self, metadata: &Object) -> Self {
        let facts = self.context.facts();
        let fields = [
            ("_facet_name", json!(self.facet)),
            ("_handler_metadata", Value::Object(metadata.clone())),
            ("_attempt", json!(facts.attempt)),
            ("_idempotency_key", json!(facts.idempotency_key)),
            ("_lease_token", json!(facts.lease_token)),
        ];
        self.payload.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        self
    }
}
