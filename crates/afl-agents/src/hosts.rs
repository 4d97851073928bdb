//! Every host of an agent behind one door: the form of `module_uri` decides which one does the work.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::exec::{ExecHost, TERM_GRACE};
use crate::handler::{Call, Context, Facts, Failure, FailureKind, Handler, Object, Outcome, perform};
use crate::http::{HttpConfig, HttpHost};
use crate::process::Guardian;
use crate::python::{Purpose, PythonConfig, PythonHost, ScriptHost};
use crate::registration::{Checked, ModuleUri, Registration};
use crate::roots::Roots;

#[derive(Clone, Default, Debug)]
pub struct HostsConfig {
    /// Where Python modules and programs may be.
    pub roots: Roots,
    pub python: PythonConfig,
    pub http: HttpConfig,
}

#[derive(Debug)]
pub struct Hosts {
    python: PythonHost,
    script: ScriptHost,
    script_timeout: Duration,
    exec: ExecHost,
    http: HttpHost,
}

#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    #[error("cannot start the shell that ends handlers when the agent is killed")]
    Guardian(#[source] io::Error),
    #[error("cannot set up HTTP")]
    Http(#[source] reqwest::Error),
}

/// How long a canceled call may clean up before its process is killed.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// For the process to be seen off after its last signal.
const MARGIN: Duration = Duration::from_secs(1);

impl Hosts {
    pub fn new(config: HostsConfig) -> Result<Self, HostsError> {
        let guardian = Arc::new(Guardian::start().map_err(HostsError::Guardian)?);
        let HostsConfig { roots, python, http } = config;
        let exec = ExecHost::new(roots.clone(), guardian.clone(), python.pass_variables.clone());
        let script_timeout = python.script_timeout;
        let script = ScriptHost::new(python.clone(), guardian.clone());
        let python = PythonHost::new(python, roots, guardian);
        Ok(Self {
            python,
            script,
            script_timeout,
            exec,
            http: HttpHost::new(http).map_err(HostsError::Http)?,
        })
    }

    /// Does one call with the registered handler; whatever that does, an outcome comes back.
    pub async fn run(&self, registration: &Registration, call: Call) -> Outcome {
        match checked(registration) {
            Ok(checked) => {
                let timeout = checked.timeout;
                perform(&Registered { hosts: self, registration, checked }, call, Some(timeout)).await
            }
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// Runs a `script` block: `language`, `code` and `params` in the payload.
    pub async fn run_script(&self, call: Call) -> Outcome {
        perform(&self.script, call, Some(self.script_timeout)).await
    }

    pub(crate) fn http(&self) -> &HttpHost {
        &self.http
    }

    /// Lets processes that wait for work clean up and end. Without it they are killed with the last owner.
    pub async fn close(&self) {
        self.python.close().await;
    }

    /// Whether the handler is all there, before work arrives: loads it, and calls nothing.
    pub async fn check(&self, registration: &Registration) -> Result<(), Failure> {
        let checked = checked(registration)?;
        match &checked.module {
            ModuleUri::Builtin(_) => Ok(()),
            ModuleUri::Http(url) => self.http.check(url, &checked.options).map(drop),
            ModuleUri::Exec(path) => self.exec.program(path, checked.checksum).await.map(drop),
            ModuleUri::PythonModule(_) | ModuleUri::PythonFile(_) => {
                self.load(registration, checked, Purpose::Check).await.map(drop)
            }
        }
    }

    /// The registrations that a Python module asks for: one for each facet of `@handler`, and those that its
    /// `register_handlers(runner)` makes. They take what they leave open from `like`.
    pub async fn discover(&self, like: &Registration) -> Result<Vec<Registration>, Failure> {
        let checked = checked(like)?;
        match &checked.module {
            ModuleUri::PythonModule(_) | ModuleUri::PythonFile(_) => {}
            ModuleUri::Builtin(_) | ModuleUri::Http(_) | ModuleUri::Exec(_) => return Ok(vec![like.clone()]),
        }
        let mut found = self.load(like, checked, Purpose::Discover).await?;
        let Some(Value::Array(records)) = found.remove("registrations") else { return Ok(Vec::new()) };
        records.into_iter().map(|record| like.completed(record)).collect()
    }

    async fn load(
        &self,
        registration: &Registration,
        checked: Checked,
        purpose: Purpose,
    ) -> Result<Object, Failure> {
        let facet = registration.facet_name.clone();
        let (context, _) = Context::new(Facts { path: facet.clone(), ..Facts::default() });
        let call = Call { facet, payload: Object::new(), context };
        let timeout = checked.timeout;
        match perform(&Loading { hosts: self, registration, checked, purpose }, call, Some(timeout)).await {
            Outcome::Completed { result } => Ok(result),
            Outcome::Failed(failure) => Err(failure),
        }
    }
}

fn checked(registration: &Registration) -> Result<Checked, Failure> {
    registration.check().map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let message =
            format!("the registration of {} is wrong: {}", registration.facet_name, problems.join("; "));
        Failure::new(FailureKind::Refused, message)
    })
}

struct Registered<'a> {
    hosts: &'a Hosts,
    registration: &'a Registration,
    checked: Checked,
}

struct Loading<'a> {
    hosts: &'a Hosts,
    registration: &'a Registration,
    checked: Checked,
    purpose: Purpose,
}

#[async_trait]
impl Handler for Registered<'_> {
    async fn run(&self, mut call: Call) -> Outcome {
        let Self { hosts, registration, checked } = self;
        match &checked.module {
            ModuleUri::Builtin(builtin) => builtin.run(call, &hosts.http).await,
            ModuleUri::PythonModule(_) | ModuleUri::PythonFile(_) => {
                inject(&mut call, registration);
                hosts.python.run(registration, checked, &call, Purpose::Call).await
            }
            ModuleUri::Exec(path) => {
                inject(&mut call, registration);
                hosts.exec.run(path, checked, &call).await
            }
            ModuleUri::Http(url) => {
                inject(&mut call, registration);
                hosts.http.run(url, &checked.options, &call).await
            }
        }
    }

    fn grace(&self) -> Duration {
        match self.checked.module {
            ModuleUri::PythonModule(_) | ModuleUri::PythonFile(_) => CANCEL_GRACE,
            ModuleUri::Exec(_) => TERM_GRACE + MARGIN,
            ModuleUri::Http(_) | ModuleUri::Builtin(_) => Duration::ZERO,
        }
    }
}

#[async_trait]
impl Handler for Loading<'_> {
    async fn run(&self, call: Call) -> Outcome {
        self.hosts.python.run(self.registration, &self.checked, &call, self.purpose).await
    }
}

/// What a registered handler finds in its payload beside the facet's parameters (document 000 §8.7).
fn inject(call: &mut Call, registration: &Registration) {
    let facts = call.context.facts();
    let injected = [
        ("_facet_name", json!(call.facet)),
        ("_handler_metadata", Value::Object(registration.metadata.clone())),
        ("_attempt", json!(facts.attempt)),
        ("_idempotency_key", json!(facts.idempotency_key)),
        ("_lease_token", json!(facts.lease_token)),
    ];
    call.payload.extend(injected.map(|(name, value)| (name.to_owned(), value)));
}
