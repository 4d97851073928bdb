//! The HTTP client of an agent: bounded answers, no redirects, no private addresses.

mod address;
mod sign;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use afl_runtime::{JsonError, read_json};
use reqwest::dns::Resolve;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use url::Url;

pub use address::{AllowedHosts, BadAllowedEntry, PrivateAddress};
use address::{Resolver, SystemNames};
pub use sign::Secret;

use crate::handler::{HandlerFailure, HandlerFailureKind, Object, Outcome, object_of};

/// How HTTP handlers and the receivers of messages are called.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HttpConfig {
    pub allowed: AllowedHosts,
    /// By the name that registrations give as `metadata.secret`.
    pub secrets: BTreeMap<String, Secret>,
}

pub(crate) struct HttpClient {
    /// Built with the first request.
    client: OnceLock<Client>,
    resolver: Resolver,
    secrets: BTreeMap<String, Secret>,
}

/// Beyond this an answer is refused.
pub const MAX_RESPONSE_BYTES: usize = 32 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of an answer that is an error, so much is shown.
const SHOWN_BYTES: usize = 2_000;
const SHOWN_TIMEOUT: Duration = Duration::from_secs(2);

impl HttpClient {
    pub(crate) fn new(config: HttpConfig) -> Self {
        Self::with_names(config, SystemNames)
    }

    fn with_names(config: HttpConfig, names: impl Resolve + 'static) -> Self {
        let resolver = Resolver { allowed: Arc::new(config.allowed), names: Arc::new(names) };
        Self { client: OnceLock::new(), resolver, secrets: config.secrets }
    }

    /// Fails where this machine cannot have a client.
    pub(crate) fn start(&self) -> Result<(), reqwest::Error> {
        self.client().map(drop)
    }

