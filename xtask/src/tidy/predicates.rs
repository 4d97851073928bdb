//! A predicate only asks: a function `is_…` or `has_…` changes nothing.

use super::Breach;
use super::ratchet::RatchetCount;
use crate::source::RustFile;

const PREFIXES: &[&str] = &["is_", "has_"];

pub(super) fn measure(sources: &[RustFile]) -> RatchetCount {
    let cases = sources.iter().flat_map(check).collect();
    RatchetCount::of_breaches("predicates", "predicates with an effect", "name the effect", cases)
}

fn check(source: &RustFile) -> Vec<Breach> {
    let functions = source.functions().into_iter();
    let predicates =
        functions.filter(|function| PREFIXES.iter().any(|prefix| function.name.starts_with(prefix)));
    predicates
        .filter(|function| function.signature.contains("&mut self"))
        .map(|function| {
            let message = format!("`{}` takes `&mut self`: name the change, or take `&self`", function.name);
            Breach::at(&source.path, function.line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_predicate_with_an_effect_is_found() {
        let text = "impl A {\n    fn is_held(&mut self) -> bool { true }\n    fn has_it(\n        &self,\n    ) -> bool { f(&mut self) }\n    fn issue(&mut self) {}\n}\n";
        let findings = check(&RustFile::new("crates/afl-store/src/lock.rs", text.to_owned()));
        assert_snapshot!(shown(&findings), @"crates/afl-store/src/lock.rs:2: `is_held` takes `&mut self`: name the change, or take `&self`");
    }
}
