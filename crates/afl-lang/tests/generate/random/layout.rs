//! From tokens to a text with odd blanks, line ends and comments.

use super::super::dice::Dice;

/// The layout decides the text between two tokens, except where the grammar wants a separator.
#[derive(Clone, Default)]
pub(super) struct Tokens(Vec<Token>);

#[derive(Clone)]
enum Token {
    /// A word, a sign, a literal or the whole body of a script.
    Text(String),
    /// `;`, or as well nothing.
    End,
    /// `;`, `,`, or as well nothing.
    EndOfEntry,
    /// A comma that may also be left out, behind the last element of a list.
    Trailing,
}

impl Tokens {
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.0.push(Token::Text(text.to_owned()));
        self
    }

    /// Several tokens, written with one blank between them.
    pub(super) fn words(&mut self, texts: &str) -> &mut Self {
        texts.split(' ').for_each(|text| {
            self.push(text);
        });
        self
    }

    /// A dotted name; its parts are tokens of their own.
    pub(super) fn dotted(&mut self, name: &str) -> &mut Self {
        for (at, part) in name.split('.').enumerate() {
            if at > 0 {
                self.push(".");
            }
            self.push(part);
        }
        self
    }

    pub(super) fn end(&mut self) {
        self.0.push(Token::End);
    }

    pub(super) fn end_of_entry(&mut self) {
        self.0.push(Token::EndOfEntry);
    }

    /// The comma behind the element at `at` of `count`.
    pub(super) fn comma(&mut self, at: usize, count: usize) {
        if at + 1 < count {
            self.push(",");
        } else {
            self.0.push(Token::Trailing);
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The text of the tokens.
pub(super) fn render(tokens: &Tokens, dice: &mut Dice<'_>) -> String {
    let mut writer = Writer { text: String::new(), style: dice.pick(&STYLES), comments: 0 };
    for token in &tokens.0 {
        match token {
            Token::Text(text) => writer.write(text, dice),
            Token::End => writer.separate(&["", ";", ";;"], dice),
            Token::EndOfEntry => writer.separate(&["", ",", ";"], dice),
            Token::Trailing => writer.separate(&["", ","], dice),
        }
    }
    writer.gap("", dice);
    writer.text
}

/// How often something unusual stands between two tokens, of a hundred.
#[derive(Clone, Copy)]
struct Style {
    comment: usize,
    line_end: usize,
}

const STYLES: [Style; 4] = [
    Style { comment: 0, line_end: 20 },
    Style { comment: 3, line_end: 30 },
    Style { comment: 15, line_end: 20 },
    Style { comment: 0, line_end: 0 },
];

struct Writer {
    text: String,
    style: Style,
    comments: usize,
}

impl Writer {
    fn write(&mut self, text: &str, dice: &mut Dice<'_>) {
        self.gap(text, dice);
        self.text.push_str(text);
    }

    fn separate(&mut self, choices: &[&str], dice: &mut Dice<'_>) {
        let separator = dice.pick(choices);
        if !separator.is_empty() {
            self.write(separator, dice);
        }
    }

    fn gap(&mut self, next: &str, dice: &mut Dice<'_>) {
        let before = self.text.len();
        while dice.chance(self.style.comment) {
            self.comment(dice);
        }
        if dice.chance(self.style.line_end) {
            self.text.push_str(dice.pick(&["\n", "\n", "\n\n\n", "\r\n", "\n\t "]));
        }
        let is_empty = self.text.len() == before;
        if is_empty && (self.needs_blank(next) || dice.chance(60)) {
            self.text.push_str(dice.pick(&[" ", " ", "  ", "\t"]));
        }
    }

    /// Whether two tokens would be read as one.
    fn needs_blank(&self, next: &str) -> bool {
        let closed = |c: char| "(){}[],;:.".contains(c);
        !(self.text.ends_with(closed) || next.starts_with(closed) || self.text.is_empty())
    }

    fn comment(&mut self, dice: &mut Dice<'_>) {
        self.comments += 1;
        let number = self.comments;
        // A slash before a comment would begin another one.
        self.text.push(' ');
        let comment = match dice.below(8) {
            0 => format!("/* {number} */"),
            1 => format!("// {number}\n"),
            2 => format!("\n// {number} \"{{ é\n"),
            3 => format!("/* {number} }} \"\n   * // */\n"),
            4 => format!("\n\n/* {number} */\n\n"),
            5 => format!("/** {number} */"),
            6 => format!("//{number}\r\n"),
            _ => "/**/".to_owned(),
        };
        self.text.push_str(&comment);
    }
}
