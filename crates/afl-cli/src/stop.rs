//! Ctrl-C and SIGTERM: the first one asks a command to stop at a good place, the second one ends it.

use std::process;

use tokio::signal;
use tokio::sync::{mpsc, watch};

use crate::exit::Exit;

/// The signal that asked for the stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
        }
    }
}

/// Prints a message when the first signal arrives.
type Farewell = Box<dyn FnOnce() + Send>;

#[derive(Clone, Debug)]
pub(crate) struct StopSignals {
    asked: watch::Receiver<Option<Signal>>,
    farewells: mpsc::UnboundedSender<Farewell>,
}

impl StopSignals {
    /// Listens from now on.
    pub(crate) fn on_signals() -> Self {
        let (ask, asked) = watch::channel(None);
        let (farewells, known) = mpsc::unbounded_channel();
        tokio::spawn(listen(SignalListener::listen(), ask, known));
        Self { asked, farewells }
    }

    /// Says this with the first signal, before a second one can end the command; at once when it has come already.
    pub(crate) fn say_when_asked(&self, say: impl FnOnce() + Send + 'static) {
        // Without a listener no signal arrives.
        self.farewells.send(Box::new(say)).ok();
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.borrow().is_some()
    }

    /// Returns when it is asked.
    pub(crate) async fn asked(&self) -> Signal {
        let mut asked = self.asked.clone();
        let signal = asked.wait_for(Option::is_some).await.ok().and_then(|signal| *signal);
        match signal {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

async fn listen(
    mut signals: SignalListener,
    ask: watch::Sender<Option<Signal>>,
    mut known: mpsc::UnboundedReceiver<Farewell>,
) {
    let mut farewell: Option<Farewell> = None;
    loop {
        tokio::select! {
            signal = signals.next() => {
                if let Some(say) = farewell.take() {
                    say();
                }
                if ask.send_replace(Some(signal)).is_some() {
                    process::exit(signal.exit().code().into());
                }
            }
            Some(say) = known.recv() => {
                let is_asked = ask.borrow().is_some();
                if is_asked { say() } else { farewell = Some(say) }
            }
        }
    }
}

/// On a system without signals none arrives, so the command continues.
struct SignalListener {
    #[cfg(unix)]
    interrupt: Option<signal::unix::Signal>,
    #[cfg(unix)]
    terminate: Option<signal::unix::Signal>,
}

#[cfg(unix)]
impl SignalListener {
    fn listen() -> Self {
        use signal::unix::SignalKind;
        let listen = |kind| signal::unix::signal(kind).ok();
        Self { interrupt: listen(SignalKind::interrupt()), terminate: listen(SignalKind::terminate()) }
    }

    async fn next(&mut self) -> Signal {
        async fn came(signals: &mut Option<signal::unix::Signal>) -> Option<()> {
            signals.as_mut()?.recv().await
        }
        tokio::select! {
            Some(()) = came(&mut self.interrupt) => Signal::Interrupt,
            Some(()) = came(&mut self.terminate) => Signal::Terminate,
            else => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
impl SignalListener {
    fn listen() -> Self {
        Self {}
    }

    async fn next(&mut self) -> Signal {
        match signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
