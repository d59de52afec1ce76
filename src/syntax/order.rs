//! Which nodes of a directed graph lie on common cycles.

use crate::error::Result;
use crate::limits::Fuel;

/// The strongly connected components of a graph, each sorted, callees before callers (Tarjan's
/// algorithm, with a list of open nodes instead of recursion).
///
/// `a -> b -> c -> b` has the components `{b, c}` and then `{a}`.
pub(super) fn components(edges: &[Vec<usize>], fuel: &mut Fuel) -> Result<Vec<Vec<usize>>> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut lowest = vec![0; edges.len()];
    let mut on_path = vec![false; edges.len()];
    let (mut path, mut open, mut count, mut out) = (Vec::new(), Vec::new(), 0, Vec::new());
    for root in 0..edges.len() {
        if number[root] == NEW {
            open.push((root, 0));
        }
        while let Some(&mut (node, ref mut next)) = open.last_mut() {
            fuel.spend(1)?;
            if *next == 0 {
                (number[node], lowest[node], on_path[node]) = (count, count, true);
                count += 1;
                path.push(node);
            }
            let target = edges[node].get(*next).copied();
            *next += 1;
            match target {
                Some(target) if number[target] == NEW => open.push((target, 0)),
                Some(target) if on_path[target] => lowest[node] = lowest[node].min(number[target]),
                Some(_) => {}
                None => {
                    open.pop();
                    if let Some(&(above, _)) = open.last() {
                        lowest[above] = lowest[above].min(lowest[node]);
                    }
                    if lowest[node] == number[node] {
                        let start = path.iter().rposition(|&other| other == node).unwrap_or(0);
                        let mut component = path.split_off(start);
                        component.iter().for_each(|&other| on_path[other] = false);
                        component.sort_unstable();
                        out.push(component);
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Whether a component is a cycle: several nodes, or one with an edge to itself.
pub(super) fn is_cycle(component: &[usize], edges: &[Vec<usize>]) -> bool {
    match *component {
        [only] => edges[only].contains(&only),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_first() {
        let edges = vec![vec![1], vec![2], vec![1], vec![0, 3], vec![]];
        let found = components(&edges, &mut Fuel::new(1000)).unwrap();
        assert_eq!(found, [vec![1, 2], vec![0], vec![3], vec![4]]);
        let cycles: Vec<bool> = found.iter().map(|part| is_cycle(part, &edges)).collect();
        assert_eq!(cycles, [true, false, true, false]);
    }
}
