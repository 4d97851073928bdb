//! Why a command could not do its work, and what the user can do about it.

use std::io::{Error, ErrorKind};

use afl_lang::graph::GraphError;
use afl_lang::render::Color;

use crate::color::{self, paint};
use crate::exit::Exit;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot read {name}: {}", reason(source, "file"))]
    Unreadable { name: String, source: Error },
    #[error("cannot read {name}: it is not UTF-8 text, see the byte {byte:#04x} at offset {offset}")]
    NotText { name: String, byte: u8, offset: usize },
    #[error("cannot write {name}: {}", reason(source, "folder"))]
    Unwritable { name: String, source: Error },
    #[error("there is no .afl file in {folder}")]
    NoSources { folder: String },
    #[error("standard input is formatted alone, not together with files")]
    StdinNotAlone,
    #[error("{0}")]
    NoGraph(GraphError),
    #[error("there is no code `{code}`")]
    UnknownCode { code: String, closest: Option<&'static str> },
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. } | Self::NotText { .. } | Self::Unwritable { .. } => Exit::Inaccessible,
            Self::NoSources { .. } | Self::StdinNotAlone | Self::NoGraph(_) | Self::UnknownCode { .. } => {
                Exit::WrongUse
            }
        }
    }

    /// What the user reads, ending with a line break.
    pub(crate) fn text(&self, color: Color) -> String {
        let error = format!("{} {self}\n", paint("error:", color::ERROR, color));
        match self.help() {
            Some(help) => format!("{error}{} {help}\n", paint("help:", color::HELP, color)),
            None => error,
        }
    }

    fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == ErrorKind::NotFound => Some(
                "check the name; a folder stands for every .afl file in it, `-` for standard input".into(),
            ),
            Self::NotText { .. } => Some("save the file as UTF-8".into()),
            Self::Unwritable { source, .. } if source.kind() == ErrorKind::NotFound => {
                Some("create the folder first".into())
            }
            Self::NoGraph(GraphError::SeveralWorkflows { .. }) => Some("name it with `--workflow`".into()),
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::NoGraph(_) => None,
            Self::NoSources { .. } => Some("name another folder, or the files themselves".into()),
            Self::StdinNotAlone => Some("run `afl fmt` twice".into()),
            Self::UnknownCode { closest: Some(code), .. } => Some(format!("did you mean `{code}`?")),
            Self::UnknownCode { closest: None, .. } => Some("`afl explain` lists all codes".into()),
        }
    }
}

/// The error in our words where the system's are for programmers; `missing` is what may not be there.
fn reason(error: &Error, missing: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!("no such {missing}"),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::NotADirectory => "a part of the path is no folder".into(),
        ErrorKind::StorageFull => "no space is left".into(),
        _ => error.to_string(),
    }
}
