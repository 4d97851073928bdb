//! A host takes part in everything by its trait alone: nothing but the list knows it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_agents::handler::{Call, Handler, HandlerFailure, Object, Outcome};
use afl_agents::host::{Discovery, HandlerFile, HandlerSpec, Host, HostOption, HostedHandler};
use afl_agents::registration::Registration;
use afl_agents::{Hosts, HostsConfig, Registry};
use afl_runtime::Service;
use afl_store::clock::Clock;
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use async_trait::async_trait;
use insta::assert_snapshot;
use serde_json::json;

use crate::world::{FACET, call};

/// Returns the words of its URI.
struct WordHost;

#[derive(Debug)]
struct WordHandler {
    word: String,
    times: usize,
}

#[async_trait]
impl Host for WordHost {
    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        &[("word", "`word:text`")]
    }

    fn options(&self) -> &'static [HostOption] {
        const { &[HostOption::of::<usize>("times", "a whole number")] }
    }

    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String> {
        match spec.rest_of_uri() {
            "" => Err("has no text".to_owned()),
            word => {
                Ok(Box::new(WordHandler { word: word.to_owned(), times: spec.option("times").unwrap_or(1) }))
            }
        }
    }

    fn discovery(&self) -> Option<Discovery> {
        Some(Discovery { extension: "word", form: "files of words" })
    }

    async fn discover(&self, files: &[PathBuf]) -> Result<Vec<HandlerFile>, HandlerFailure> {
        let declared = |file: &PathBuf| HandlerFile {
            path: file.clone(),
            registrations: Ok(vec![Registration::new(FACET, "word:found")]),
        };
        Ok(files.iter().map(declared).collect())
    }
}

#[async_trait]
impl Handler for WordHandler {
    async fn run(&self, _: Call) -> Outcome {
        let word = self.word.repeat(self.times);
        Ok(Object::from_iter([("word".to_owned(), word.into())]))
    }
}

#[async_trait]
impl HostedHandler for WordHandler {
    async fn check(&self) -> Result<(), HandlerFailure> {
        Ok(())
    }
}

fn hosts() -> Hosts {
    Hosts::unstarted(HostsConfig::default()).with(Arc::new(WordHost))
}

fn problems(registration: &Registration) -> String {
    let problems = hosts().parse(registration).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_host_parses_checks_and_runs_what_registrations_name() {
    let mut registration = Registration::new(FACET, "word:ho");
    registration.metadata.insert("times".to_owned(), json!(2));
    let (call, _control) = call(json!({}));
    hosts().check(&registration).await.unwrap();
    let outcome = hosts().run(&registration, call).await;
    assert_eq!(outcome, Ok(Object::from_iter([("word".to_owned(), json!("hoho"))])));
    registration.metadata.insert("times".to_owned(), json!("two"));
    assert_snapshot!(problems(&registration), @"metadata.times must be a whole number");
    assert_snapshot!(problems(&Registration::new(FACET, "word:")), @"module_uri `word:` has no text");
}

#[tokio::test]
async fn help_and_discovery_know_a_host_by_the_list() {
    let hosts = hosts();
    assert!(hosts.forms().ends_with("or `word:text`"), "{}", hosts.forms());
    assert!(hosts.option_names().ends_with("and `times`"), "{}", hosts.option_names());
    assert!(hosts.discoverable().ends_with("or files of words"), "{}", hosts.discoverable());
    assert!(hosts.discovers_in(Path::new("/x/a.word")) && !hosts.discovers_in(Path::new("/x/a.txt")));
    let files = hosts.discover(&["/x/a.word".into()]).await.unwrap();
    assert_eq!(files[0].registrations, Ok(vec![Registration::new(FACET, "word:found")]));
}

#[tokio::test]
async fn a_registry_takes_what_its_hosts_can_read() {
    let service = Service::new(Arc::new(Memory::new(Clock::System)), Tenant::new(Tenant::LOCAL).unwrap());
    let registration = Registration::new(FACET, "word:ho");
    assert!(Registry::new(&service).register(registration.clone()).await.is_err());
    let registry = Registry::new(&service).with_hosts(Arc::new(hosts()));
    registry.register(registration).await.unwrap();
    assert_eq!(registry.get(FACET).await.unwrap().unwrap().module_uri, "word:ho");
}
