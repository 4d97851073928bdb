//! The list of hosts: the scheme of `module_uri` decides which one does the work.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::builtin::BuiltinHost;
use super::exec::ExecHost;
use super::http::HttpHost;
use super::python::{PythonConfig, PythonHost};
use super::{HandlerFile, HandlerSpec, Host, HostError, HostOption, HostedHandler, Offers};
use crate::handler::{Call, Handler, HandlerFailure, Outcome, perform};
use crate::http::{HttpClient, HttpConfig};
use crate::process::Guardian;
use crate::registration::{Registration, RegistrationProblem};
use crate::roots::Roots;

#[derive(Clone, Default, Debug)]
pub struct HostsConfig {
    /// Where Python modules and programs may be.
    pub roots: Roots,
    pub python: PythonConfig,
    pub http: HttpConfig,
}

/// The state that the hosts of one agent share.
pub(super) struct HostParts {
    pub(super) config: HostsConfig,
    pub(super) guardian: Arc<Guardian>,
    pub(super) http: Arc<HttpClient>,
}

/// The hosts of one agent.
pub struct Hosts {
    all: Vec<Arc<dyn Host>>,
    parts: HostParts,
}

/// The one list. Messages and help name the hosts in this order.
fn list(parts: &HostParts) -> Vec<Arc<dyn Host>> {
    vec![
        Arc::new(PythonHost::new(parts)),
        Arc::new(ExecHost::new(parts)),
        Arc::new(HttpHost(parts.http.clone())),
        Arc::new(BuiltinHost(parts.http.clone())),
    ]
}

impl Hosts {
    /// Hosts that are ready for work. An agent that lacks what calls share fails at its start, not with each task.
    pub fn new(config: HostsConfig) -> Result<Self, HostError> {
        let hosts = Self::unstarted(config);
        hosts.parts.guardian.start().map_err(HostError::Guardian)?;
        hosts.parts.http.start().map_err(HostError::Http)?;
        Ok(hosts)
    }

    /// Hosts that read registrations. They start what they need with the first call.
    pub fn unstarted(config: HostsConfig) -> Self {
        let http = Arc::new(HttpClient::new(config.http.clone()));
        let parts = HostParts { config, guardian: Arc::default(), http };
        Self { all: list(&parts), parts }
    }

    /// One more host. Its schemes must be its own.
    #[must_use]
    pub fn with(mut self, host: Arc<dyn Host>) -> Self {
        self.all.push(host);
        self
    }

    /// Reads a registration, or reports everything that is wrong with it.
    pub fn parse(
        &self,
        registration: &Registration,
    ) -> Result<Box<dyn HostedHandler>, Vec<RegistrationProblem>> {
        let checksum = registration.parse_checksum();
        let spec = HandlerSpec { registration, checksum: *checksum.as_ref().unwrap_or(&None) };
        let problems = registration.problems().chain(self.misfits(registration)).chain(checksum.err());
        let mut problems: Vec<RegistrationProblem> = problems.collect();
        match self.hosted(spec) {
            Ok(hosted) if problems.is_empty() => Ok(hosted),
            hosted => {
                problems.extend(hosted.err());
                problems.sort();
                Err(problems)
            }
        }
    }

