//! The tree of HFSC's classes: deadlines and virtual times.

use super::classes::Scheduler;
use super::curve::{Curve, Service};
use super::heap::Heap;
use longwire_units::{Nanos, Rate};

/// The link itself.
pub(super) const ROOT: usize = 0;
/// Time for which unused credit of an upper limit is kept.
const CREDIT: u128 = 10_000_000;

/// Curves of a class; the first is [`ROOT`], and parents precede their children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curves {
    pub(super) parent: usize,
    pub(super) real_time: Option<Service>,
    pub(super) share: Option<Service>,
    pub(super) upper: Option<Service>,
}

/// Classes, and those that hold packets.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    pub classes: Vec<Curves>,
    pub leaves: Vec<usize>,
}

/// See the module.
#[derive(Debug)]
pub struct Tree {
    classes: Box<[Class]>,
    /// Classes that hold packets, with their guarantees.
    leaves: Box<[Leaf]>,
    /// Leaves that are not eligible yet, by eligible time; the others, by deadline.
    pending: Heap,
    due: Heap,
    /// Whether the last selection was by deadline.
    by_deadline: bool,
}

/// A class among its siblings.
#[derive(Debug, Default)]
struct Class {
    parent: usize,
    /// Its place among its siblings.
    slot: usize,
    leaf: Option<usize>,
    share: Option<Service>,
    upper: Option<Service>,
    /// Whether it participates in its parent's sharing.
    active: bool,
    /// All service, in bytes.
    total: u64,
    /// Virtual time, and its curve.
    time: u128,
    curve: Curve,
    /// Time at which its own upper limit lets it send, and the limit's curve.
    free: u128,
    limit: Curve,
    /// Time at which it, and something in it, may send.
    fit: u128,
    brood: Brood,
}

/// A class's data about its children.
#[derive(Debug, Default)]
struct Brood {
    classes: Box<[usize]>,
    active: usize,
    /// Children that may send, by virtual time; the others, by the time at which they may.
    fit: Heap,
    unfit: Heap,
    /// Virtual time of the child last selected; the highest reached by a selected one, and by any.
    floor: u128,
    selected: u128,
    top: u128,
}

#[derive(Debug, Default)]
struct Leaf {
    class: usize,
    real_time: Option<Service>,
    deadlines: Curve,
    eligible: Curve,
    /// Service for deadlines, in bytes.
    served: u64,
    deadline: u128,
}

impl Scheduler for Tree {
    type Plan = Plan;

    fn new(plan: &Plan) -> Self {
        let class = |number: usize| {
            let Curves { parent, share, upper, .. } = plan.classes[number];
            let of = |parent: usize| {
                let children =
                    (ROOT + 1..plan.classes.len()).filter(move |&n| plan.classes[n].parent == parent);
                children.collect::<Box<[usize]>>()
            };
            let slot = if number == ROOT { None } else { of(parent).iter().position(|&n| n == number) };
            Class {
                parent,
                slot: slot.unwrap_or(0),
                leaf: plan.leaves.iter().position(|&leaf| leaf == number),
                share,
                upper,
                brood: Brood::new(of(number)),
                ..Class::default()
            }
        };
        let leaf = |&class: &usize| {
            let real_time = plan.classes[class].real_time;
            Leaf { class, real_time, ..Leaf::default() }
        };
        Self {
            classes: (0..plan.classes.len()).map(class).collect(),
            leaves: plan.leaves.iter().map(leaf).collect(),
            pending: Heap::new(plan.leaves.len()),
            due: Heap::new(plan.leaves.len()),
            by_deadline: false,
        }
    }

    fn memory_bytes(&self) -> usize {
        let of_brood = |brood: &Brood| {
            size_of_val(&*brood.classes) + brood.fit.memory_bytes() + brood.unfit.memory_bytes()
        };
        let broods: usize = self.classes.iter().map(|class| of_brood(&class.brood)).sum();
        let heaps = self.pending.memory_bytes() + self.due.memory_bytes();
        size_of_val(&*self.classes) + size_of_val(&*self.leaves) + heaps + broods
    }