    fn client(&self) -> Result<&Client, reqwest::Error> {
        static PROVIDER: Once = Once::new();
        // Refused only when the program has chosen another one before us, which is as good.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::builder()
            .redirect(Policy::none())
            // A proxy would resolve names behind our back.
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .dns_resolver(Arc::new(self.resolver.clone()))
            .user_agent(concat!("agentflow/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Whether a URL may be called and its calls signed, as far as that is known before the call.
    pub(crate) fn admit(&self, url: &Url, secret: Option<&str>) -> Result<Option<&Secret>, HandlerFailure> {
        let refused = |message: String| HandlerFailure::refused(message);
        self.resolver.allowed.admit_url(url).map_err(|error| refused(error.to_string()))?;
        let Some(name) = secret else { return Ok(None) };
        let secret = self.secrets.get(name).ok_or_else(|| {
            refused(format!(
                "the agent has no secret `{name}` to sign with: configure it, or sign with another"
            ))
        });
        secret.map(Some)
    }

    fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, HandlerFailure> {
        let client = self.client().map_err(|error| unreachable(url, &error))?;
        Ok(client.request(method, url.clone()))
    }

    /// Posts JSON. `secret` names the one to sign with; a repetition has the same `key`.
    pub(crate) async fn post(
        &self,
        url: &Url,
        secret: Option<&str>,
        key: &str,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Outcome {
        sign(&mut headers, key, self.admit(url, secret)?, &body);
        let request = self.request(Method::POST, url)?.headers(headers).body(body);
        let (status, body) = self.send(url, request).await?;
        judge(url, status, &body)
    }

    /// Posts a message that wants no answer. `secret` names the one to sign with.
    pub(crate) async fn deliver(
        &self,
        url: &str,
        secret: Option<&str>,
        id: &str,
        body: Vec<u8>,
    ) -> Result<(), DeliveryError> {
        let url = Url::parse(url)
            .map_err(|error| DeliveryError::Refused(format!("its address is no URL: {error}")))?;
        let not_here = |failure: HandlerFailure| DeliveryError::NotHere(failure.message);
        let secret = self.admit(&url, secret).map_err(not_here)?;
        let mut headers = HeaderMap::new();
        sign(&mut headers, id, secret, &body);
        let request = self.request(Method::POST, &url).map_err(not_here)?.headers(headers).body(body);
        let response = request.send().await.map_err(|error| {
            let failure = unreachable(&url, &error);
            match failure.kind {
                HandlerFailureKind::Refused => not_here(failure),
                _ => DeliveryError::Away(failure.message),
            }
        })?;
        let status = response.status();
        // The receiver has it, whatever it says besides.
        if status.is_success() {
            return Ok(());
        }
        let judged = judge(&url, status, &beginning(response).await);
        let message = judged.expect_err("only a success completes").message;
        let message = message[..message.floor_char_boundary(SHOWN_BYTES)].to_owned();
        Err(match status {
            StatusCode::GONE => DeliveryError::Gone(message),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => DeliveryError::Away(message),
            _ if status.is_client_error() => DeliveryError::Refused(message),
            _ => DeliveryError::Away(message),
        })
    }

    /// For the built-in handler.
    pub(crate) async fn get(&self, url: &str) -> Outcome {
        let bad = |reason: String| HandlerFailure::invalid_input(format!("`{url}` {reason}"));
        let parsed = Url::parse(url).map_err(|error| bad(format!("is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("is neither http nor https".to_owned()));
        }
        self.admit(&parsed, None)?;
        let (status, body) = self.send(&parsed, self.request(Method::GET, &parsed)?).await?;
        let body = match read_json(&body, "body") {
            Ok(value) => value,
            Err(JsonError::Syntax(_) | JsonError::TooDeep) => Value::from(String::from_utf8_lossy(&body)),
            Err(error @ (JsonError::BeyondLong { .. } | JsonError::RepeatedKey { .. })) => {
                let message = format!("{} answered with JSON that cannot be stored: {error}", shown(&parsed));
                return Err(HandlerFailure::invalid_result(message));
            }
        };
        Ok(Object::from_iter([("status".to_owned(), json!(status.as_u16())), ("body".to_owned(), body)]))
    }

    async fn send(
        &self,
        url: &Url,
        request: RequestBuilder,
    ) -> Result<(StatusCode, Vec<u8>), HandlerFailure> {
        let response = request.send().await.map_err(|error| unreachable(url, &error))?;
        let status = response.status();
        Ok((status, read(url, response).await?))
    }
}

/// Why a message was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DeliveryError {
    /// This agent may not, or has no secret to sign with; another one may.
    NotHere(String),
    /// The receiver takes no message now.
    Away(String),
    /// This one is not taken now.
    Refused(String),
    /// The receiver will never take it.
    Gone(String),
}

/// Adds the headers of every post: the key by which its receiver knows a repetition, and the signature.
fn sign(headers: &mut HeaderMap, key: &str, secret: Option<&Secret>, body: &[u8]) {
    let json = HeaderValue::from_static("application/json");
    let id = header_text(key);
    headers.insert(header::CONTENT_TYPE, json.clone());
    headers.insert(header::ACCEPT, json);
    headers.insert("idempotency-key", id.clone());
    if let Some(secret) = secret {
        let (timestamp, signature) = secret.sign(id.as_bytes(), body);
        headers.insert("webhook-id", id);
        headers.insert("webhook-timestamp", header_text(&timestamp));
        headers.insert("webhook-signature", header_text(&signature));
    }
}

/// Names of steps may have any letter, and headers may not.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    let plain = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    let text: String = text.chars().map(|letter| if plain(letter) { letter } else { '?' }).collect();
    HeaderValue::from_str(&text).expect("only plain letters are left")
}

async fn read(url: &Url, mut response: Response) -> Result<Vec<u8>, HandlerFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, &error))? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            let message = format!(
                "{} answered with more than {MAX_RESPONSE_BYTES} bytes: store them and return a reference",
                shown(url)
            );
            return Err(HandlerFailure::invalid_result(message));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// So much of an answer as is shown, or as comes.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    // The response is known already, so this wait is short.
    let until = Instant::now() + SHOWN_TIMEOUT;
    while body.len() < SHOWN_BYTES
        && let Ok(Ok(Some(chunk))) = timeout_at(until, response.chunk()).await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(SHOWN_BYTES);
    body
}

fn judge(url: &Url, status: StatusCode, body: &[u8]) -> Outcome {
    let url = shown(url);
    if status.is_success() {
        return match read_json(body, "result") {
            Ok(value) => object_of(value),
            Err(error) => Err(HandlerFailure::invalid_result(format!(
                "{url} must answer with one JSON object: {error}"
            ))),
        };
    }
    let (kind, advice) = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            (HandlerFailureKind::NotFound, ": register the right address")
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => (HandlerFailureKind::Timeout, ""),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => {
            (HandlerFailureKind::Unavailable, "")
        }
        _ if status.is_redirection() => (
            HandlerFailureKind::Refused,
            ", and redirects are not followed: register the address it leads to",
        ),
        _ => (HandlerFailureKind::Error, ""),
    };
    let told: Option<Value> = serde_json::from_slice(body).ok();
    let message = told.as_ref().and_then(error_message).map_or_else(
        || format!("{url} answered {status}{advice}"),
        |message| format!("{url} answered {status}: {message}"),
    );
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]).into_owned();
    Err(HandlerFailure::new(kind, message).with("status", status.as_u16()).with("body", text))
}

/// `message`, `error`, or `error.message`, as most servers have it.
fn error_message(body: &Value) -> Option<&str> {
    let error = body.get("error");
    let candidates = [error.and_then(|error| error.get("message")), error, body.get("message")];
    candidates.into_iter().flatten().find_map(Value::as_str)
}

fn unreachable(url: &Url, error: &reqwest::Error) -> HandlerFailure {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut deepest = error.to_string();
    while let Some(inner) = cause {
        if let Some(private) = inner.downcast_ref::<PrivateAddress>() {
            return HandlerFailure::refused(private.to_string());
        }
        deepest = inner.to_string();
        cause = inner.source();
    }
    HandlerFailure::unavailable(format!("cannot reach {}: {deepest}", shown(url)))
}

/// Without the query, which may hold secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}
