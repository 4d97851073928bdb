//! Ctrl-C: the first one asks a command to stop at a good place, the second one ends it.

use std::process;

use tokio::signal;
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Stop {
    asked: watch::Receiver<Asked>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    No,
    Yes,
}

/// As a shell reports a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

impl Stop {
    /// Listens from now on.
    pub(crate) fn on_ctrl_c() -> Self {
        let (ask, asked) = watch::channel(Asked::No);
        tokio::spawn(async move {
            // A system without signals cannot be asked, so the command goes on.
            while signal::ctrl_c().await.is_ok() {
                if ask.send_replace(Asked::Yes) == Asked::Yes {
                    process::exit(INTERRUPTED);
                }
            }
            std::future::pending::<()>().await;
        });
        Self { asked }
    }

    /// Listens for SIGTERM too, as services are stopped.
    pub(crate) fn on_signals() -> Self {
        let (ask, asked) = watch::channel(Asked::No);
        tokio::spawn(async move {
            let mut terminate = Terminate::listen();
            loop {
                tokio::select! {
                    Ok(()) = signal::ctrl_c() => {}
                    () = terminate.came() => {}
                }
                if ask.send_replace(Asked::Yes) == Asked::Yes {
                    process::exit(INTERRUPTED);
                }
            }
        });
        Self { asked }
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow() == Asked::Yes
    }

    /// Returns when it is asked.
    pub(crate) async fn asked(&self) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|asked| *asked == Asked::Yes).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// SIGTERM, where there is such a thing.
struct Terminate {
    #[cfg(unix)]
    signals: Option<signal::unix::Signal>,
}

impl Terminate {
    fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: signal::unix::signal(signal::unix::SignalKind::terminate()).ok(),
        }
    }

    async fn came(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
