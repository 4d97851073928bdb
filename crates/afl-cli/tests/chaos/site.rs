//! The store of one test, the folder with its handlers, and what they leave there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use afl_runtime::Service;
use afl_store::record::Tenant;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Every piece of work, by a program, by Python that stays warm, or built in.
const HANDLERS: &str = r#"
[[handler]]
facet = "chaos.Twice"
module = "work.py"
entrypoint = "twice"

[[handler]]
facet = "chaos.Note"
module = "builtin:echo"
"#;
const PROGRAMS: [&str; 4] = ["chaos.Add", "chaos.Shaky", "chaos.Broken", "chaos.Pay"];

pub(crate) struct Site {
    pub(crate) url: String,
    folder: TempDir,
}

impl Site {
    pub(crate) fn sqlite() -> Self {
        let folder = folder();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        Self { url, folder }
    }

    /// A database of its own on the server that the tests share.
    pub(crate) async fn postgres() -> Self {
        let folder = folder();
        let server = afl_testbed::postgres::shared_url();
        let name = format!("afl_chaos_{}", std::process::id());
        let (client, connection) =
            tokio_postgres::connect(&server, NoTls).await.expect("the server is there");
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database is made");
        drop(client);
        connection.await.expect("it does not panic").expect("it ends in order");
        let (address, _) = server.rsplit_once('/').expect("it names a database");
        Self { url: format!("{address}/{name}"), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn marks(&self) -> PathBuf {
        self.path("marks")
    }
}

/// As one process has it.
pub(crate) async fn service(url: &str) -> Service {
    let backend = afl_backends::open(url).await.expect("the store opens");
    Service::new(backend, Tenant::new(Tenant::LOCAL).expect("a good name"))
}

/// In memory where there is such a place: a process that is killed loses nothing that it wrote, so no disk is needed.
fn folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder is made");
    let handlers = folder.path().join("handlers");
    fs::create_dir(&handlers).expect("it is made");
    fs::write(handlers.join("work.py"), include_str!("work.py")).expect("it is written");
    let program = handlers.join("work.sh");
    fs::write(&program, include_str!("work.sh")).expect("it is written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let marks = folder.path().join("marks");
    let mut list = HANDLERS.to_owned();
    for facet in PROGRAMS {
        let args = format!("metadata = {{ args = ['{}'], grace_ms = 0 }}", marks.display());
        let entry =
            ["\n[[handler]]", &format!("facet = \"{facet}\""), "module = \"exec:work.sh\"", &args, ""];
        list.push_str(&entry.join("\n"));
    }
    fs::write(handlers.join("handlers.toml"), list).expect("it is written");
    folder
}
