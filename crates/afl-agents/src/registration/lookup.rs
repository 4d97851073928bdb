//! Which registration a facet's work goes to (document 000 §3.4).

use super::{DottedName, Registration};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoHandler {
    #[error("no handler is registered for {facet}: register one for `{facet}`")]
    Unknown { facet: String },
    /// The short one may be meant for the other namespace.
    #[error(
        "`{short}` is registered, and so is `{other}`: it is not clear whose work {facet} is, so register `{facet}` itself"
    )]
    Ambiguous { facet: String, short: String, other: String },
}

/// The registration of this very name, else one of its short name when no other namespace has a claim to that.
/// A qualified registration never does the work of a namesake.
pub fn find<'a>(
    registrations: impl IntoIterator<Item = &'a Registration>,
    facet: &str,
) -> Result<&'a Registration, NoHandler> {
    let short = facet.rsplit('.').next().unwrap_or(facet);
    let (mut fallback, mut namesake) = (None, None);
    for registration in registrations {
        let name = registration.facet_name.as_str();
        if name == facet {
            return Ok(registration);
        }
        if name == short {
            fallback = Some(registration);
        } else if DottedName::parse(name).is_some_and(|name| name.short() == short) {
            namesake = Some(name);
        }
    }
    match (fallback, namesake) {
        (Some(registration), None) => Ok(registration),
        (Some(registration), Some(other)) => Err(NoHandler::Ambiguous {
            facet: facet.to_owned(),
            short: registration.facet_name.clone(),
            other: other.to_owned(),
        }),
        (None, _) => Err(NoHandler::Unknown { facet: facet.to_owned() }),
    }
}
