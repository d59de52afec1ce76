//! Which nodes of a directed graph lie on common cycles.

use crate::error::Result;
use crate::limits::Fuel;

/// Many short lists of numbers in one vector: the targets of the nodes of a graph.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Lists {
    members: Vec<usize>,
    /// List `i` ends here, and starts where the one before it ends.
    ends: Vec<usize>,
}

impl Lists {
    /// Adds a list.
    pub fn push(&mut self, list: impl IntoIterator<Item = usize>) {
        self.members.extend(list);
        self.ends.push(self.members.len());
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// A list.
    pub fn get(&self, at: usize) -> &[usize] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start..self.ends[at]]
    }

    /// All lists, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The members of all lists, in order.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// For each node of a graph the nodes that lead to it.
    pub fn reversed(&self) -> Self {
        // Where the list of each node ends, by the number of its members.
        let mut ends = vec![0; self.len()];
        self.members.iter().for_each(|&target| ends[target] += 1);
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        let mut members = vec![0; self.members.len()];
        let mut next = ends.clone();
        for node in (0..self.len()).rev() {
            for &target in self.get(node).iter().rev() {
                next[target] -= 1;
                members[next[target]] = node;
            }
        }
        Self { members, ends }
    }
}

/// The strongly connected components of a graph, each sorted, callees before callers (Tarjan's
/// algorithm, with a list of open nodes instead of recursion).
///
/// `a -> b -> c -> b` has the components `{b, c}` and then `{a}`.
pub(super) fn components(edges: &Lists, fuel: &mut Fuel) -> Result<Lists> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut lowest = vec![0; edges.len()];
    let mut on_path = vec![false; edges.len()];
    let (mut path, mut open, mut count) = (Vec::new(), Vec::new(), 0);
    let mut out = Lists::default();
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
            let target = edges.get(node).get(*next).copied();
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
                        path[start..].iter().for_each(|&other| on_path[other] = false);
                        path[start..].sort_unstable();
                        out.push(path.drain(start..));
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Whether a component is a cycle: several nodes, or one with an edge to itself.
pub(super) fn is_cycle(component: &[usize], edges: &Lists) -> bool {
    match *component {
        [only] => edges.get(only).contains(&only),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_first() {
        let mut edges = Lists::default();
        for targets in [vec![1], vec![2], vec![1], vec![0, 3], vec![]] {
            edges.push(targets);
        }
        let found = components(&edges, &mut Fuel::new(1000)).unwrap();
        assert!(found.iter().eq([vec![1, 2], vec![0], vec![3], vec![4]]));
        assert!(edges.reversed().iter().eq([vec![3], vec![0, 2], vec![1], vec![3], vec![]]));
        assert_eq!(edges.reversed().reversed(), edges);
        let cycles: Vec<bool> = found.iter().map(|part| is_cycle(part, &edges)).collect();
        assert_eq!(cycles, [true, false, true, false]);
    }
}
