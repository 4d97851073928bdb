//! Frames on the link to a Python process: four bytes of length, one byte that says what it is, JSON.

use std::io::{self, ErrorKind};

use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::MAX_RESULT_BYTES;

#[derive(Debug)]
pub(super) struct PythonLink {
    socket: UnixStream,
    /// Read and not yet taken.
    buffer: Vec<u8>,
}

/// A message from the process: its kind and its JSON.
#[derive(Debug)]
pub(super) struct PythonFrame {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// The kind of the first message.
pub(super) const READY: u8 = b'E';

/// A message to the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum LinkCommand {
    Call = b'K',
    Cancel = b'C',
}

#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the link is closed")]
    Closed,
    #[error("the process does not keep to the protocol: {0}")]
    Broken(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

const LENGTH_BYTES: usize = 4;
const CHUNK_BYTES: usize = 64 << 10;
/// The host refuses a larger result itself, with a clear message.
const MAX_FRAME_BYTES: usize = MAX_RESULT_BYTES + 1;

impl PythonLink {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, buffer: Vec::new() }
    }

    /// The next frame. The future may be dropped: the buffer keeps the bytes.
    pub(super) async fn read(&mut self) -> Result<PythonFrame, LinkError> {
        loop {
            let wanted = match self.buffered_length()? {
                Some(length) if self.buffer.len() >= LENGTH_BYTES + length => return Ok(self.take(length)),
                Some(length) => LENGTH_BYTES + length - self.buffer.len(),
                None => LENGTH_BYTES,
            };
            self.socket.readable().await?;
            self.buffer.reserve(wanted.clamp(CHUNK_BYTES, MAX_FRAME_BYTES));
            match self.socket.try_read_buf(&mut self.buffer) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(LinkError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) async fn write(&mut self, order: LinkCommand, body: &impl Serialize) -> Result<(), LinkError> {
        let mut frame = vec![0; LENGTH_BYTES];
        frame.push(order as u8);
        serde_json::to_writer(&mut frame, body).map_err(io::Error::from)?;
        let length = u32::try_from(frame.len() - LENGTH_BYTES);
        let length = length.map_err(|_| LinkError::Broken("a payload of more than 4 GiB"))?;
        frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        Ok(self.socket.write_all(&frame).await?)
    }

    /// Nothing more will be asked.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown().await
    }

    fn buffered_length(&self) -> Result<Option<usize>, LinkError> {
        let Some(length) = self.buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        match u32::from_be_bytes(*length) as usize {
            length @ 1..=MAX_FRAME_BYTES => Ok(Some(length)),
            _ => Err(LinkError::Broken("a frame without a sound length")),
        }
    }

    fn take(&mut self, length: usize) -> PythonFrame {
        let rest = self.buffer.split_off(LENGTH_BYTES + length);
        let mut frame = std::mem::replace(&mut self.buffer, rest);
        let body = frame.split_off(LENGTH_BYTES + 1);
        PythonFrame { kind: frame[LENGTH_BYTES], body }
    }
}
