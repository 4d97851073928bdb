//! `--telemetry`: the trace records of runs, one JSON object on each line of a file (document 003 §18).
//!
//! A thread of its own writes them, so that a run never waits for the file. Records that the file refuses, or is too
//! slow for, are counted and left out; when it takes lines again, one of them says how many are missing.

mod sink;

use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use afl_engine::trace::Tracing;
use afl_lang::render::Color;
use afl_runtime::{Service, TraceSubscription};
use clap::Args;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::color::{self, paint};
use crate::failure::Failure;
use crate::progress::ProgressLine;
use crate::telemetry::sink::Sink;

/// How many records the file may lag behind; a long evaluation emits this many between two commits.
const ROOM: usize = 65_536;
/// How many records are written at once.
const BATCH: usize = 1_024;
/// How long a finished command waits for the records still to be written.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub(crate) struct Options {
    /// Append trace records of runs to this file, one JSON object on each line: iterations, steps that move from state to
    /// state, resolved dependencies, published events, errors. Records that cannot be written are left out and counted, and
    /// runs continue
    #[arg(
        id = "telemetry",
        long = "telemetry",
        value_name = "FILE",
        env = "AFL_TELEMETRY",
        hide_env_values = true,
        display_order = 810
    )]
    file: Option<OsString>,
}

impl Options {
    /// The same service, which emits trace records from now on if the options ask for them.
    pub(crate) fn begin(
        &self,
        service: Service,
        progress: &ProgressLine,
        color: Color,
    ) -> (Service, Telemetry) {
        let Some(file) = self.file.as_ref().filter(|file| !file.is_empty()) else {
            return (service, Telemetry::default());
        };
        let (service, records) = service.subscribe(Tracing::Full, ROOM);
        let warn = Warn { file: file.into(), progress: progress.clone(), color };
        let (end, asked) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let sink = Sink::new(warn.clone());
        let write = move || {
            write_until(records, asked, sink);
            // The command may have stopped waiting.
            done.send(()).ok();
        };
        match thread::Builder::new().name("telemetry".to_owned()).spawn(write) {
            Ok(_) => (service, Telemetry(Some(TelemetryThread { warn, end, ended }))),
            Err(source) => {
                warn.unwritable(source);
                (service, Telemetry::default())
            }
        }
    }
}

/// The writing of one command, if it writes any.
#[derive(Default)]
pub(crate) struct Telemetry(Option<TelemetryThread>);

struct TelemetryThread {
    warn: Warn,
    /// Dropping it asks the thread to write the remaining records and to end.
    end: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Telemetry {
    /// Waits a moment until the emitted records are written.
    pub(crate) async fn finish(self) {
        let Some(TelemetryThread { warn, end, ended }) = self.0 else { return };
        drop(end);
        if timeout(GRACE, ended).await.is_err() {
            warn.unwritable(Error::new(ErrorKind::TimedOut, "it takes too long"));
        }
    }
}

#[derive(Clone)]
struct Warn {
    file: PathBuf,
    progress: ProgressLine,
    color: Color,
}

impl Warn {
    fn unwritable(&self, source: Error) {
        let failure = Failure::Unwritable { name: self.file.display().to_string(), source };
        let warning = paint("warning:", color::HELP, self.color);
        self.progress.print(&format!("{warning} telemetry is not complete: {failure}"));
    }
}

/// On a thread that may wait for the file as long as it likes.
fn write_until(mut records: TraceSubscription, mut end: oneshot::Receiver<()>, mut sink: Sink) {
    let runtime = match Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(source) => return sink.warn.unwritable(source),
    };
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_open = true;
    loop {
        runtime.block_on(async {
            tokio::select! {
                () = records.next_many(&mut batch, BATCH) => {}
                _ = &mut end, if is_open => {
                    is_open = false;
                    records.close();
                    records.next_many(&mut batch, BATCH).await;
                }
            }
        });
        sink.lines.lost += records.take_missed();
        sink.write(&batch);
        if batch.is_empty() {
            return;
        }
        batch.clear();
    }
}
