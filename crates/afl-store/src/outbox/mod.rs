//! The outbox: messages to the outside, written in the commit of what they tell of, and delivered at least once.
//!
//! A [`Channel`] says who wants to hear of what. Whoever ends a task or a run adds a [`Message`] for each channel that
//! wants it, in the same batch: so there is a message exactly when there is the end it tells of. It stays until the
//! receiver has confirmed it.

mod channel;
mod channel_cache;
mod message;
mod rows;
mod status;
mod tell;

pub use channel::{BadChannel, BadUrl, Channel, ChannelTarget, MAX_CHANNELS, plain_url};
pub(crate) use channel_cache::ChannelCache;
pub use message::{Delivery, Envelope, Message, Topic};
pub use rows::{DeliveryFailure, GIVEN_UP_AFTER, Outbox, OutboxPage, OutboxRow};
pub use status::ChannelStatus;
