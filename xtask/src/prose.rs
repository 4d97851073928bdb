//! Prose as the rules about language see it: passages of words, apart from code.

use crate::source::{CodePart, RustFile};

/// A paragraph, a list item, a table cell, a comment or a message.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) words: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Word {
    /// In lower case and without punctuation; empty for a piece of code, which counts as one word.
    pub(crate) text: String,
    /// Counted from one.
    pub(crate) line: usize,
    pub(crate) starts_sentence: bool,
}

/// The comments of a Rust file, and the messages outside tests.
pub(crate) fn of_rust(source: &RustFile, message_lines: impl Fn(usize) -> bool) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut comment: Vec<(usize, &str)> = Vec::new();
    for (line, _, comments) in source.lines() {
        let text = comments.trim().trim_start_matches(['/', '!', '*']).trim();
        if text.is_empty() {
            passages.extend(Passage::of(&comment));
            comment.clear();
        } else {
            comment.push((line, text));
        }
    }
    passages.extend(Passage::of(&comment));
    let messages = source.strings().filter(|(line, _)| message_lines(*line));
    let messages = messages.filter_map(|(line, text)| Passage::of(&numbered(line, text)));
    passages.extend(messages.filter(|passage| passage.words.len() >= MIN_MESSAGE_WORDS));
    passages
}

/// The names of tests, and of the checks that backends run as tests: each states a fact.
pub(crate) fn of_test_names(source: &RustFile) -> Vec<Passage> {
    let is_contract = source.path.contains("/conformance/");
    let functions = source.functions().into_iter();
    let tests = functions.filter(|function| is_contract || source.part(function.line) == CodePart::Test);
    let sentences = tests.map(|test| {
        let words =
            test.name.split('_').skip_while(|word| word.ends_with(|letter: char| letter.is_ascii_digit()));
        (test.line, words.collect::<Vec<_>>().join(" "))
    });
    let passages = sentences.filter_map(|(line, text)| Passage::of(&[(line, &text)]));
    passages.filter(|passage| passage.words.len() >= MIN_MESSAGE_WORDS).collect()
}

/// A literal or a function's name of fewer words is no sentence.
const MIN_MESSAGE_WORDS: usize = 3;

/// The paragraphs, list items, table cells and headings of a Markdown file; blocks of code are left out.
pub(crate) fn of_markdown(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut fenced = false;
    let mut close = |block: &mut Vec<(usize, &str)>| {
        passages.extend(Passage::of(block));
        block.clear();
    };
    for (line, text) in numbered(1, text) {
        let content = text.trim_start();
        let is_fence = content.starts_with("```");
        fenced ^= is_fence;
        let is_indented_code = block.is_empty() && text.starts_with("    ");
        if is_fence || fenced || content.is_empty() || is_indented_code {
            close(&mut block);
        } else if content.starts_with('|') || content.starts_with('#') {
            close(&mut block);
            for cell in content.split('|') {
                close(&mut vec![(line, cell)]);
            }
        } else {
            if starts_item(content) {
                close(&mut block);
            }
            block.push((line, content));
        }
    }
    close(&mut block);
    passages
}

fn starts_item(content: &str) -> bool {
    let after_number = content.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_number = after_number.len() < content.len() && after_number.starts_with(". ");
    is_number || ["- ", "* ", "> "].iter().any(|bullet| content.starts_with(bullet))
}

fn numbered(first: usize, text: &str) -> Vec<(usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (first + index, line)).collect()
}

impl Passage {
    /// Nothing when the lines have no word.
    fn of(lines: &[(usize, &str)]) -> Option<Self> {
        let mut words = Vec::new();
        let mut starts_sentence = true;
        let mut in_code = false;
        for (line, text) in lines {
            let text = without_link_targets(text);
            for (index, piece) in text.split('`').enumerate() {
                if index > 0 {
                    in_code = !in_code;
                    if in_code {
                        words.push(Word { text: String::new(), line: *line, starts_sentence });
                        starts_sentence = false;
                    }
                }
                if in_code {
                    continue;
                }
                for chunk in piece.split_whitespace() {
                    let word = chunk.trim_matches(|letter: char| !letter.is_alphanumeric());
                    if !word.is_empty() {
                        // A placeholder of a message is code.
                        let text = if chunk.starts_with('{') { String::new() } else { word.to_lowercase() };
                        words.push(Word { text, line: *line, starts_sentence });
                        starts_sentence = false;
                    }
                    starts_sentence |= ends_sentence(chunk);
                }
            }
        }
        (!words.is_empty()).then_some(Self { words })
    }

