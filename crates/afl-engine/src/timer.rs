//! The event facets that timers of the store answer, without an agent: `afl.time.Wait` and `afl.time.Until`.

use afl_lang::program::{Expr, ExprKind, FacetKind, Parameter};
use afl_lang::timestamp;
use afl_lang::types::TypeRef;

use crate::plan::Facet;
use crate::policy::{UNITS, duration};
use crate::time::Millis;
use crate::value::{Map, Value};
use crate::wire::wire_enum;

wire_enum! {
    /// The facets of `afl.time`, which every program has.
    pub enum TimerFacet ("facet of time") {
        Wait = "afl.time.Wait",
        Until = "afl.time.Until",
    }
}

impl TimerFacet {
    /// When its timer fires: a length of time from now, or a moment.
    pub(crate) fn due(self, args: &Map<String, Value>, now: Millis) -> Result<Millis, String> {
        match self {
            Self::Wait => Ok(now.plus(duration(args, self.name())?)),
            Self::Until => {
                let text = args.get(AT).and_then(Value::as_str).unwrap_or_default();
                let moment = timestamp::parse(text).map(Millis);
                moment.ok_or_else(|| {
                    format!(
                        "`{AT}` of `{self}` is \"{text}\", and must be a moment as 2026-12-24T18:00:00+01:00"
                    )
                })
            }
        }
    }

    /// The declaration, as the prelude of the compiler has it.
    pub(crate) fn facet(self) -> Facet {
        let at = Parameter { name: AT.to_owned(), ty: TypeRef::String, default: None };
        let unit = |name: &str| Parameter {
            name: name.to_owned(),
            ty: TypeRef::Nullable(Box::new(TypeRef::Long)),
            default: Some(Expr { kind: ExprKind::Null, location: None }),
        };
        let params = match self {
            Self::Wait => UNITS.iter().map(|(name, _)| unit(name)).collect(),
            Self::Until => vec![at.clone()],
        };
        Facet {
            id: self.name().into(),
            name: self.name().rsplit('.').next().unwrap_or_default().into(),
            doc: None,
            kind: FacetKind::Event,
            params,
            returns: vec![at],
            mixins: Vec::new(),
            script: None,
            prompt: None,
            clauses: Vec::new(),
            catch: None,
        }
    }
}

const AT: &str = "at";

/// The result of a timer that fired.
pub fn fired(at: Millis) -> Map<String, Value> {
    Map::from_iter([(AT.to_owned(), Value::from(timestamp::format(at.0)))])
}
