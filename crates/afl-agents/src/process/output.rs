//! A process's output as lines of its task's log.

use std::collections::VecDeque;
use std::future;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use tokio::net::unix::pipe;
use tokio::task;

use crate::handler::{Context, LogLevel, LogStream, MAX_LINE_BYTES};

/// One end of a pipe whose other end is a child's standard output or error.
#[derive(Debug)]
pub(crate) struct Output {
    pipe: Option<pipe::Receiver>,
    stream: LogStream,
    line: Vec<u8>,
    /// Whether the line was too long: its beginning is logged already, and its rest is dropped.
    skips_rest: bool,
    tail: VecDeque<String>,
    chunk: Vec<u8>,
}

const CHUNK_BYTES: usize = 64 << 10;
/// The most that a process may leave in its pipe at its end; only a process that still writes leaves more.
const MAX_LEFT_BYTES: usize = 4 << 20;
const TAIL_LINES: usize = 20;

impl Output {
    /// The reading end, and what to give to the child.
    pub(crate) fn pipe(stream: LogStream) -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        let pipe = Some(pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?);
        let (line, tail, chunk) = (Vec::new(), VecDeque::new(), vec![0; CHUNK_BYTES]);
        Ok((Self { pipe, stream, line, skips_rest: false, tail, chunk }, Stdio::from(writer)))
    }

    /// Waits for output and logs its lines; never returns once the pipe is closed. May be dropped at any time.
    pub(crate) async fn follow(&mut self, context: &Context) {
        let Some(pipe) = &self.pipe else { return future::pending().await };
        if pipe.readable().await.is_err() {
            self.pipe = None;
            return;
        }
        let read = pipe.try_read(&mut self.chunk);
        self.took(read, context);
        // A process that writes without end must not keep its agent from extending the lease.
        task::yield_now().await;
    }

    /// Logs all output so far.
    pub(crate) fn catch_up(&mut self, context: &Context) {
        let mut taken = 0;
        while taken < MAX_LEFT_BYTES {
            match self.read(context) {
                0 => return,
                read => taken += read,
            }
        }
    }

    /// Drops the output so far: it belongs to no call.
    pub(crate) fn discard(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        while matches!(rustix::io::read(pipe, &mut self.chunk[..]), Ok(1..)) {}
        self.line.clear();
        self.tail.clear();
        self.skips_rest = false;
    }

    /// Logs all output, and the last line even if it is not complete.
    pub(crate) fn finish(&mut self, context: &Context) {
        self.catch_up(context);
        if !self.line.is_empty() {
            self.end_line(context);
        }
        self.skips_rest = false;
    }

    /// The last lines, for the message about a crash.
    pub(crate) fn tail(&self) -> String {
        self.tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Reads the pipe itself: the runtime may not have noticed its bytes yet.
    fn read(&mut self, context: &Context) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let read = rustix::io::read(pipe, &mut self.chunk[..]).map_err(io::Error::from);
        self.took(read, context)
    }

    fn took(&mut self, read: io::Result<usize>, context: &Context) -> usize {
        match read {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Ok(0) | Err(_) => {
                self.pipe = None;
                0
            }
            Ok(read) => {
                let chunk = mem::take(&mut self.chunk);
                self.take(&chunk[..read], context);
                self.chunk = chunk;
                read
            }
        }
    }

    fn take(&mut self, chunk: &[u8], context: &Context) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if !self.skips_rest {
                self.line.extend_from_slice(text);
                if is_end || self.line.len() > MAX_LINE_BYTES {
                    self.end_line(context);
                }
            }
            // A line that was logged before its end leaves nothing behind.
            self.skips_rest = !is_end && (self.skips_rest || self.line.is_empty());
        }
    }

    fn end_line(&mut self, context: &Context) {
        let line = mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\r').to_owned();
        let level = match self.stream {
            LogStream::Stdout | LogStream::System => LogLevel::Info,
            LogStream::Stderr => LogLevel::Warn,
        };
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(text.clone());
        context.log(self.stream, level, text);
    }
}
