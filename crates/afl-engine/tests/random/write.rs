//! The text of a random program.

use std::fmt::Write as _;

use super::{Block, Callee, Facet, MODULUS, Program, Term};

const WORK: &str = "event facet Inc(key: String, by: Long) => (out: Long)
event facet Risk(key: String, by: Long) => (out: Long)
";

impl Program {
    pub(crate) fn text(&self) -> String {
        let mut text = WORK.to_owned();
        for (at, facet) in self.facets.iter().enumerate() {
            let kind = if at + 1 == self.facets.len() { "workflow" } else { "facet" };
            let all = if matches!(facet, Facet::Foreach(..)) { ", all: [Long] = []" } else { "" };
            let body = body(facet, &format!("F{at}"));
            writeln!(text, "{kind} F{at}(n: Long) => (out: Long = 0{all}) {body}")
                .expect("a string takes all");
        }
        text
    }
}

fn body(facet: &Facet, owner: &str) -> String {
    match facet {
        Facet::Clauses(clauses) => {
            let clause = |(at, block)| format!("andThen {}", written(block, owner, at, Yield::Plain));
            clauses.iter().enumerate().map(clause).collect::<Vec<_>>().join(" ")
        }
        Facet::Foreach(list, block) => {
            let list = list.iter().map(|item| format!("$.n + {item}")).collect::<Vec<_>>().join(", ");
            format!("andThen foreach x in [{list}] {}", written(block, owner, 0, Yield::Collected))
        }
        Facet::When(modulus, yes, no) => {
            let yes = written(yes, owner, 0, Yield::Plain);
            let no = written(no, owner, 1, Yield::Plain);
            format!("andThen when {{\n case $.n % {modulus} == 0 => {yes} case _ => {no} }}")
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Yield {
    Plain,
    Collected,
}

fn written(block: &Block, owner: &str, clause: usize, yielded: Yield) -> String {
    let mut text = "{\n".to_owned();
    for (at, step) in block.steps.iter().enumerate() {
        let arg = sum(&step.args, clause);
        let key = format!("\"{owner}.{clause}.{at}.\" ++ $.n");
        let call = written_call(step.call, &key, &arg);
        let mixin = step.mixin.as_ref().map(|(mixed, args)| {
            let key = format!("\"{owner}.{clause}.{at}m.\" ++ $.n");
            format!(" with {} as m", written_call(*mixed, &key, &sum(args, clause)))
        });
        let retry = if step.with_retry { " with Retry(max = 2, backoff_ms = 5)" } else { "" };
        let name = called(step.call);
        let catch = step.catch.map(|value| format!(" catch {{ yield {name}(out = {value}) }}"));
        let (mixin, catch) = (mixin.unwrap_or_default(), catch.unwrap_or_default());
        writeln!(text, "  c{clause}s{at} = {call}{mixin}{retry}{catch}").expect("a string takes all");
    }
    let total = sum(&block.total, clause);
    let all = if yielded == Yield::Collected { format!(", all = {total}") } else { String::new() };
    text + &format!("  yield {owner}(out = {total}{all})\n}}")
}

fn called(callee: Callee) -> String {
    match callee {
        Callee::Inc => "Inc".to_owned(),
        Callee::Risk => "Risk".to_owned(),
        Callee::Facet(at) => format!("F{at}"),
    }
}

fn written_call(callee: Callee, key: &str, arg: &str) -> String {
    let name = called(callee);
    match callee {
        Callee::Inc | Callee::Risk => format!("{name}(key = {key}, by = {arg})"),
        Callee::Facet(_) => format!("{name}(n = {arg})"),
    }
}

fn sum(terms: &[Term], clause: usize) -> String {
    let term = |term: &Term| match term {
        Term::Number(number) => number.to_string(),
        Term::Input => "$.n".to_owned(),
        Term::Element => "x".to_owned(),
        Term::Step(at) => format!("c{clause}s{at}.out"),
        Term::Mixed(at) => format!("c{clause}s{at}.m.out"),
        Term::FirstClause(at) => format!("c0s{at}.out"),
    };
    let sum = terms.iter().map(term).collect::<Vec<_>>().join(" + ");
    format!("({sum}) % {MODULUS}")
}
