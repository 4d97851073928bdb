//! The work that a workflow needs others to do: the event facets that it can reach, and scripts.

use std::collections::BTreeSet;

use afl_lang::program::{AndThenBlock, BlockContent, FacetDecl, FacetKind, Program, QualifiedName};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgramNeeds {
    pub events: BTreeSet<QualifiedName>,
    /// Whether it can reach a `script` block.
    pub scripts: bool,
}

impl ProgramNeeds {
    /// The needs of one workflow of the program.
    pub fn of(program: &Program, workflow: &str) -> Self {
        let facets: Vec<&FacetDecl> = program.facets().collect();
        let mut needs = Self::default();
        let mut seen: BTreeSet<QualifiedName> = BTreeSet::new();
        let mut open: Vec<QualifiedName> = vec![workflow.into()];
        while let Some(name) = open.pop() {
            if seen.insert(name.clone())
                && let Some(facet) = facets.iter().find(|facet| facet.id == name)
            {
                needs.add(facet, &mut open);
            }
        }
        needs
    }

    /// Adds the needs of a facet itself; the facets that it calls go to `open`.
    fn add(&mut self, facet: &FacetDecl, open: &mut Vec<QualifiedName>) {
        match facet.kind {
            FacetKind::Event => {
                self.events.insert(facet.id.clone());
            }
            FacetKind::Plain | FacetKind::Workflow => {}
        }
        self.scripts |= facet.script.is_some() || has_script(&facet.body);
        open.extend(facet.mixins.iter().map(|mixin| mixin.target.clone()));
        for step in facet.steps() {
            self.scripts |= has_script(&step.body);
            open.push(step.call.target.clone());
            open.extend(step.call.mixins.iter().map(|mixin| mixin.target.clone()));
        }
    }
}

fn has_script(blocks: &[AndThenBlock]) -> bool {
    blocks.iter().any(|block| matches!(block.content, BlockContent::Script(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_needs_only_the_facets_that_it_can_reach() {
        let text = r#"
event facet Ask(q: String) => (a: String)
event facet Note(q: String) => (a: String)
event facet Other(q: String) => (a: String)
facet Both(q: String) => (a: String) andThen {
    ask = Ask(q = $.q)
    yield Both(a = ask.a)
} catch {
    note = Note(q = $.q)
    yield Both(a = note.a)
}
facet Loud(t: String) => (u: String) script "result['u'] = params['t'].upper()"
workflow W(qs: [String]) => (a: [String]) andThen foreach q in $.qs {
    both = Both(q = q)
    yield W(a = both.a)
}
workflow V() => (a: String) andThen {
    loud = Loud(t = "x")
    yield V(a = loud.u)
}
"#;
        let program = crate::compile("w.afl", text).unwrap();
        let needs = ProgramNeeds::of(&program, "W");
        assert_eq!(needs.events.iter().map(|name| &**name).collect::<Vec<_>>(), ["Ask", "Note"]);
        assert!(!needs.scripts);
        assert_eq!(ProgramNeeds::of(&program, "V"), ProgramNeeds { events: BTreeSet::new(), scripts: true });
    }
}
