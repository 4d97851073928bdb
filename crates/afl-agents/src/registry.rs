//! The registrations that a store keeps, for all agents of it (document 000 §8).

use std::sync::Arc;

use afl_runtime::collection::{Collection, CollectionItem};
use afl_runtime::{Durability, Error, ExtensionItem, Service, retry_on_conflict};
use serde::{Deserialize, Serialize};

use crate::host::{Hosts, HostsConfig};
use crate::registration::{Registration, RegistrationProblem};

/// The record of a registration. It is private, so that only [`Registry`] writes one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct RegistrationRecord(Registration);

impl ExtensionItem for RegistrationRecord {}

impl CollectionItem for RegistrationRecord {
    const COLLECTION: &'static str = "handler_registrations";

    fn rank(&self) -> i64 {
        self.0.updated
    }
}

/// All registrations of a tenant.
#[derive(Clone, Debug)]
pub struct Registry {
    registrations: Collection<RegistrationRecord>,
    /// Read the registrations.
    hosts: Arc<Hosts>,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the registration of {facet} is wrong: {}", list(.problems))]
    Wrong { facet: String, problems: Vec<RegistrationProblem> },
    #[error(transparent)]
    Store(#[from] Error),
}

impl Registry {
    pub fn new(service: &Service) -> Self {
        let hosts = Arc::new(Hosts::unstarted(HostsConfig::default()));
        Self { registrations: service.extension(), hosts }
    }

    /// Takes registrations for these hosts instead of those that every agent has.
    #[must_use]
    pub fn with_hosts(self, hosts: Arc<Hosts>) -> Self {
        Self { hosts, ..self }
    }

    /// Keeps a registration in place of the one that its facet had. Agents take it up at once.
    pub async fn register(&self, registration: Registration) -> Result<Registration, RegistryError> {
        self.hosts
            .parse(&registration)
            .map_err(|problems| RegistryError::Wrong { facet: registration.facet_name.clone(), problems })?;
        let now = self.registrations.now().await.map_err(Error::from)?;
        let name = &registration.facet_name;
        let kept = retry_on_conflict(|| async {
            let found = self.registrations.get(name).await?;
            let created = found.as_ref().map_or(now.0, |found| found.item.0.created);
            let kept = RegistrationRecord(Registration { created, updated: now.0, ..registration.clone() });
            let version = found.map(|found| found.version);
            self.registrations.put(name, &kept, version, Durability::Durable).await.map(|_| kept.0)
        });
        Ok(kept.await.map_err(Error::from)?)
    }

    /// All of them, by facet.
    pub async fn all(&self) -> Result<Vec<Registration>, Error> {
        Ok(self.registrations.all().await?.into_iter().map(|(_, stored)| stored.item.0).collect())
    }

    pub async fn get(&self, facet: &str) -> Result<Option<Registration>, Error> {
        Ok(self.registrations.get(facet).await?.map(|stored| stored.item.0))
    }

    /// Removes a registration and returns it, if there was one.
    pub async fn remove(&self, facet: &str) -> Result<Option<Registration>, Error> {
        let removed = retry_on_conflict(|| async {
            let Some(found) = self.registrations.get(facet).await? else { return Ok(None) };
            self.registrations.remove(facet, found.version).await.map(|()| Some(found.item.0))
        });
        Ok(removed.await?)
    }

    /// Wakes after a registration came, changed or went.
    pub fn watch(&self) -> afl_runtime::watch::Watch {
        self.registrations.watch()
    }
}

fn list(problems: &[RegistrationProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
