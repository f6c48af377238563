//! Knowledge about numbers from comparing them.

use super::bits::Bits;
use super::scalar::Scalar;
use crate::{Condition, Size, Width};

/// Possible values of both operands for an outcome of the condition; none if it is impossible.
pub fn refine(
    condition: Condition,
    holds: bool,
    width: Width,
    left: Scalar,
    right: Scalar,
) -> Option<(Scalar, Scalar)> {
    if width == Width::W64 {
        return compare(condition, holds, left, right);
    }
    let view = |scalar: Scalar| match condition {
        Condition::SignedGreater
        | Condition::SignedGreaterEqual
        | Condition::SignedLess
        | Condition::SignedLessEqual => scalar.extend(Size::Word, Width::W64),
        _ => scalar.low_half(),
    };
    let (low_left, low_right) = compare(condition, holds, view(left), view(right))?;
    Some((left.with_low(&low_left)?, right.with_low(&low_right)?))
}

fn compare(condition: Condition, holds: bool, left: Scalar, right: Scalar) -> Option<(Scalar, Scalar)> {
    let condition = match (holds, condition.negated()) {
        (true, _) => condition,
        (false, Some(negated)) => negated,
        (false, None) => return Some((without_bits(left, right)?, without_bits(right, left)?)),
    };
    let swapped = |(right, left)| (left, right);
    match condition {
        Condition::Equal => left.meet(right).map(|both| (both, both)),
        Condition::NotEqual => Some((without(left, right)?, without(right, left)?)),
        Condition::BitsSet => Some((with_bits(left, right)?, with_bits(right, left)?)),
        Condition::Greater => greater(left, right, 1),
        Condition::GreaterEqual => greater(left, right, 0),
        Condition::Less => greater(right, left, 1).map(swapped),
        Condition::LessEqual => greater(right, left, 0).map(swapped),
        Condition::SignedGreater => greater_signed(left, right, 1),
        Condition::SignedGreaterEqual => greater_signed(left, right, 0),
        Condition::SignedLess => greater_signed(right, left, 1).map(swapped),
        Condition::SignedLessEqual => greater_signed(right, left, 0).map(swapped),
    }
}

/// `left` greater than `right` by at least `by`.
fn greater(mut left: Scalar, mut right: Scalar, by: u64) -> Option<(Scalar, Scalar)> {
    left.min = left.min.max(right.min.checked_add(by)?);
    right.max = right.max.min(left.max.checked_sub(by)?);
    Some((left.settle()?, right.settle()?))
}

fn greater_signed(mut left: Scalar, mut right: Scalar, by: i64) -> Option<(Scalar, Scalar)> {
    left.signed_min = left.signed_min.max(right.signed_min.checked_add(by)?);
    right.signed_max = right.signed_max.min(left.signed_max.checked_sub(by)?);
    Some((left.settle()?, right.settle()?))
}

/// `left` without `right`.
fn without(mut left: Scalar, right: Scalar) -> Option<Scalar> {
    let Some(value) = right.as_constant() else { return Some(left) };
    if left.as_constant() == Some(value) {
        return None;
    }
    if left.min == value {
        left.min = left.min.saturating_add(1);
    }
    if left.max == value {
        left.max = left.max.saturating_sub(1);
    }
    if left.signed_min == value as i64 {
        left.signed_min = left.signed_min.saturating_add(1);
    }
    if left.signed_max == value as i64 {
        left.signed_max = left.signed_max.saturating_sub(1);
    }
    left.settle()
}

/// `left` with a bit in common with `right`.
fn with_bits(left: Scalar, right: Scalar) -> Option<Scalar> {
    let common = left.bits.max() & right.bits.max();
    match common.count_ones() {
        0 => None,
        1 => {
            let bits = left.bits.meet(Bits { value: common, unknown: !common })?;
            Scalar { bits, ..left }.settle()
        }
        _ => Some(left),
    }
}

/// `left` without a bit in common with `right`.
fn without_bits(left: Scalar, right: Scalar) -> Option<Scalar> {
    let bits = left.bits.meet(Bits { value: 0, unknown: !right.bits.value })?;
    Scalar { bits, ..left }.settle()
}
