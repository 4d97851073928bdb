//! `afl handlers`: which handler does the work of which event facet.

use std::path::PathBuf;

use afl_agents::Registry;
use afl_agents::registration::{DEFAULT_ENTRYPOINT, DEFAULT_TIMEOUT_MS, DEFAULT_VERSION, Registration};
use afl_engine::time::Millis;
use afl_engine::value::Value;
use afl_lang::Validation;
use afl_lang::render::Color;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::{self, HandlerSet, Trouble};
use crate::input;
use crate::json_text;
use crate::output::{self, Target};
use crate::report;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing, ListOptions, ObjectOptions};
use crate::stubs;

const EXAMPLES: &str = "\
Examples:
  afl handlers scaffold billing.afl -o handlers.py   write a Python function for every event facet
  afl handlers register billing.Charge handlers.py --entrypoint charge
  afl handlers register --from handlers.toml         register all that a file lists
  afl handlers check                                 load each one, and list missing parts";

/// Look after the handlers that are registered in the store, for all agents of it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: HandlersAction,
}

#[derive(Subcommand)]
enum HandlersAction {
    /// Register the handler of a facet, in place of the one it had
    Register(RegisterHandler),
    /// List the registered handlers
    List(ListOptions),
    /// Show one registered handler
    Show(ShowHandler),
    /// Remove the handler of a facet; tasks of it wait from then on
    Remove(RemoveHandler),
    /// Load each registered handler as an agent here would, without calling it, and list missing parts
    Check(CheckHandlers),
    /// Write a Python file with a function for every event facet of a program
    Scaffold(ScaffoldHandlers),
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    match &options.action {
        HandlersAction::Register(options) => register(options).await?,
        HandlersAction::List(options) => list(options).await?,
        HandlersAction::Show(options) => show(options).await?,
        HandlersAction::Remove(options) => remove(options).await?,
        HandlersAction::Check(options) => return check(options, color).await,
        HandlersAction::Scaffold(options) => scaffold(options, color)?,
    }
    Ok(Exit::Fine)
}

#[derive(Args)]
struct RegisterHandler {
    /// The event facet, such as `billing.Charge`
    #[arg(required_unless_present = "from", requires = "module")]
    facet: Option<String>,
    #[arg(help = module_help())]
    module: Option<String>,
    /// The function of a Python module
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ENTRYPOINT)]
    entrypoint: String,
    /// How long the handler may be silent; a step's own `Heartbeat` replaces the default, and can only shorten a time given here
    #[arg(long, value_name = "MILLIS", default_value_t = DEFAULT_TIMEOUT_MS)]
    timeout_ms: i64,
    /// The SHA-256 that the file must have
    #[arg(long, value_name = "SHA256", default_value = "")]
    checksum: String,
    /// The version of the handler
    #[arg(long = "handler-version", value_name = "TEXT", default_value = DEFAULT_VERSION)]
    version: String,
    #[arg(long, value_name = "JSON", default_value = "{}", help = metadata_help())]
    metadata: String,
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "facet")]
    #[arg(help = format!("Register all that these declare: {}", handlers::sources()))]
    from: Vec<PathBuf>,
    #[command(flatten)]
    store: store::Options,
}

fn module_help() -> String {
    format!("Where the handler is: {}; a file may also be given by its path", handlers::readers().forms())
}

fn metadata_help() -> String {
    format!("A JSON object for the handler; its host reads {}", handlers::readers().option_names())
}

async fn register(options: &RegisterHandler) -> Result<(), Failure> {
    let registrations = match (&options.facet, &options.module) {
        (Some(facet), Some(module)) => vec![options.one(facet, module)?],
        (_, None) | (None, _) => HandlerSet::read(&options.from).await?.registrations,
    };
    let service = options.store.open(IfMissing::Create).await?;
    let registry = Registry::new(&service);
    for registration in registrations {
        let kept = registry.register(registration).await?;
        output::say(&format!("{} is done by {}\n", kept.facet_name, place(&kept)));
    }
    Ok(())
}

