//! Prompts and scripts.

use super::Checker;
use super::params::Repeats;
use super::scope::Instance;
use super::table::DefId;
use crate::code::Code;
use crate::program::{PromptBlock, ScriptBlock, placeholders};
use crate::source::Span;
use crate::suggest;
use crate::syntax::ast::{Ident, Prompt, PromptEntry, ScriptBody, ScriptSyntax, Wholeness};
use crate::syntax::literal;

const TEMPLATE: &str = "template";
/// How expressions refer to a parameter, and prompts do not.
const INPUT: &str = "$.";
const DEFAULT_LANGUAGE: &str = "python";

impl<'a> Checker<'a> {
    pub(super) fn prompt(&mut self, prompt: &'a Prompt<'a>, owner: DefId) -> PromptBlock {
        let location = self.location(prompt.span);
        let mut repeats = Repeats::default();
        for (at, entry) in prompt.entries.iter().enumerate() {
            self.check_placeholders(entry, owner);
            if let Some(first) = repeats.first(&prompt.entries, at, |entry| entry.key.text) {
                let place = self.place(first.key.span);
                let message = format!("`{}` is given twice", entry.key.text);
                self.report(Code::DuplicatePromptEntry, entry.key.span, message, |d| {
                    d.related(place, "first given here").help("remove one of the two")
                });
            }
        }
        if !prompt.entries.iter().any(|entry| entry.key.text == TEMPLATE) {
            self.no_template(prompt);
        }
        let text =
            |entry: &PromptEntry<'a>| (entry.key.text.to_owned(), literal::value(&entry.value).into_owned());
        PromptBlock { entries: prompt.entries.iter().map(text).collect(), location }
    }

    fn no_template(&mut self, prompt: &Prompt<'a>) {
        let keyword = Span::new(prompt.span.start, prompt.span.start + 6);
        let misspelt =
            prompt.entries.iter().find(|entry| suggest::closest(entry.key.text, [TEMPLATE]).is_some());
        let help = match misspelt {
            Some(entry) => format!("did you mean `{TEMPLATE}` where it says `{}`?", entry.key.text),
            None => format!("add `{TEMPLATE} \"…\"` with `{{name}}` for each parameter to put in"),
        };
        let message = format!("this prompt has no `{TEMPLATE}`");
        self.report(Code::PromptWithoutTemplate, keyword, message, |d| d.help(help));
    }

    /// `{name}` and `{name.field}` stand for parameters; any other brace is text.
    fn check_placeholders(&mut self, entry: &'a PromptEntry<'a>, owner: DefId) {
        let def = &self.table[owner];
        if def.wholeness == Wholeness::Broken {
            return;
        }
        let raw = entry.value.raw;
        for (start, name) in placeholders(raw) {
            let (first, rest) = name.split_once('.').unwrap_or((name, ""));
            let def = &self.table[owner];
            let at = entry.value.span.start + start as u32;
            let mixed_in = Instance { mixins: def.mixins.clone(), ..Instance::default() };
            let param = def.params.named(first).map(|param| param.ty.clone());
            if let Some(ty) = param.or_else(|| self.mixin_attribute(&mixed_in, first)) {
                self.walk(ty, &path(rest, at + first.len() as u32 + 2), first.to_owned());
                continue;
            }
            let message = format!("`{{{name}}}` is no parameter of `{}`", def.name);
            let help = match name.strip_prefix(INPUT) {
                Some(path) => Some(format!("write `{{{path}}}`")),
                None => self.did_you_mean(first, def.params.iter().map(|param| param.name)),
            };
            self.report(Code::UnknownPlaceholder, Span::new(at, at + name.len() as u32 + 2), message, |d| {
                d.help_if(help)
            });
        }
    }

    pub(super) fn script(&mut self, script: &'a ScriptSyntax<'a>) -> ScriptBlock {
        let code = match &script.body {
            ScriptBody::Text(text) => literal::value(text).into_owned(),
            ScriptBody::Braces(text, _) => dedent(text),
        };
        if code.trim().is_empty() {
            self.report(Code::EmptyScript, script.span, "this script is empty", |d| {
                d.help("read `params`, fill `result`: `result[\"name\"] = params[\"name\"]`")
            });
        }
        let language = script.language.map_or(DEFAULT_LANGUAGE, |language| language.text).to_owned();
        ScriptBlock { language, code, location: self.location(script.span) }
    }
}

fn path(text: &str, start: u32) -> Vec<Ident<'_>> {
    let mut at = start;
    let mut word = |text| {
        let span = Span::new(at, at + str::len(text) as u32);
        at = span.end + 1;
        Ident { text, span }
    };
    text.split('.').filter(|text| !text.is_empty()).map(&mut word).collect()
}

/// A script in braces is indented as the text around it is; Python would stumble on that.
fn dedent(text: &str) -> String {
    let text = text.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n').unwrap_or(text).trim_end();
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let shared = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or_default()).collect();
    lines.join("\n")
}
