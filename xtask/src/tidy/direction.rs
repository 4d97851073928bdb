//! Which crate may use which: the order of ARCHITECTURE.md as one table.

use super::Breach;
use crate::workspace::Package;

enum MayUse {
    Only(&'static [&'static str]),
    All,
}

/// From text to result, as the data goes. Tests of a crate hold to the same order.
const CRATES: &[(&str, MayUse)] = &[
    ("afl-lang", MayUse::Only(&[])),
    ("afl-engine", MayUse::Only(&["afl-lang"])),
    ("afl-store", MayUse::Only(&["afl-engine"])),
    ("afl-backends", MayUse::Only(&["afl-store", "afl-testbed"])),
    ("afl-runtime", MayUse::Only(&["afl-lang", "afl-engine", "afl-store"])),
    ("afl-agents", MayUse::Only(&["afl-runtime", "afl-store"])),
    ("afl-cli", MayUse::All),
    ("afl-testbed", MayUse::Only(&[])),
    ("xtask", MayUse::Only(&["afl-testbed"])),
];

const TABLE: &str = "xtask/src/tidy/direction.rs";

pub(super) fn check(packages: &[Package]) -> Vec<Breach> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Breach> {
    let Some((_, may_use)) = CRATES.iter().find(|(name, _)| *name == package.name) else {
        let message = format!("crate `{}` is unknown: add it with what it may use", package.name);
        return vec![Breach::on(TABLE, message)];
    };
    let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
    ours.filter(|dependency| !may_use.admits(&dependency.name))
        .map(|dependency| {
            let message = format!(
                "`{}` must not use `{}`: move the code to where both may see it, or change the table \
                 and ARCHITECTURE.md and say why",
                package.name, dependency.name
            );
            Breach::on(TABLE, message)
        })
        .collect()
}

impl MayUse {
    fn admits(&self, name: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(&name),
            Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;
    use crate::workspace::Dependency;

    fn check(package: &str, ours: &[&str]) -> String {
        let local = ours.iter().map(|name| dependency(name, Some("crates".into())));
        let foreign = dependency("serde", None);
        let dependencies = local.chain([foreign]).collect();
        shown(&super::check(&[Package { name: package.to_owned(), dependencies }]))
    }

    fn dependency(name: &str, path: Option<std::path::PathBuf>) -> Dependency {
        Dependency { name: name.to_owned(), path }
    }

    #[test]
    fn the_order_is_kept() {
        assert_eq!(check("afl-engine", &["afl-lang"]), "");
        assert_eq!(check("afl-cli", &["afl-lang", "afl-backends", "afl-agents"]), "");
        assert_snapshot!(check("afl-lang", &["afl-engine"]), @"xtask/src/tidy/direction.rs: `afl-lang` must not use `afl-engine`: move the code to where both may see it, or change the table and ARCHITECTURE.md and say why");
        assert_snapshot!(check("afl-runtime", &["afl-store", "afl-backends"]), @"xtask/src/tidy/direction.rs: `afl-runtime` must not use `afl-backends`: move the code to where both may see it, or change the table and ARCHITECTURE.md and say why");
    }

    #[test]
    fn a_new_crate_needs_a_place_in_the_order() {
        assert_snapshot!(check("afl-core", &[]), @"xtask/src/tidy/direction.rs: crate `afl-core` is unknown: add it with what it may use");
    }
}