impl RegisterHandler {
    fn one(&self, facet: &str, module: &str) -> Result<Registration, Failure> {
        let metadata = json_text::parse_object(&self.metadata)
            .map_err(|error| Trouble::BadMetadata { reason: error.to_string() })?;
        Ok(Registration {
            entrypoint: self.entrypoint.clone(),
            version: self.version.clone(),
            checksum: self.checksum.clone(),
            timeout_ms: self.timeout_ms,
            metadata,
            ..handlers::registration_from_here(facet, module)?
        })
    }
}

/// Where the handler is, with its function.
fn place(registration: &Registration) -> String {
    let Registration { module_uri, entrypoint, .. } = registration;
    if entrypoint == DEFAULT_ENTRYPOINT {
        module_uri.clone()
    } else {
        format!("{entrypoint} of {module_uri}")
    }
}

#[derive(Args)]
struct RemoveHandler {
    /// The event facet, as it was registered
    facet: String,
    #[command(flatten)]
    store: store::Options,
}

async fn remove(options: &RemoveHandler) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    match Registry::new(&service).remove(&options.facet).await? {
        Some(removed) => {
            output::say(&format!("{} has no handler any more\n", removed.facet_name));
            Ok(())
        }
        None => Err(Trouble::NotRegistered { facet: options.facet.clone() }.into()),
    }
}

async fn list(options: &ListOptions) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let all = Registry::new(&service).all().await?;
    if options.json {
        output::json(&json!({ "handlers": all }))?;
    } else if all.is_empty() {
        let register = options.store.command("handlers register");
        output::say(&format!("no handlers are registered; {register} does it\n"));
    } else {
        output::table(&["FACET", "HANDLER", "VERSION", "TIMEOUT", "REGISTERED"], all.iter().map(row))?;
    }
    Ok(())
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
struct ShowHandler {
    /// The event facet, as it was registered
    facet: String,
    #[command(flatten)]
    object: ObjectOptions,
}

async fn show(options: &ShowHandler) -> Result<(), Failure> {
    let service = options.object.store.open(IfMissing::Refuse).await?;
    let found = Registry::new(&service).get(&options.facet).await?;
    let found = found.ok_or_else(|| Trouble::NotRegistered { facet: options.facet.clone() })?;
    if options.object.json {
        return output::json(&found);
    }
    let value = serde_json::to_value(&found).expect("a registration has a JSON form");
    let fields = value.as_object().into_iter().flatten();
    let rows = fields.map(|(name, value)| vec![name.clone(), shown::field(name, value, &TIMES)]);
    output::table(&["FIELD", "VALUE"], rows)
}

const TIMES: [&str; 2] = ["created", "updated"];

#[derive(Args)]
struct CheckHandlers {
    #[arg(long, value_name = "FILE|DIR")]
    #[arg(help = format!("Check what these declare instead: {}", handlers::sources()))]
    from: Vec<PathBuf>,
    /// A folder that handlers may come from, beside this one; can be repeated
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    #[command(flatten)]
    list: ListOptions,
}

async fn check(options: &CheckHandlers, color: Color) -> Result<Exit, Failure> {
    let given = HandlerSet::read(&options.from).await?;
    let hosts = given.hosts(&options.roots)?;
    let all = if given.is_empty() {
        let service = options.list.store.open(IfMissing::Refuse).await?;
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
    if options.list.json {
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
#[derive(Args)]
struct ScaffoldHandlers {
    /// Files or folders (every .afl file below); together they are one program
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// A file or folder whose declarations can be used; can be repeated
    #[arg(long, value_name = "FILE|DIR")]
    library: Vec<PathBuf>,
    /// Write to this file, which must not be there yet; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "handlers.py")]
    output: PathBuf,
}

fn scaffold(options: &ScaffoldHandlers, color: Color) -> Result<(), Failure> {
    let sources = input::program(&options.files, &options.library)?;
    let (program, _) = report::compile(&sources, Validation::Require, "scaffolded", color)?;
    let text = stubs::python(&program).ok_or(Trouble::NoEventFacets)?;
    let target = Target::new(Some(&options.output));
    match &target {
        Target::File(path) if path.exists() => {
            return Err(Trouble::Exists { path: path.clone() }.into());
        }
        Target::File(_) | Target::Stdout => target.write(|out| out.write_all(text.as_bytes()))?,
    }
    if let Target::File(path) = &target {
        let path = path.display();
        output::say(&format!("wrote {path}; fill in its functions, then run with `--handlers {path}`\n"));
    }
    Ok(())
}
