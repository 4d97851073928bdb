//! Suggestions for a name that does not resolve.

use super::Checker;
use crate::suggest;

/// How many names are compared with wrong ones, all in all. A program with many of both would else take
/// as long as their product.
const MAX_COMPARED: usize = 1_000_000;

impl Checker<'_> {
    /// The closest of the names, or all of them where they are few.
    pub(super) fn did_you_mean<'n>(
        &self,
        word: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        if self.is_tired() {
            return None;
        }
        let names: Vec<&str> = names.into_iter().collect();
        match (self.closest(word, names.iter().copied()), &names[..]) {
            (Some(close), _) => Some(format!("did you mean `{close}`?")),
            (None, []) => None,
            (None, [only]) => Some(format!("there is only `{only}`")),
            (None, few) if few.len() <= 8 => Some(format!("there are {}", listed(few))),
            (None, _) => None,
        }
    }

    pub(super) fn closest<'n>(
        &self,
        word: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        if self.is_tired() {
            return None;
        }
        let count = |_: &&str| self.compared.update(|compared| compared + 1);
        suggest::closest(word, names.into_iter().inspect(count))
    }

    /// Enough names have been compared.
    pub(super) fn is_tired(&self) -> bool {
        self.compared.get() > MAX_COMPARED
    }
}

/// "`a`, `b` and `c`".
pub(super) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
