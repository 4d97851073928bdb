//! A process of a test: the test waits for lines of its output, and it never outlives the test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Longer than anything takes, on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    pub child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts it and reads one of its outputs, which must be piped.
    pub fn listening(command: &mut Command, output: impl FnOnce(&mut Child) -> Box<dyn Read + Send>) -> Self {
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(output(&mut child));
        let (tell, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { child, lines }
    }

    /// Reads on until a line has this text, and gives it.
    pub fn says(&self, text: &str) -> String {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => said.push(line),
                Err(error) => panic!("{error}: no `{text}` in {said:#?}"),
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is our child");
    }

    /// Stops it, and returns when all its threads stand still.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let changed = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("it is our child");
        assert!(changed.is_some_and(|(_, status)| status.stopped()), "it ended: {changed:?}");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).expect("a child has a number")
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// The code with which it ends by itself, if it is not killed.
    pub fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("it is our child").code()
    }

    /// Asks it to end, which it must do well.
    pub fn end(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.code(), Some(0));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