    fn wake(&mut self, leaf: usize, bytes: u64, now: Nanos, _: Rate) {
        let this = &mut self.leaves[leaf];
        if let Some(service) = &this.real_time {
            this.deadlines.join(service, now.0.into(), this.served);
            this.eligible = this.deadlines.eligible(service);
            self.stamp(leaf, bytes);
        }
        let class = self.leaves[leaf].class;
        if self.classes[class].share.is_some() {
            self.activate(class, now.0.into());
        }
    }

    /// A parent resets its children's order when the last of them becomes passive.
    fn rest(&mut self) {}

    /// The real-time criterion: the earliest deadline among eligible leaves. Without one, the link-sharing
    /// criterion: from the root down, the smallest virtual time among children whose upper limits let them
    /// send.
    #[inline]
    fn select(&mut self, now: Nanos) -> Option<usize> {
        let now = u128::from(now.0);
        while let Some((eligible, leaf)) = self.pending.first()
            && eligible <= now
        {
            self.pending.remove(leaf);
            self.due.set(leaf, self.leaves[leaf].deadline);
        }
        self.by_deadline = true;
        if let Some((_, leaf)) = self.due.first() {
            return Some(leaf);
        }
        self.by_deadline = false;
        if self.classes[ROOT].brood.active == 0 || self.classes[ROOT].free > now {
            return None;
        }
        let mut class = ROOT;
        while self.classes[class].leaf.is_none() {
            class = self.select_child(class, now)?;
        }
        self.classes[class].leaf
    }

    fn resume(&self, now: Nanos) -> Nanos {
        let eligible = self.pending.first().map_or(u128::MAX, |(time, _)| time);
        let root = &self.classes[ROOT];
        let fit = if root.brood.active > 0 { root.fit } else { u128::MAX };
        Nanos(u64::try_from(eligible.min(fit)).unwrap_or(u64::MAX)).max(now + Nanos(1))
    }

    #[inline]
    fn serve(&mut self, leaf: usize, bytes: u64, next: Option<u64>, now: Nanos) {
        let this = &mut self.leaves[leaf];
        this.served += if self.by_deadline { bytes } else { 0 };
        let mut class = this.class;
        if this.real_time.is_some() {
            self.due.remove(leaf);
            self.pending.remove(leaf);
            if let Some(bytes) = next {
                self.stamp(leaf, bytes);
            }
        }
        let mut stays = next.is_some();
        while class != ROOT {
            self.charge(class, bytes, stays, now.0.into());
            class = self.classes[class].parent;
            stays = self.classes[class].brood.active > 0;
        }
        let root = &mut self.classes[ROOT];
        root.total += bytes;
        root.refit(now.0.into());
    }
}

impl Tree {
    /// Records when a leaf's first packet is eligible and due: e = E⁻¹(c), d = D⁻¹(c + L).
    #[inline]
    fn stamp(&mut self, leaf: usize, bytes: u64) {
        let this = &mut self.leaves[leaf];
        let Some(service) = &this.real_time else { return };
        this.deadline = this.deadlines.inverse(service, this.served.saturating_add(bytes));
        self.pending.set(leaf, this.eligible.inverse(service, this.served));
    }

    /// The child of a class that sends next.
    #[inline]
    fn select_child(&mut self, class: usize, now: u128) -> Option<usize> {
        while let Some((fit, slot)) = self.classes[class].brood.unfit.first()
            && fit <= now
        {
            let child = self.classes[class].brood.classes[slot];
            let time = self.classes[child].time;
            let brood = &mut self.classes[class].brood;
            brood.unfit.remove(slot);
            brood.fit.set(slot, time);
        }
        let brood = &mut self.classes[class].brood;
        let (time, slot) = brood.fit.first()?;
        brood.floor = brood.floor.max(time);
        Some(brood.classes[slot])
    }