    /// How many words each sentence has, with the line of its first word.
    pub(crate) fn sentences(&self) -> Vec<(usize, usize)> {
        let mut sentences: Vec<(usize, usize)> = Vec::new();
        for word in &self.words {
            match sentences.last_mut() {
                Some((_, count)) if !word.starts_sentence => *count += 1,
                _ => sentences.push((word.line, 1)),
            }
        }
        sentences
    }

    /// The first word of each place where these words follow one another in a sentence.
    pub(crate) fn find(&self, wanted: &[&str]) -> impl Iterator<Item = &Word> {
        let same = move |run: &&[Word]| run.iter().zip(wanted).all(|(word, wanted)| word.text == *wanted);
        let within_sentence = |run: &&[Word]| !run[1..].iter().any(|word| word.starts_sentence);
        self.words.windows(wanted.len()).filter(same).filter(within_sentence).map(|run| &run[0])
    }
}

fn ends_sentence(chunk: &str) -> bool {
    let end = chunk.trim_end_matches(['"', '\'', ')', '*', '_', '”', '»']);
    end.ends_with(['.', '!', '?']) && !ABBREVIATIONS.contains(&end)
}

const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "etc.", "vs."];

/// `[text](target)` becomes `text`.
fn without_link_targets(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        text.push_str(&before.replacen('[', "", 1));
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn shown(passages: &[Passage]) -> String {
        let shown = passages.iter().map(|passage| {
            let words = passage.words.iter().map(|word| {
                let text = if word.text.is_empty() { "`" } else { &word.text };
                let opening = if word.starts_sentence { "^" } else { "" };
                format!("{opening}{text}")
            });
            format!("{}: {}", passage.words[0].line, words.collect::<Vec<_>>().join(" "))
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_comments_and_messages_of_a_file_are_its_prose() {
        let text = "//! One line\n//! and `the rest`. Two.\n//!\n//! Three.\nlet a = \"no prose\";\nlet b = \"a message of\\\n  five words\"; // Four.\n";
        assert_snapshot!(shown(&of_rust(&RustFile::new("a.rs", text.to_owned()), |_| true)), @"
        1: ^one line and ` ^two
        4: ^three
        7: ^four
        6: ^a message of five words
        ");
    }

    #[test]
    fn paragraphs_items_and_cells_of_a_document_are_its_prose() {
        let text = "# A title\n\nOne [link](a/b.rs) here,\ne.g. 0.5 of it. Two!\n\n- item one\n  goes on\n- item two\n\n| a cell | `b` |\n|---|---|\n\n```\ncode\n```\n\n    more code\n";
        assert_snapshot!(shown(&of_markdown(text)), @"
        1: ^a title
        3: ^one link here e.g 0.5 of it ^two
        6: ^item one goes on
        8: ^item two
        10: ^a cell
        10: ^`
        ");
    }

    #[test]
    fn the_name_of_a_test_is_a_sentence_behind_its_ids() {
        let text = "fn g4_f2_one_two_three() {}\nfn a_helper() {}\n";
        assert_snapshot!(shown(&of_test_names(&RustFile::new("tests/a.rs", text.to_owned()))), @"1: ^one two three");
        assert_snapshot!(shown(&of_test_names(&RustFile::new("src/a.rs", text.to_owned()))), @"");
    }

    #[test]
    fn sentences_are_counted_by_words() {
        let passages = of_markdown("One two (three.) Four\nfive `six seven`. Eight\n");
        assert_eq!(passages[0].sentences(), [(1, 3), (1, 3), (2, 1)]);
    }
}
