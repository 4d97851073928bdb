//! What a workflow needs others to do: the event facets it can come to, and scripts.

use std::collections::BTreeSet;

use afl_lang::program::{
    AndThenBlock, BlockContent, CallExpr, CatchClause, CatchContent, Decl, FacetDecl, FacetKind, MixinCall,
    Program, Qualified, Statement, Statements, WhenBlock,
};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) events: BTreeSet<Qualified>,
    pub(crate) scripts: Scripts,
}

/// Whether there are `script` blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Scripts {
    #[default]
    None,
    Some,
}

pub(crate) fn of(program: &Program, workflow: &str) -> Needs {
    let mut facets = Vec::new();
    collect(&program.declarations, &mut facets);
    let mut walk = Walk { needs: Needs::default(), seen: BTreeSet::new(), open: vec![workflow.into()] };
    while let Some(name) = walk.open.pop() {
        if walk.seen.insert(name.clone())
            && let Some(facet) = facets.iter().find(|facet| facet.id == name)
        {
            walk.facet(facet);
        }
    }
    walk.needs
}

fn collect<'a>(declarations: &'a [Decl], facets: &mut Vec<&'a FacetDecl>) {
    for declaration in declarations {
        match declaration {
            Decl::Namespace(namespace) => collect(&namespace.declarations, facets),
            Decl::Facet(facet) => facets.push(facet),
            Decl::Schema(_) | Decl::Implicit(_) => {}
        }
    }
}

struct Walk {
    needs: Needs,
    seen: BTreeSet<Qualified>,
    open: Vec<Qualified>,
}

impl Walk {
    fn facet(&mut self, facet: &FacetDecl) {
        match facet.kind {
            FacetKind::Event => {
                self.needs.events.insert(facet.id.clone());
            }
            FacetKind::Plain | FacetKind::Workflow => {}
        }
        if facet.script.is_some() {
            self.needs.scripts = Scripts::Some;
        }
        self.mixins(&facet.mixins);
        self.blocks(&facet.body, facet.catch.as_ref());
    }

    fn mixins(&mut self, mixins: &[MixinCall]) {
        self.open.extend(mixins.iter().map(|mixin| mixin.target.clone()));
    }

    fn call(&mut self, call: &CallExpr) {
        self.open.push(call.target.clone());
        self.mixins(&call.mixins);
    }

    fn blocks(&mut self, blocks: &[AndThenBlock], catch: Option<&CatchClause>) {
        for block in blocks {
            match &block.content {
                BlockContent::Steps(statements) | BlockContent::Foreach(_, statements) => {
                    self.statements(statements);
                }
                BlockContent::When(when) => self.when(when),
                BlockContent::Script(_) => self.needs.scripts = Scripts::Some,
            }
        }
        match catch.map(|catch| &catch.content) {
            Some(CatchContent::Steps(statements)) => self.statements(statements),
            Some(CatchContent::When(when)) => self.when(when),
            None => {}
        }
    }

    fn when(&mut self, when: &WhenBlock) {
        for case in &when.cases {
            self.statements(&case.statements);
        }
    }

    fn statements(&mut self, statements: &Statements) {
        for statement in &statements.steps {
            match statement {
                Statement::Step(step) => {
                    self.call(&step.call);
                    self.blocks(&step.body, step.catch.as_ref());
                }
                Statement::Log(_) | Statement::Assert(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_workflow_can_come_to_is_needed() {
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
        let program = afl_runtime::compile("w.afl", text).unwrap();
        let needs = of(&program, "W");
        assert_eq!(needs.events.iter().map(|name| &**name).collect::<Vec<_>>(), ["Ask", "Note"]);
        assert_eq!(needs.scripts, Scripts::None);
        assert_eq!(of(&program, "V"), Needs { events: BTreeSet::new(), scripts: Scripts::Some });
    }
}
