//! The outbox: messages to external systems about the ends of tasks and runs, delivered at least once.
//!
//! **Problem.** An external system must learn of every end, and of none that a crash undoes. A message after the commit
//! can be lost; a message before the commit can announce an end that never was.
//!
//! **Approach.** A [`Channel`] names a receiver and the filter of its messages. The commit that ends a task or a run
//! also writes one [`Message`] for each channel whose filter fits, so a message exists exactly when its end does. Such a
//! commit is durable. The id of a message consists of the run, the step and the version that the commit consumes: one
//! end has one id, from whichever process, and a receiver recognizes a repetition. A message stays until its receiver
//! has confirmed it, or until it is given up after a day of failures. Filters are cached (`channel_cache`), so that an
//! end costs nothing in a store without channels.
//!
//! **Rejected.** Delivery in the commit: an external system that is slow or away would block the store. Exactly-once
//! delivery: a receiver that crashes before it confirms cannot be distinguished from one that never got the message.

mod channel;
mod channel_cache;
mod message;
mod rows;
mod status;
mod tell;

pub use channel::{BadChannel, BadUrl, Channel, ChannelTarget, MAX_CHANNELS, plain_url};
pub(crate) use channel_cache::ChannelCache;
pub use message::{Delivery, Envelope, Message, Topic};
pub use rows::{DeliveryFailure, GIVEN_UP_AFTER, Outbox, OutboxRow};
pub use status::ChannelStatus;
