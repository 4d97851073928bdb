//! A channel with the state of its messages.

use afl_store::outbox::{Channel, ChannelStatus, ChannelTarget};
use serde::Serialize;

use crate::error::Error;
use crate::service::Service;
use crate::stats::COUNTED;

/// Its address has no query, which may hold secrets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChannelView {
    pub name: String,
    #[serde(flatten)]
    pub channel: Channel,
    #[serde(flatten)]
    pub status: ChannelStatus,
}

impl Service {
    /// By name.
    pub async fn channel_views(&self) -> Result<Vec<ChannelView>, Error> {
        let mut views = Vec::new();
        for (name, channel) in self.channels().await? {
            views.push(self.view(name, channel).await?);
        }
        Ok(views)
    }

    pub async fn channel_view(&self, name: &str) -> Result<ChannelView, Error> {
        self.view(name.to_owned(), self.channel(name).await?.item).await
    }

    async fn view(&self, name: String, mut channel: Channel) -> Result<ChannelView, Error> {
        let status = self.outbox().status(&name, COUNTED).await?;
        channel.to = match channel.to {
            ChannelTarget::Feed => ChannelTarget::Feed,
            url @ ChannelTarget::Url(_) => ChannelTarget::Url(url.to_string()),
        };
        Ok(ChannelView { name, channel, status })
    }
}
