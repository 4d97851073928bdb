//! Actors on one thread, polled in an order that a seed decides. An actor can be dropped at any of its awaits.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use afl_store::seed::SeededRng;

pub(crate) type Actor = Pin<Box<dyn Future<Output = ()>>>;

/// Gives the turn to another actor once.
pub(crate) async fn turn() {
    let mut waited = false;
    std::future::poll_fn(
        move |_| {
            if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
        },
    )
    .await;
}

#[derive(Default)]
pub(crate) struct Executor {
    actors: Vec<Option<Actor>>,
}

impl Executor {
    /// Puts an actor into a place, in stead of the one that was there.
    pub(crate) fn put(&mut self, place: usize, actor: Actor) {
        if self.actors.len() <= place {
            self.actors.resize_with(place + 1, || None);
        }
        self.actors[place] = Some(actor);
    }

    /// Gives one actor a turn; says where one is missing after it.
    pub(crate) fn step(&mut self, rng: &mut SeededRng) -> Option<usize> {
        let place = rng.below(self.actors.len());
        let actor = self.actors[place].as_mut()?;
        let mut context = Context::from_waker(Waker::noop());
        if actor.as_mut().poll(&mut context).is_ready() {
            self.actors[place] = None;
            return Some(place);
        }
        None
    }

    /// An actor ends where it stands, as by `kill -9`.
    pub(crate) fn kill(&mut self, place: usize) {
        self.actors[place] = None;
    }
}

/// Runs a future that waits for no other.
pub(crate) fn alone<T>(future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
