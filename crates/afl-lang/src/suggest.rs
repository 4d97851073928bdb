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
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= allowed.max(1))
        .filter_map(|candidate| Some((distance(word, candidate, allowed)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edits between two words, swaps of neighbours included; `None` beyond `allowed`. Case costs nothing.
fn distance(a: &str, b: &str, allowed: usize) -> Option<usize> {
    if a.eq_ignore_ascii_case(b) {
        return Some(0);
    }
    let (a, b) = (a.to_ascii_lowercase().into_bytes(), b.to_ascii_lowercase().into_bytes());
    let mut before = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = row;
        row = next;
    }
    Some(row[b.len()]).filter(|edits| *edits <= allowed)
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
        check("Ship", None);
        check("x", None);
    }
}
