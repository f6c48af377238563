//! The table of a distribution: the quantile function at evenly spaced probabilities, linear between them.

use longwire_units::Probability;

/// The most cells of a table.
pub(super) const MAX_CELLS: usize = 16_384;

/// Fractional bits of a looked-up value in addition to the knots' own.
pub(super) const FRACTION: u32 = 32;

/// n + 1 ascending knots Q(0), Q(1/n), … Q(1), in the owner's fixed-point unit. n is from 1 to [`MAX_CELLS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table<K> {
    knots: Box<[K]>,
}

impl<K: Copy + Into<i64>> Table<K> {
    /// A table of these knots.
    pub(super) fn new(knots: Box<[K]>) -> Self {
        debug_assert!((2..=MAX_CELLS + 1).contains(&knots.len()));
        debug_assert!(knots.windows(2).all(|pair| pair[0].into() <= pair[1].into()));
        Self { knots }
    }

    /// Number of cells.
    pub(super) fn cells(&self) -> usize {
        self.knots.len() - 1
    }

    /// The least and the greatest value.
    pub(super) fn ends(&self) -> (i64, i64) {
        (self.knots[0].into(), self.knots[self.cells()].into())
    }

    /// 2n times the mean: a cell's mean is the middle of its two knots.
    pub(super) fn doubled_sum(&self) -> i128 {
        doubled_sum(self.knots.iter().map(|&knot| knot.into()))
    }

    /// 3n times the mean of the squares of the differences to `above`: (a² + a·b + b²)/3 in each cell.
    pub(super) fn tripled_squares(&self, above: i64) -> i128 {
        let over = |knot: K| i128::from(knot.into()) - i128::from(above);
        let squares = self.knots.windows(2).map(|pair| {
            let (a, b) = (over(pair[0]), over(pair[1]));
            a * a + a * b + b * b
        });
        squares.sum()
    }

    /// The knots.
    pub(super) fn knots(&self) -> impl Iterator<Item = i64> {
        self.knots.iter().map(|&knot| knot.into())
    }

    /// The two knots around the probability `draw`/2⁶⁴, and the position between them, in odd 2⁻³²nds: the
    /// middle of each of 2³¹ steps, so that the mean over all draws is exactly the cell's.
    #[inline]
    fn look_up(&self, draw: u64) -> (K, K, i64) {
        let position = u128::from(draw) * self.cells() as u128;
        let cell = (position >> 64) as usize;
        let between = (position as u64 >> 32) | 1;
        (self.knots[cell], self.knots[cell + 1], between as i64)
    }
}

impl Table<i32> {
    /// The value at the probability `draw`/2⁶⁴, with [`FRACTION`] additional fractional bits. The knots are
    /// within ±2³⁰.
    #[inline]
    pub(super) fn at(&self, draw: u64) -> i64 {
        let (low, high, between) = self.look_up(draw);
        (i64::from(low) << FRACTION) + i64::from(high - low) * between
    }
}

impl Table<i64> {
    /// The value at the probability `draw`/2⁶⁴, with [`FRACTION`] additional fractional bits. The knots are
    /// within ±2⁶².
    #[inline]
    pub(super) fn at(&self, draw: u64) -> i128 {
        let (low, high, between) = self.look_up(draw);
        (i128::from(low) << FRACTION) + i128::from(high - low) * i128::from(between)
    }
}

/// Twice the sum of the `knots`, with half weight for the first and the last.
pub(super) fn doubled_sum(knots: impl Iterator<Item = i64>) -> i128 {
    let (mut sum, mut first, mut last) = (0, None, 0);
    for knot in knots {
        last = knot;
        first.get_or_insert(knot);
        sum += 2 * i128::from(knot);
    }
    sum - i128::from(first.unwrap_or(0)) - i128::from(last)
}

/// Knots, in half the unit of the `means`, of a table whose cells have these means on average: between two
/// cells the middle of their means, at the ends the mean itself. The table's mean is exactly that of the
/// means, and no value lies outside them.
pub(super) fn knots_of_means(means: &[i64]) -> Vec<i64> {
    let (Some(first), Some(last)) = (means.first(), means.last()) else { return Vec::new() };
    let inner = means.windows(2).map(|pair| pair[0] + pair[1]);
    std::iter::once(2 * first).chain(inner).chain([2 * last]).collect()
}

/// A probability distribution as ascending points (C, x) of its quantile function, linear between them; two
/// points with the same C are a jump.
pub(super) struct Curve {
    /// C and x. The first C is 0, the last one 1 or the truncation.
    pub(super) points: Vec<(Probability, i64)>,
}

