//! An index of where the values of a JSON text stand.
//!
//! It is built in one pass without recursion, and it lets a node look for its `type` first wherever
//! that key stands. So key order does not matter, and reading stays linear however deep a text nests.

use super::{CATEGORIES, Json};

/// Where the values of a JSON text stand.
pub(crate) struct Index<'j> {
    json: &'j str,
    slots: Vec<IndexSlot>,
    /// The names that `sourceId` refers to.
    pub(crate) sources: Vec<String>,
}

/// A value or a key. The slots of a list's elements, or of an object's keys and values in turn, follow
/// its own.
#[derive(Clone, Copy)]
struct IndexSlot {
    start: u32,
    /// Of a list or an object the slot behind its last, of anything else the offset behind its text.
    end: u32,
}

/// Brackets nest deeper than is allowed, at this offset.
pub(crate) struct TooDeep(pub(in crate::program) usize);

impl<'j> Index<'j> {
    /// `json` must be well formed and shorter than 4 GiB.
    pub(crate) fn new(json: &'j str, max_depth: usize) -> Result<Self, TooDeep> {
        let bytes = json.as_bytes();
        let mut slots: Vec<IndexSlot> = Vec::with_capacity(bytes.len() / 32);
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let start = at as u32;
            match byte {
                b'{' | b'[' => {
                    if open.len() == max_depth {
                        return Err(TooDeep(at));
                    }
                    open.push(slots.len());
                    slots.push(IndexSlot { start, end: 0 });
                    at += 1;
                }
                b'}' | b']' => {
                    let container = open.pop().expect("brackets match in well-formed JSON");
                    slots[container].end = slots.len() as u32;
                    at += 1;
                }
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => at += 1,
                _ => {
                    let end = scalar_end(bytes, at);
                    let category = is_category(&json[at..end], open.len());
                    at = category.then(|| value_end(bytes, end)).flatten().unwrap_or_else(|| {
                        slots.push(IndexSlot { start, end: end as u32 });
                        end
                    });
                }
            }
        }
        Ok(Self { json, slots, sources: Vec::new() })
    }

    pub(crate) fn root(&self) -> Json<'_> {
        Json::new(self, 0)
    }

    /// The kind of the value, by its first byte.
    pub(super) fn first_byte(&self, slot: u32) -> u8 {
        self.json.as_bytes()[self.slots[slot as usize].start as usize]
    }

    /// The text of a string, with its quotes and escapes, of a number or of a word.
    pub(super) fn scalar(&self, slot: u32) -> &str {
        let IndexSlot { start, end } = self.slots[slot as usize];
        &self.json[start as usize..end as usize]
    }

    /// The slot behind the value and all that is in it.
    pub(super) fn behind(&self, slot: u32) -> u32 {
        match self.first_byte(slot) {
            b'{' | b'[' => self.slots[slot as usize].end,
            _ => slot + 1,
        }
    }
}

/// Categories repeat the declarations; indexing them would cost four times the space. Only a program
/// (one bracket is open) and a namespace among its declarations (three) have them.
fn is_category(key: &str, depth: usize) -> bool {
    matches!(depth, 1 | 3) && CATEGORIES.iter().any(|(category, _)| key.trim_matches('"') == *category)
}

/// The offset behind the string, number or word at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> usize {
    if bytes[at] != b'"' {
        let length = bytes[at..].iter().position(|byte| b",]} \n\r\t".contains(byte));
        return length.map_or(bytes.len(), |length| at + length);
    }
    let mut at = at + 1;
    loop {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The offset behind the value of the key that ends at `at`; `None` if no key ends there.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let is_blank = |byte: &u8| b" \n\r\t".contains(byte);
    let past_blanks = |at: usize| at + bytes[at..].iter().take_while(|byte| is_blank(byte)).count();
    let colon = past_blanks(at);
    let mut at = (bytes.get(colon) == Some(&b':')).then(|| past_blanks(colon + 1))?;
    let mut depth = 0_usize;
    loop {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' | b':' => {}
            byte if is_blank(&byte) => {}
            _ => at = scalar_end(bytes, at) - 1,
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
