//! A mistake in a program, as data: a code, a sentence, places, and what to do.

use crate::code::Code;
use crate::limits::{MAX_DIAGNOSTICS, MAX_LABELS};
use crate::source::FileSpan;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Error,
    Warning,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One mistake, or one doubtful spot, in the user's source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub code: Code,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    pub place: FileSpan,
    /// Other places that explain the mistake.
    pub related: Vec<Label>,
    pub help: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub place: FileSpan,
    pub message: String,
}

impl Diagnostic {
    pub fn new(code: Code, place: FileSpan, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place, related: Vec::new(), help: None }
    }

    #[must_use]
    pub fn related(mut self, place: FileSpan, message: impl Into<String>) -> Self {
        self.related.push(Label { place, message: message.into() });
        self
    }

    /// Several places of one kind; of many only the first few are shown.
    #[must_use]
    pub fn related_all(mut self, places: impl IntoIterator<Item = FileSpan>, message: &str) -> Self {
        let label = |place| Label { place, message: message.to_owned() };
        self.related.extend(places.into_iter().take(MAX_LABELS).map(label));
        self
    }

    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// With help where there is some to give.
    #[must_use]
    pub fn help_if(mut self, text: Option<impl Into<String>>) -> Self {
        self.help = text.map(Into::into);
        self
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }
}

/// Keeps as many as are shown, and says so.
pub fn limit(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() > MAX_DIAGNOSTICS {
        diagnostics.truncate(MAX_DIAGNOSTICS);
        let place = diagnostics[MAX_DIAGNOSTICS - 1].place;
        let message = format!("there are more than {MAX_DIAGNOSTICS} messages; the rest is not shown");
        diagnostics.push(Diagnostic::new(Code::TooManyDiagnostics, place, message));
    }
}

/// Source order: by file, then position; at one position errors come first.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.place.file, d.place.span.start, d.severity(), d.code);
        key(a).cmp(&key(b))
    });
}