    fn hosted(&self, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, RegistrationProblem> {
        let uri = &spec.registration.module_uri;
        let bad = |reason: String| RegistrationProblem::ModuleUri { uri: uri.clone(), reason };
        let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
        let Some(host) = self.all.iter().find(|host| host.schemes().iter().any(|(own, _)| *own == scheme))
        else {
            return Err(bad(format!("has the unknown scheme `{scheme}:`: write {}", self.forms())));
        };
        let hosted = host.clone().parse(spec).map_err(|reason| match scheme {
            // Without a scheme, any form may have been meant.
            "" => bad(format!("{reason}: write {}", self.forms())),
            _ => bad(reason),
        })?;
        if spec.checksum.is_some() && !host.names_files() {
            return Err(RegistrationProblem::ChecksumOfNoFile { uri: uri.clone() });
        }
        Ok(hosted)
    }

    fn misfits(&self, registration: &Registration) -> impl Iterator<Item = RegistrationProblem> {
        self.options().filter_map(|option| {
            let value = registration.metadata.get(option.name)?;
            let problem = RegistrationProblem::Metadata { name: option.name, expected: option.expected };
            (!(option.fits)(value)).then_some(problem)
        })
    }

    /// The handler of a registration. One that cannot be read fails every call.
    pub fn handler(&self, registration: &Registration) -> Arc<dyn Handler> {
        let hosted = self.resolve(registration);
        Arc::new(RegisteredHandler { registration: registration.clone(), hosted })
    }

    fn resolve(&self, registration: &Registration) -> Result<Box<dyn HostedHandler>, HandlerFailure> {
        self.parse(registration).map_err(|problems| {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let message =
                format!("the registration of {} is wrong: {}", registration.facet_name, problems.join("; "));
            HandlerFailure::refused(message)
        })
    }

    /// Does one call with the registered handler. Every failure of the handler becomes an outcome.
    pub async fn run(&self, registration: &Registration, call: Call) -> Outcome {
        let handler = self.handler(registration);
        perform(&*handler, call, handler.timeout(None)).await
    }

    /// Whether the handler is complete, before work arrives. Loads it, and calls nothing.
    pub async fn check(&self, registration: &Registration) -> Result<(), HandlerFailure> {
        self.resolve(registration)?.check().await
    }

    /// The registrations that a module asks for. They take from `like` what they leave open.
    pub async fn registrations(&self, like: &Registration) -> Result<Vec<Registration>, HandlerFailure> {
        match self.resolve(like)?.records().await? {
            Some(records) => records.into_iter().map(|record| like.completed(record)).collect(),
            None => Ok(vec![like.clone()]),
        }
    }

    /// Whether a host discovers handlers in such files.
    pub fn discovers_in(&self, path: &Path) -> bool {
        self.all.iter().any(|host| is_of(&**host, path))
    }

    /// The files in which hosts discover handlers, for messages and help.
    pub fn discoverable(&self) -> String {
        enumerated(self.all.iter().filter_map(|host| Some(host.discovery()?.form.to_owned())), "or")
    }

    /// The handlers that files declare. Runs nothing of them.
    pub async fn discover(&self, files: &[PathBuf]) -> Result<Vec<HandlerFile>, HandlerFailure> {
        let mut found = Vec::new();
        for host in &self.all {
            let own: Vec<PathBuf> = files.iter().filter(|file| is_of(&**host, file)).cloned().collect();
            if !own.is_empty() {
                found.extend(host.discover(&own).await?);
            }
        }
        Ok(found)
    }

    /// Makes paths absolute that a person wrote relative to `folder`.
    pub fn anchor(&self, registration: &mut Registration, folder: &Path) {
        for host in &self.all {
            host.anchor(registration, folder);
        }
    }

    /// How people write a `module_uri`.
    pub fn forms(&self) -> String {
        let schemes = self.all.iter().flat_map(|host| host.schemes());
        enumerated(schemes.map(|(_, form)| (*form).to_owned()), "or")
    }

    /// The keys of the metadata that hosts read.
    pub fn option_names(&self) -> String {
        enumerated(self.options().map(|option| format!("`{}`", option.name)), "and")
    }

    fn options(&self) -> impl Iterator<Item = &'static HostOption> {
        self.all.iter().flat_map(|host| host.options())
    }

    /// Handlers that need no registration, by the names of their tasks.
    pub fn offers(&self) -> Offers<'_> {
        Box::new(self.all.iter().flat_map(|host| host.offers()))
    }

    /// For messages of the outbox.
    pub(crate) fn http(&self) -> &HttpClient {
        &self.parts.http
    }

    /// Lets idle processes clean up and end. Without it they are killed with the last owner.
    pub async fn close(&self) {
        futures_util::future::join_all(self.all.iter().map(|host| host.close())).await;
    }
}

/// Whether a host discovers handlers in a file.
fn is_of(host: &dyn Host, file: &Path) -> bool {
    let extension = file.extension();
    host.discovery().is_some_and(|discovery| extension.is_some_and(|own| own == discovery.extension))
}

fn enumerated(words: impl Iterator<Item = String>, last: &str) -> String {
    match &*words.collect::<Vec<_>>() {
        [rest @ .., end] if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        words => words.concat(),
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|host| host.schemes())).finish()
    }
}

/// The handler of a registration, with the registration's timeout and version.
struct RegisteredHandler {
    registration: Registration,
    /// Or the failure of every call, because the registration cannot be read.
    hosted: Result<Box<dyn HostedHandler>, HandlerFailure>,
}

#[async_trait]
impl Handler for RegisteredHandler {
    async fn run(&self, call: Call) -> Outcome {
        match &self.hosted {
            Ok(hosted) => hosted.run(call).await,
            Err(failure) => Err(failure.clone()),
        }
    }

    fn grace(&self) -> Duration {
        self.hosted.as_ref().map_or(Duration::ZERO, |hosted| hosted.grace())
    }

    fn timeout(&self, step: Option<Duration>) -> Option<Duration> {
        Some(self.registration.timeout_of(step))
    }

    fn version(&self) -> String {
        self.registration.words()
    }
}
