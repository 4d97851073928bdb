//! The host of programs: the payload on standard input, the result on standard output, the log on standard error.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::read_json;
use async_trait::async_trait;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::{task, time};

use super::list::HostParts;
use super::{HandlerSpec, Host, HostOption, HostedHandler};
use crate::handler::{
    Call, Context, Handler, HandlerFailure, HandlerFailureKind, LogStream, Object, Outcome, WorkEvidence,
    object_of,
};
use crate::process::{self, Ending, Group, Guardian, Output, SpawnError};
use crate::registration::{Checksum, Registration};
use crate::roots::{Roots, absolute, anchored};

/// Beyond this a result is refused, and what the program still writes is not read.
const MAX_OUTPUT_BYTES: usize = 128 << 20;
/// Between the request to end and the end, where the registration does not say otherwise.
const TERM_GRACE_MS: u64 = 5_000;
/// Leases are longer than the time to stop a program, so that cannot be any time.
const MAX_TERM_GRACE_MS: u64 = 600_000;
/// Between the last signal and the end of the process.
const MARGIN: Duration = Duration::from_secs(1);

const ETXTBSY_TRIES: usize = 20;

/// `EX_TEMPFAIL` of sysexits.h: the program says that nothing happened.
const NOT_DONE: i32 = 75;

pub(super) struct ExecHost {
    roots: Roots,
    guardian: Arc<Guardian>,
    pass_variables: Vec<String>,
    /// Copies of programs whose checksum is registered: the verified bytes are the ones that run. An async lock, as
    /// a second caller waits for the first caller's copy.
    verified: Mutex<VerifiedCopies>,
}

#[derive(Debug, Default)]
struct VerifiedCopies {
    folder: Option<TempDir>,
    programs: BTreeMap<String, PathBuf>,
}

struct ExecHandler {
    host: Arc<ExecHost>,
    path: PathBuf,
    checksum: Option<Checksum>,
    args: Vec<String>,
    /// Between the signal that asks a program to end and the one that kills it.
    term_grace: Duration,
    metadata: Object,
}

const SCHEME: &str = "exec";
const GRACE_MS: &str = "grace_ms";
const OPTIONS: &[HostOption] = &[
    HostOption::of::<Vec<String>>("args", "a list of texts"),
    HostOption {
        name: GRACE_MS,
        expected: "a number of milliseconds from 0 to 600000",
        fits: |value| value.as_u64().is_some_and(|grace| grace <= MAX_TERM_GRACE_MS),
    },
];

#[async_trait]
impl Host for ExecHost {
    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        &[(SCHEME, "`exec:/path/to/program`")]
    }

    fn options(&self) -> &'static [HostOption] {
        OPTIONS
    }

    fn names_files(&self) -> bool {
        true
    }

    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String> {
        Ok(Box::new(ExecHandler {
            path: absolute(spec.rest_of_uri())?,
            checksum: spec.checksum,
            args: spec.option("args").unwrap_or_default(),
            term_grace: Duration::from_millis(spec.option(GRACE_MS).unwrap_or(TERM_GRACE_MS)),
            metadata: spec.registration.metadata.clone(),
            host: self,
        }))
    }

    fn anchor(&self, registration: &mut Registration, folder: &Path) {
        if let Some((SCHEME, program)) = registration.module_uri.split_once(':') {
            registration.module_uri = format!("{SCHEME}:{}", anchored(program, folder).display());
        }
    }
}

#[async_trait]
impl Handler for ExecHandler {
    async fn run(&self, call: Call) -> Outcome {
        let call = call.with_system_fields(&self.metadata);
        let path = &self.path;
        let program = self.host.program(path, self.checksum).await.map_err(HandlerFailure::not_done)?;
        let payload = serde_json::to_vec(&call.payload).expect("a JSON object has a text");
        let unstarted = |error: SpawnError| {
            let failure = HandlerFailure::unavailable(format!("cannot start {}: {error}", path.display()));
            failure.with_evidence(error.evidence())
        };
        let mut running = self.start(&program, &call).await.map_err(unstarted)?;
        let status = running.follow(&payload, &call.context).await.map_err(|error| {
            let message = format!("cannot follow {}: {error}", path.display());
            HandlerFailure::unavailable(message).with_evidence(WorkEvidence::Unknown)
        })?;
        running.judge(path, Ending::of(status))
    }

