//! Vectors in three dimensions.

/// Coordinates in km.
pub(crate) type Vector = [f64; 3];

/// Scalar product.
pub(crate) fn dot(one: Vector, other: Vector) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

/// The vector from `from` to `to`.
pub(crate) fn difference(from: Vector, to: Vector) -> Vector {
    [to[0] - from[0], to[1] - from[1], to[2] - from[2]]
}

/// Length in km.
pub(crate) fn length(vector: Vector) -> f64 {
    dot(vector, vector).sqrt()
}

/// Distance in km.
pub(crate) fn distance(from: Vector, to: Vector) -> f64 {
    length(difference(from, to))
}
