//! The closest of some names, for "did you mean".

/// The candidate that `word` most likely stands for: the same but for case, or few edits away.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer words may be off by more; a name that is mostly edits is another name.
    let allowed = match word.len() {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let mut measure = EditDistance::new(word, allowed);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((measure.distance(candidate)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Measures how far names are from one word. Case costs nothing.
struct EditDistance {
    word: Vec<u8>,
    bytes: u64,
    allowed: usize,
    /// The last three rows of the table of distances, the current one first.
    rows: [Vec<usize>; 3],
    candidate: Vec<u8>,
}

impl EditDistance {
    fn new(word: &str, allowed: usize) -> Self {
        let word = word.to_ascii_lowercase().into_bytes();
        let bytes = bytes_of(&word);
        Self { word, bytes, allowed, rows: Default::default(), candidate: Vec::new() }
    }

    /// The edits to a name, swaps of neighbours included; `None` above the limit.
    fn distance(&mut self, name: &str) -> Option<usize> {
        if name.len().abs_diff(self.word.len()) > self.allowed.max(1) {
            return None;
        }
        self.candidate.clear();
        self.candidate.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        if self.candidate == self.word {
            return Some(0);
        }
        // An edit brings at most one byte that the other has not; most names end here.
        let bytes = bytes_of(&self.candidate);
        let strange = (bytes & !self.bytes).count_ones().max((self.bytes & !bytes).count_ones());
        if strange as usize > self.allowed {
            return None;
        }
        Some(self.edits()).filter(|edits| *edits <= self.allowed)
    }

    fn edits(&mut self) -> usize {
        let (a, b) = (&self.word, &self.candidate);
        let [row, above, before] = &mut self.rows;
        row.clear();
        row.extend(0..=b.len());
        for i in 1..=a.len() {
            std::mem::swap(above, before);
            std::mem::swap(row, above);
            row.clear();
            row.push(i);
            for j in 1..=b.len() {
                let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = change.min(above[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(before[j - 2] + 1);
                }
                row.push(least);
            }
        }
        row[b.len()]
    }
}

/// Which bytes a word has, six bits of each.
fn bytes_of(word: &[u8]) -> u64 {
    word.iter().fold(0, |bytes, byte| bytes | 1 << (byte & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["ProcessPayment", "Refund", "Long", "in"];
        let check = |word, expected| assert_eq!(closest(word, names), expected, "{word}");
        check("ProcesPayment", Some("ProcessPayment"));
        check("refund", Some("Refund"));
        check("Lnog", Some("Long"));
        check("Refnud", Some("Refund"));
        check("Procss_Payment", Some("ProcessPayment"));
        check("Ship", None);
        check("x", None);
    }
}
