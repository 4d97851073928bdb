//! Snapshots that stand next to their fixtures.

use std::path::Path;

/// Compares `shown` with `folder/name.snap`; the folder is one of the crate's.
pub(crate) fn assert(folder: &str, name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}
