//! In which order the vertices of a layer stand, so that few lines cross.

use super::level::Neighbour;

/// Up and down this often; more changes little.
const SWEEPS: usize = 12;

/// The neighbours of each vertex in the layers above and below.
pub(super) struct Links {
    pub(super) above: Vec<Vec<Neighbour>>,
    pub(super) below: Vec<Vec<Neighbour>>,
}

/// Sorts each layer by where its neighbours are, and keeps the best order met. `arrange` corrects the parts that
/// must not depend on that.
pub(super) fn sort(layers: &mut Vec<Vec<usize>>, links: &Links, arrange: impl Fn(&mut [usize])) {
    let mut best = (crossings(layers, links), layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let downwards = sweep % 2 == 0;
        let neighbours = if downwards { &links.above } else { &links.below };
        let mut place = positions(layers, links.above.len());
        let count = layers.len();
        for step in 0..count {
            let layer = &mut layers[if downwards { step } else { count - 1 - step }];
            sort_layer(layer, neighbours, &place);
            arrange(layer);
            for (at, vertex) in layer.iter().enumerate() {
                place[*vertex] = at as u32;
            }
        }
        let now = crossings(layers, links);
        if now < best.0 {
            best = (now, layers.clone());
        }
    }
    *layers = best.1;
}

/// Vertices without neighbours keep their places; the others share the rest in the order of their means.
fn sort_layer(layer: &mut [usize], neighbours: &[Vec<Neighbour>], place: &[u32]) {
    let mean = |vertex: usize| {
        let sum: f64 = neighbours[vertex].iter().map(|it| f64::from(place[it.vertex]) + it.share).sum();
        sum / f64::from(neighbours[vertex].len() as u32)
    };
    let is_tied = |vertex: &usize| !neighbours[*vertex].is_empty();
    let mut tied: Vec<(f64, usize)> =
        layer.iter().copied().filter(is_tied).map(|vertex| (mean(vertex), vertex)).collect();
    tied.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sorted = tied.into_iter().map(|(_, vertex)| vertex);
    for vertex in layer.iter_mut().filter(|vertex| is_tied(vertex)) {
        *vertex = sorted.next().expect("as many as were taken");
    }
}

fn positions(layers: &[Vec<usize>], vertices: usize) -> Vec<u32> {
    let mut place = vec![0; vertices];
    for layer in layers {
        for (at, vertex) in layer.iter().enumerate() {
            place[*vertex] = at as u32;
        }
    }
    place
}

/// How many pairs of lines cross between neighbouring layers.
fn crossings(layers: &[Vec<usize>], links: &Links) -> u64 {
    let place = positions(layers, links.above.len());
    let mut total = 0;
    for layer in layers {
        let mut ends: Vec<f64> = Vec::new();
        for vertex in layer {
            let mut below: Vec<f64> =
                links.below[*vertex].iter().map(|it| f64::from(place[it.vertex]) + it.share).collect();
            below.sort_by(f64::total_cmp);
            ends.extend(below);
        }
        total += inversions(&mut ends);
    }
    total
}

/// How many pairs stand in falling order; sorts the list as it counts.
fn inversions(list: &mut [f64]) -> u64 {
    if list.len() < 2 {
        return 0;
    }
    let (left, right) = list.split_at_mut(list.len() / 2);
    let mut count = inversions(left) + inversions(right);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if left[i] <= right[j] {
            merged.push(left[i]);
            i += 1;
        } else {
            merged.push(right[j]);
            count += (left.len() - i) as u64;
            j += 1;
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    list.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_untangled() {
        let to = |vertex| vec![Neighbour { vertex, share: 0.5 }];
        let none = Vec::new;
        // 0 leads to 3 and 1 leads to 2: they cross until one layer is turned.
        let links =
            Links { above: vec![none(), none(), to(1), to(0)], below: vec![to(3), to(2), none(), none()] };
        let mut layers = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(crossings(&layers, &links), 1);
        sort(&mut layers, &links, |_| {});
        assert_eq!(crossings(&layers, &links), 0);
    }
}