    /// Activates a passive class, and its ancestors.
    fn activate(&mut self, class: usize, now: u128) {
        let mut class = class;
        let mut others = false;
        while class != ROOT && !others {
            let parent = self.classes[class].parent;
            let brood = &mut self.classes[parent].brood;
            let system = brood.floor + (brood.selected - brood.floor) / 2;
            others = brood.active > 0;
            brood.active += 1;
            let time = self.classes[class].join(system, now);
            self.classes[parent].brood.reach(time, false);
            self.place(class, now);
            class = parent;
        }
        if !others {
            self.classes[ROOT].limit_from(now);
        }
        // The ancestors were active; their next sender may change.
        while class != ROOT {
            self.place(class, now);
            class = self.classes[class].parent;
        }
        self.classes[ROOT].refit(now);
    }

    /// Charges service to a class; `stays` if packets still wait in it.
    #[inline]
    fn charge(&mut self, number: usize, bytes: u64, stays: bool, now: u128) {
        let class = &mut self.classes[number];
        class.total += bytes;
        let (Some(service), true) = (&class.share, class.active) else { return };
        let (parent, slot) = (class.parent, class.slot);
        class.time = class.curve.inverse(service, class.total);
        class.active = stays;
        let time = self.catch_up(number, parent);
        let brood = &mut self.classes[parent].brood;
        brood.reach(time, !self.by_deadline);
        if stays {
            return self.place(number, now);
        }
        brood.fit.remove(slot);
        brood.unfit.remove(slot);
        brood.active -= 1;
        if brood.active == 0 {
            (brood.floor, brood.selected) = (brood.top, brood.top);
        }
    }

    /// Service that an upper limit withheld from a class is not made up for later.
    #[inline]
    fn catch_up(&mut self, class: usize, parent: usize) -> u128 {
        let floor = self.classes[parent].brood.floor;
        let class = &mut self.classes[class];
        if class.time < floor {
            class.curve.delay(floor - class.time);
            class.time = floor;
        }
        class.time
    }

    /// Places a class among its siblings.
    #[inline]
    fn place(&mut self, number: usize, now: u128) {
        let class = &mut self.classes[number];
        class.refit(now);
        let Class { parent, slot, fit, time, .. } = *class;
        let brood = &mut self.classes[parent].brood;
        if fit <= now {
            brood.unfit.remove(slot);
            brood.fit.set(slot, time);
        } else {
            brood.fit.remove(slot);
            brood.unfit.set(slot, fit);
        }
    }
}

impl Class {
    /// Joins at the virtual time `system` of its parent, or at its own if that is later. Returns it.
    fn join(&mut self, system: u128, now: u128) -> u128 {
        self.active = true;
        self.limit_from(now);
        if let Some(service) = &self.share {
            self.time = self.time.max(system);
            self.curve.join(service, self.time, self.total);
            self.time = self.time.max(self.curve.inverse(service, self.total));
        }
        self.time
    }

    /// Starts its upper limit at `now`, unless it has exceeded it.
    fn limit_from(&mut self, now: u128) {
        if let Some(upper) = &self.upper {
            self.limit.join(upper, now, self.total);
        }
    }

    /// Computes when it may send: not before its own limit, nor before one of its children.
    #[inline]
    fn refit(&mut self, now: u128) {
        if let Some(upper) = &self.upper {
            self.free = self.limit.inverse(upper, self.total);
            let late = now.saturating_sub(CREDIT).saturating_sub(self.free);
            self.limit.delay(late);
            self.free += late;
        }
        self.fit = self.free;
        if self.leaf.is_none() && self.brood.fit.first().is_none() {
            self.fit = self.fit.max(self.brood.unfit.first().map_or(u128::MAX, |(fit, _)| fit));
        }
    }
}

impl Brood {
    fn new(classes: Box<[usize]>) -> Self {
        let (fit, unfit) = (Heap::new(classes.len()), Heap::new(classes.len()));
        Self { classes, fit, unfit, ..Self::default() }
    }

    /// Records that a child has reached this virtual time, selected by it or not.
    #[inline]
    fn reach(&mut self, time: u128, selected: bool) {
        self.top = self.top.max(time);
        if selected {
            self.selected = self.selected.max(time);
        }
    }
}