    fn grace(&self) -> Duration {
        self.term_grace + MARGIN
    }
}

#[async_trait]
impl HostedHandler for ExecHandler {
    async fn check(&self) -> Result<(), HandlerFailure> {
        self.host.program(&self.path, self.checksum).await.map(drop)
    }
}

impl fmt::Debug for ExecHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExecHandler").field(&self.path).finish()
    }
}

impl ExecHost {
    pub(super) fn new(parts: &HostParts) -> Self {
        Self {
            roots: parts.config.roots.clone(),
            guardian: parts.guardian.clone(),
            pass_variables: parts.config.python.pass_variables.clone(),
            verified: Mutex::default(),
        }
    }

    /// The program to start, if it may be started.
    async fn program(&self, path: &Path, checksum: Option<Checksum>) -> Result<PathBuf, HandlerFailure> {
        let opened = self.roots.open(path)?;
        if !opened.is_executable() {
            let message = format!("{} is not executable: try `chmod +x` on it", path.display());
            return Err(HandlerFailure::refused(message));
        }
        let Some(checksum) = checksum else { return Ok(opened.path) };
        let mut verified = self.verified.lock().await;
        if let Some(program) = verified.programs.get(&checksum.to_string()) {
            return Ok(program.clone());
        }
        let reading = task::spawn_blocking(move || opened.read(Some(checksum))).await;
        let bytes = reading.map_err(|error| HandlerFailure::unavailable(error.to_string()))??;
        let copied = verified.copy(checksum, &bytes);
        copied.map_err(|error| {
            let message = format!("cannot keep a verified copy of {}: {error}", path.display());
            HandlerFailure::unavailable(message)
        })
    }
}

impl ExecHandler {
    async fn start(&self, program: &Path, call: &Call) -> Result<ProgramRun, SpawnError> {
        let facts = call.context.facts();
        let (stderr, stderr_end) = Output::pipe(LogStream::Stderr)?;
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(program);
        command.args(&self.args).env_clear().envs(process::pass(&self.host.pass_variables));
        command.env("AFL_FACET", &call.facet).env("AFL_IDEMPOTENCY_KEY", &facts.idempotency_key);
        command
            .env("AFL_LEASE_TOKEN", facts.lease_token.to_string())
            .env("AFL_ATTEMPT", facts.attempt.to_string());
        command.env("AFL_STEP", &facts.path).env("AFL_PROGRAM", &self.path);
        command.stdin(Stdio::piped()).stdout(Stdio::from(writer)).stderr(stderr_end);
        let stdout = pipe::Receiver::from_owned_fd(reader.into())?;
        let group = spawn(&mut command, &self.host.guardian).await?;
        Ok(ProgramRun {
            term_grace: self.term_grace,
            group,
            stdout: Some(stdout),
            stderr,
            result: Vec::new(),
        })
    }
}

/// A copy that was just written may for a moment be open for writing in a process that is being started elsewhere.
async fn spawn(command: &mut Command, guardian: &Arc<Guardian>) -> Result<Group, SpawnError> {
    let mut tries = 0;
    loop {
        match Group::spawn(command, guardian) {
            Err(SpawnError::NotStarted(error))
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < ETXTBSY_TRIES =>
            {
                tries += 1;
                time::sleep(Duration::from_millis(5)).await;
            }
            spawned => return spawned,
        }
    }
}

