//! Random programs, well formed and well typed, that use all of the language.

mod block;
mod body;
mod decl;
mod expr;
mod layout;
mod model;
mod scope;

use super::dice::Dice;
use decl::Item;
use layout::Tokens;
use model::Model;

/// The texts of a program. It has no errors; it may have warnings.
pub(crate) fn program(dice: &mut Dice<'_>) -> Vec<String> {
    let model = Model::new(dice);
    let items = Generator { dice: &mut *dice, model: &model }.items();
    let mut texts: Vec<Vec<Item>> = (0..=dice.below(2)).map(|_| Vec::new()).collect();
    for item in items {
        let text = dice.below(texts.len());
        texts[text].push(item);
    }
    texts.into_iter().map(|items| text(items, dice)).collect()
}

fn text(mut items: Vec<Item>, dice: &mut Dice<'_>) -> String {
    // The last namespace of a text may do without braces.
    let open = items.pop_if(|item| item.namespace.is_some() && dice.chance(25));
    let mut tokens = Tokens::default();
    for item in items {
        match item.namespace {
            None => tokens.extend(item.decls),
            Some(head) => {
                tokens.extend(head);
                tokens.push("{").extend(item.decls);
                tokens.push("}").end();
            }
        }
    }
    if let Some(Item { namespace: Some(head), decls }) = open {
        tokens.extend(head);
        tokens.extend(decls);
    }
    layout::render(&tokens, dice)
}

/// Writes what a model plans.
struct Generator<'g, 'b> {
    dice: &'g mut Dice<'b>,
    model: &'g Model,
}
