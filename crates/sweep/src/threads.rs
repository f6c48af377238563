//! Work on threads, with results in order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Results for each thread that may wait for an earlier one.
const AHEAD: usize = 64;

struct Shared<T> {
    state: Mutex<Progress<T>>,
    changed: Condvar,
}

struct Progress<T> {
    /// The first that no thread has begun.
    next: usize,
    /// The first that was not taken.
    taken: usize,
    /// Results that are ready, by place.
    ready: BTreeMap<usize, T>,
    over: bool,
}

impl<T> Shared<T> {
    /// The state is consistent even if a thread panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, Progress<T>>) -> MutexGuard<'s, Progress<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of the next piece of work, once it is not too far ahead; none if there is none.
    fn next(&self, count: usize, ahead: usize) -> Option<usize> {
        let mut state = self.lock();
        while !state.over && state.next < count && state.next >= state.taken + ahead {
            state = self.wait(state);
        }
        let place = state.next;
        state.next += 1;
        (!state.over && place < count).then_some(place)
    }

    fn give(&self, place: usize, result: T) {
        self.lock().ready.insert(place, result);
        self.changed.notify_all();
    }

    /// Waits for the result at this place.
    fn take(&self, place: usize) -> T {
        let mut state = self.lock();
        loop {
            if let Some(result) = state.ready.remove(&place) {
                state.taken = place + 1;
                self.changed.notify_all();
                return result;
            }
            state = self.wait(state);
        }
    }
}

/// Ends the threads when it is dropped: also if results are not wanted any more.
struct Ending<'s, T>(&'s Shared<T>);

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

/// Gives the result of `work` on each item to `take`, in the order of the items. `work` runs on `threads`
/// threads and must not panic.
///
/// # Errors
/// The first error of `take`, after which no more work is begun.
pub fn run_in_order<I: Copy + Sync, T: Send, E>(
    items: &[I],
    threads: usize,
    work: impl Fn(I) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.clamp(1, items.len().max(1));
    let state = Progress { next: 0, taken: 0, ready: BTreeMap::new(), over: false };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let _ending = Ending(&shared);
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(place) = shared.next(items.len(), AHEAD * threads) {
                    shared.give(place, work(items[place]));
                }
            });
        }
        (0..items.len()).try_for_each(|place| take(shared.take(place)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_order_and_not_too_far_ahead() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [0, 1, 3, 8] {
            let (begun, mut seen) = (AtomicUsize::new(0), Vec::new());
            let work = |item: usize| {
                begun.fetch_add(1, Ordering::SeqCst);
                // Neighbours take different times.
                (0..(item * 7919) % 2000).for_each(|n| {
                    std::hint::black_box(n);
                });
                item
            };
            let take = |item| {
                assert!(begun.load(Ordering::SeqCst) <= seen.len() + 1 + AHEAD * threads.max(1));
                seen.push(item);
                Ok::<_, ()>(())
            };
            run_in_order(&items, threads, work, take).unwrap();
            assert_eq!(seen, items);
        }
    }

    #[test]
    fn an_error_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..100_000).collect();
        let work = |item: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            item
        };
        let ended = run_in_order(&items, 2, work, |item| if item == 10 { Err("full") } else { Ok(()) });
        assert_eq!(ended, Err("full"));
        assert!(begun.load(Ordering::SeqCst) < 1000);
        assert_eq!(run_in_order(&[], 2, |item: usize| item, |_| Err("none")), Ok(()));
    }
}