struct ProgramRun {
    term_grace: Duration,
    group: Group,
    stdout: Option<pipe::Receiver>,
    stderr: Output,
    result: Vec<u8>,
}

impl ProgramRun {
    /// Feeds and reads the program until it ends. The caller drops the future when the end takes too long.
    async fn follow(&mut self, payload: &[u8], context: &Context) -> io::Result<ExitStatus> {
        let mut stdin = self.group.take_stdin();
        let mut feeding = std::pin::pin!(async move {
            if let Some(stdin) = &mut stdin {
                // A program need not read its input; its exit code says whether that was right.
                drop(stdin.write_all(payload).await);
            }
            drop(stdin);
        });
        let mut fed = false;
        let status = loop {
            tokio::select! {
                status = self.group.exited() => break status?,
                () = &mut feeding, if !fed => fed = true,
                read = read_some(&mut self.stdout, &mut self.result) => read?,
                () = self.stderr.follow(context) => {}
                _ = context.stopped() => {
                    self.group.signal(Signal::TERM);
                    break match time::timeout(self.term_grace, self.group.exited()).await {
                        Ok(status) => status?,
                        Err(_) => self.group.kill().await?,
                    };
                }
            }
        };
        self.group.end();
        self.stderr.finish(context);
        self.read_left()?;
        Ok(status)
    }

    /// Reads the rest of the pipe. A descendant that escaped may hold the pipe open, so nothing waits for its end.
    fn read_left(&mut self) -> io::Result<()> {
        let Some(stdout) = &self.stdout else { return Ok(()) };
        let mut chunk = vec![0; 64 << 10];
        while self.result.len() <= MAX_OUTPUT_BYTES {
            match rustix::io::read(stdout, &mut chunk[..]) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => break,
                Ok(read) => self.result.extend_from_slice(&chunk[..read]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The exit code decides; only then does the output count.
    fn judge(&self, path: &Path, ending: Ending) -> Outcome {
        let program = path.display();
        let stderr = self.stderr.tail();
        let (kind, message) = match ending {
            _ if self.result.len() > MAX_OUTPUT_BYTES => {
                let advice = "store them and return a reference";
                let message = format!("{program} wrote more than {MAX_OUTPUT_BYTES} bytes: {advice}");
                (HandlerFailureKind::InvalidResult, message)
            }
            Ending::Exited(0) => match read_json(&self.result, "result") {
                Ok(value) => return object_of(value),
                Err(error) => {
                    let message = format!("{program} must write one JSON object to standard output: {error}");
                    (HandlerFailureKind::InvalidResult, message)
                }
            },
            Ending::Exited(_) => {
                let said = stderr.lines().last().unwrap_or("it wrote nothing to standard error");
                (HandlerFailureKind::Error, format!("{program} ended with {ending}: {said}"))
            }
            Ending::Signaled(_) => (HandlerFailureKind::Crash, format!("{program} ended with {ending}")),
        };
        let failure = ending.describe(HandlerFailure::new(kind, message)).with("stderr", stderr);
        Err(if ending == Ending::Exited(NOT_DONE) { failure.not_done() } else { failure })
    }
}

async fn read_some(stdout: &mut Option<pipe::Receiver>, result: &mut Vec<u8>) -> io::Result<()> {
    let Some(pipe) = stdout else { return std::future::pending().await };
    result.reserve(64 << 10);
    let read = pipe.read_buf(result).await?;
    if read == 0 || result.len() > MAX_OUTPUT_BYTES {
        *stdout = None;
    }
    Ok(())
}

impl VerifiedCopies {
    fn copy(&mut self, checksum: Checksum, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::Builder::new().prefix("afl-programs-").tempdir()?,
        };
        let program = folder.path().join(checksum.to_string());
        self.folder = Some(folder);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o500).open(&program)?;
        io::Write::write_all(&mut file, bytes)?;
        drop(file);
        self.programs.insert(checksum.to_string(), program.clone());
        Ok(program)
    }
}
