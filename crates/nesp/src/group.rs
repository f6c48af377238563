//! Groups: requests whose parts come in separate messages and are executed together.

use crate::body::{Operation, Request};
use crate::item::{ErrorCode, Item, Items};

/// Time limit for the parts of a group, in nanoseconds.
const PATIENCE: u64 = 30_000_000_000;

/// An incomplete group. Its size is bounded by that of a message and by the number of parts.
#[derive(Debug)]
pub(crate) struct Group {
    number: u32,
    operation: Operation,
    time: u64,
    parts: Vec<Option<Items<'static>>>,
    begun: u64,
}

/// Outcome of a part.
pub(crate) enum GroupState {
    /// Other parts are missing.
    Partial,
    /// The last part: all items, in the order of the parts.
    Whole(Items<'static>),
    /// The part is inconsistent with the others.
    Refused(ErrorCode, &'static str),
}

/// Adds a part to a session's open group. A part of another group starts that one, and discards the previous
/// group.
pub(crate) fn add(open: &mut Option<Group>, request: Request<'_>, now: u64) -> GroupState {
    let items = request.items.into_iter().map(Item::into_owned).collect();
    if request.parts == 1 {
        return GroupState::Whole(items);
    }
    let current =
        |group: &&mut Group| group.number == request.group && now.saturating_sub(group.begun) <= PATIENCE;
    if open.as_mut().filter(current).is_none() {
        *open = Some(Group {
            number: request.group,
            operation: request.operation,
            time: request.time,
            parts: vec![None; usize::from(request.parts)],
            begun: now,
        });
    }
    let Some(group) = open else { return GroupState::Partial };
    let same = (group.operation, group.time, group.parts.len())
        == (request.operation, request.time, usize::from(request.parts));
    if !same {
        *open = None;
        return GroupState::Refused(
            ErrorCode::BadRequest,
            "the parts of a group differ in operation, time or number",
        );
    }
    group.parts[usize::from(request.part)] = Some(items);
    if group.parts.iter().any(Option::is_none) {
        return GroupState::Partial;
    }
    let parts = open.take().map(|group| group.parts).unwrap_or_default();
    GroupState::Whole(parts.into_iter().flatten().flatten().collect())
}
