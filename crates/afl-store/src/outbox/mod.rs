//! The outbox: messages to the outside, written in the commit of what they tell of, and delivered at least once.
//!
//! A [`Channel`] says who wants to hear of what. Whoever ends a task or a run adds a [`Message`] for each channel that
//! wants it, in the same batch: so there is a message exactly when there is the end it tells of. It stays until the
//! receiver has confirmed it.

mod channel;
mod hearing;
mod message;
mod rows;
mod standing;
mod tell;

pub use channel::{BadChannel, BadUrl, Channel, MAX_CHANNELS, Target, plain_url};
pub(crate) use hearing::Hearing;
pub use message::{Delivery, Letter, Message, Topic};
pub use rows::{GIVEN_UP_AFTER, Hope, Outbox, Page, Row};
pub use standing::Standing;