impl Curve {
    /// The means of `cells` cells of equal probability, between 0 and the last point's, each rounded down.
    pub(super) fn means(&self, cells: usize) -> Vec<i64> {
        let top = self.points.last().map_or(0, |point| u128::from(point.0.bits()));
        let edge = |cell: usize| (top * cell as u128 / cells as u128) as u64;
        let mut segment = 0;
        let mean = |cell| {
            let (from, to) = (edge(cell), edge(cell + 1));
            let mut doubled = 0;
            let mut at = from;
            while at < to && segment + 1 < self.points.len() {
                let end = self.points[segment + 1].0.bits();
                let upto = end.min(to).max(at);
                doubled += (self.height(segment, at) + self.height(segment, upto)) * i128::from(upto - at);
                at = upto;
                segment += usize::from(end <= to);
            }
            (doubled / (2 * i128::from((to - from).max(1)))) as i64
        };
        (0..cells).map(mean).collect()
    }

    /// The x of each point, if the C are 0, 1/n, 2/n … 1.
    pub(super) fn even(&self) -> Option<Vec<i64>> {
        let cells = self.points.len().checked_sub(1).filter(|cells| (1..=MAX_CELLS).contains(cells))?;
        let one = u128::from(Probability::ONE.bits());
        let there = |(index, point): (usize, &(Probability, i64))| {
            let wanted = one * index as u128 / cells as u128;
            wanted.abs_diff(u128::from(point.0.bits())) <= 1
        };
        self.points.iter().enumerate().all(there).then(|| self.points.iter().map(|point| point.1).collect())
    }

    /// x at the probability `at`, on the line from point `segment` to the next.
    fn height(&self, segment: usize, at: u64) -> i128 {
        let ((from, low), (to, high)) = (self.points[segment], self.points[segment + 1]);
        let width = i128::from(to.bits()) - i128::from(from.bits());
        let part = i128::from(at) - i128::from(from.bits());
        i128::from(low) + (i128::from(high) - i128::from(low)) * part / width.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(&str, i64)]) -> Curve {
        Curve { points: points.iter().map(|&(c, x)| (c.parse().unwrap(), x)).collect() }
    }

    #[test]
    fn looks_up_between_knots() {
        let table = Table::new(vec![0, 100, 100, 400].into_boxed_slice());
        let third = u64::MAX / 3;
        for (draw, wanted) in
            [(0, 0), (third / 2, 50), (third + 2, 100), (third * 2, 100), (third / 2 * 5, 250)]
        {
            assert_eq!((Table::<i32>::at(&table, draw) + (1 << 31)) >> FRACTION, wanted, "{draw}");
        }
        let wide = Table::new(vec![0i64, 1 << 62].into_boxed_slice());
        assert_eq!(wide.at(1 << 63) >> FRACTION, (1 << 61) + (1 << 30));
        assert!(wide.at(u64::MAX) < 1i128 << (62 + FRACTION));
    }

    #[test]
    fn sums_and_squares() {
        let table = Table::new(vec![-3, 1, 5].into_boxed_slice());
        assert_eq!((table.cells(), Table::<i32>::ends(&table)), (2, (-3, 5)));
        // Means −1 and 3; squares (9 − 3 + 1)/3 and (1 + 5 + 25)/3.
        assert_eq!((table.doubled_sum(), table.tripled_squares(0)), (4, 38));
        // About 1: (16 + 0 + 0)/3 and (0 + 0 + 16)/3.
        assert_eq!(table.tripled_squares(1), 32);
    }

    #[test]
    fn knots_keep_the_mean_and_the_ends() {
        for means in [&[7][..], &[1, 2], &[-5, 0, 1, 1, 100]] {
            let knots = knots_of_means(means);
            assert_eq!(knots.len(), means.len() + 1);
            let sum: i64 = means.iter().sum();
            assert_eq!(doubled_sum(knots.iter().copied()), i128::from(4 * sum));
            assert_eq!((knots[0], knots[means.len()]), (2 * means[0], 2 * means[means.len() - 1]));
        }
        assert!(knots_of_means(&[]).is_empty());
    }

    #[test]
    fn means_of_a_curve() {
        let line = curve(&[("0", 0), ("1", 800)]);
        assert_eq!(line.means(4), [100, 300, 500, 700]);
        let step = curve(&[("0", 200), ("0.5", 200), ("0.5", 300), ("1", 300)]);
        assert_eq!(step.means(4), [200, 200, 300, 300]);
        assert_eq!(step.means(1), [250]);
        // A corner within a cell: 0 up to a quarter, then up to 300; the halves have means (0·½ + 50·½) and
        // 200.
        let corner = curve(&[("0", 0), ("0.25", 0), ("1", 300)]);
        assert_eq!(corner.means(2), [25, 200]);
        // Cut at a half.
        let cut = curve(&[("0", 0), ("0.5", 100)]);
        assert_eq!(cut.means(2), [25, 75]);
    }

    #[test]
    fn even_points_are_kept_as_they_are() {
        assert_eq!(curve(&[("0", 1), ("0.5", 4), ("1", 9)]).even(), Some(vec![1, 4, 9]));
        assert_eq!(curve(&[("0", 1), ("0.4", 4), ("1", 9)]).even(), None);
        assert_eq!(curve(&[("0", 1), ("0", 4), ("1", 9)]).even(), None);
    }
}
