//! The plan of a program: what it declares, before any of it is written.

use super::super::dice::Dice;

/// Words that mean something to the grammar, and are names all the same.
const PARAM_NAMES: [&str; 24] = [
    "a",
    "b",
    "value",
    "text",
    "n",
    "items",
    "model",
    "event",
    "facet",
    "in",
    "with",
    "as",
    "when",
    "prompt",
    "template",
    "use",
    "schema",
    "implicit",
    "namespace",
    "not",
    "contains",
    "sys",
    "true",
    "x_1",
];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ty {
    Long,
    String,
    Boolean,
    Double,
    Int,
    Json,
    Schema(usize),
    List(Box<Ty>),
    Nullable(Box<Ty>),
    /// Of a reference whose type is not planned: it can stand only where anything can.
    Opaque,
}

impl Ty {
    /// The type of the elements of an expression that fits a list of these. It may be narrower.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Long | Self::String | Self::Boolean | Self::Double | Self::Int => self,
            Self::Json | Self::Schema(_) | Self::List(_) | Self::Nullable(_) | Self::Opaque => Self::Opaque,
        }
    }

    /// Whether a value of this type may stand where `slot` is wanted.
    pub(super) fn fits(&self, slot: &Self) -> bool {
        match (self, slot) {
            (Self::Json, _)
            | (_, Self::Json)
            | (Self::Int, Self::Long | Self::Double)
            | (Self::Long, Self::Double) => true,
            (Self::Nullable(value), Self::Nullable(slot)) | (Self::List(value), Self::List(slot)) => {
                value.fits(slot)
            }
            (Self::Nullable(value), slot) => value.fits(slot),
            (value, Self::Nullable(slot)) => value.fits(slot),
            (value, slot) => value == slot,
        }
    }
}

/// A parameter, a return or a field.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Default,
    /// An implicit gives a value.
    Implicit,
}

pub(super) struct Schema {
    pub(super) name: String,
    pub(super) namespace: usize,
    pub(super) fields: Vec<Slot>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelKind {
    Plain,
    Event,
    Workflow,
}

pub(super) struct Facet {
    pub(super) kind: ModelKind,
    pub(super) name: String,
    pub(super) namespace: usize,
    pub(super) params: Vec<Slot>,
    pub(super) returns: Option<Vec<Slot>>,
    pub(super) mixins: Vec<Mixed>,
    pub(super) lead: Lead,
}

impl Facet {
    /// The slots that accept a yield.
    pub(super) fn yieldable(&self) -> &[Slot] {
        self.returns.as_ref().unwrap_or(&self.params)
    }

    pub(super) fn returns(&self) -> &[Slot] {
        self.returns.as_deref().unwrap_or_default()
    }
}

/// The part before the clauses of a facet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    Nothing,
    Script,
    Prompt,
}

/// A facet that is mixed in.
#[derive(Clone)]
pub(super) struct Mixed {
    pub(super) facet: usize,
    pub(super) alias: Option<String>,
}

pub(super) struct Model {
    /// The first is the top level, which has no name.
    pub(super) namespaces: Vec<String>,
    pub(super) schemas: Vec<Schema>,
    /// A facet refers only to those before it, so none calls itself.
    pub(super) facets: Vec<Facet>,
}

impl Model {
    pub(super) fn new(dice: &mut Dice<'_>) -> Self {
        let namespaces = (0..dice.below(4)).map(|at| match dice.below(4) {
            0 => format!("n{at}"),
            1 => format!("a.b.n{at}"),
            2 => format!("example.{at}"),
            _ => format!("model.{at}x.event"),
        });
        let mut model = Self {
            namespaces: std::iter::once(String::new()).chain(namespaces).collect(),
            schemas: Vec::new(),
            facets: Vec::new(),
        };
        for at in 0..dice.below(4) {
            let fields = model.slots(dice, 4);
            let namespace = dice.below(model.namespaces.len());
            model.schemas.push(Schema { name: format!("S{at}"), namespace, fields });
        }
        for at in 0..=dice.below(6) {
            let facet = model.facet(dice, format!("F{at}"));
            model.facets.push(facet);
        }
        model
    }

    fn facet(&self, dice: &mut Dice<'_>, name: String) -> Facet {
        let kind = dice.pick(&[ModelKind::Plain, ModelKind::Event, ModelKind::Workflow]);
        let mut params = self.slots(dice, 5);
        if dice.chance(30) {
            let supplied = params.iter_mut().filter(|param| param.need == Need::Required);
            supplied.for_each(|param| param.need = Need::Implicit);
        }
        let lead = match dice.below(4) {
            0 => Lead::Script,
            1 => Lead::Prompt,
            _ => Lead::Nothing,
        };
        Facet {
            kind,
            name,
            namespace: dice.below(self.namespaces.len()),
            params,
            returns: dice.chance(70).then(|| self.slots(dice, 3)),
            mixins: self.mixed(dice),
            lead,
        }
    }

    /// Facets to mix in, each once.
    pub(super) fn mixed(&self, dice: &mut Dice<'_>) -> Vec<Mixed> {
        let mut candidates: Vec<usize> = (0..self.facets.len()).collect();
        candidates.retain(|at| self.facets[*at].kind != ModelKind::Workflow);
        dice.shuffle(&mut candidates);
        candidates.truncate(if dice.chance(25) { 1 + dice.below(2) } else { 0 });
        let alias = |facet| Mixed { facet, alias: dice.chance(60).then(|| format!("mixed{facet}")) };
        candidates.into_iter().map(alias).collect()
    }

    fn slots(&self, dice: &mut Dice<'_>, most: usize) -> Vec<Slot> {
        let mut names = PARAM_NAMES;
        dice.shuffle(&mut names);
        let count = dice.below(most + 1);
        let slot = |name: &&str| {
            let need = if dice.chance(30) { Need::Default } else { Need::Required };
            Slot { name: (*name).to_owned(), ty: self.ty(dice, 2), need }
        };
        names[..count].iter().map(slot).collect()
    }

    pub(super) fn ty(&self, dice: &mut Dice<'_>, fuel: usize) -> Ty {
        match dice.below(if fuel == 0 { 7 } else { 9 }) {
            1 => Ty::String,
            2 => Ty::Boolean,
            3 => Ty::Double,
            4 => Ty::Int,
            5 => Ty::Json,
            6 if !self.schemas.is_empty() => Ty::Schema(dice.below(self.schemas.len())),
            0 | 6 => Ty::Long,
            7 => Ty::List(Box::new(self.ty(dice, fuel - 1))),
            // A type has one question mark at most.
            _ => match self.ty(dice, fuel - 1) {
                Ty::Nullable(of) => Ty::Nullable(of),
                other => Ty::Nullable(Box::new(other)),
            },
        }
    }
}
