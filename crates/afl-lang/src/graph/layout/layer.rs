//! Which layer each item stands in.

use super::level::{LayoutBox, LevelLink, Pin};

/// As deep as the longest way to it; what nothing leads to stands just above its first reader.
///
/// Links must not form a ring: data flow does not.
pub(super) fn assign(items: &[LayoutBox], links: &[LevelLink]) -> Vec<usize> {
    let mut readers = vec![Vec::new(); items.len()];
    let mut waiting = vec![0_usize; items.len()];
    for link in links {
        readers[link.from].push(link.to);
        waiting[link.to] += 1;
    }
    let is_source: Vec<bool> = waiting.iter().map(|count| *count == 0).collect();
    // Ports are on the border; everything else of such a cluster begins below them.
    let has_ports = items.iter().any(|item| item.pin == Pin::Top);
    let first = |item: &LayoutBox| usize::from(has_ports && item.pin != Pin::Top);
    let mut layers: Vec<usize> = items.iter().map(first).collect();
    let mut ready: Vec<usize> = (0..items.len()).filter(|item| is_source[*item]).collect();
    while let Some(item) = ready.pop() {
        for reader in &readers[item] {
            layers[*reader] = layers[*reader].max(layers[item] + 1);
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.push(*reader);
            }
        }
    }
    for item in (0..items.len()).filter(|item| is_source[*item] && items[*item].pin != Pin::Top) {
        if let Some(first_reader) = readers[item].iter().map(|reader| layers[*reader]).min() {
            layers[item] = first_reader - 1;
        }
    }
    layers
}
