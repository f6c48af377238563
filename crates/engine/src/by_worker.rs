//! Requests about several objects: each worker is asked once about its own.

/// Items by their workers.
pub(crate) struct ByWorker<P> {
    /// The workers and their items.
    pub parts: Vec<(u32, Vec<P>)>,
    /// For each item, the index of its part.
    pub order: Vec<usize>,
}

impl<P> ByWorker<P> {
    /// Groups items, given with their workers.
    pub fn new(items: impl IntoIterator<Item = (u32, P)>) -> Self {
        let mut all = Self { parts: Vec::new(), order: Vec::new() };
        for (worker, item) in items {
            let part = all.parts.iter().position(|(known, _)| *known == worker).unwrap_or_else(|| {
                all.parts.push((worker, Vec::new()));
                all.parts.len() - 1
            });
            all.parts[part].1.push(item);
            all.order.push(part);
        }
        all
    }
}

/// The answers about single items, in the items' order, from those of each part.
pub(crate) fn in_order<T>(order: &[usize], parts: Vec<Vec<T>>) -> Vec<T> {
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    order.iter().filter_map(|&part| parts[part].next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_order_of_the_items() {
        let ByWorker { parts, order } = ByWorker::new([(3, 'a'), (1, 'b'), (3, 'c'), (0, 'd'), (1, 'e')]);
        assert_eq!(parts, [(3, vec!['a', 'c']), (1, vec!['b', 'e']), (0, vec!['d'])]);
        let answers = parts.into_iter().map(|(_, items)| items).collect();
        assert_eq!(in_order(&order, answers), ['a', 'b', 'c', 'd', 'e']);
    }
}
