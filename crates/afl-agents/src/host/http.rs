//! The host of handlers behind HTTP: one POST with the payload, one JSON object as the answer.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use afl_runtime::outbox::{BadUrl, plain_url};
use async_trait::async_trait;
use reqwest::header::HeaderMap;
use serde_json::Value;
use url::Url;

use super::{HandlerSpec, Host, HostOption, HostedHandler};
use crate::handler::{Call, Handler, HandlerFailure, Object, Outcome};
use crate::http::{HttpClient, header_text};

pub(super) struct HttpHost(pub(super) Arc<HttpClient>);

struct HttpHandler {
    client: Arc<HttpClient>,
    url: Url,
    /// Additional headers for the handler.
    headers: HeaderMap,
    /// The name of the agent's secret that calls are signed with.
    secret: Option<String>,
    metadata: Object,
}

const OPTIONS: &[HostOption] = &[
    HostOption {
        name: "headers",
        expected: "an object of HTTP headers as texts",
        fits: |value| headers(value).is_some(),
    },
    HostOption::of::<String>("secret", "the name of a secret of the agent"),
];

#[async_trait]
impl Host for HttpHost {
    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        &[("https", "`https://…`"), ("http", "`http://…`")]
    }

    fn options(&self) -> &'static [HostOption] {
        OPTIONS
    }

    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String> {
        let url = plain_url(&spec.registration.module_uri).map_err(|error| match error {
            BadUrl::Syntax(_) => error.to_string(),
            BadUrl::Userinfo => format!("{error}, and sign with `metadata.secret`"),
        })?;
        let metadata = spec.registration.metadata.clone();
        let headers = metadata.get("headers").and_then(headers).unwrap_or_default();
        Ok(Box::new(HttpHandler {
            client: self.0.clone(),
            url,
            headers,
            secret: spec.option("secret"),
            metadata,
        }))
    }
}

fn headers(value: &Value) -> Option<HeaderMap> {
    let texts: HashMap<String, String> = super::read_option(value)?;
    HeaderMap::try_from(&texts).ok()
}

#[async_trait]
impl Handler for HttpHandler {
    async fn run(&self, call: Call) -> Outcome {
        let call = call.with_system_fields(&self.metadata);
        let body = serde_json::to_vec(&call.payload).expect("a JSON object has a text");
        let facts = call.context.facts();
        let mut headers = self.headers.clone();
        headers.insert("afl-facet", header_text(&call.facet));
        headers.insert("afl-attempt", facts.attempt.into());
        headers.insert("afl-lease-token", facts.lease_token.into());
        self.client.post(&self.url, self.secret.as_deref(), &facts.idempotency_key, headers, body).await
    }
}

#[async_trait]
impl HostedHandler for HttpHandler {
    async fn check(&self) -> Result<(), HandlerFailure> {
        self.client.admit(&self.url, self.secret.as_deref()).map(drop)
    }
}

impl fmt::Debug for HttpHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpHandler").field(&self.url.as_str()).finish()
    }
}
