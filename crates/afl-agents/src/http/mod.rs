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

use crate::handler::{HandlerFailure, HandlerFailureKind, Object, Outcome, WorkEvidence, object_of};

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
        let secret = self.admit(url, secret).map_err(HandlerFailure::not_done)?;
        sign(&mut headers, key, secret, &body);
        let request = self.request(Method::POST, url).map_err(HandlerFailure::not_done)?;
        self.send(url, request.headers(headers).body(body)).await?.judge(url)
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
        let form = AnswerForm::of(&response);
        let judged = HttpAnswer { status, form, body: beginning(response).await }.judge(&url);
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
        let bad = |reason: String| HandlerFailure::invalid_input(format!("`{url}` {reason}")).not_done();
        let parsed = Url::parse(url).map_err(|error| bad(format!("is no URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("is neither http nor https".to_owned()));
        }
        self.admit(&parsed, None).map_err(HandlerFailure::not_done)?;
        let request = self.request(Method::GET, &parsed).map_err(HandlerFailure::not_done)?;
        let HttpAnswer { status, body, .. } = self.send(&parsed, request).await?;
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

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<HttpAnswer, HandlerFailure> {
        let response = request.send().await.map_err(|error| unreachable(url, &error))?;
        let (status, form) = (response.status(), AnswerForm::of(&response));
        Ok(HttpAnswer { status, form, body: read(url, response).await? })
    }
}

struct HttpAnswer {
    status: StatusCode,
    form: AnswerForm,
    body: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AnswerForm {
    /// A problem document of RFC 9457, in which a handler says what its failure is.
    Problem,
    Other,
}

impl AnswerForm {
    fn of(response: &Response) -> Self {
        const PROBLEM: &[u8] = b"application/problem+json";
        let media = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let media = media.and_then(|media| media.split(|byte| *byte == b';').next());
        let is_problem = media.is_some_and(|media| media.trim_ascii().eq_ignore_ascii_case(PROBLEM));
        if is_problem { Self::Problem } else { Self::Other }
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

impl HttpAnswer {
    fn judge(&self, url: &Url) -> Outcome {
        let (url, status, body) = (shown(url), self.status, &self.body[..]);
        if status.is_success() {
            return match read_json(body, "result") {
                Ok(value) => object_of(value),
                Err(error) => Err(HandlerFailure::invalid_result(format!(
                    "{url} must answer with one JSON object: {error}"
                ))),
            };
        }
        let (kind, advice) = kind_of(status);
        let told: Option<Value> = serde_json::from_slice(body).ok();
        let message = told.as_ref().and_then(error_message).map_or_else(
            || format!("{url} answered {status}{advice}"),
            |message| format!("{url} answered {status}: {message}"),
        );
        let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]).into_owned();
        let failure = HandlerFailure::new(kind, message).with("status", status.as_u16()).with("body", text);
        Err(failure.with_evidence(self.evidence(told.as_ref())))
    }

    /// A client error is the handler's own word. A server error may be that of a proxy, and a redirect may follow work
    /// that was done.
    fn evidence(&self, told: Option<&Value>) -> WorkEvidence {
        let problem =
            told.filter(|_| self.form == AnswerForm::Problem).and_then(|told| told["type"].as_str());
        // The type is a URI reference, and its last part is the name.
        let name = problem.and_then(|problem| problem.rsplit(['/', '#', ':']).next());
        match name.and_then(|name| name.parse().ok()) {
            Some(WorkEvidence::NotDone) => WorkEvidence::NotDone,
            Some(WorkEvidence::Reported | WorkEvidence::Unknown) | None if self.status.is_client_error() => {
                WorkEvidence::Reported
            }
            Some(WorkEvidence::Reported | WorkEvidence::Unknown) | None => WorkEvidence::Unknown,
        }
    }
}

fn kind_of(status: StatusCode) -> (HandlerFailureKind, &'static str) {
    match status {
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
    }
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
            return HandlerFailure::refused(private.to_string()).not_done();
        }
        deepest = inner.to_string();
        cause = inner.source();
    }
    let failure = HandlerFailure::unavailable(format!("cannot reach {}: {deepest}", shown(url)));
    // Without a connection the request cannot have left. After that, the other side may have done the work.
    let has_left = !error.is_connect() && !error.is_builder();
    failure.with_evidence(if has_left { WorkEvidence::Unknown } else { WorkEvidence::NotDone })
}

/// Without the query, which may hold secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}
