//! Which workflow of a program a person means, for those who check a start before anything is stored.

use std::sync::Arc;

use afl_engine::plan::Plan;

use crate::error::Error;
use crate::plans;

/// The workflow of this whole or short name; without a name, the only one there is.
pub fn pick_workflow(plan: &Plan, given: Option<&str>) -> Result<Arc<str>, Error> {
    plans::workflow(plan, given)
}
