//! `afl handlers list`, `show` and `check`.

use std::path::PathBuf;

use afl_agents::Registry;
use afl_agents::registration::Registration;
use afl_engine::time::Millis;
use afl_lang::render::Color;
use clap::Args;
use serde_json::{Value, json};

use super::change::place;
use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::{self, Given, Trouble};
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing};

#[derive(Args)]
pub(super) struct ListHandlers {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn list(options: &ListHandlers) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let all = Registry::new(&service).all().await?;
    if options.json {
        output::json(&json!({ "handlers": all }))?;
    } else if all.is_empty() {
        let register = options.store.command("handlers register");
        output::say(&format!("no handlers are registered; {register} does it\n"));
    } else {
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        output::data(&shown::table(&["FACET", "HANDLER", "VERSION", "TIMEOUT", "REGISTERED"], &rows))?;
    }
    Ok(Exit::Fine)
}

fn row(registration: &Registration) -> Vec<String> {
    vec![
        registration.facet_name.clone(),
        shown::inert(&place(registration)),
        shown::inert(&registration.version),
        shown::span(Millis(registration.timeout_ms)),
        Moment(Millis(registration.updated)).from(Moment::now()),
    ]
}

#[derive(Args)]
pub(super) struct ShowHandler {
    /// The event facet, as it was registered
    facet: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn show(options: &ShowHandler) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let found = Registry::new(&service).get(&options.facet).await?;
    let found = found.ok_or_else(|| Trouble::NotRegistered { facet: options.facet.clone() })?;
    if options.json {
        output::json(&found)?;
        return Ok(Exit::Fine);
    }
    let value = serde_json::to_value(&found).expect("a registration has a JSON form");
    let fields = value.as_object().into_iter().flatten();
    let rows: Vec<Vec<String>> =
        fields.map(|(name, value)| vec![name.clone(), shown::field(name, value, &TIMES)]).collect();
    output::data(&shown::table(&["FIELD", "VALUE"], &rows))?;
    Ok(Exit::Fine)
}

/// The times of a registration.
const TIMES: [&str; 2] = ["created", "updated"];

#[derive(Args)]
pub(super) struct CheckHandlers {
    #[arg(long, value_name = "FILE|DIR")]
    #[arg(help = format!("Check what these declare instead: {}", handlers::sources()))]
    from: Vec<PathBuf>,
    /// A folder that handlers may come from, beside this one; can be repeated
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn check(options: &CheckHandlers, color: Color) -> Result<Exit, Failure> {
    let given = Given::read(&options.from).await?;
    let hosts = given.hosts(&options.roots)?;
    let all = if given.is_empty() {
        let service = options.store.open(IfMissing::Refuse).await?;
        Registry::new(&service).all().await?
    } else {
        given.registrations.clone()
    };
    let mut checked = Vec::new();
    for registration in &all {
        checked.push((registration, hosts.check(registration).await.err()));
    }
    hosts.close().await;
    let wrong = checked.iter().filter(|(_, trouble)| trouble.is_some()).count();
    if options.json {
        let handlers: Vec<Value> = checked
            .iter()
            .map(|(registration, trouble)| json!({"facet": registration.facet_name, "trouble": trouble}))
            .collect();
        output::json(&json!({ "handlers": handlers }))?;
    } else {
        for (registration, trouble) in &checked {
            let (name, place) = (&registration.facet_name, place(registration));
            output::data(&match trouble {
                None => format!("{name}: ready, by {place}\n"),
                Some(trouble) => {
                    let error = paint("error:", color::ERROR, color);
                    shown::inert(&format!("{error} {name}: {}\n", trouble.message))
                }
            })?;
        }
        output::say(&format!("{} of {} handlers can work here\n", all.len() - wrong, all.len()));
    }
    Ok(if wrong == 0 { Exit::Fine } else { Exit::Mistakes })
}
