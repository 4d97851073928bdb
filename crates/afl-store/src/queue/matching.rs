//! Which handler a facet's work goes to, by the names that handlers are offered under (document 000 §3.4).

/// Whose work it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlerMatch<'a, T> {
    /// That of the handler of this very name.
    Exact(T),
    /// That of the handler for every namespace, because no namespace has one of its own by this name.
    Short(T),
    /// The short name may be meant for the other namespace (T11).
    Ambiguous {
        short: &'a str,
        other: &'a str,
    },
    Missing,
}

/// The first handler of the facet's whole name, else of its last part. One of another namespace never does the work of
/// a namesake.
pub fn match_handler<'a, T>(
    offers: impl IntoIterator<Item = (&'a str, T)>,
    facet: &str,
) -> HandlerMatch<'a, T> {
    let short = last_part(facet);
    let (mut fallback, mut namesake) = (None, None);
    for (name, offer) in offers {
        if name == facet {
            return HandlerMatch::Exact(offer);
        }
        if name == short {
            fallback.get_or_insert((name, offer));
        } else if last_part(name) == short {
            namesake.get_or_insert(name);
        }
    }
    match (fallback, namesake) {
        (Some((_, offer)), None) => HandlerMatch::Short(offer),
        (Some((short, _)), Some(other)) => HandlerMatch::Ambiguous { short, other },
        (None, _) => HandlerMatch::Missing,
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
