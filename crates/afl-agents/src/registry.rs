//! The registrations that a store keeps, for all agents of it (document 000 §8).

use std::sync::Arc;

use afl_runtime::collection::{Collection, CollectionItem};
use afl_runtime::{Durability, Service};

use crate::host::{Hosts, HostsConfig};
use crate::registration::{Registration, RegistrationProblem};

impl CollectionItem for Registration {
    const COLLECTION: &'static str = "handler_registrations";

    fn rank(&self) -> i64 {
        self.updated
    }
}

/// All registrations of a tenant.
#[derive(Clone, Debug)]
pub struct Registry {
    registrations: Collection<Registration>,
    /// Read the registrations.
    hosts: Arc<Hosts>,
}

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the registration of {facet} is wrong: {}", list(.problems))]
    Wrong { facet: String, problems: Vec<RegistrationProblem> },
    #[error(transparent)]
    Store(#[from] afl_runtime::Error),
}

/// How often a registration that met another writer is written again.
const TRIES: usize = 16;

impl Registry {
    pub fn new(service: &Service) -> Self {
        let hosts = Arc::new(Hosts::unstarted(HostsConfig::default()));
        Self { registrations: service.collection(), hosts }
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
        let now = self.registrations.now().await.map_err(afl_runtime::Error::from)?;
        let mut tries = 0;
        loop {
            let name = &registration.facet_name;
            let found = self.registrations.get(name).await.map_err(afl_runtime::Error::from)?;
            let created = found.as_ref().map_or(now.0, |found| found.item.created);
            let kept = Registration { created, updated: now.0, ..registration.clone() };
            let version = found.map(|found| found.version);
            match self.registrations.put(name, &kept, version, Durability::Durable).await {
                Ok(_) => return Ok(kept),
                Err(error) if error.is_conflict() && tries < TRIES => tries += 1,
                Err(error) => return Err(RegistryError::Store(error.into())),
            }
        }
    }

    /// All of them, by facet.
    pub async fn all(&self) -> Result<Vec<Registration>, RegistryError> {
        let all = self.registrations.all().await.map_err(afl_runtime::Error::from)?;
        Ok(all.into_iter().map(|(_, stored)| stored.item).collect())
    }

    pub async fn get(&self, facet: &str) -> Result<Option<Registration>, RegistryError> {
        let found = self.registrations.get(facet).await.map_err(afl_runtime::Error::from)?;
        Ok(found.map(|stored| stored.item))
    }

    /// Removes a registration and returns it, if there was one.
    pub async fn remove(&self, facet: &str) -> Result<Option<Registration>, RegistryError> {
        for _ in 0..TRIES {
            let found = self.registrations.get(facet).await.map_err(afl_runtime::Error::from)?;
            let Some(found) = found else { return Ok(None) };
            match self.registrations.remove(facet, found.version).await {
                Ok(()) => return Ok(Some(found.item)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(RegistryError::Store(error.into())),
            }
        }
        Ok(None)
    }

    /// Wakes after a registration came, changed or went.
    pub fn watch(&self) -> afl_runtime::watch::Watch {
        self.registrations.watch()
    }
}

fn list(problems: &[RegistrationProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
