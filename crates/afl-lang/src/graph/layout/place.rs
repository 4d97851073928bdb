//! Where in its layer each vertex stands.

use super::level::Neighbour;
use super::order::Links;

/// Down and up this often; more changes little.
const SWEEPS: usize = 5;
/// Rounds of straightening lines once the boxes stand.
const STRAIGHTENINGS: usize = 6;

/// The space of a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexSpace {
    pub(super) width: f64,
    /// The space it wants to its neighbours.
    pub(super) margin: f64,
    /// How much it insists on standing straight below what leads to it.
    pub(super) weight: f64,
    /// How much it insists on staying when lines are straightened.
    pub(super) firmness: f64,
}

/// The centre of each vertex. The order of the layers is kept, and nothing overlaps. `lanes` are the
/// vertices of each line that are no boxes.
pub(super) fn centres(
    layers: &[Vec<usize>],
    links: &Links,
    bodies: &[VertexSpace],
    lanes: &[&[usize]],
) -> Vec<f64> {
    let mut centres = vec![0.0; bodies.len()];
    for layer in layers {
        settle(layer, &vec![0.0; layer.len()], bodies, &mut centres);
    }
    for _ in 0..SWEEPS {
        for layer in layers {
            sweep(layer, [&links.above, &[]], bodies, &mut centres);
        }
        for layer in layers.iter().rev() {
            sweep(layer, [&links.below, &[]], bodies, &mut centres);
        }
    }
    for layer in layers {
        sweep(layer, [&links.above, &links.below], bodies, &mut centres);
    }
    straighten(layers, bodies, lanes, &mut centres);
    let left = layers.iter().flatten().map(|vertex| centres[*vertex] - bodies[*vertex].width / 2.0);
    let left = left.fold(f64::INFINITY, f64::min);
    centres.iter().map(|centre| centre - left).collect()
}

/// Moves a layer to where its neighbours on some sides are.
fn sweep(layer: &[usize], sides: [&[Vec<Neighbour>]; 2], bodies: &[VertexSpace], centres: &mut [f64]) {
    let wanted = |vertex: &usize| {
        let neighbours = sides.iter().filter_map(|side| side.get(*vertex)).flatten();
        mean(neighbours, bodies, centres).unwrap_or(centres[*vertex])
    };
    let wanted: Vec<f64> = layer.iter().map(wanted).collect();
    settle(layer, &wanted, bodies, centres);
}

/// Lets every line run straight down through the layers it passes, where boxes leave room.
fn straighten(layers: &[Vec<usize>], bodies: &[VertexSpace], lanes: &[&[usize]], centres: &mut [f64]) {
    let firm: Vec<VertexSpace> =
        bodies.iter().map(|body| VertexSpace { weight: body.firmness, ..*body }).collect();
    for _ in 0..STRAIGHTENINGS {
        let mut wanted = centres.to_vec();
        for line in lanes {
            let sum: f64 = line.iter().map(|lane| centres[*lane]).sum();
            for lane in *line {
                wanted[*lane] = sum / f64::from(line.len() as u32);
            }
        }
        for layer in layers {
            let wanted: Vec<f64> = layer.iter().map(|vertex| wanted[*vertex]).collect();
            settle(layer, &wanted, &firm, centres);
        }
    }
}

fn mean<'n>(
    neighbours: impl Iterator<Item = &'n Neighbour>,
    bodies: &[VertexSpace],
    centres: &[f64],
) -> Option<f64> {
    let x = |it: &Neighbour| centres[it.vertex] + (it.share - 0.5) * bodies[it.vertex].width;
    let (sum, count) = neighbours.fold((0.0, 0), |(sum, count), it| (sum + x(it), count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// A run of vertices that touch and move as one.
struct TouchingRun {
    first: usize,
    weight: f64,
    /// Where its members want to be, less the space that those before them take.
    mean: f64,
}

/// Gives each vertex of a layer the place nearest to the wanted one, by the least squares: vertices that
/// would overlap join into runs, and runs into longer ones.
fn settle(layer: &[usize], wanted: &[f64], bodies: &[VertexSpace], centres: &mut [f64]) {
    let mut taken = Vec::with_capacity(layer.len());
    let mut runs: Vec<TouchingRun> = Vec::new();
    for (at, vertex) in layer.iter().enumerate() {
        taken.push(match at.checked_sub(1) {
            None => 0.0,
            Some(before) => taken[before] + distance(&bodies[layer[before]], &bodies[*vertex]),
        });
        let mut run = TouchingRun { first: at, weight: bodies[*vertex].weight, mean: wanted[at] - taken[at] };
        while let Some(before) = runs.pop_if(|before| before.mean > run.mean) {
            let weight = before.weight + run.weight;
            let mean = (before.mean * before.weight + run.mean * run.weight) / weight;
            run = TouchingRun { first: before.first, weight, mean };
        }
        runs.push(run);
    }
    for (at, run) in runs.iter().enumerate() {
        let end = runs.get(at + 1).map_or(layer.len(), |next| next.first);
        for member in run.first..end {
            centres[layer[member]] = run.mean + taken[member];
        }
    }
}

fn distance(left: &VertexSpace, right: &VertexSpace) -> f64 {
    f64::midpoint(left.width, right.width) + left.margin.max(right.margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_that_want_one_place_share_it() {
        let body = VertexSpace { width: 10.0, margin: 2.0, weight: 1.0, firmness: 1.0 };
        let mut centres = vec![0.0; 3];
        settle(&[0, 1, 2], &[50.0, 50.0, 100.0], &[body; 3], &mut centres);
        assert_eq!(centres, [44.0, 56.0, 100.0]);
    }
}
